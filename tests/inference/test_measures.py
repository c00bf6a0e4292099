"""Counts, against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsfrc.errors import NsfrcError
from nsfrc.inference.measures import Measured, Measures, equals
from nsfrc.inference.rows import Answered, Row
from nsfrc.questions import questions, short


def test_one_target() -> None:
    measures = Measures(["kp(img)"])
    for label, score in [("true", 0.95), ("true", 0.91), ("true", 0.2), ("false", 0.1), ("false", 0.97), (None, 1.0)]:
        measures.add(label, (score,), "true" if score >= 0.5 else "false")
    measures.add("true", (), None)
    assert (measures.count, measures.failed, measures.labelled, measures.right) == (7, 1, 5, 3)
    assert measures.accuracy == 0.6
    assert measures.confusion.tolist() == [[2, 1], [1, 1]]  # labels true, false × answers true, false
    bins = {round(b.low, 1): (b.count, b.score, b.share) for b in measures.reliability() if b.count}
    assert bins[0.9] == (3, pytest.approx((0.95 + 0.91 + 0.97) / 3), pytest.approx(2 / 3))
    assert bins[0.2] == (1, 0.2, 1.0) and bins[0.1] == (1, 0.1, 0.0) and len(bins) == 3
    expected = (3 * abs(2.83 / 3 - 2 / 3) + 0.8 + 0.1) / 5
    assert measures.calibration_error == pytest.approx(expected)
    assert "accuracy 60.00% (3 of 5)" in measures.as_text()
    assert json.loads(json.dumps(measures.as_data()))["confusion"]["true"] == {"true": 2, "false": 1}


def test_several_targets() -> None:
    measures = Measures(["a(img)", "b(img)", "c(img)"])
    measures.add("a(img)", (0.9, 0.1, 0.0), "a(img)")
    measures.add("c(img)", (0.1, 0.3, 0.2), "b(img)")
    assert measures.confusion.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert measures.calibration_error == pytest.approx((0.1 + 0.3) / 2)


def test_confusion_of_several_targets_has_short_names() -> None:
    measures = Measures(["kp1(img)", "kp2(img)"])
    measures.add("kp1(img)", (0.9, 0.1), "kp1(img)")
    measures.add("kp2(img)", (0.9, 0.1), "kp1(img)")
    lines = measures.as_text().splitlines()
    start = lines.index("label \\ answer    kp1    kp2")
    assert [line.split() for line in lines[start + 1 : start + 3]] == [["kp1", "1", "0"], ["kp2", "1", "0"]]
    assert len({len(line) for line in lines[start : start + 3]}) == 1
    assert short(["has(img,1)", "has(img,2)"]) == ("has(img,1)", "has(img,2)")
    assert short(["'<a>'(img)", "(b)"]) == ("'<a>'(img)", "(b)")


def test_equal_scores_are_counted() -> None:
    measures = Measures(["a(img)", "b(img)", "c(img)"])
    measures.add("a(img)", (0.9, 0.1, 0.9), "a(img)")
    assert "1 of them has several highest scores that are equal in all digits shown" in measures.as_text()
    measures.add("b(img)", (0.9, 0.95, 0.9), "b(img)")
    measures.add(None, (0.0, 0.0, 0.0), "a(img)")
    measures.add("b(img)", (), None)
    assert measures.tied == 2 == measures.as_data()["tied"]
    assert [equals((0.9, 0.1, 0.9)), equals((0.9, 0.95, 0.9)), equals((0.5,))] == [(0, 2), (), ()]
    one = Measures(["kp(img)"])
    one.add("true", (0.9,), "true")
    assert "tied" not in one.as_data() and "equal" not in one.as_text()


@pytest.mark.parametrize(("true", "false", "limit", "text"), [
    ([0.99, 0.995], [0.06, 0.0631], 0.5, "any threshold from 0.07 to 0.99 separates these"),
    ([0.4, 0.45], [0.06, 0.1], 0.5, "any threshold from 0.11 to 0.40 separates these "
                                    "(write :- threshold(0.25). into the program, or --threshold 0.25)"),
    ([0.29], [0.2896, 0.1], 0.29, "any threshold from 0.29 to 0.29 separates these"),
    ([0.2897], [0.2896], 0.2897, "any threshold from 0.2897 to 0.2897 separates these"),
    ([0.3, 0.3, 0.05], [0.1, 0.2], 0.5, "the best threshold here is 0.25: 80.0% "
                                        "(write :- threshold(0.25). into the program, or --threshold 0.25)"),
    ([0.9, 0.05], [0.1, 0.2], 0.5, "no other threshold does better on these"),
])
def test_thresholds_that_separate(true: list[float], false: list[float], limit: float, text: str) -> None:
    measures = Measures(["kp(img)"])
    for label, scores in (("true", true), ("false", false)):
        for score in scores:
            measures.add(label, (score,), str(score >= limit).lower())
    assert measures.as_text().splitlines()[-1] == text == measures.best_text()
    best = measures.as_data()["best_threshold"]
    right = sum(s >= best["threshold"] for s in true) + sum(s < best["threshold"] for s in false)
    assert best["accuracy"] == right / len(true + false) and best["above"] < best["threshold"] <= best["up_to"]


def test_no_threshold_is_told_without_both_labels_or_with_several_targets() -> None:
    one, several = Measures(["kp(img)"]), Measures(["a(img)", "b(img)"])
    one.add("true", (0.9,), "true")
    several.add("a(img)", (0.9, 0.1), "a(img)")
    several.add("b(img)", (0.9, 0.1), "a(img)")
    for measures in (one, several):
        assert measures.best_text() is None and "best_threshold" not in measures.as_data()


def test_none_is_an_answer_and_a_label() -> None:
    measures = Measures(["a(img)", "b(img)"])
    measures.add("a(img)", (0.9, 0.1), "a(img)")
    assert measures.classes == ("a(img)", "b(img)") and "none" not in measures.as_text()
    measures = Measures(["a(img)", "b(img)"])
    measures.add("none", (0.1, 0.2), "none")
    measures.add("b(img)", (0.1, 0.2), "none")
    measures.add("none", (0.9, 0.2), "a(img)")
    assert measures.right == 1 and measures.confusion.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1]]
    assert measures.as_data()["answers"] == {"a(img)": 1, "b(img)": 0, "none": 2}
    assert {round(b.low, 1): b.share for b in measures.reliability() if b.count} == {0.2: 0.5, 0.9: 0.0}


def test_scores_at_the_ends_of_the_scale() -> None:
    measures = Measures(["kp(img)"])
    measures.add("true", (1.0,), "true")
    measures.add("false", (0.0,), "false")
    assert [b.count for b in measures.reliability()] == [1, *[0] * 8, 1]
    assert measures.calibration_error == 0


def test_without_labels() -> None:
    measures = Measures(["kp(img)"])
    measures.add(None, (0.9,), "true")
    assert measures.accuracy is None and measures.calibration_error is None
    assert measures.as_text() == "1 image: 1 true"
    assert "accuracy" not in measures.as_data()


def test_every_question_has_measures_of_its_own() -> None:
    asked = questions(["a(img)", "b(img)", "c(img)", "d(img)"], ["c(img)", "d(img)"])
    measured = Measured(asked)
    said = {"a(img)": Answered("true", "true"), "b(img)": Answered("true", "false"), "classes": Answered(None, "none")}
    measured.add(Row("1.png", Path("1.png"), said, (0.9, 0.4, 0.0, 0.0)))
    said = {"a(img)": Answered(None, "true"), "b(img)": Answered("false", "false"),
            "classes": Answered("d(img)", "c(img)")}
    measured.add(Row("2.png", Path("2.png"), said, (0.7, 0.1, 0.6, 0.5)))
    measured.add(Row("3.png", Path("3.png"), {one.name: Answered() for one in asked}, error="damaged"))
    a, b, classes = (measured.by_question[one.name] for one in asked)
    assert (measured.count, measured.failed, measured.labelled) == (3, 1, 2)
    assert [(one.labelled, one.right, one.failed) for one in (a, b, classes)] == [(1, 1, 1), (2, 1, 1), (1, 0, 1)]
    assert a.calibration_error == pytest.approx(0.1) and b.calibration_error == pytest.approx((0.6 + 0.1) / 2)
    assert classes.answers.tolist() == [1, 0, 1] and classes.tied == 0  # none is no tie
    data = json.loads(json.dumps(measured.as_data()))
    assert data["images"] == 3 and list(data["questions"]) == ["a(img)", "b(img)", "classes"]
    assert data["questions"]["b(img)"]["accuracy"] == 0.5 and "images" not in data["questions"]["a(img)"]
    lines = measured.as_text().splitlines()
    assert lines[:4] == ["3 images, 1 failed", "", "a(img): 2 true", "accuracy 100.00% (1 of 1)"]
    assert "(write :- threshold(b(img), 0.25). into the program, or --threshold b=0.25)" in measured.as_text()
    with pytest.raises(NsfrcError, match="several questions"):
        _ = measured.only
