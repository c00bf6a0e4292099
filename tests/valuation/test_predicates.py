"""What the shipped neural predicates compute, against numpy, and that nothing degenerate makes them infinite."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from nsfrc.errors import NsfrcError
from nsfrc.valuation import FactsConverter
from nsfrc.valuation.arguments import Scene
from nsfrc.valuation.predicates import Closeby, Online, distance, line_residual
from tests.valuation.support import DIMENSIONS, compiled, program


def by_svd(points: np.ndarray) -> float:
    """Root mean square distance to the best line, from the singular values."""
    away = points - points.mean(axis=0)
    return float(np.linalg.svd(away, compute_uv=False)[-1] / math.sqrt(len(points)))


@pytest.mark.parametrize("count", [3, 5, 8])
def test_line_residual_is_that_of_the_best_line(count: int) -> None:
    points = np.random.default_rng(count).uniform(0, 1, (50, count, 2))
    found = line_residual(torch.from_numpy(points)).numpy()
    np.testing.assert_allclose(found, [math.hypot(by_svd(p), 1e-5) for p in points], atol=1e-9)


def test_line_residual_is_accurate_close_to_a_line_in_float32() -> None:
    rng = np.random.default_rng(0)
    angle = np.linspace(0, math.pi, 37)
    along = rng.uniform(-0.4, 0.4, (37, 5, 1)) * np.stack([np.cos(angle), np.sin(angle)], 1)[:, None]
    points = 0.5 + along + rng.normal(0, 1e-3, (37, 5, 2))
    found = line_residual(torch.from_numpy(points.astype(np.float32))).numpy()
    np.testing.assert_allclose(found, [by_svd(p) for p in points], atol=1e-6)


def test_line_residual_does_not_care_about_direction_or_order() -> None:
    points = torch.rand(20, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    turned = points - 0.5
    turned = torch.stack([-turned[..., 1], turned[..., 0]], dim=-1)
    torch.testing.assert_close(line_residual(turned), line_residual(points))
    torch.testing.assert_close(line_residual(points[:, [3, 1, 4, 0, 2]]), line_residual(points))


def test_gradients_of_measures_are_exact() -> None:
    points = torch.rand(4, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    assert torch.autograd.gradcheck(line_residual, points)
    assert torch.autograd.gradcheck(distance, (points[:, 0], points[:, 1]))


T = torch.arange(5.0)[:, None] / 5
DEGENERATE = {
    "vertical": torch.cat([torch.full((5, 1), 0.5), T], 1),
    "horizontal": torch.cat([T, torch.full((5, 1), 0.5)], 1),
    "diagonal": torch.cat([T, T], 1),
    "one point": torch.full((5, 2), 0.3),
    "two points": torch.tensor([[0.1, 0.1]] * 3 + [[0.7, 0.2]] * 2),
    "corners of a square": torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.5]]),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_points_have_finite_values_and_gradients(name: str) -> None:
    points = DEGENERATE[name].clone().requires_grad_()
    residual = line_residual(points)
    residual.backward()
    assert points.grad is not None and points.grad.isfinite().all()
    assert residual.item() == pytest.approx(by_svd(DEGENERATE[name].double().numpy()), abs=2e-5)


def test_coinciding_centres_are_close_and_have_a_gradient() -> None:
    point = torch.full((1, 2), 0.4, requires_grad=True)
    apart = distance(point, point.detach())
    apart.sum().backward()
    assert apart.item() < 1e-4
    assert point.grad is not None and point.grad.isfinite().all()


def test_shipped_concepts_are_certain_where_figures_are() -> None:
    closeby, online = Closeby(), Online()
    with torch.no_grad():
        for x, most, least in ((0.068, 1, 0.97), (0.107, 1, 0.97), (0.236, 0.03, 0), (1.2, 0.03, 0)):
            assert least <= torch.sigmoid(closeby.w * x + closeby.b).item() <= most
        for x, most, least in ((0.0, 1, 0.97), (0.0085, 1, 0.97), (0.04, 0.03, 0)):
            assert least <= torch.sigmoid(online.w * x + online.b).item() <= most


def test_shipped_predicates_say_how_many_objects_they_relate(tmp_path: Path) -> None:
    three = program(tmp_path, ":- neural(closeby(object, object, object)). :- target(kp(img)).\n"
                              "kp(X) :- in(O, X), closeby(O, P, Q).")
    with pytest.raises(NsfrcError, match="closeby is a relation between two objects, not 3"):
        FactsConverter(three, DIMENSIONS)
    two = program(tmp_path, ":- neural(online(object, object)). :- target(kp(img)). kp(X) :- in(O, X), online(O, P).")
    with pytest.raises(NsfrcError, match="online is a relation between three or more objects, not 2"):
        FactsConverter(two, DIMENSIONS)


def test_online_holds_for_any_direction() -> None:
    facts = FactsConverter(compiled("online_pair"), DIMENSIONS)
    index = compiled("online_pair").index("online(obj4,obj2,obj1,obj5,obj3)")
    for name in ("vertical", "horizontal", "diagonal"):
        objects = torch.ones(1, 5, 11)
        objects[0, :, 0:2] = objects[0, :, 2:4] = DEGENERATE[name]
        assert facts(objects)[0, index].item() > 0.97
    objects[0, 2, 0] += 0.3
    assert facts(objects)[0, index].item() < 0.01


def test_a_constant_that_is_a_part_of_a_class() -> None:
    columns = {name: i for i, name in enumerate([f"{color}_cube" for color in "abcdefghijklmnop"])}
    assert str(Scene(torch.zeros(1, 1, 16), columns, "k.onnx").unknown("cube")) == (
        "perception k.onnx does not know 'cube'; it knows a_cube, b_cube, c_cube, d_cube, e_cube, f_cube, g_cube, "
        "h_cube, i_cube, j_cube, k_cube, l_cube and 4 more: a_cube may be several values at once, which "
        ":- attributes([...]) takes apart (docs/detector.md, \"Classes that are several things at once\")")
