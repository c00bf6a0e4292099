"""The reasoner: a compiled program as a torch module."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.autograd import forward_ad

from nsfrc.candidates import Candidates
from nsfrc.compiler.ir import GAMMA_RANGE, LEAST_GAMMA, MOST_GAMMA
from nsfrc.engines import Run, engine
from nsfrc.engines.base import negative, not_finite
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.program import Program

CHOICES = {"normalise": ("example", "batch"), "outputs": ("all", "targets"), "inputs": ("all", "neural")}


class Reasoner(torch.nn.Module):
    """Soft forward chaining: V0 [B, G] → V_T [B, G], or [B, targets] with `outputs="targets"`.

    clause_weights: W [M, C]; the identity when the program is taken as given (`hard`), a parameter
    when it is to be learnt. A soft-max over clauses is taken of it unless it is hard. With candidates it is a parameter
    [M, C] of which only the entries of candidates count; all other clauses hold as they are.
    """

    clause_weights: torch.Tensor

    def __init__(
        self,
        program: Program,
        engine_name: str,
        run: Run,
        clause_weights: str | torch.Tensor,
        candidates: Candidates | None = None,
        arch: str | None = None,
    ) -> None:
        super().__init__()
        _check(run)
        self.program, self.run = program, run
        # Plain numbers, which torch.compile can follow.
        self.atoms, self.target_indices = program.ground.G, program.target_indices
        self.engine_name = engine_name
        self.engine = engine(engine_name, program, arch)
        self.candidates = candidates
        self.hard = candidates is None and isinstance(clause_weights, str) and clause_weights == "hard"
        if candidates is not None:
            self.clause_weights = torch.nn.Parameter(candidates.start())
        else:
            self._set_weights(clause_weights)

    def _set_weights(self, weights: str | torch.Tensor) -> None:
        clauses = self.program.ground.C
        if isinstance(weights, str):
            if weights not in ("hard", "trainable"):
                raise NsfrcError(f"clause_weights is 'hard', 'trainable' or a tensor [M, C], not {weights!r}")
            # e^10 : 1 in favour of its own clause, so that training starts close to the program as given.
            start = torch.eye(clauses) * (1.0 if weights == "hard" else 10.0)
            weights = start if weights == "hard" else torch.nn.Parameter(start)
        if not isinstance(weights, torch.Tensor):
            raise NsfrcError(f"clause_weights is 'hard', 'trainable' or a tensor [M, C], not {weights!r}")
        if weights.ndim != 2 or weights.shape[1] != clauses or not len(weights):
            raise NsfrcError(
                f"clause_weights has shape {list(weights.shape)}; it must be [M, {clauses}], one column per clause"
            )
        if not weights.is_floating_point():
            raise NsfrcError(f"clause_weights is {weights.dtype}; it must be floating point, such as float32")
        if isinstance(weights, torch.nn.Parameter):
            self.clause_weights = weights
        else:
            # Hard weights are never read: kept out of state_dict, so that loading learnt ones here says so.
            self.register_buffer("clause_weights", weights, persistent=not self.hard)

    @property
    def gamma(self) -> float:
        """How soft a soft-or is; it may be changed at any time, as when annealing."""
        return self.run.gamma

    @gamma.setter
    def gamma(self, value: float) -> None:
        run = replace(self.run, gamma=value)
        _check(run)
        self.run = run

    def forward(self, V0: torch.Tensor) -> torch.Tensor:
        compiling = torch.compiler.is_compiling()
        self._refuse(V0, compiling)
        run = self.run
        if (run.steps == 0 and not self.program.anchored) or not V0.shape[0]:
            return self._unchanged(V0)
        weights = None if self.hard else self._mixtures()
        if compiling and self._opaque(V0):
            from nsfrc.engines.uncompiled import outside

            return outside(self.engine, V0, weights, run)
        return self.engine(V0, weights, run)

    def _unchanged(self, V0: torch.Tensor) -> torch.Tensor:
        """V_T without steps or examples: a tensor of its own, and in the graph of the weights."""
        self._refuse_values(V0)
        V = V0.clone()
        if self.run.inputs == "neural":
            start = torch.from_numpy(self.program.initial_valuation()).to(V0)
            V = torch.where(torch.from_numpy(self.program.ground.neural).to(V0.device), V, start)
        if not self.hard:
            V = V + 0 * self._mixtures().sum().to(V)
        return V[:, self.target_indices] if self.run.outputs == "targets" else V

    def _mixtures(self) -> torch.Tensor:
        """How far each mixture follows each clause, [M, C]; -inf leaves a clause out, but something must be left."""
        weights = self.clause_weights if self.candidates is None else self.candidates.rows(self.clause_weights)
        weights = torch.softmax(weights, dim=1)
        if weights.device.type == "cpu" and not torch.compiler.is_compiling() and bool(weights.isnan().any()):
            raise NsfrcError("clause_weights has a row with NaN, with infinity, or with nothing but -infinity")
        return weights

    def _refuse(self, V0: torch.Tensor, compiling: bool) -> None:
        if not isinstance(V0, torch.Tensor):
            raise NsfrcError(f"V0 is a {type(V0).__name__}; the reasoner takes a tensor [B, {self.atoms}]"
                             + (": torch.from_numpy makes one" if isinstance(V0, np.ndarray) else ""))
        shape = V0.shape
        if len(shape) != 2 or shape[1] != self.atoms:
            raise NsfrcError(
                f"V0 has shape {list(shape)}; this program needs [B, {self.atoms}], one column per ground atom"
            )
        if not V0.is_floating_point():
            raise NsfrcError(f"V0 is {V0.dtype}; valuations are floating point, such as float32")
        if self.engine_name == "reference":
            self._refuse_values(V0)
        elif torch.jit.is_tracing() and self._opaque(V0):
            raise NsfrcError(
                "torch.jit.trace cannot record a reasoner: the trace would always give the same answer; "
                'use the module as it is, or trace one with engine="reference"'
            )
        elif not compiling and self._has_tangent(V0):
            raise NsfrcError('this engine has no forward-mode derivatives: for those use engine="reference"')

    def _has_tangent(self, V0: torch.Tensor) -> bool:
        """Whether somebody wants forward-mode derivatives, which would be lost without a word."""
        if getattr(forward_ad, "_current_level", 0) < 0:  # nobody does; asking torch takes longer than small programs
            return False
        return any(forward_ad.unpack_dual(one).tangent is not None for one in (V0, self.clause_weights))

    def _refuse_values(self, V0: torch.Tensor) -> None:
        """What the CPU engine looks for in passing; the reference engine is slow enough for a look of its own."""
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            return
        fine = V0.detach().isfinite()
        if self.program.anchored:
            fine = fine & (V0.detach() >= 0)
        try:
            wrong = (~fine).nonzero()[:1].tolist()
        except RuntimeError:  # torch.func.vmap does not let anybody look at values
            return
        for row, atom in wrong:
            value = V0[row, atom].item()
            tell = negative if math.isfinite(value) else not_finite
            raise NsfrcError(tell(self.program, row, atom, value))

    def _opaque(self, V0: torch.Tensor) -> bool:
        """Whether torch.compile must leave the engine out of its graph: the CPU's kernels are not torch operators."""
        return self.engine_name == "cpu" or (self.engine_name == "auto" and V0.device.type != "cuda")

    def extra_repr(self) -> str:
        run = self.run
        weights = "hard" if self.hard else list(self.clause_weights.shape)
        chosen = "" if self.candidates is None else f", candidates of {', '.join(self.candidates.names)}"
        return (f"{self.program.name}, engine={self.engine_name}, steps={run.steps}, gamma={run.gamma}, "
                f"normalise={run.normalise}, inputs={run.inputs}, outputs={run.outputs}, clause_weights={weights}"
                f"{chosen}")


