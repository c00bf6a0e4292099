"""The report of a program with classes or several questions, and of objects that have places but no boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.explain import explain
from nsfrc.inference.images import read
from nsfrc.inference.measures import Measured
from nsfrc.inference.report import Report
from nsfrc.inference.report_objects import Places
from nsfrc.inference.report_thumbnail import thumbnail
from nsfrc.inference.rows import Answered, Row
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
    asked = dict.fromkeys([answer, "kp2(img)"])
    said = Answered("kp2(img)", answer, tuple(explain(CLEVR, values, target, values) for target in asked))
    return Row("a.png", path, {"classes": said}, scores,
               objects=np.zeros((10, 4)) if objects is None else objects, V0=values,
               thumbnail=thumbnail(read(path, (32, 32), "stretch")))


def clevr_card(folder: Path, row: Row, places: Places | None = None) -> Element:
    with Report(folder / "r.html", CLEVR, ("objectness", "x", "y", "z"), {}, {}, places=places) as report:
        report.add(row)
        report.close()
    return cards(parse((folder / "r.html").read_text()))[0]


def test_classes(tmp_path: Path) -> None:
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
    row = clevr_row(tmp_path, (0.1, 0.1, 0.3), *SHOWN)
    row = replace(row, answers={"classes": Answered("none", "none", row.reasons[:1])})
    with Report(tmp_path / "r.html", CLEVR, ("objectness", "x", "y", "z"), {}, {}) as report:
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
    boxed = replace(row, thumbnail=thumbnail(read(row.path, (32, 32))))  # with bars above and below: rows 5 to 26 of 32
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
    measures = Measured(program.questions)
    measures.add(Row("a.png", Path("a.png"), {"classes": Answered("kp1(img)", "kp1(img)")}, (1.0, 0.5, *[0.0] * 5)))
    page = parse(Report(tmp_path / "r.html", program, ("objectness",), {}, {}).close(measures).read_text())
    table = page.one("table", "confusion")
    assert "many" in table.classes
    assert [th.text for th in table.one("thead").all("th")] == [f"kp{i}" for i in range(1, 8)]


ASKED = nsfrc.compile(source="""
    :- type(image, [img]). :- type(object, slots(2)). :- type(color, [red, blue]).
    :- neural(in(object, image)). :- neural(color(object, color)).
    :- target([red(img), blue(img)]). :- classes([one(img), two(img)]).
    red(X) :- in(O, X), color(O, red).
    blue(X) :- in(O, X), color(O, blue).
    one(X) :- in(_, X). two(X) :- in(O, X), in(P, X).
""", name="asked")


def asked_row(folder: Path, name: str, scores: tuple[float, ...], **said: tuple[str | None, str]) -> Row:
    """said: label and answer of red, blue and classes; obj1 is the reason for red, obj2 for blue."""
    values = ASKED.initial_valuation()
    for atom in ("in(obj1,img)", "in(obj2,img)", "color(obj1,red)", "color(obj2,blue)"):
        values[ASKED.index(atom)] = 1
    values[ASKED.target_indices] = scores
    path = folder / name
    Image.new("RGB", (32, 32), "grey").save(path)
    answers = {}
    for one in ASKED.questions:
        label, answer = said[one.name.partition("(")[0]]
        answers[one.name] = Answered(label, answer, (explain(ASKED, values, one.best(scores), values),))
    return Row(name, path, answers, scores, objects=np.zeros((2, 4)), V0=values,
               thumbnail=thumbnail(read(path, (32, 32))))


def asked_page(folder: Path) -> Path:
    """Three images: all right; blue wrong, without a label for red; one that failed."""
    rows = [
        asked_row(folder, "a.png", (0.9, 0.2, 0.1, 0.8), red=("true", "true"), blue=("false", "false"),
                  classes=("two(img)", "two(img)")),
        asked_row(folder, "b.png", (0.3, 0.7, 0.0, 0.0), red=(None, "false"), blue=("false", "true"),
                  classes=(None, "none")),
        Row("c.png", folder / "c.png", {one.name: Answered() for one in ASKED.questions}, error="empty"),
    ]
    measures = Measured(ASKED.questions)
    thresholds = {"red(img)": 0.5, "blue(img)": 0.6, "classes": 0.0}
    with Report(folder / "r.html", ASKED, ("objectness", "x", "y", "z"), thresholds, {}) as report:
        for row in rows:
            measures.add(row)
            report.add(row)
        return report.close(measures)


def test_every_question_is_answered_on_the_card(tmp_path: Path) -> None:
    page = parse(asked_page(tmp_path).read_text())
    failed, wrong, right = cards(page)
    assert [card["data-state"] for card in (failed, wrong, right)] == ["error", "wrong", "right"]
    assert [right[f"data-{key}-{i}"] for i in range(3) for key in ("answer", "label", "state")] == [
        "true", "true", "right", "false", "false", "right", "two(img)", "two(img)", "right"]
    assert [right[f"data-score-{i}"] for i in range(3)] == ["0.900000", "0.200000", "0.800000"]
    assert wrong["data-state-1"] == "wrong"
    assert not {"data-state-0", "data-label-0", "data-answer"} & set(wrong.attributes)
    heads = [one.one("h4") for one in wrong.all("section", "question")]
    assert [[span.text for span in head.all("span")] for head in heads] == [
        ["score 0.30", "answer false"], ["score 0.70", "answer true", "label false", "✗ wrong"],
        ["score 0.00", "answer none"]]
    assert [p.text for p in right.all("p", "because")] == [
        "red(img) 0.90 because obj1", "blue(img) 0.20: the nearest is obj2", "two(img) 0.80 because obj1, obj2"]
    assert [li.text for li in right.one("ul", "scores").all("li")] == ["one(img) 0.10", "two(img) 0.80"]


def test_every_question_has_a_summary_and_filters(tmp_path: Path) -> None:
    page = parse(asked_page(tmp_path).read_text())
    assert page.one("p", "lead").text.startswith(
        "Are red(img) and blue(img) true? Which is it, one(img) or two(img)? Each image")
    figures = [{div.one("dt").text: div.one("dd").text for div in one.all("div")} for one in page.all("dl", "figures")]
    assert figures == [{"images": "3", "with a wrong answer": "1", "failed": "1"},
                       {"accuracy": "100.00%", "wrong": "0"}, {"accuracy": "50.00%", "wrong": "1"},
                       {"accuracy": "100.00%", "wrong": "0"}]
    assert len(list(page.all("table", "confusion"))) == len(list(page.all("svg", "reliability"))) == 3
    form = page.one("form")
    filters = {one["data-end"]: [r["value"] for r in one.all("input")] for one in form.all("fieldset")}
    assert filters == {"": ["all", "wrong", "error"], "-0": ["all", "wrong", "answer true", "answer false"],
                       "-1": ["all", "wrong", "answer true", "answer false"],
                       "-2": ["all", "wrong", "answer two(img)", "answer none"]}
    assert [o["value"] for o in form.all("option")] == [
        "written", "high-0", "low-0", "high-1", "low-1", "high-2", "low-2", "file", "answer-0", "label-0", "answer-1",
        "label-1", "answer-2", "label-2"]
