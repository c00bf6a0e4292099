"""The CPU engine of `anchored` programs as torch sees it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nsfrc.compiler.levels import LevelPlan
from nsfrc.engines import Run
from nsfrc.engines.base import base_two, negative, not_finite, starting_values
from nsfrc.engines.cpu.cache import kernel_cache
from nsfrc.engines.cpu.engine import _floats, _like, _Once, _tile, split
from nsfrc.engines.cpu.levels_tables import Packed, fix, pack
from nsfrc.engines.cpu.threads import in_threads
from nsfrc.errors import NsfrcError

with kernel_cache():
    from nsfrc.engines.cpu.levels_backward import backward
    from nsfrc.engines.cpu.levels_forward import FINE, OTHER_START, forward

if TYPE_CHECKING:
    from nsfrc.program import Program

LEAST_GAMMA = 1e-7  # below, x/γ is the noise of float32, and what is to be at most 0 could be more than an exponent
ROW_NS = 0.6  # nanoseconds for one example: a product and an exponential of a row


class LevelsEngine:
    """Runs level plans with numba. Arithmetic is float32; other inputs are converted and the result back.

    Small programs take less time than it takes to prepare a call, so whatever does not depend on V0 is kept.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._declared = starting_values(np.where(program.ground.neural, np.nan, program.ground.initial))
        self._packed: dict[tuple[bool, bool, bool], tuple[LevelPlan, Packed]] = {}
        self._latest: tuple[Run | None, dict[tuple[bool, bool], Bound]] = None, {}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        values = _floats(V0)
        if torch.is_grad_enabled():
            by_V0 = V0.requires_grad
            if by_V0 or (weights is not None and weights.requires_grad):
                return _Reason.apply(V0, weights, self, values, run, by_V0)
        return _like(self.reason(values, weights, run, False, False)[1], V0)

    def reason(
        self, values: np.ndarray, weights: torch.Tensor | None, run: Run, keep: bool, by_V0: bool
    ) -> tuple[Call, np.ndarray]:
        """The call and its results [B, outputs], by the plan in which facts are constants where that is exact.

        keep: whether gradients are wanted, by_V0: those of V0 too.
        """
        promised = run.inputs == "neural"
        call = Call(self._bind(promised or not by_V0, weights is None, run), values, weights, keep)
        out = np.empty((len(values), call.bound.outputs), np.float32)
        found = call.forward(out, not (promised or by_V0))
        if found == OTHER_START:
            call = Call(self._bind(False, weights is None, run), values, weights, keep)
            found = call.forward(out, False)
        if found != FINE:
            atom = int(np.flatnonzero(~np.isfinite(values[found]) | (values[found] < 0))[0])
            tell = negative if np.isfinite(values[found, atom]) else not_finite
            raise NsfrcError(tell(self.program, found, atom, values[found, atom]))
        return call, out

    def _bind(self, declared: bool, hard: bool, run: Run) -> Bound:
        """declared: for V0 that says of facts what the program does."""
        latest, ways = self._latest
        if latest is not run:
            ways = {}
            self._latest = run, ways
        bound = ways.get((declared, hard))
        if bound is None:
            key = declared, run.outputs == "targets", hard and self.program.ground.suffice(run.steps)
            if key not in self._packed:
                plan = self.program.level_plan(*key)
                self._packed[key] = plan, pack(plan)
            bound = ways[declared, hard] = Bound(*self._packed[key], self._declared, run)
        return bound


class Bound:
    """A plan with a way to run it: all that calls have in common."""

    def __init__(self, plan: LevelPlan, packed: Packed, declared: np.ndarray, run: Run) -> None:
        own = plan.block_rounds.astype(np.int64)
        rounds = np.where(own == 0, -1, own if run.steps is None else run.steps)
        kept = np.diff(plan.block_heads.astype(np.int64)) * np.maximum(rounds + 1, 1)
        atom = np.arange(plan.G) if run.outputs == "all" else plan.targets.astype(np.int64)
        self.fixed = fix(packed, base_two(max(run.gamma, LEAST_GAMMA)), declared, rounds,
                         np.concatenate([[0], np.cumsum(kept)]), plan.place[atom], atom)
        self.outputs, self.blocks, self.kept = len(atom), plan.blocks, int(kept.sum())
        self.cost = plan.rows * ROW_NS * max(1, int(rounds.max(initial=1)))  # nanoseconds for an example
        self.no_weights, self.no_past = np.empty((0, plan.C), np.float32), np.empty((0, 1), np.float32)


class _Reason(torch.autograd.Function):
    """V_T of V0 [B, G] and weights [M, C]; the heads' values are kept for the backward pass, nothing else."""

    @staticmethod
    def forward(
        ctx: Any, V0: torch.Tensor, weights: torch.Tensor | None, engine: LevelsEngine, values: np.ndarray, run: Run,
        by_V0: bool,
    ) -> torch.Tensor:
        ctx.call, out = engine.reason(values, weights, run, True, by_V0)
        ctx.save_for_backward(V0, weights)
        return _like(out, V0)

    @staticmethod
    def backward(ctx: Any, g_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        V0, weights = ctx.saved_tensors
        g_V0, g_weights = ctx.call.backward(_floats(g_out))
        gradients = [_like(g_V0, V0), None if weights is None else _like(g_weights, weights)]
        if torch.is_grad_enabled():  # create_graph=True: somebody may want to differentiate these again
            gradients = [None if g is None else _Once.apply(g, g_out, V0, weights) for g in gradients]
        return *gradients, None, None, None, None


class Call:
    """One batch: the kernels' arguments, an item for every thread, and what is kept for the way back."""

    def __init__(self, bound: Bound, V0: np.ndarray, weights: torch.Tensor | None, keep: bool) -> None:
        self.bound, self.V0 = bound, V0
        self.weights = bound.no_weights if weights is None else _floats(weights)
        past = np.empty((bound.kept, len(V0)), np.float32) if keep else bound.no_past
        self.parts = []
        for first, last in split(len(V0), bound.cost):
            tile = _tile(last - first, False)
            settled = np.zeros((-(-(last - first) // tile), bound.blocks), np.int64)
            self.parts.append((*bound.fixed, V0, first, last, tile, self.weights, past, settled))

    def forward(self, out: np.ndarray, must_start_so: bool) -> int:
        """Writes to out [B, outputs]; says what the kernel does, of several parts the first that is not FINE."""
        if len(self.parts) == 1:
            return forward(out, must_start_so, *self.parts[0])
        found = [FINE] * len(self.parts)

        def run(part: int) -> None:
            found[part] = forward(out, must_start_so, *self.parts[part])

        in_threads([partial(run, part) for part in range(len(self.parts))])
        if OTHER_START in found:
            return OTHER_START
        return next((one for one in found if one != FINE), FINE)

    def backward(self, g_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g_V0 = np.zeros(self.V0.shape, np.float32)
        g_weights = np.zeros((len(self.parts), *self.weights.shape))
        if len(self.parts) == 1:
            backward(g_out, g_V0, g_weights[0], *self.parts[0])
            return g_V0, g_weights[0]
        in_threads([partial(backward, g_out, g_V0, g_weights[i], *part) for i, part in enumerate(self.parts)])
        return g_V0, g_weights.sum(axis=0)
