"""The CPU engine of `paper` programs: picks the plan and tells the kernels of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from nsfrc.compiler.plan import Plan
from nsfrc.engines import Run
from nsfrc.engines.base import base_two, kept_slots, not_finite
from nsfrc.engines.cpu.calls import Bound, PlanEngine
from nsfrc.engines.cpu.tables import RECORD, Fixed, Packed, board_width, pack

if TYPE_CHECKING:
    from nsfrc.program import Program

# Nanoseconds for one example and step: an exponential in a row, and a soft-or in a slot.
ROW_NS, SLOT_NS = 0.5, 2.0


class CpuEngine(PlanEngine):
    """Runs `paper` plans: the one with merged slots where it is exact, else the one with a slot for every atom.

    Slots are merged for atoms that start as the program says; and a merged slot has one gradient, so asking for every
    atom's needs them apart.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._packed: dict[bool, tuple[Plan, Packed]] = {}

    def bind(self, declared: bool, hard: bool, run: Run) -> Bound:
        if declared not in self._packed:
            plan = self.program.plan if declared else self.program.unmerged_plan()
            self._packed[declared] = plan, pack(plan)
        return PaperBound(*self._packed[declared], run)

    def refusal(self, example: int, values: np.ndarray) -> str:
        atom = int(np.flatnonzero(~np.isfinite(values))[0])
        return not_finite(self.program, example, atom, values[atom])


class PaperBound(Bound):
    """A `paper` plan with a way to run it."""

    forward, backward, record = "forward", "backward", RECORD

    def __init__(self, plan: Plan, packed: Packed, run: Run) -> None:
        targets_only = run.outputs == "targets"
        outputs = plan.targets.astype(np.uint32) if targets_only else np.arange(plan.G, dtype=np.uint32)
        base = base_two(run.gamma)
        self.held = (*packed, base, outputs)
        self.outputs, self.steps, self.slots = len(outputs), run.T, kept_slots(plan, targets_only)
        self.whole_batch = run.normalise == "batch"
        self.clauses, self.board_width = plan.C, board_width(plan.C, len(plan.heads))
        self.cost = (plan.rows * ROW_NS + plan.slots * SLOT_NS) * run.T
        X, pairs, heads = plan.active + 1 + len(plan.node_left), len(plan.pair_clause), len(plan.heads) + 1
        step = 3 * pairs + 3 * plan.C + heads
        self.rows = X + plan.slots - plan.active + step, 2 * X + 3 * self.slots + step + pairs + plan.C + heads
        indices, floats, layout, base_at, outputs_at = (array.ctypes.data for array in self.held)
        self.fixed = Fixed(indices, floats, layout, base_at, outputs_at, len(outputs), plan.G, plan.C, run.T,
                           self.whole_batch, targets_only, run.inputs == "neural")

    def past(self, examples: int) -> tuple[int, ...]:
        return self.steps + 1, self.slots, examples

    def beside(self, parts: list[tuple[int, int]], tiles: list[int]) -> Sequence[torch.Tensor | None]:
        """Z of V of every step, of all examples."""
        return [torch.from_numpy(np.empty((self.steps, parts[-1][1]), np.float32))] * len(parts)
