"""The GPU engine of `paper` programs as torch sees it: picks plan and kernels, and registers them as an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from nsfrc.engines import Run
from nsfrc.engines.base import base_two
from nsfrc.engines.gpu.launch import (
    CLAUSE,
    INSTANCES_PER_MULTIPROCESSOR,
    PROGRAM,
    REGISTERS,
    WARPS,
    Shape,
    choose,
)
from nsfrc.engines.gpu.operator import ENGINES, MOST_VALUES, UNCAPTURED, CardEngine, differentiate, multiprocessors
from nsfrc.engines.gpu.tables import Tables, layout, pack
from nsfrc.errors import NsfrcError
from nsfrc.kernels import clause, program
from nsfrc.kernels.launch import LINE, Job, Past, stride
from nsfrc.kernels.layout import Layout

if TYPE_CHECKING:
    from nsfrc.compiler.plan import Plan
    from nsfrc.program import Program

KERNELS = {"program": program, "clause": clause}


class GpuEngine(CardEngine):
    """Runs plans with Triton. Every atom has a slot of its own unless `inputs="neural"`, which is faster."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, program.plan.C, program.plan.tables())
        self.fixed: Shape | None = None  # kernels and tile to use whatever the batch, for tests and measurements
        self._prepared: dict[tuple[bool, bool, int | None], Tables] = {}

    def _reason(self, values: torch.Tensor, mixed: torch.Tensor, run: Run, keep: bool) -> torch.Tensor:
        arguments = run.T, run.gamma, run.normalise, run.outputs, run.inputs
        out, _ = torch.ops.nsfrc.reason(values, mixed, self.number, self.digest, *arguments, keep)
        return out

    def _make_job(self, kernels: str, **fields: Any) -> Job:
        return Job(**fields)

    def job(
        self, batch: int, mixtures: int, run: Run, direction: str, device: torch.device
    ) -> tuple[Any, Job]:
        """The kernels for a batch and what they are to do.

        mixtures: M, or 0 when hard. direction: "forward", "keep" (the same, for a backward pass) or "backward".
        """
        assert batch > 0 and run.T > 0, "a reasoner answers these itself"
        key = (batch, mixtures, run, direction, device)
        return self._job_for((*key, self.fixed), lambda: self._new_job(*key))

    def _new_job(
        self, batch: int, mixtures: int, run: Run, direction: str, device: torch.device
    ) -> tuple[Any, Job]:
        shape = self.shape(batch, run, device)
        tables = self.tables(run, shape.rows_of_part)
        _, k, unit = base_two(run.gamma).tolist()
        forward, backward = (
            layout(tables, shape.tall, shape.wide, mixtures,
                   hard=mixtures == 0, neural_only=run.inputs == "neural", gradient=gradient)
            for gradient in (False, True)
        )
        if shape.kernels == "clause":
            self._check_size(batch, run, forward if direction == "forward" else backward)
        indices, floats = self._tensors(run, shape.rows_of_part, tables, device)
        back = direction == "backward"
        return KERNELS[shape.kernels], self._make_job(
            shape.kernels, layout=backward if back else forward,
            indices=indices, floats=floats, k=k, unit=unit, steps=run.T,
            whole_batch=run.normalise == "batch", keep=direction == "keep",
            warps=WARPS, registers=REGISTERS,
            instances=INSTANCES_PER_MULTIPROCESSOR * multiprocessors(device),
        )

    def _check_size(self, batch: int, run: Run, largest: Layout) -> None:
        if largest.row.end * stride(batch) > MOST_VALUES:
            most = MOST_VALUES // largest.row.end // LINE * LINE
            raise NsfrcError(
                f'{batch:,} examples are too many at once for {self.program.name} with normalise="{run.normalise}": '
                f"at most {most:,}"
            )

    def shape(self, batch: int, run: Run, device: torch.device) -> Shape:
        """Which kernels a batch is given to."""
        return self.fixed or choose(
            self.tables(run, PROGRAM.rows_of_part), self.tables(run, CLAUSE.rows_of_part), batch, run.T,
            run.normalise == "batch", multiprocessors(device),
        )

    def tables(self, run: Run, rows_of_part: int | None) -> Tables:
        """Merged slots have one starting value and one gradient, so they are for neural inputs only."""
        key = (run.inputs == "neural", run.outputs == "targets", rows_of_part)
        if key not in self._prepared:
            self._prepared[key] = pack(self._plan(run), run.outputs == "targets", rows_of_part)
        return self._prepared[key]

    def _plan(self, run: Run) -> Plan:
        return self.program.plan if run.inputs == "neural" else self.program.unmerged_plan()

    def _tensors(
        self, run: Run, rows_of_part: int | None, tables: Tables, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._moved((run.inputs, run.outputs, rows_of_part), tables.indices, tables.floats, device)


@torch.library.custom_op("nsfrc::reason", mutates_args=(), tags=UNCAPTURED)
def reason(
    V0: torch.Tensor, weights: torch.Tensor, engine: int, digest: str,
    steps: int, gamma: float, normalise: str, outputs: str, inputs: str, keep: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """V0 [B, G] → outputs, and what the backward pass needs if it is to be kept."""
    run = Run(steps, gamma, normalise, outputs, inputs)
    kernels, job = ENGINES[engine].job(len(V0), len(weights), run, "keep" if keep else "forward", V0.device)
    out, past = kernels.forward(job, V0, weights)
    return out, past.data


@reason.register_fake
def _(V0, weights, engine, digest, steps, gamma, normalise, outputs, inputs, keep):  # type: ignore[no-untyped-def]
    tables = ENGINES[engine].tables(Run(steps, gamma, normalise, outputs, inputs), PROGRAM.rows_of_part)
    batch = V0.shape[0]
    return V0.new_empty(batch, tables.outputs), V0.new_empty(Past.size(batch, steps, tables.kept) if keep else 1)


@torch.library.custom_op("nsfrc::reason_backward", mutates_args=(), tags=UNCAPTURED)
def reason_backward(
    V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: torch.Tensor, engine: int, digest: str,
    steps: int, gamma: float, normalise: str, outputs: str, inputs: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of V0 [B, G] and weights [M, C]."""
    run = Run(steps, gamma, normalise, outputs, inputs)
    kernels, job = ENGINES[engine].job(len(V0), len(weights), run, "backward", V0.device)
    g_V0, g_weights = kernels.backward(job, V0, weights, g_out, Past.of(job, len(V0), past))
    return g_V0, g_weights


differentiate(reason, reason_backward)
