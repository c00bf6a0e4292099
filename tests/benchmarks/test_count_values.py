"""The two values of a count that are measured against each other, and the measures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from nsfrc.benchmarks.count_values import Asked, at_least, auc, calibration_error, largest, row


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_recurrence_is_the_sum_over_all_worlds(k: int) -> None:
    x = torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
    worlds = torch.tensor(list(product([0.0, 1.0], repeat=5)), dtype=torch.float64)
    chances = (worlds * x[:, None] + (1 - worlds) * (1 - x[:, None])).prod(dim=2)
    assert torch.allclose(at_least(x, k), (chances * (worlds.sum(dim=1) >= k)).sum(dim=1))


def test_the_product_of_the_largest() -> None:
    x = torch.tensor([[0.5, 0.9, 0.1, 0.8]])
    assert float(largest(x, 1)) == pytest.approx(0.9) and float(largest(x, 3)) == pytest.approx(0.9 * 0.8 * 0.5)


def test_area_under_the_curve_counts_pairs() -> None:
    labels = np.array([True, False, True, False, False])
    values = np.array([0.9, 0.9, 0.4, 0.1, 0.5])
    pairs = [(t > f) + 0.5 * (t == f) for t in values[labels] for f in values[~labels]]
    assert auc(labels, values) == pytest.approx(np.mean(pairs))


def test_a_row_from_questions_by_hand() -> None:
    labels, values = np.array([True, True, False, False]), np.array([0.95, 0.25, 0.25, 0.05])
    assert calibration_error(labels, values) == pytest.approx((0.05 + 0.5 + 0.05) / 4)
    found = row("plain", 2, "recurrence", Asked(labels, values, np.array([[1.0, 1.0], [0.5, 0.0], [0, 0], [0, 0]])))
    assert found.accuracy == 0.75 and found.gradient == pytest.approx(2.5 / 4)
    assert found.spread == pytest.approx(1.5) and (found.gradient_wrong, found.spread_wrong) == (0.5, 1.0)
