"""The CPU engine of `anchored` programs: picks the plan and tells the kernels of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from nsfrc.compiler.levels import LevelPlan
from nsfrc.engines import Run
from nsfrc.engines.base import base_two, negative, not_finite, starting_values
from nsfrc.engines.cpu.calls import Bound, PlanEngine
from nsfrc.engines.cpu.levels_tables import RECORD, Fixed, Packed, pack

if TYPE_CHECKING:
    from nsfrc.program import Program

LEAST_GAMMA = 1e-7  # below, x/γ is the noise of float32, and what is to be at most 0 could be more than an exponent
ROW_NS = 0.6  # nanoseconds for one example: a product and an exponential of a row


class LevelsEngine(PlanEngine):
    """Runs level plans."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._declared = starting_values(np.where(program.ground.neural, np.nan, program.ground.initial))
        self._packed: dict[tuple[bool, bool, bool], tuple[LevelPlan, Packed]] = {}

    def bind(self, declared: bool, hard: bool, run: Run) -> Bound:
        key = declared, run.outputs == "targets", hard and self.program.ground.suffice(run.steps)
        if key not in self._packed:
            plan = self.program.level_plan(*key)
            self._packed[key] = plan, pack(plan)
        return LevelsBound(*self._packed[key], self._declared, run)

    def refusal(self, example: int, values: np.ndarray) -> str:
        atom = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        tell = negative if np.isfinite(values[atom]) else not_finite
        return tell(self.program, example, atom, values[atom])


class LevelsBound(Bound):
    """A level plan with a way to run it."""

    forward, backward, record = "levels_forward", "levels_backward", RECORD

    def __init__(self, plan: LevelPlan, packed: Packed, declared: np.ndarray, run: Run) -> None:
        own = plan.block_rounds.astype(np.int64)
        rounds = np.where(own == 0, -1, own if run.steps is None else run.steps)
        kept = np.diff(plan.block_heads.astype(np.int64)) * np.maximum(rounds + 1, 1)
        past_start = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        atom = np.arange(plan.G) if run.outputs == "all" else plan.targets.astype(np.int64)
        base, place = base_two(max(run.gamma, LEAST_GAMMA)), plan.place[atom].astype(np.int64)
        self.held = (*packed, base, declared, rounds, past_start, place, atom)
        indices, floats, layout, *others = (array.ctypes.data for array in self.held)
        base_at, declared_at, rounds_at, past_at, place_at, atom_at = others
        self.fixed = Fixed(indices, floats, layout, base_at, declared_at, plan.G, plan.C, rounds_at, past_at,
                           plan.blocks, place_at, atom_at, len(atom))
        self.outputs, self.blocks, self.kept = len(atom), plan.blocks, int(kept.sum())
        X = 2 + plan.inputs + plan.heads + len(plan.node_left) + len(plan.choice_by)
        self.rows = X + 2 * plan.heads, 2 * X + 4 * plan.heads
        self.needs_beside = bool((rounds >= 0).any())
        self.cost = plan.rows * ROW_NS * max(1, int(rounds.max(initial=1)))

    def past(self, examples: int) -> tuple[int, ...]:
        return self.kept, examples

    def beside(self, parts: list[tuple[int, int]], tiles: list[int]) -> Sequence[torch.Tensor | None]:
        """After how many rounds each tile's blocks settled."""
        if not self.needs_beside:
            return [None] * len(parts)
        return [torch.from_numpy(np.zeros((-(-(last - first) // tile), self.blocks), np.int64))
                for (first, last), tile in zip(parts, tiles, strict=True)]
