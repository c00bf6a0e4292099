"""The report of a program with several targets, and of objects that have places but no boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import read
from nsfrc.inference.measures import Measures
from nsfrc.inference.report import Report
from nsfrc.inference.report_objects import Places
from nsfrc.inference.results import Row
from tests.inference.html_tree import Element, parse
from tests.inference.test_report import cards, drawn

CLEVR = nsfrc.compile("clevr_hans3")
SHOWN = ("in(obj1,img)", "in(obj2,img)", "size(obj1,large)", "shape(obj1,cube)", "size(obj2,large)",
         "shape(obj2,cylinder)")


def clevr_row(folder: Path, scores: tuple[float, float, float], *atoms: str, objects: np.ndarray | None = None) -> Row:
    """An image 48 × 32 of which these atoms, and the targets as far as the scores say, are true; it is of kp2."""
    values = CLEVR.initial_valuation()
    for atom in atoms:
        values[CLEVR.index(atom)] = 1
    values[CLEVR.target_indices] = scores
    path = folder / "a.png"
    Image.new("RGB", (48, 32), "grey").save(path)
    answer = CLEVR.targets[int(np.argmax(scores))]
    return Row("a.png", path, "kp2(img)", scores, answer, answer == "kp2(img)", None,
               np.zeros((10, 4)) if objects is None else objects, values, values, read(path, (32, 32), "stretch"))


def clevr_card(folder: Path, row: Row, places: Places | None = None) -> Element:
    with Report(folder / "r.html", CLEVR, ("objectness", "x", "y", "z"), None, {}, places=places) as report:
        report.add(row)
        report.close()
    return cards(parse((folder / "r.html").read_text()))[0]


def test_several_targets(tmp_path: Path) -> None:
    card = clevr_card(tmp_path, clevr_row(tmp_path, (0.9, 0.1, 0.2), *SHOWN))
    assert card["data-score"] == "0.900000" and card["data-answer"] == "kp1(img)"
    assert [li.text for li in card.one("ul", "scores").all("li")] == ["kp1(img) 0.90", "kp2(img) 0.10", "kp3(img) 0.20"]
    answered, label = card.all("p", "because")
    assert answered.text == "kp1(img) 0.90 because obj1, obj2"
    assert label.text.startswith("kp2(img) 0.10: the nearest is")
    assert not drawn(card)  # these vectors have no boxes, and nobody says where they are
    assert not list(card.all("p", "equal"))


def test_the_highest_of_several_low_values_is_no_reason(tmp_path: Path) -> None:
    card = clevr_card(tmp_path, clevr_row(tmp_path, (0.2, 0.1, 0.1), *SHOWN[:-1]))
    assert card["data-answer"] == "kp1(img)"
    sentence = next(card.all("p", "because")).text
    assert sentence == "kp1(img) 0.20: the nearest is obj1, obj2; missing shape(obj2,cylinder)"


def test_where_no_target_reaches_the_threshold_the_nearest_is_explained(tmp_path: Path) -> None:
    row = replace(clevr_row(tmp_path, (0.1, 0.1, 0.3), *SHOWN), answer="none", label="none", right=True)
    with Report(tmp_path / "r.html", CLEVR, ("objectness", "x", "y", "z"), None, {}) as report:
        report.add(row)
        page = parse(report.close().read_text())
    card = cards(page)[0]
    assert (card["data-answer"], card["data-score"], card["data-state"]) == ("none", "0.300000", "right")
    assert [p.text[:24] for p in card.all("p", "because")] == ["kp3(img) 0.30: the neare"]
    assert "answer none" in [r["value"] for r in page.one("form").all("input") if r["type"] == "radio"]


def test_equal_values_are_told(tmp_path: Path) -> None:
    card = clevr_card(tmp_path, clevr_row(tmp_path, (0.9, 0.1, 0.9), *SHOWN))
    assert card.one("p", "equal").text == "kp3(img) is as high, to four digits."
    assert card["data-answer"] == "kp1(img)"


def test_objects_without_boxes_are_dots(tmp_path: Path) -> None:
    objects = np.zeros((10, 4))
    objects[:4, 0] = 0.9, 0.1, 0.8, 0.2  # the second is faint, but takes part in the reason
    row = clevr_row(tmp_path, (0.9, 0.1, 0.2), *SHOWN, "color(obj1,cyan)", "material(obj1,metal)", objects=objects)
    places = np.stack([np.linspace(0.1, 1.0, 10), np.full(10, 0.25)], axis=1)
    card = clevr_card(tmp_path, row, lambda vectors: places[: len(vectors)])
    dots = drawn(card)
    assert sorted(dots) == ["1", "2", "3"]
    for number, dot in dots.items():
        spot = dot.one("circle", "spot")
        assert [spot["cx"], spot["cy"]] == [f"{10 * int(number):.2f}%", "25.00%"]
        assert dot.one("text").text == number and not list(dot.all("rect"))
        assert ("aside" in dot.classes) == (number == "3")
    assert dots["1"]["aria-label"] == "object 1: large metal cyan cube"
    keys = [key.one("span").text for key in card.all("li", "key")]
    assert keys == ["large metal cyan cube", "large cylinder (0.10)", "unclear (0.80)", "unclear (0.20)",
                    "6 slots empty"]


def test_dots_follow_the_picture_into_its_frame(tmp_path: Path) -> None:
    row = clevr_row(tmp_path, (0.9, 0.1, 0.2), *SHOWN)
    boxed = replace(row, picture=read(row.path, (32, 32)))  # with bars above and below: rows 5 to 26 of 32
    dot = drawn(clevr_card(tmp_path, boxed, lambda vectors: np.full((len(vectors), 2), 0.5)))["1"].one("circle", "spot")
    assert dot["cx"] == "50.00%" and float(dot["cy"].removesuffix("%")) == pytest.approx(50, abs=3)
    beside = clevr_card(tmp_path, boxed, lambda vectors: np.full((len(vectors), 2), 0.05))
    assert not drawn(beside)


@pytest.mark.parametrize(("places", "message"), [
    (lambda vectors: vectors[:2], r"places\(\) fails on object vectors \[10, 4\]: ValueError"),
    (lambda vectors: vectors.nothing, r"places\(\) fails .* AttributeError"),
])
def test_places_that_cannot_be(places: Places, message: str, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=message):
        clevr_card(tmp_path, clevr_row(tmp_path, (0.9, 0.1, 0.2), *SHOWN), places)


def test_a_confusion_matrix_of_many_classes_is_narrow(tmp_path: Path) -> None:
    program = nsfrc.compile("clevr_hans7")
    measures = Measures(program.targets)
    measures.add("kp1(img)", (1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0), "kp1(img)")
    page = parse(Report(tmp_path / "r.html", program, ("objectness",), None, {}).close(measures).read_text())
    table = page.one("table", "confusion")
    assert "many" in table.classes
    assert [th.text for th in table.one("thead").all("th")] == [f"kp{i}" for i in range(1, 8)]
