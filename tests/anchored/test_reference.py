"""The dense reference of `anchored` against loops in plain Python and against finite differences."""

from __future__ import annotations

import math
import random

import pytest
import torch

import nsfrc
from nsfrc.compiler.ir import OBJECT
from nsfrc.engines.anchored_reference import softor as torch_softor
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from tests.amount import sample
from tests.anchored.inner_oracle import LOOPS, loops
from tests.anchored.oracle import Oracle, softor
from tests.anchored.programs import INNER, RULES, text
from tests.anchored.support import GAMMAS, compiled, mixtures, random_typed, random_within, valuations


def agree(program: Program, oracle: Oracle, V0: torch.Tensor, gamma: float, steps: int | None, W: torch.Tensor | None):
    reasoner = program.reasoner("reference", gamma=gamma, steps=steps)
    weights = None if W is None else W.softmax(dim=1)
    found = reasoner.engine(V0, weights, reasoner.run)
    for mine, start in zip(found.tolist(), V0.tolist(), strict=True):
        values = oracle.values(dict(zip(program.atoms, start, strict=True)), gamma, steps,
                               None if weights is None else weights.tolist())
        assert mine[:2] == [0, 1]
        assert dict(zip(program.atoms[2:], mine[2:], strict=True)) == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("seed", range(sample(15, 30)))
def test_random_programs_against_loops(seed: int) -> None:
    typed, rng = random_typed(seed), random.Random(seed)
    program = nsfrc.compile(typed)
    W = mixtures(program, rng.choice((1, 2, 7)), seed) if rng.random() < 0.4 else None
    V0 = valuations(program, 2, seed, declared=rng.random() < 0.6)
    agree(program, Oracle.of(typed), V0, rng.choice(GAMMAS), rng.choice((None, None, 0, 1, 3)), W)


@pytest.mark.parametrize("seed", range(sample(12, 25)))
def test_goals_within_goals_against_loops(seed: int) -> None:
    assert loops(seed) <= LOOPS, random_within(seed)[1]


@pytest.mark.parametrize("seed", range(sample(4, 8)))
def test_goals_within_goals_as_predicates_against_loops(seed: int) -> None:
    """With clause weights, other starting values and steps, of which the text says nothing."""
    program, rng = nsfrc.compile(source=random_within(seed, 60)[1]), random.Random(seed)
    W = mixtures(program, rng.choice((1, 2, 7)), seed) if rng.random() < 0.6 else None
    V0 = valuations(program, 1, seed, declared=rng.random() < 0.5)
    agree(program, Oracle.of(program.source), V0, rng.choice(GAMMAS), rng.choice((None, 0, 1, 3)), W)


@pytest.mark.parametrize("name", RULES)
def test_small_programs_against_loops(name: str) -> None:
    program = compiled(name)
    agree(program, Oracle.of(program.source), valuations(program, 2), 0.1, None, None)


