"""What the engine tests share: programs, valuations, and a comparison of runs with the reference."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import nsfrc
from nsfrc.compiler.ir import PAPER
from nsfrc.engines import Run, reference
from nsfrc.program import Program
from tests.random_programs import random_program

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SMALL = ("twopairs", "closeby", "red_triangle", "nine_circles", "clevr_hans3")


def compile_text(text: str, skip: Collection[str] = ()) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pl"
        path.write_text(text)
        return nsfrc.compile(path, skip=skip)


def random_compiled(seed: int, skip: Collection[str] = (), semantics: str = PAPER) -> Program:
    return compile_text(random_program(random.Random(seed), semantics=semantics), skip)


def valuations(program: Program, batch: int, seed: int = 0, crisp: float = 0.3) -> torch.Tensor:
    """Random V0 [batch, G] in float64; a share of the neural atoms is close to 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    V0 = torch.from_numpy(program.initial_valuation()).double().repeat(batch, 1)
    neural = torch.from_numpy(program.ground.neural)
    values = torch.rand(batch, int(neural.sum()), generator=generator, dtype=torch.float64)
    sharp = torch.rand(values.shape, generator=generator) < crisp
    V0[:, neural] = torch.where(sharp, (values > 0.5) * 0.98 + 0.01 * values, values)
    return V0


def false_above(program: Program, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """V0 as float32 has it, false at 0.98; and the same with every value that is not 0 moved by up to 0.03, so that no
    two are alike."""
    V0 = valuations(program, batch)
    V0[:, 0] = 0.98
    by = torch.rand(V0.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return V0.float().double(), (V0 - 0.03 * by * (V0 != 0)).float().double()


@contextmanager
def near_ties() -> Iterator[set[str]]:
    """Collects how nearly Z above 1 was shared by two values in a run of the reference.

    "close": the gradient jumps there, and no float32 engine can tell on which side it is. "twins":
    the values are equal but for rounding, as those of symmetric atoms are; which of the two has the
    gradient is chance, what reaches the neural atoms is not. Exactly equal values are no such case.
    """
    found: set[str] = set()

    def watched(y: torch.Tensor, run: Run) -> torch.Tensor:
        largest = original(y, run)
        gap = torch.where(largest > 1, largest - y, 1.0)
        if ((gap > 1e-12) & (gap < 2e-5)).any() or ((largest != 1) & ((largest - 1).abs() < 1e-5)).any():
            found.add("close")
        if ((gap > 0) & (gap <= 1e-12)).any():
            found.add("twins")
        return largest

    original = reference._largest
    reference._largest = watched
    try:
        yield found
    finally:
        reference._largest = original


def run(program: Program, V0: torch.Tensor, engine: str, dtype: torch.dtype, W: torch.Tensor | None = None, **options):
    """V_T and the gradients of a fixed random loss by V0 and by W, all in float64."""
    V0 = V0.detach().to(dtype).requires_grad_()
    weights = "hard" if W is None else torch.nn.Parameter(W.to(dtype))
    V_T = program.reasoner(engine, clause_weights=weights, **options)(V0)
    mixture = torch.rand(V_T.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (V_T.double() * mixture).sum().backward()
    g_W = None if W is None else weights.grad.double()
    return V_T.detach().double(), V0.grad.double(), g_W


def relative(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest difference, relative to the largest entry; entries all below 1e-3 are what cancellation left."""
    return float((mine - theirs).abs().max() / theirs.abs().max().clamp(min=1e-3))