def _check(run: Run) -> None:
    for name, allowed in CHOICES.items():
        if getattr(run, name) not in allowed:
            raise NsfrcError(f"{name} is {' or '.join(map(repr, allowed))}, not {getattr(run, name)!r}")
    if run.steps is not None and (isinstance(run.steps, bool) or not isinstance(run.steps, Integral) or run.steps < 0):
        raise NsfrcError(f"steps must be a whole number, 0 or more, not {run.steps!r}")
    if not isinstance(run.gamma, Real) or not LEAST_GAMMA <= run.gamma <= MOST_GAMMA:
        raise NsfrcError(f"gamma must be {GAMMA_RANGE}, not {run.gamma!r}")


@torch.no_grad()
def empty_values(reasoner: Reasoner, device: str | torch.device = "cpu") -> tuple[float, ...]:
    """The value that a reasoner gives every target where all neural atoms are 0.

    Under `anchored` that is 0 by definition: what facts alone derive, or what is not there, may well be an answer.
    """
    program = reasoner.program
    if program.anchored:
        return (0.0,) * len(program.targets)
    V_T = reasoner(torch.from_numpy(program.initial_valuation())[None].to(device))[0]
    values = V_T if reasoner.run.outputs == "targets" else V_T[reasoner.target_indices]
    return tuple(values.tolist())
