"""The loss of slots and their score: a matching that is the best there is, and figures that can be counted by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from nsfrc.data.clevr.scenes import DIMENSIONS, Scene, Thing, truth
from nsfrc.perception.camera import Camera
from nsfrc.training.slots_loss import costs, matching, set_loss
from nsfrc.training.slots_score import NEAR, average_precision, match, score

D = len(DIMENSIONS)
SCALE = torch.tensor([1.0, 4, 4, 4] + [1] * 15, dtype=torch.float64)  # x, y, z weigh more


def random_sets(seed: int, slots: int, batch: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    there = rng.random((batch, slots, 1)) < 0.7
    said, things = rng.random((2, batch, slots, D)) * np.stack([np.ones_like(there), there])
    return torch.from_numpy(said), torch.from_numpy(things)


def huber(said: list[float], true: list[float]) -> float:
    apart = [abs(a - b) for a, b in zip(said, true, strict=True)]
    return sum(d * d / 2 if d < 1 else d - 0.5 for d in apart)


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_that_of_the_best_permutation(seed: int, slots: int) -> None:
    said, things = random_sets(seed, slots)
    least = [
        min(sum(huber(one[i], other[j]) for i, j in enumerate(order)) for order in permutations(range(slots)))
        for one, other in zip((said * SCALE).tolist(), (things * SCALE).tolist(), strict=True)
    ]
    assert set_loss(said, things).tolist() == pytest.approx(least, rel=1e-9)


def test_order_does_not_matter() -> None:
    said, things = random_sets(7, 6)
    plain = set_loss(said, things)
    torch.testing.assert_close(set_loss(said, things[:, [3, 0, 5, 1, 4, 2]]), plain)
    torch.testing.assert_close(set_loss(said[:, [5, 4, 0, 2, 1, 3]], things), plain)
    assert set_loss(things[:, [3, 0, 5, 1, 4, 2]], things).tolist() == [0, 0, 0]


def test_every_slot_has_a_thing_of_its_own() -> None:
    said, things = random_sets(2, 5)
    chosen = matching(costs(said, things))
    assert chosen.sort(dim=1).values.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_the_gradient_is_that_of_the_matched_pairs() -> None:
    said, things = random_sets(1, 4)
    said.requires_grad_()
    chosen = matching(costs(said, things))
    set_loss(said, things).sum().backward()  # type: ignore[no-untyped-call]
    off = (said - things.gather(1, chosen.unsqueeze(2).expand_as(said))).detach() * SCALE
    torch.testing.assert_close(said.grad, off.clamp(-1, 1) * SCALE)


def test_a_loss_that_is_not_a_number_is_one_still() -> None:
    said, things = random_sets(1, 4)
    said[0, 0, 0] = torch.nan
    lost = set_loss(said, things)
    assert lost.isnan().tolist() == [True, False, False]


def things(*places: tuple[float, float], color: str = "red") -> Scene:
    return Scene(tuple(Thing("cube", "small", "metal", color, (x, y, 0.35)) for x, y in places), Camera())


def test_score_of_the_truth_and_of_less() -> None:
    true = np.stack([truth(things((0, 0), (2, 1)), 4), truth(things((-1, -1), (1, 1)), 4)])
    best = score(true, true)
    assert best.found == 1 and set(best.precision.values()) == {1.0}
    assert score(true[:, ::-1], true) == best, "slots have no order"
    said = true.copy()
    said[0, 0, 0] = 0.4  # not sure, but no other is surer and wrong
    assert score(said, true).found == 0.75 and score(said, true).precision[NEAR] == 1
    said = true.copy()
    said[0, 0, 0], said[0, 0, DIMENSIONS.index("red")], said[0, 0, DIMENSIONS.index("blue")] = 0.9, 0.4, 0.6
    assert score(said, true).found == 0.75 and score(said, true).precision[np.inf] == 0.75
    said = true.copy()
    said[1, 1, 0] = 0.9
    said[1, 1, DIMENSIONS.index("x")] += 0.75 / 8  # three quarters of a unit of the world
    found = score(said, true)
    assert found.found == 0.75 and (found.precision[1.0], found.precision[NEAR]) == (1, 0.75)
    said = true.copy()
    said[0, 2] = said[0, 0]  # the same thing twice, the second time surer than anything else
    said[0, 2, 0] = 2
    said[0, 0, 0] = 1.5
    assert score(said, true).found == 1
    assert score(said, true).precision[NEAR] == pytest.approx((1 + 3 * 4 / 5) / 4)


def test_matching_by_distance_takes_every_thing_once() -> None:
    far = np.inf
    apart = np.array([[0.3, 0.1], [0.2, far], [0.1, 0.1]])
    assert match(apart, 0.5).tolist() == [True, True, False]
    assert match(apart, 0.15).tolist() == [True, False, True]
    assert match(np.full((2, 2), far), far).tolist() == [False, False], "an attribute differs"
    assert match(np.zeros((2, 0)), 1.0).tolist() == [False, False]


def test_average_precision_by_hand() -> None:
    sure, hits = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False])
    assert average_precision(sure, hits, 2) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(sure, hits, 4) == pytest.approx((1 + 2 / 3) / 4)
    assert average_precision(sure[::-1], hits, 2) == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert average_precision(np.array([]), np.array([], dtype=bool), 0) == 0
