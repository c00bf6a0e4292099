"""The report: what is on the page, that nothing a user gave gets out of its place, and how the file is written."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

import nsfrc
from nsfrc.data.kandinsky import DIMENSIONS
from nsfrc.errors import NsfrcError
from nsfrc.explain import explain
from nsfrc.inference.images import read
from nsfrc.inference.measures import Measured
from nsfrc.inference.report import Report
from nsfrc.inference.report_card import address
from nsfrc.inference.report_thumbnail import thumbnail
from nsfrc.inference.rows import Answered, Row
from nsfrc.program import Program
from tests.inference.html_tree import Element, parse
from tests.inference.report_rows import Maker

EVIL = "<script>alert(1)</script>&\"'.png"


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(tmp_path / "images")


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Element]:
    def write(maker: Maker, *rows: Row, measures: Measured | None = None, **header: str) -> Element:
        report = Report(tmp_path / "report.html", maker.program, DIMENSIONS, {"kp(img)": 0.5}, header)
        for row in rows:
            report.add(row)
        return parse(report.close(measures).read_text())

    return write


def cards(page: Element) -> list[Element]:
    return list(page.one("main").all("article"))


def drawn(card: Element) -> dict[str, Element]:
    """Boxes by object number."""
    return {box["data-o"]: box for box in card.all("g", "object")}


def rect(box: Element) -> list[float]:
    """x, y, width, height as fractions."""
    return [float(box.one("rect")[name].removesuffix("%")) / 100 for name in ("x", "y", "width", "height")]


def test_thumbnail_is_a_small_copy_of_the_image(maker: Maker, page: Callable[..., Element]) -> None:
    image = cards(page(maker, maker.row(0)))[0].one("img")
    head, _, data = image["src"].partition(",")
    with Image.open(io.BytesIO(base64.b64decode(data))) as small:
        assert head == f"data:image/{small.format.lower()};base64"
        assert small.size == (240, 240) == (int(image["width"]), int(image["height"]))
        with Image.open(maker.folder / "0.png") as original:
            expected = np.asarray(original.convert("RGB").resize((240, 240), Image.Resampling.BOX), dtype=float)
        assert np.abs(np.asarray(small.convert("RGB")) - expected).mean() < 6


def test_thumbnail_without_a_copy_comes_from_what_perception_saw(tmp_path: Path) -> None:
    path = tmp_path / "wide.png"
    Image.new("RGB", (400, 100), (200, 30, 30)).save(path)
    found = thumbnail(read(path, (160, 160)))
    assert (found.width, found.height) == (240, 60)
    with Image.open(io.BytesIO(base64.b64decode(found.address.partition(",")[2]))) as small:
        pixels = np.asarray(small.convert("RGB"), dtype=int)
    assert np.abs(pixels - (200, 30, 30)).max() <= 8  # none of the frame around it


def test_boxes_are_where_the_objects_are(maker: Maker, page: Callable[..., Element]) -> None:
    row = maker.row(0)
    assert row.objects is not None
    boxes = drawn(cards(page(maker, row))[0])
    assert sorted(boxes) == ["1", "2", "3", "4"]
    for number, box in boxes.items():
        x1, y1, x2, y2 = row.objects[int(number) - 1, :4]
        assert rect(box) == pytest.approx([x1, y1, x2 - x1, y2 - y1], abs=2e-4)
        assert box.one("text").text == number
        assert "aside" not in box.classes  # all four take part in two pairs


def test_boxes_of_an_image_that_is_not_square(maker: Maker, page: Callable[..., Element]) -> None:
    path = maker.folder / "tall.png"
    maker.folder.mkdir(parents=True)
    Image.new("RGB", (100, 400), "white").save(path)
    objects = np.zeros((4, len(DIMENSIONS)), dtype=np.float32)
    objects[0, :4] = 0.375, 0.25, 0.5, 0.5  # the picture takes the middle quarter of the frame
    objects[1, :4] = 0.0, 0.0, 0.5, 0.1  # half of it beside the picture
    objects[:2, -1] = 1
    boxes = drawn(cards(page(maker, maker.of(path, objects, None)))[0])
    assert sorted(boxes) == ["1", "2"]  # the other two were not seen
    assert rect(boxes["1"]) == pytest.approx([0, 0.25, 0.5, 0.25], abs=1e-3)
    assert rect(boxes["2"]) == pytest.approx([0, 0, 0.5, 0.1], abs=1e-3)


def test_objects_that_take_no_part_stand_back(tmp_path: Path, page: Callable[..., Element]) -> None:
    maker = Maker(tmp_path, "closeby")
    row = maker.row(0)
    card = cards(page(maker, row))[0]
    named = set(re.findall(r"closeby\(obj(\d),obj(\d)\)", card.text)[0])
    assert {n for n, box in drawn(card).items() if "aside" not in box.classes} == named
    assert len(drawn(card)) == 4 and len(named) == 2


def test_the_reason(maker: Maker, page: Callable[..., Element]) -> None:
    row = maker.row(0)
    card = cards(page(maker, row))[0]
    because = card.one("p", "because")
    assert re.fullmatch(r"kp\(img\) (0\.9\d|1\.00) because obj\d, obj\d, obj\d, obj\d", because.text)
    outer = next(card.all("ul", "atoms"))
    body = [next(li.all(cls="atom")) for li in outer.children if isinstance(li, Element)]
    assert [re.sub(r"\(.*", "", atom.one("span", "text").text) for atom in body] == ["in"] * 4 + [
        "same_shape_pair", "same_color_pair", "same_shape_pair", "diff_color_pair"]
    for atom in body:
        name = atom.one("span", "text").text
        assert atom["data-o"].split() == re.findall(r"obj(\d)", name)
        assert row.V0 is not None
        shown = row.V0 if name.startswith("in(") else maker.V_T[row.file]
        assert atom.one("span", "values").text == f"{shown[maker.program.index(name)]:.2f}"
    folded = list(card.all("details"))
    assert len(folded) == 4 and not any("open" in one.attributes for one in folded)
    assert all(len(list(one.all("div", "atom"))) >= 2 for one in folded)
    assert not list(card.all(cls="weak"))


def test_what_is_missing_is_marked_and_open(maker: Maker, page: Callable[..., Element]) -> None:
    row = maker.row(1)
    assert row.answer == "false"
    document = page(maker, row)
    card = cards(document)[0]
    sentence = card.one("p", "because").text
    assert "the nearest is obj" in sentence and "; missing " in sentence and "because" not in sentence
    weak = list(card.all(cls="weak"))
    assert weak and all(atom.one("span", "lack").text == "missing" for atom in weak)
    assert all(float(atom.one("span", "values").text) <= 0.5 for atom in weak)
    assert {atom.tag for atom in weak} == {"summary", "div"}
    for one in card.all("details"):
        assert ("open" in one.attributes) == ("weak" in next(one.all("summary")).classes)
    assert card.one("p", "rule").one("a")["href"] in {f"#{li['id']}" for li in document.one("ol", "rules").all("li")}


def test_derived_atoms_without_objects_stand_for_those_below(tmp_path: Path, page: Callable[..., Element]) -> None:
    maker = Maker(tmp_path, "nine_circles")
    card = cards(page(maker, maker.row(0)))[0]
    triples = [s for s in card.all("summary") if "triple" in s.text]
    assert [len(s["data-o"].split()) for s in triples] == [3, 3, 3]
    assert sorted(n for s in triples for n in s["data-o"].split()) == [str(n) for n in range(1, 10)]


def test_objects_are_described(maker: Maker, page: Callable[..., Element]) -> None:
    row = maker.row(0)
    assert row.objects is not None
    row.objects[3] = 0
    row = maker.of(row.path, row.objects, "true")
    keys = [key.one("span").text for key in cards(page(maker, row))[0].all("li", "key")]
    for vector, said in zip(row.objects[:3], keys, strict=False):
        assert said.split() == [DIMENSIONS[4 + vector[4:7].argmax()], DIMENSIONS[7 + vector[7:10].argmax()]]
    assert keys[3:] == ["not seen (0.00)"]  # it takes part in the reason


def test_unsure_objects_show_their_objectness_and_empty_slots_are_one_entry(
    tmp_path: Path, page: Callable[..., Element]
) -> None:
    maker = Maker(tmp_path, "closeby")
    row = maker.row(0)
    assert row.objects is not None
    row.objects[1, 10] = 0.22
    row.objects[2:] = 0
    row = maker.of(row.path, row.objects, None)
    listed = list(cards(page(maker, row))[0].all("li", "key"))
    texts = [key.one("span").text for key in listed]
    assert "(" not in texts[0] and texts[1].endswith(" (0.22)") and texts[2:] == ["2 slots empty"]
    assert [key["data-o"] for key in listed] == ["1", "2", "3 4"]


def test_failures_come_first(maker: Maker, page: Callable[..., Element]) -> None:
    rows = [maker.row(0), maker.row(2, label="false"), maker.failed("broken.png", "damaged; get a fresh copy", "true"),
            maker.row(1), maker.row(3, label="true")]
    found = cards(page(maker, *rows, measures=maker.measures))
    assert [c["data-file"] for c in found] == ["broken.png", "2.png", "3.png", "0.png", "1.png"]
    assert [c["data-state"] for c in found] == ["error", "wrong", "wrong", "right", "right"]
    assert [c.one("span", "mark").text for c in found] == ["✗ failed", *["✗ wrong"] * 2, *["✓ right"] * 2]
    assert found[0].one("p", "message").text == "damaged; get a fresh copy"
    assert not list(found[0].all("img"))


def test_head_of_the_page(maker: Maker, page: Callable[..., Element]) -> None:
    rows = [maker.row(0), maker.row(1), maker.row(2, label="false"), maker.failed("a.png", "empty")]
    document = page(maker, *rows, measures=maker.measures, perception="yolo-n:12", threshold="0.5 from <the> program")
    numbers = {div.one("dt").text: div.one("dd").text for div in document.one("dl", "figures").all("div")}
    assert numbers == {"images": "4", "accuracy": "66.67%", "wrong": "1", "failed": "1"}
    assert [dd.text for dd in document.one("dl", "settings").all("dd")] == ["yolo-n:12", "0.5 from <the> program"]
    assert [li.text for li in document.one("ol", "rules").all("li")] == list(maker.program.clauses)
    cells = [td.text for td in document.one("table", "confusion").one("tbody").all("td")]
    assert cells == ["1", "0", "1", "1"]  # rows are labels: true, false
    bars = list(document.one("svg", "reliability").all("rect", "bar"))
    assert len(bars) == sum(1 for b in maker.measures.only.reliability() if b.count) > 0


def test_without_labels_nothing_is_said_about_right_and_wrong(maker: Maker, page: Callable[..., Element]) -> None:
    document = page(maker, maker.row(1, label=None), maker.row(0, label=None), measures=maker.measures)
    assert not list(document.all("table")) and not list(document.all("svg", "reliability"))
    numbers = {div.one("dt").text: div.one("dd").text for div in document.one("dl", "figures").all("div")}
    assert numbers == {"images": "2", "true": "1", "false": "1", "failed": "0"}
    radios = [(r["value"]) for r in document.one("form").all("input") if r["type"] == "radio"]
    assert radios == ["all", "error", "answer true", "answer false"]
    assert [c["data-file"] for c in cards(document)] == ["1.png", "0.png"]
    assert not list(document.all(cls="mark"))
    assert {o["value"] for o in document.one("form").all("option")} == {"written", "high", "low", "file", "answer"}


def test_file_names_and_messages_stay_text(maker: Maker, page: Callable[..., Element]) -> None:
    name = EVIL.replace("/", "_")
    document = page(maker, maker.row(0, name), maker.failed(EVIL, "<b>bad</b>"), **{"<i>key": "<i>value"})
    assert len(list(document.all("script"))) == 1
    assert {c["data-file"] for c in cards(document)} == {name, EVIL}
    assert {c.one("h3").text for c in cards(document)} == {name, EVIL}
    assert [c.one("p", "message").text for c in cards(document) if c["data-state"] == "error"] == ["<b>bad</b>"]
    assert document.one("dl", "settings").text == "<i>key<i>value"


def test_names_of_a_program_stay_text(tmp_path: Path, page: Callable[..., Element]) -> None:
    (tmp_path / "evil.pl").write_text("""
        :- type(image, [img]). :- type(object, ['<script>x</script>', '"b"']). :- type(color, [red, yellow, blue]).
        :- neural(in(object, image)). :- neural(color(object, color)).
        :- target('<script>'(img)).
        '<script>'(X) :- in(O, X), color(O, red).
    """)
    maker = Maker(tmp_path / "images", "closeby", nsfrc.compile(tmp_path / "evil.pl"))
    row = maker.row(0, label=None)
    document = page(maker, row)
    assert len(list(document.all("script"))) == 1
    card = cards(document)[0]
    assert "'<script>'(img)" in card.one("p", "because").text
    assert [k.one("span").text.split(":")[0] for k in card.all("li", "key")] == ["<script>x</script>", '"b"']
    assert {a.attributes["data-o"] for a in card.all(cls="atom")} <= {"1", "2"}


def test_a_file_name_that_is_not_unicode_is_written(maker: Maker, page: Callable[..., Element]) -> None:
    assert cards(page(maker, maker.failed("bad\udcff.png", "empty")))[0]["data-file"] == "bad?.png"


def test_there_are_no_blanks_between_cards(maker: Maker, page: Callable[..., Element]) -> None:
    main = page(maker, maker.row(0), maker.row(1), maker.failed("a.png", "empty")).one("main")
    assert [child if isinstance(child, str) else child.tag for child in main.children] == ["\n", *["article"] * 3]


def test_nothing_is_loaded_and_only_our_script_may_run(maker: Maker, page: Callable[..., Element]) -> None:
    document = page(maker, maker.row(0))
    policy = next(m["content"] for m in document.all("meta") if "http-equiv" in m.attributes)
    assert policy.startswith("default-src 'none'; img-src data:;") and "unsafe" not in policy
    for element in document.all():
        assert element.tag not in ("link", "iframe", "object", "base")
        assert "style" not in element.attributes and not any(a.startswith("on") for a in element.attributes)
        assert element.attributes.get("src", "data:").startswith("data:")
        assert element.attributes.get("href", "#").startswith(("#", "images/"))


def test_without_scripts_everything_but_the_controls_is_shown(maker: Maker, page: Callable[..., Element]) -> None:
    document = page(maker, maker.row(0), maker.row(1), maker.failed("a.png", "empty"), measures=maker.measures)
    hidden = [e.attributes.get("id") for e in document.all() if "hidden" in e.attributes]
    assert hidden == ["controls", "nothing"]


def test_a_row_from_an_earlier_run_has_its_answer(maker: Maker, page: Callable[..., Element]) -> None:
    row = maker.row(0)
    row = replace(row, path=Path("0.png"), answers={"kp(img)": replace(row.answers["kp(img)"], reasons=())},
                  objects=None, V0=None, thumbnail=None)
    card = cards(page(maker, row))[0]
    assert card["data-state"] == "right" and "earlier run" in card.one("p", "message").text


def test_a_thousand_images_stay_small(tmp_path: Path) -> None:
    for pattern in ("threepairs", "nine_circles"):
        maker = Maker(tmp_path / pattern, pattern)
        sizes = []
        for count in (2, 8):
            report = Report(tmp_path / "report.html", maker.program, DIMENSIONS, {"kp(img)": 0.5}, {})
            for index in range(count):
                report.add(maker.row(index))
            sizes.append(report.close(maker.measures).stat().st_size)
        assert (sizes[1] - sizes[0]) / 6 < 14_000


def test_nothing_is_seen_of_the_page_until_it_is_whole(maker: Maker, tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    report = Report(path, maker.program, DIMENSIONS, {"kp(img)": 0.5}, {})
    report.add(maker.row(0))
    assert list(path.parent.iterdir()) == []
    assert report.close() == path
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(NsfrcError, match="closed"):
        report.add(maker.row(1))


def test_an_interrupt_keeps_what_is_done(maker: Maker, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with pytest.raises(KeyboardInterrupt), Report(path, maker.program, DIMENSIONS, {"kp(img)": 0.5}, {}) as report:
        report.add(maker.row(0))
        raise KeyboardInterrupt
    page = parse(path.read_text())
    assert page.one("p", "stopped").text == "Stopped before the end: this page shows the first 1 image."
    assert len(cards(page)) == 1


def test_an_interrupt_before_the_first_image_leaves_the_old_page(maker: Maker, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), Report(path, maker.program, DIMENSIONS, {"kp(img)": 0.5}, {}):
        raise KeyboardInterrupt
    assert path.read_text() == "old"


def test_an_error_leaves_the_old_page(maker: Maker, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(NsfrcError, match="disk"), Report(path, maker.program, DIMENSIONS, {}, {}) as report:
        report.add(maker.row(0))
        raise NsfrcError("the disk is full")
    assert path.read_text() == "old" and list(tmp_path.glob(".*")) == []


def test_places_that_cannot_be_written(maker: Maker, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="is a folder"):
        Report(tmp_path, maker.program, DIMENSIONS, {"kp(img)": 0.5}, {})
    (tmp_path / "file").touch()
    with pytest.raises(NsfrcError, match=r"cannot write the report .*file/report\.html"):
        Report(tmp_path / "file" / "report.html", maker.program, DIMENSIONS, {"kp(img)": 0.5}, {})


def test_the_same_rows_give_the_same_bytes(maker: Maker, tmp_path: Path) -> None:
    rows = [maker.row(0), maker.row(1)]
    pages = []
    for name in ("a.html", "b.html"):
        with Report(tmp_path / name, maker.program, DIMENSIONS, {"kp(img)": 0.5}, {}) as report:
            for row in rows:
                report.add(row)
            pages.append(report.close(maker.measures).read_bytes())
    assert pages[0] == pages[1]


def test_a_program_without_objects(tmp_path: Path) -> None:
    program: Program = nsfrc.compile(_written(tmp_path, ":- type(image, [img]). :- neural(dark(image)). "
                                                        ":- target(kp(img)). kp(X) :- dark(X)."))
    path = tmp_path / "a.png"
    Image.new("RGB", (8, 8)).save(path)
    values = program.initial_valuation()
    values[program.index("dark(img)")] = values[program.index("kp(img)")] = 1
    said = Answered(None, "true", (explain(program, values, "kp(img)", values),))
    row = Row("a.png", path, {"kp(img)": said}, (1.0,), objects=np.zeros((0, 11)), V0=values,
              thumbnail=thumbnail(read(path, (8, 8))))
    with Report(tmp_path / "r.html", program, DIMENSIONS, {"kp(img)": 0.5}, {}) as report:
        report.add(row)
        report.close()
    card = cards(parse((tmp_path / "r.html").read_text()))[0]
    assert card.one("p", "because").text == "kp(img) 1.00" and "dark(img)" in card.one("ul", "atoms").text


def _written(folder: Path, text: str) -> Path:
    path = folder / "rules.pl"
    path.write_text(text)
    return path


def test_cards_lead_to_the_files_of_their_images(maker: Maker, page: Callable[..., Element], tmp_path: Path) -> None:
    names = ["true/0.png", "javascript:alert(1)/a b#?%.png", EVIL.replace("/", "")]
    rows = [maker.row(number, name) for number, name in enumerate(names)]
    gone = replace(maker.row(3, "gone.png"), path=tmp_path / "clip.mp4#120")
    found = cards(page(maker, *rows, gone))
    shown = {card["data-file"]: [a["href"] for a in card.one("h3").all("a")] for card in found}
    assert shown.pop("gone.png") == []
    for name, (way,) in shown.items():
        assert ":" not in way and (tmp_path / unquote(way)).samefile(maker.folder / name)
    assert set(shown) == set(names)


def test_cards_lead_to_files_beside_the_folder_of_the_page(maker: Maker, tmp_path: Path) -> None:
    row = maker.row(0, "a.png")
    assert address(row.path, tmp_path / "pages" / "all") == "../../images/a.png"
    assert address(tmp_path / "none.png", tmp_path) is None
