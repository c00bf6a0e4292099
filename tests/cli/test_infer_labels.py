"""`nsfrc infer`: classes, and where the right answers come from."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from tests.cli.support import Run, arguments, csv_rows, json_lines
from tests.inference.support import ONE, SEVERAL, YES, labelled, pixels, save, thing


def test_classes(here: Run) -> None:
    (here.folder / "rules.pl").write_text(SEVERAL)
    for i, entries in enumerate(({"red": 1}, {"blue": 1}, {"triangle": 1})):
        save(here.folder / "d" / f"class{i}" / "a.png", pixels(thing(**entries)))
    save(here.folder / "d" / "class0" / "b.png", pixels(thing(blue=0.9)))
    out = here.good(*arguments("--out", "r.csv"))
    assert "classes     the highest of warm(img), cold(img), odd(img) is the answer\n" in out
    assert "accuracy 75.00% (3 of 4)" in out and "threshold" not in out
    assert "labels      class0 is warm(img), class1 is cold(img), class2 is odd(img) (class folders)\n" in out
    rows = csv_rows(here.folder / "r.csv")
    assert list(rows[0]) == ["file", "label", "warm(img)", "cold(img)", "odd(img)", "answer", "error", "left_out"]
    assert [(r["label"], r["answer"]) for r in rows] == [
        ("warm(img)", "warm(img)"), ("warm(img)", "cold(img)"), ("cold(img)", "cold(img)"), ("odd(img)", "odd(img)"),
    ]


def test_a_threshold_for_classes(here: Run) -> None:
    """Where none of them reaches it the answer is none; a folder of that name holds such images."""
    (here.folder / "rules.pl").write_text(SEVERAL)
    for name, entries in (("warm", {"red": 1}), ("cold", {"blue": 0.4}), ("none", {"red": 0.2})):
        save(here.folder / "d" / name / "a.png", pixels(thing(**entries)))
    assert "accuracy 66.67% (2 of 3)" in here.good(*arguments())
    result = here(*arguments("--threshold", "0.5", "--out", "r.csv", "--report", "r.html"))
    assert result.code == 0 and "is the answer, from 0.5 on (from --threshold); below, it is none\n" in result.out
    assert "accuracy 66.67% (2 of 3)" in result.out and "1 warm(img), 2 none" in result.out and not result.err
    assert [(r["label"], r["answer"]) for r in csv_rows(here.folder / "r.csv")] == [
        ("cold(img)", "none"), ("none", "none"), ("warm(img)", "warm(img)")]
    assert 'data-answer="none"' in (here.folder / "r.html").read_text()
    (here.folder / "rules.pl").write_text(SEVERAL + ":- threshold(0.3).")
    rows, summary = json_lines(here.good(*arguments("--json")))
    assert [r["answer"] for r in rows] == ["cold(img)", "none", "warm(img)"] and summary["accuracy"] == 1.0
    rows, _ = json_lines(here.good(*arguments("--json", "--threshold", "classes=0.1")))
    assert [r["answer"] for r in rows] == ["cold(img)", "warm(img)", "warm(img)"]


@pytest.mark.parametrize("semantics", ["paper", "anchored"])
def test_an_image_at_the_level_of_an_empty_one_is_of_no_class(here: Run, semantics: str) -> None:
    """Under `paper` an object that fits no class lifts all of them above that level."""
    (here.folder / "rules.pl").write_text(SEVERAL.replace("semantics(paper)", f"semantics({semantics})"))
    for name, entries in (("none", {"yellow": 1}), ("warm", {"red": 0.1}), ("cold", {"blue": 0.1})):
        save(here.folder / "d" / name / "a.png", pixels(thing(**entries)))
    save(here.folder / "d" / "none" / "b.png", pixels())
    rows, summary = json_lines(here.good(*arguments("--json")))
    lifted = semantics == "paper"
    assert {r["file"]: r["answer"] for r in rows} == {
        "cold/a.png": "cold(img)", "none/a.png": "warm(img)" if lifted else "none", "none/b.png": "none",
        "warm/a.png": "warm(img)"}
    assert summary["right"] == 3 + (not lifted) and summary["tied"] == lifted
    assert (max(summary["empty_scores"].values()) > 0) == lifted
    assert all(max(r["scores"].values()) <= summary["empty_scores"]["warm(img)"] + 0.001
               for r in rows if r["answer"] == "none")


def test_none_is_gone_on_with(here: Run) -> None:
    (here.folder / "rules.pl").write_text(SEVERAL)
    save(here.folder / "d" / "a.png", pixels(thing(red=0.2)))
    save(here.folder / "d" / "b.png", pixels(thing(red=1), stop=True))
    command = arguments("--out", "r.csv", "--threshold", "0.5", "--batch-size", "1")
    assert here(*command).code == 130
    (here.folder / "go").touch()
    assert "threshold 0.5, and now it is none" in here.refused(*arguments("--out", "r.csv", "--resume"))
    assert "2 images: 1 warm(img), 1 none" in here.good(*command, "--resume")


def test_classes_of_a_scenes_file(here: Run) -> None:
    (here.folder / "rules.pl").write_text(SEVERAL)
    for name, entries in (("a", {"red": 1}), ("b", {"blue": 1}), ("c", {"blue": 1})):
        save(here.folder / "d" / "images" / f"{name}.png", pixels(thing(**entries)))
    scenes = [{"image_filename": "a.png", "class_id": 0}, {"image_filename": "b.png", "class_id": 1}]
    (here.folder / "d" / "CLEVR_HANS_scenes_val.json").write_text(json.dumps({"scenes": scenes}))
    result = here(*arguments("--out", "r.csv"))
    told = "labels      class_id 0 is warm(img), class_id 1 is cold(img) (from CLEVR_HANS_scenes_val.json)\n"
    assert result.code == 0 and told in result.out and "accuracy 100.00% (2 of 2)" in result.out
    assert "warning: 1 image has no class (from CLEVR_HANS_scenes_val.json) and so no label\n" in result.err
    assert [r["label"] for r in csv_rows(here.folder / "r.csv")] == ["warm(img)", "cold(img)", ""]
    (here.folder / "rules.pl").write_text(ONE)
    result = here(*arguments())
    assert result.code == 0 and "accuracy" not in result.out
    assert "the images of class_id 0, class_id 1 (from CLEVR_HANS_scenes_val.json) have no label: the program has " \
           "no classes" in result.err


def test_a_class_without_a_target_leaves_the_others_their_labels(here: Run) -> None:
    (here.folder / "rules.pl").write_text(SEVERAL)
    for name, entries in (("0", {"red": 1}), ("9", {"blue": 1}), ("2", {"triangle": 1})):
        save(here.folder / "d" / f"CLEVR_Hans_classid_{name}_000000.png", pixels(thing(**entries)))
    result = here(*arguments())
    assert result.code == 0 and "accuracy 100.00% (2 of 2)" in result.out
    assert "class_id 0 is warm(img), class_id 2 is odd(img) (from the file names)" in result.out
    assert "warning: the images of class_id 9 (from the file names) have no label: " \
           "the classes stand for class_id 0 to 2\n" in result.err


def test_images_of_other_proportions_are_told_once(here: Run) -> None:
    with open(here.folder / "readable.py", "a") as module:
        module.write("\nclass Wide(Readable):\n    proportions = 1.5\n")
    (here.folder / "d").mkdir()
    for i, (width, height) in enumerate([(30, 20), (31, 20), (20, 30), (40, 30)]):
        Image.new("RGB", (width, height)).save(here.folder / "d" / f"{i}.png")
    wide = "infer", "--images", "d", "--perception", "readable:Wide", "--trust"
    told = "2 images are not as readable:Wide expects (not 3:2): answers may be wrong"
    for more in ((), ("--quiet",), ("--json",)):
        result = here(*wide, *more, "--batch-size", "1")
        assert result.code == 0 and result.err.count(f"warning: {told}\n") == 1
        assert ("expects" in result.out) == bool("--json" in more)
    assert json_lines(result.out)[1]["warnings"] == [told]
    here.good(*wide, "--report", "r.html")
    assert f'<p class="remark">Warning: {told}.</p>' in (here.folder / "r.html").read_text()
    (here.folder / "d" / "2.png").unlink()
    assert "1 image is not as readable:Wide expects" in here(*wide).err
    (here.folder / "d" / "3.png").unlink()
    assert "expects" not in here(*wide).err
    assert "expects" not in here(*arguments()).err


def test_a_stray_image_beside_class_folders(here: Run) -> None:
    labelled(here.folder / "d", 2)
    save(here.folder / "d" / "stray.png", YES)
    result = here(*arguments("--out", "r.csv"))
    assert result.code == 0 and "accuracy 100.00% (4 of 4)" in result.out and "5 images" in result.out
    assert "warning: 1 image beside the class folders has no label: stray.png\n" in result.err
    assert [r["label"] for r in csv_rows(here.folder / "r.csv") if r["file"] == "stray.png"] == [""]
    save(here.folder / "d" / "other.png", YES)
    assert "2 images beside the class folders have no label: other.png, stray.png\n" in here(*arguments()).err


def test_folders_beside_images_need_not_be_classes(here: Run) -> None:
    for name in ("a.png", "old/a.png", "new/a.png"):
        save(here.folder / "d" / name, YES)
    result = here(*arguments())
    assert result.code == 0 and not result.err and "accuracy" not in result.out


def test_equal_values_are_told(here: Run) -> None:
    (here.folder / "rules.pl").write_text(SEVERAL)
    save(here.folder / "d" / "a.png", pixels(thing(blue=1, triangle=1)))
    save(here.folder / "d" / "b.png", pixels(thing(blue=1)))
    out = here.good(*arguments())
    lines = {line.split()[0]: line for line in out.splitlines() if ".png" in line}
    assert lines["a.png"].endswith("cold(img)  (as high: odd(img))") and lines["b.png"].endswith("cold(img)")
    assert "1 of them has several highest scores that are equal in all digits shown" in out
    _, summary = json_lines(here.good(*arguments("--json")))
    assert summary["tied"] == 1


def test_numbers_that_may_mean_two_things_give_no_labels(here: Run) -> None:
    (here.folder / "rules.pl").write_text(SEVERAL)
    for i in (1, 2):
        save(here.folder / "d" / f"class{i}" / "a.png", YES)
    result = here(*arguments())
    assert result.code == 0 and "accuracy" not in result.out and "labels" not in result.out
    assert "warning: the images in class1, class2 have no label: class folders are named warm, cold, odd, or " in (
        result.err) and "all numbered, from class0 to class2 or from class1 to class3" in result.err
