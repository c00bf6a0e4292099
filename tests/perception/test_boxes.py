"""Overlap and suppression of boxes against plain Python."""

from __future__ import annotations

import pytest
import torch

from nsfrc.perception.boxes import best_of_each, overlap

Box = list[float]


def plain_overlap(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def plain_suppression(boxes: list[Box], threshold: float) -> list[bool]:
    kept: list[int] = []
    for i, box in enumerate(boxes):
        if all(plain_overlap(boxes[j], box) <= threshold for j in kept):
            kept.append(i)
    return [i in kept for i in range(len(boxes))]


def random_boxes(batch: int, count: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    centre = torch.rand(batch, count, 2, generator=generator, dtype=torch.float64)
    half = torch.rand(batch, count, 2, generator=generator, dtype=torch.float64) * 0.25 + 0.02
    return torch.cat([centre - half, centre + half], -1)


@pytest.mark.parametrize("count", [1, 7, 64])
def test_overlap_is_that_of_plain_python(count: int) -> None:
    one, other = random_boxes(2, count, 0), random_boxes(2, 5, 1)
    found = overlap(one, other)
    assert found.shape == (2, count, 5)
    for b in range(2):
        for i in range(count):
            for j in range(5):
                expected = plain_overlap(one[b, i].tolist(), other[b, j].tolist())
                assert found[b, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_empty_boxes_overlap_nothing() -> None:
    boxes = torch.tensor([[[0.2, 0.2, 0.2, 0.2], [0.0, 0.0, 1.0, 1.0]]])
    assert overlap(boxes, boxes).tolist() == [[[0.0, 0.0], [0.0, 1.0]]]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("count", [1, 7, 64])
def test_suppression_is_the_greedy_one(count: int, threshold: float) -> None:
    boxes = random_boxes(8, count, 10 * count)
    expected = [plain_suppression(example, threshold) for example in boxes.tolist()]
    assert best_of_each(boxes, threshold).tolist() == expected
    if count == 64:
        assert not all(map(all, expected))


def test_a_box_that_goes_takes_no_other_with_it() -> None:
    steps = torch.arange(6) * 0.3  # each overlaps the next by 0.7 / 1.3, and no other by more than 0.4 / 1.6
    chain = torch.stack([steps, torch.zeros(6), steps + 1, torch.ones(6)], -1).unsqueeze(0)
    assert best_of_each(chain, 0.5).tolist() == [[True, False, True, False, True, False]]


def test_examples_do_not_touch_each_other() -> None:
    boxes = random_boxes(6, 30, 3)
    together = best_of_each(boxes, 0.3)
    assert torch.equal(together, torch.cat([best_of_each(boxes[i : i + 1], 0.3) for i in range(6)]))
