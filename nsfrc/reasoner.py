"""The reasoner: a compiled program as a torch module."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import torch

from nsfrc.engines import Run, engine
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.program import Program

CHOICES = {"normalise": ("example", "batch"), "outputs": ("all", "targets"), "inputs": ("all", "neural")}


class Reasoner(torch.nn.Module):
    """Soft forward chaining: V0 [B, G] → V_T [B, G], or [B, targets] with `outputs="targets"`.

    clause_weights: W [M, C]; the identity when the program is taken as given (`hard`), a parameter
    when it is to be learnt. A soft-max over clauses is taken of it unless it is hard.
    """

    clause_weights: torch.Tensor

    def __init__(
        self,
        program: Program,
        engine_name: str,
        run: Run,
        clause_weights: str | torch.Tensor,
    ) -> None:
        super().__init__()
        _check(run)
        self.program, self.run = program, run
        # Plain numbers, which torch.compile can follow.
        self.atoms, self.target_indices = program.plan.G, program.target_indices
        self.engine_name = engine_name
        self.engine = engine(engine_name, program)
        self.hard = isinstance(clause_weights, str) and clause_weights == "hard"
        self._set_weights(clause_weights)

    def _set_weights(self, weights: str | torch.Tensor) -> None:
        clauses = self.program.plan.C
        if isinstance(weights, str):
            if weights not in ("hard", "trainable"):
                raise NsfrcError(f"clause_weights is 'hard', 'trainable' or a tensor [M, C], not {weights!r}")
            # e^10 : 1 in favour of its own clause, so that training starts close to the program as given.
            start = torch.eye(clauses) * (1.0 if weights == "hard" else 10.0)
            weights = start if weights == "hard" else torch.nn.Parameter(start)
        if weights.ndim != 2 or weights.shape[1] != clauses or not len(weights):
            raise NsfrcError(
                f"clause_weights has shape {list(weights.shape)}; this program needs [M, {clauses}], a column a clause"
            )
        if isinstance(weights, torch.nn.Parameter):
            self.clause_weights = weights
        else:
            self.register_buffer("clause_weights", weights)

    def forward(self, V0: torch.Tensor) -> torch.Tensor:
        if V0.ndim != 2 or V0.shape[1] != self.atoms:
            raise NsfrcError(
                f"V0 has shape {list(V0.shape)}; this program needs [B, {self.atoms}], a column a ground atom"
            )
        if not V0.is_floating_point():
            raise NsfrcError(f"V0 is {V0.dtype}; valuations are floating point, as float32")
        if self.run.steps == 0 or not len(V0):
            return V0[:, self.target_indices] if self.run.outputs == "targets" else V0
        weights = None if self.hard else torch.softmax(self.clause_weights, dim=1)
        return self.engine(V0, weights, self.run)

    def extra_repr(self) -> str:
        run = self.run
        return f"{self.program.name}, engine={self.engine_name}, steps={run.steps}, gamma={run.gamma}"


def _check(run: Run) -> None:
    for name, allowed in CHOICES.items():
        if getattr(run, name) not in allowed:
            raise NsfrcError(f"{name} is {' or '.join(map(repr, allowed))}, not {getattr(run, name)!r}")
    if run.steps < 0:
        raise NsfrcError(f"steps must be 0 or more, not {run.steps}")
    if not 0 < run.gamma < math.inf:
        raise NsfrcError(f"gamma must be a number above 0, not {run.gamma}")


def valuation(program: Program, worlds: Sequence[Mapping[str, float]]) -> torch.Tensor:
    """The facts of worlds as V0 [B, G]; see `Program.valuation`."""
    rows = np.tile(program.ground.initial, (len(worlds), 1))
    for number, (row, facts) in enumerate(zip(rows, worlds, strict=True), 1):
        try:
            _fill(row, program, facts)
        except NsfrcError as error:
            raise NsfrcError(f"world {number}: {error}" if len(worlds) > 1 else str(error)) from None
    return torch.from_numpy(rows)


def _fill(row: np.ndarray, program: Program, facts: Mapping[str, float]) -> None:
    """Put facts into a valuation [G]."""
    if not isinstance(facts, Mapping):
        raise NsfrcError(
            f'the facts of a world are a dict from atoms to values, as {{"in(obj1,img)": 0.9}}, not a '
            f"{type(facts).__name__}; give several worlds as valuation(*worlds)"
        )
    for atom, value in facts.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
            raise NsfrcError(f"the value of {atom} is {value!r}; it must be a number from 0 to 1")
        index = program.index(str(atom))
        if not program.ground.neural[index]:
            raise NsfrcError(f"{atom} is not a neural atom; the program itself decides its value")
        row[index] = value
