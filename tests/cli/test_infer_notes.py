"""`nsfrc infer`: what it refuses to overwrite, warns of and explains."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.support import Run, arguments, json_lines
from tests.inference.support import ONE, PERCEPTION, YES, labelled, pixels, save, thing

FIGURES = Path(__file__).parents[2] / "examples" / "figures"


def test_images_that_are_no_figures_are_told(here: Run) -> None:
    grey = Image.open(next(FIGURES.rglob("*.png"))).convert("L")
    (here.folder / "d").mkdir()
    grey.save(here.folder / "d" / "grey.png")
    Image.new("RGB", (200, 200), (90, 90, 90)).save(here.folder / "d" / "dark.png")
    Image.new("RGB", (200, 200), (250, 250, 250)).save(here.folder / "d" / "empty.png")
    told = "warning: 1 image is not as yolo expects (without colour): answers may be wrong\n"
    assert told in here("infer", "--images", "d").err


def test_figures_with_more_objects_than_slots(here: Run) -> None:
    here.good("data", "kandinsky", "free", "--out", "figures", "--count", "24")
    result = here("infer", "--images", "figures/images", "--json")
    assert " images have more objects than slots(2) of the program takes" in result.err and "expects" not in result.err
    (here.folder / "rules.pl").write_text(ONE.replace("slots(2)", "slots(10)"))
    assert not here("infer", "--images", "figures/images", "--json").err


def test_a_report_takes_the_place_of_no_other_file(here: Run) -> None:
    path = save(here.folder / "d" / "a.png", YES)
    before = path.read_bytes()
    assert "--report d/a.png: the name must end in .html or .htm, such as a.html" in here.refused(
        *arguments("--report", "d/a.png"))
    assert path.read_bytes() == before
    assert "--report r.csv is the file of --out too: name another" in here.refused(
        *arguments("--out", "r.csv", "--report", "r.csv"))
    (here.folder / "r.csv").write_text("")
    (here.folder / "r.html").symlink_to("r.csv")
    assert "is the file of --out too" in here.refused(*arguments("--out", "r.csv", "--report", "r.html"))
    assert not list(here.folder.glob("*.part*"))
    here.good(*arguments("--report", "R.HTM"))
    here.good(*arguments("--report", "/dev/null"))


def test_why(here: Run) -> None:
    labelled(here.folder / "d", 1)
    assert "because" not in here.good(*arguments())
    lines = here.good(*arguments("--why")).splitlines()
    (place,) = (i for i, line in enumerate(lines) if line.startswith("true/0.png"))
    assert lines[place + 1].startswith("    kp(img) 1.00") and "because in(obj1,img) 1.00" in lines[place + 1]
    assert any("missing color(obj1,red) 0.00" in line for line in lines)
    assert "leave out one of the two" in here.refused(*arguments("--why", "--quiet"))
    assert len(json_lines(here.good(*arguments("--why", "--json")))[0]) == 2


def test_one_image_has_its_reason(here: Run) -> None:
    path = save(here.folder / "some.png", YES)
    one = "infer", "--images", path, *PERCEPTION
    assert "\n    kp(img) 1.00 because" in here.good(*one)
    assert here.good(*one, "--quiet") == "1 image: 1 true\n"
    path.write_text("no image")
    assert "failed: not an image" in here(*one).out


def test_animated_images_are_told(here: Run) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
    (here.folder / "d").mkdir()
    frames[0].save(here.folder / "d" / "still.gif")
    assert "animated" not in here(*arguments()).err
    frames[0].save(here.folder / "d" / "a.gif", save_all=True, append_images=frames[1:])
    assert "warning: 1 image is animated: only the first frame was judged\n" in here(*arguments()).err
    frames[0].save(here.folder / "d" / "b.webp", save_all=True, append_images=frames[1:])
    assert "warning: 2 images are animated: only the first frame was judged\n" in here(*arguments()).err


def test_further_objects_are_told(here: Run) -> None:
    with open(here.folder / "readable.py", "a") as module:
        module.write("\nclass Counting(Readable):\n    def forward(self, images):\n"
                     "        self.further = (images[:, 0, self.objects:, 10] >= 0.5).sum(1)\n"
                     "        return super().forward(images)\n")
    counting = "infer", "--images", "d", "--perception", "readable:Counting", "--trust"
    save(here.folder / "d" / "a.png", YES)
    assert not here(*counting).err
    save(here.folder / "d" / "b.png", pixels(*[thing()] * 4))
    told = "1 image has more objects than slots(2) of the program takes: the least sure were left out, and answers " \
           "may be wrong; nsfrc compile PROGRAM --slots object=N takes more"
    assert here(*counting).err == f"warning: {told}\n"
    assert json_lines(here.good(*counting, "--json"))[1]["warnings"] == [told]


def test_a_perception_beside_the_program(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(here.folder / "d" / "a.png", YES)
    (here.folder / "far").mkdir()
    (here.folder / "rules.pl").rename(here.folder / "far" / "rules.pl")
    with open(here.folder / "far" / "rules.pl", "a") as program:
        program.write(":- perception('beside_test_infer:Readable').")
    far = "infer", "--images", "d", "--program", "far/rules.pl", "--json", "--trust"
    message = here.refused(*far)
    assert f"it was looked for in {here.folder} and {here.folder / 'far'}, and among installed packages" in message
    monkeypatch.setattr(sys, "path", [place for place in sys.path if not place.endswith("far")])
    (here.folder / "readable.py").rename(here.folder / "far" / "beside_test_infer.py")
    importlib.invalidate_caches()
    assert json_lines(here.good(*far))[0][0]["answer"] == "true"


def test_a_constant_that_perception_does_not_know(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    (here.folder / "rules.pl").write_text(
        ":- type(image, [img]). :- type(object, slots(2)). :- type(color, [red, green]).\n"
        ":- neural(in(object, image)). :- neural(color(object, color)). :- target(kp(img)).\n"
        "kp(X) :- in(O, X), color(O, green).\n")
    message = here.refused("infer", "--images", "d", *PERCEPTION)
    assert message == (
        "error: the neural predicate color(object, color): perception readable:Readable does not know 'green'; it "
        "knows red, yellow, blue, square, circle, triangle: leave it out of the type's constants, or use a "
        "perception that has an entry of that name (docs/perception.md, \"Bringing your own\")\n")
    assert "perception yolo does not know 'green'" in here.refused("infer", "--images", "d")
