"""A comparison of the kernels with the float64 reference."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

import nsfrc
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM, Shape
from nsfrc.program import Program
from tests.engines.support import near_ties, relative, run

VALUES, GRADIENTS = 2e-6, 1e-4
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# In the interpreter a tile costs the same whatever its size, so these are larger than those that run on a card;
# rows of a pair are shared out to parts as there, and tests with the real shapes are apart.
SHAPES = {
    "program": PROGRAM if DEVICE == "cuda" else Shape("program", tall=256, wide=32),
    "clause": CLAUSE if DEVICE == "cuda" else Shape("clause", tall=256, wide=32, rows_of_part=40),
}


@cache
def shipped(name: str) -> Program:
    """A shipped program; clevr_hans7 with so few objects that the reference can follow."""
    return nsfrc.compile(name, slots={"object": 4} if name == "clevr_hans7" else None)


def weights(program: Program, mixtures: int | None, seed: int = 0) -> torch.Tensor | None:
    """W [M, C], or None for hard."""
    if mixtures is None:
        return None
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(mixtures, program.plan.C, generator=generator, dtype=torch.float64)


def mixture(shape: torch.Size, counted: int | None) -> torch.Tensor:
    """Weights of a loss, the same as those of `run`, 0 for examples past `counted`."""
    values = torch.rand(shape if counted is None else (counted, *shape[1:]),
                        generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.cat([values, values.new_zeros(shape[0] - len(values), *shape[1:])])


def on_card(
    program: Program, V0: torch.Tensor, W: torch.Tensor | None, shape: Shape | None, counted: int | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """V_T and the gradients of V0 and W, from the kernels in float32; results as `run` gives them."""
    start = V0.detach().to(DEVICE, torch.float32).requires_grad_()
    parameter = None if W is None else torch.nn.Parameter(W.to(DEVICE, torch.float32))
    reasoner = program.reasoner("gpu", clause_weights="hard" if parameter is None else parameter, **options)
    reasoner.engine.fixed = shape
    V_T = reasoner(start)
    (V_T.double() * mixture(V_T.shape, counted).to(DEVICE)).sum().backward()
    return V_T.detach().double().cpu(), start.grad.double().cpu(), \
        None if parameter is None else parameter.grad.double().cpu()


@cache
def _expected(program: Program, batch: int, seed: int, mixtures: int | None, options: tuple[tuple[str, Any], ...]):
    from tests.engines.support import valuations

    V0 = valuations(program, batch, seed)
    with near_ties() as ties:
        answer = run(program, V0.float().double(), "reference", torch.float64, weights(program, mixtures, seed),
                     **dict(options))
    return V0, answer, frozenset(ties)


def agree(
    program: Program, batch: int, mixtures: int | None, shape: Shape | None, seed: int = 0, repeat: int = 1,
    **options: Any,
) -> None:
    """The kernels' values and gradients against the reference's.

    repeat: the batch so many times over; only its first occurrence counts for the loss, which then
    has the same gradients.
    """
    V0, theirs, ties = _expected(program, batch, seed, mixtures, tuple(sorted(options.items())))
    mine = on_card(program, V0.repeat(repeat, 1), weights(program, mixtures, seed), shape, batch, **options)
    assert (mine[0] - theirs[0].repeat(repeat, 1)).abs().max() <= VALUES
    if "close" in ties:
        return
    certain = torch.from_numpy(program.ground.neural) | ("twins" not in ties)
    assert relative(mine[1][:batch, certain], theirs[1][:, certain]) <= GRADIENTS
    assert not mine[1][batch:].any()
    if mixtures is not None:
        assert relative(mine[2], theirs[2]) <= GRADIENTS