@pytest.mark.parametrize("seed", [9, 20])  # small programs that depend on themselves
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_finite_differences(seed: int, gamma: float) -> None:
    """gradcheck in float64, with values so small that no head reaches 1, beyond which gradients differ on purpose."""
    program = nsfrc.compile(random_typed(seed, max_objects=2))
    V0 = 0.02 + 0.1 * torch.rand(2, program.ground.G, generator=torch.Generator().manual_seed(seed)).double()
    W = mixtures(program, 3, seed).requires_grad_()
    reasoner = program.reasoner("reference", gamma=gamma)
    assert reasoner(V0)[:, 2:].max() < 1

    def hard(V0: torch.Tensor) -> torch.Tensor:
        return reasoner.engine(V0, None, reasoner.run)

    def soft(V0: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        return reasoner.engine(V0, W.softmax(dim=1), reasoner.run)

    V0.requires_grad_()
    assert torch.autograd.gradcheck(hard, (V0,), eps=1e-7, atol=1e-6, rtol=1e-5)
    assert torch.autograd.gradcheck(soft, (V0, W), eps=1e-7, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", INNER)
def test_finite_differences_of_goals_within_goals(name: str) -> None:
    """Of all values together, in random directions, with values so small that no head reaches 1."""
    program, generator = compiled(name), torch.Generator().manual_seed(1)
    V0 = 0.1 + 0.3 * torch.rand(1, program.ground.G, generator=generator).double()
    W, shares = mixtures(program, 2), torch.rand(program.ground.G, generator=generator).double()
    reasoner = program.reasoner("reference", gamma=0.1)

    def values(V0: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
        return reasoner.engine(V0, W.softmax(dim=1), reasoner.run)

    assert values(V0, W)[:, torch.from_numpy(program.ground.pair_head).long()].max() < 1
    V0.requires_grad_()
    W.requires_grad_()
    found = torch.autograd.grad((values(V0, W) * shares).sum(), (V0, W))
    with torch.no_grad():
        for _ in range(4):
            steps = [1e-6 * torch.randn(start.shape, generator=generator).double() for start in (V0, W)]
            there, back = (((values(V0 + way * steps[0], W + way * steps[1]) * shares).sum()) for way in (1, -1))
            along = sum(float((slope * step).sum()) for slope, step in zip(found, steps, strict=True))
            assert float(there - back) / 2 == pytest.approx(along, rel=1e-5, abs=1e-11)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_what_the_soft_or_is_like(gamma: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(50, 4, generator=generator, dtype=torch.float64)
    whole = torch_softor(x, 1, gamma)
    assert whole.tolist() == pytest.approx([softor(row, gamma) for row in x.tolist()], abs=1e-13)
    assert (whole >= x.amax(dim=1) - 1e-15).all() and (whole <= x.sum(dim=1) + 1e-15).all()
    parts = torch.stack([torch_softor(x[:, :2], 1, gamma), torch_softor(x[:, 2:], 1, gamma)], dim=1)
    assert torch.allclose(torch_softor(parts, 1, gamma), whole, rtol=0, atol=1e-12)  # in any order
    alone = torch.cat([x[:, :1], torch.zeros(50, 3)], dim=1)
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(torch_softor(alone.to(dtype), 1, gamma), x[:, 0].to(dtype))  # zeros add nothing


def test_it_lies_between_the_largest_and_the_sum() -> None:
    x = torch.tensor([[0.2, 0.3, 0.25]], dtype=torch.float64)
    assert torch_softor(x, 1, 1e-4).item() == pytest.approx(0.3)
    assert torch_softor(x, 1, 1e6).item() == pytest.approx(0.75)
    assert torch_softor(x, 1, 0.1).item() == pytest.approx(0.1 * math.log(math.e**2 + math.e**3 + math.e**2.5 - 2))


@pytest.mark.parametrize("name", ["paths", "levels", "attributes that may be equal"])
def test_float32_is_near(name: str) -> None:
    program = compiled(name)
    V0 = valuations(program, 20)
    for gamma in GAMMAS:
        reasoner = program.reasoner("reference", gamma=gamma)
        assert (reasoner(V0.float()).double() - reasoner(V0)).abs().max() <= 4e-6


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_values_below_zero_are_refused(engine: str) -> None:
    program = compiled("a few reasons")
    V0 = valuations(program, 3).float()
    V0[1, program.index("in(obj2,img)")] = -0.25
    with pytest.raises(NsfrcError, match=r"V0\[1, \d+\], in\(obj2,img\), is -0.25; values go from 0 to 1"):
        program.reasoner(engine)(V0)
    V0[1] = -0.0
    program.reasoner(engine)(V0)
    V0[2, 5] = float("nan")
    with pytest.raises(NsfrcError, match=r"V0\[2, 5\].* must be finite"):
        program.reasoner(engine)(V0)
    paper = nsfrc.compile(source=text("a few reasons") + " :- semantics(paper).")
    paper.reasoner(engine)(torch.full((1, paper.ground.G), -0.25))


def test_true_and_false_stay_what_they_are() -> None:
    program = compiled("a few reasons")
    V0 = torch.full((5, program.ground.G), 0.5, requires_grad=True)
    for engine in ("reference", "cpu"):
        values = program.reasoner(engine)(V0)
        (gradient,) = torch.autograd.grad(values.sum(), V0)
        assert values[:, :2].tolist() == [[0, 1]] * 5 and not gradient[:, :2].any()


def test_which_types_are_kept_apart() -> None:
    program = compiled("attributes that may be equal")
    assert {t.name for t in program.source.types if t.role == OBJECT} == {"object"}
    assert "goes(red,red)" in program.atoms and "near(obj1,obj1)" not in program.atoms
