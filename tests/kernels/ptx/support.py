"""Comparisons of the executed machine code with the float64 reference."""

from __future__ import annotations

from typing import Any

import torch

from nsfrc.engines.ptx.launch import Launch
from nsfrc.program import Program
from tests.engines.support import near_ties, relative, run, valuations

# Three clauses and two levels of products, so small that its kernels compile in seconds.
PAPER = """
:- semantics(paper).
:- type(image, [img]). :- type(object, slots(3)). :- type(color, [red, blue]).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(near(object, object)).
:- target(kp(img)). :- target(pair(obj1, obj2)).
pair(X, Y) :- near(X, Y), color(X, C), color(Y, C).
pair(X, Y) :- near(Y, X), color(X, red), color(Y, red).
kp(I) :- in(X, I), in(Y, I), in(Z, I), pair(X, Y), color(Z, blue).
"""
VALUES, GRADIENTS = 2e-6, 1e-4
Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


def weights(program: Program, mixtures: int | None) -> torch.Tensor | None:
    if mixtures is None:
        return None
    return torch.randn(mixtures, program.ground.C, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def executed(
    program: Program, V0: torch.Tensor, W: torch.Tensor | None = None, *, shape: Any = None, arch: str = "sm_80",
    order: str = "together", check: str = "raise", count: bool = False, change: Any = None, gradients: bool = True,
    **options: Any,
) -> tuple[Answer, list[Launch]]:
    """V_T and the gradients of V0 and W, if they are wanted, and what was launched."""
    start = V0.detach().float().requires_grad_()
    parameter = None if W is None else torch.nn.Parameter(W.float())
    reasoner = program.reasoner("ptx", arch=arch, clause_weights="hard" if W is None else parameter, **options)
    engine = reasoner.engine
    engine.fixed = shape
    runner = engine.runner
    runner.order, runner.check, runner.count, runner.change = order, check, count, change
    V_T = reasoner(start)
    if not gradients:
        return (V_T.detach().double(), torch.zeros(0), None), engine.launches
    mixture = torch.rand(V_T.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (V_T.double() * mixture).sum().backward()
    g_W = None if parameter is None else parameter.grad.double()
    return (V_T.detach().double(), start.grad.double(), g_W), engine.launches


def agree(program: Program, batch: int, mixtures: int | None = None, seed: int = 0, **options: Any) -> list[Launch]:
    """No fault, values and gradients as the reference's, and the same bits whichever block comes first."""
    V0, W = valuations(program, batch, seed), weights(program, mixtures)
    passed = {name: options[name] for name in ("steps", "gamma", "normalise", "inputs", "outputs") if name in options}
    with near_ties() as ties:
        theirs = run(program, V0.float().double(), "reference", torch.float64, W, **passed)
    mine, launches = executed(program, V0, W, **options)
    assert (mine[0] - theirs[0]).abs().max() <= VALUES
    if "close" not in ties:
        certain = torch.from_numpy(program.ground.neural) | ("twins" not in ties)
        assert relative(mine[1][:, certain], theirs[1][:, certain]) <= GRADIENTS
        assert W is None or relative(mine[2], theirs[2]) <= GRADIENTS
    if any(max(one.grid) > 1 for one in launches):
        again, _ = executed(program, V0, W, **options | {"order": "backwards"})
        assert all(a is None or torch.equal(a, b) for a, b in zip(mine, again, strict=True))
    return launches
