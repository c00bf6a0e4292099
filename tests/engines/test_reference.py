"""The reference engine against the definition written out in loops, and against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.amount import sample
from tests.engines.support import compile_text, random_compiled, valuations

TINY = """
:- semantics(paper).
:- type(image, [img]).
:- type(object, slots(2)).
:- type(color, [red, blue]).
:- neural(color(object, color)).
:- neural(near(object, object)).
:- pred(kp(image)).
:- pred(in(object, image)).
:- target(kp(img)).
in(obj1, img).
kp(X) :- in(O1, X), color(O1, red), near(O1, _O2).
kp(X) :- color(_O1, C), color(_O2, C), in(obj1, X).
"""


def softor(values, gamma):
    top = max(values)
    return top + gamma * math.log(sum(math.exp((v - top) / gamma) for v in values))


def by_hand(index, V, steps, gamma):
    """One example in plain Python: lists, loops, and the four formulas."""
    C, G = index.shape[:2]
    for _ in range(steps):
        clauses = []
        for c in range(C):
            values = [softor([math.prod(V[i] for i in row) for row in index[c, g]], gamma) for g in range(G)]
            clauses.append([v / max(1, *values) for v in values])
        R = [softor([clauses[c][g] for c in range(C)], gamma) for g in range(G)]
        R = [v / max(1, *R) for v in R]
        V = [softor([v, r], gamma) for v, r in zip(V, R, strict=True)]
        V = [v / max(1, *V) for v in V]
    return V


@pytest.mark.parametrize("gamma", [0.01, 0.2])
def test_plain_python(gamma):
    program = compile_text(TINY)
    V0 = valuations(program, 3, crisp=0.5)
    V_T = program.reasoner("reference", gamma=gamma)(V0)
    for mine, start in zip(V_T.tolist(), V0.tolist(), strict=True):
        assert mine == pytest.approx(by_hand(program.index_tensor(), start, 4, gamma), abs=1e-12)


def test_batch_scope_is_the_maximum_of_the_batch():
    program = compile_text(TINY)
    V0 = valuations(program, 4)
    V0[0, torch.from_numpy(program.ground.neural)] = 0.999
    run = program.reasoner("reference", normalise="batch")
    assert not torch.allclose(run(V0)[1:], run(V0[1:]), atol=1e-6)
    assert torch.allclose(run(V0[:1]), program.reasoner("reference")(V0[:1]))


# Seeds of small programs: the differences of every entry take time with the square of what a program has.
@pytest.mark.parametrize("seed", sample([2, 13], [0, 2, 9, 10, 13]))
@pytest.mark.parametrize("normalise", ["example", "batch"])
def test_finite_differences(seed, normalise):
    """gradcheck in float64; gamma is wide enough that differences are not lost in exp, and no two values tie."""
    program = random_compiled(seed)
    V0 = torch.rand(2, program.plan.G, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    V0.requires_grad_()
    W = torch.randn(3, program.plan.C, dtype=torch.float64, requires_grad=True)

    def reason(V0, W):
        reasoner = program.reasoner("reference", normalise, 3, 0.1, clause_weights=torch.zeros(3, program.plan.C))
        return reasoner.engine(V0, torch.softmax(W, 1), reasoner.run)

    assert torch.autograd.gradcheck(reason, (V0, W), eps=1e-7, atol=1e-6, rtol=1e-5)


def test_false_rises_as_the_closed_form_says():
    """Nothing derivable, nothing normalised: false reaches γ·ln(1 + T·S·C)."""
    program = compile_text(TINY)
    V0 = torch.from_numpy(program.initial_valuation()).double()[None]
    V_T = program.reasoner("reference", steps=3)(V0)
    S, C = program.ground.S, program.ground.C
    assert V_T[0, 0].item() == pytest.approx(0.01 * np.log(1 + 3 * S * C), rel=1e-3)


def test_no_gradient_is_lost_where_everything_is_zero():
    """A maximum of 0 must not be divided by, not even in a branch that is not taken."""
    program = compile_text(TINY.replace("slots(2)", "slots(1)").replace(", near(O1, _O2)", "").replace(
        "kp(X) :- color(_O1, C), color(_O2, C), in(obj1, X).", ""))
    V0 = torch.zeros(2, program.plan.G, dtype=torch.float64, requires_grad=True)
    program.reasoner("reference")(V0).sum().backward()
    assert program.ground.S == 1 and V0.grad.isfinite().all()
