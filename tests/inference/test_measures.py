"""Counts, against numbers worked out by hand."""

from __future__ import annotations

import json

import pytest

from nsfrc.inference.measures import Measures


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
