"""Detections as the package `supervision` has them."""

from __future__ import annotations

import numpy as np
import pytest

import nsfrc
from nsfrc.errors import NsfrcError

sv = pytest.importorskip("supervision")

BOXES = np.array([[10, 20, 60, 80], [70, 0, 90, 30]], dtype=np.float32)
SIZES = {"a.jpg": (100, 100)}
ROWS = {"a.jpg": [("cup", 0.5, 10, 20, 60, 80), ("key", 0.75, 70, 0, 90, 30)]}


@pytest.mark.parametrize("named", [True, False])
def test_they_are_the_same_as_rows(named: bool) -> None:
    data = {"class_name": np.array(["cup", "key"])} if named else {}
    one = sv.Detections(BOXES, class_id=np.array([0, 1]), confidence=np.array([0.5, 0.75]), data=data)
    found = nsfrc.detections({"a.jpg": one}, None if named else ["cup", "key"], SIZES)
    wanted = nsfrc.detections(ROWS, ["cup", "key"], SIZES)
    assert found.names.names == wanted.names.names and found.in_pixels
    np.testing.assert_allclose(found.fractions("a.jpg", None), wanted.fractions("a.jpg", None), atol=1e-6)
    assert found.fractions("a.jpg", None)[0, :4] == pytest.approx([0.7, 0, 0.9, 0.3])  # the surest first


def test_without_confidences_they_are_certain_and_none_are_none() -> None:
    sure = sv.Detections(BOXES, class_id=np.array([1, 0]))
    found = nsfrc.detections({"a.jpg": sure, "b.jpg": sv.Detections.empty()}, ["cup", "key"], SIZES)
    assert found.rows["a.jpg"][:, 4].tolist() == [1, 1] and found.rows["b.jpg"].shape == (0, 6)


def test_without_classes_they_are_refused() -> None:
    with pytest.raises(NsfrcError, match=r"the detections of a\.jpg have no classes"):
        nsfrc.detections({"a.jpg": sv.Detections(BOXES)}, ["cup", "key"])
