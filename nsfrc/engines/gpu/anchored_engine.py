"""The GPU engine of `anchored` programs as torch sees it: picks plan and kernels, and registers them as an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from nsfrc.engines import Run
from nsfrc.engines.base import base_two
from nsfrc.engines.gpu.anchored_launch import TableJob, WrittenJob, past_size
from nsfrc.engines.gpu.anchored_shapes import INSTANCES_PER_MULTIPROCESSOR, WARM, Shape, choose
from nsfrc.engines.gpu.anchored_tables import AnchoredTables, pack
from nsfrc.engines.gpu.anchored_written import Written, fits
from nsfrc.engines.gpu.operator import ENGINES, MOST_VALUES, UNCAPTURED, CardEngine, differentiate, multiprocessors
from nsfrc.errors import NsfrcError
from nsfrc.kernels.launch import LINE, stride

if TYPE_CHECKING:
    from nsfrc.compiler.levels import LevelPlan
    from nsfrc.program import Program

Job = TableJob | WrittenJob


class AnchoredGpuEngine(CardEngine):
    """Runs level plans with Triton: small ones written out, others from tables.

    Non-neural atoms start as V0 says unless `inputs="neural"`, which is faster.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program, program.ground.C, program.lowered.tables())
        self.fixed: Shape | None = None  # table-driven kernels in this tile whatever the batch, for tests
        self._tables: dict[tuple[bool, bool, bool], AnchoredTables] = {}

    def _reason(self, values: torch.Tensor, mixed: torch.Tensor, run: Run, keep: bool) -> torch.Tensor:
        steps = -1 if run.steps is None else run.steps
        out, _ = torch.ops.nsfrc.reason_anchored(
            values, mixed, self.number, self.digest, steps, run.gamma, run.outputs, run.inputs, keep
        )
        return out

    def _make_table_job(self, **fields: Any) -> TableJob:
        return TableJob(**fields)

    def _make_written_job(self, **fields: Any) -> WrittenJob:
        return WrittenJob(**fields)

    def job(self, batch: int, soft: bool, run: Run, device: torch.device) -> Job:
        """The kernels for a batch and what they are to do."""
        key = (batch, soft, run, device)
        return self._job_for((*key, self.fixed), lambda: self._new_job(*key))

    def _new_job(self, batch: int, soft: bool, run: Run, device: torch.device) -> Job:
        plan, warm = self._plan(run), run.gamma > WARM
        _, k, unit = base_two(run.gamma).tolist()
        if self.fixed is None and fits(plan, soft):
            written = Written(plan, run.outputs == "targets", warm, self.program.atoms, self.program.clauses)
            return self._make_written_job(written=written, k=k, unit=unit)
        tables, processors = self.tables(run, soft), multiprocessors(device)
        if tables.kept(run.steps) * stride(batch) > MOST_VALUES:
            most = MOST_VALUES // tables.kept(run.steps) // LINE * LINE
            raise NsfrcError(f"{batch:,} examples are too many at once for {self.program.name}: at most {most:,}")
        ints, floats = self._tensors(run, tables, device)
        return self._make_table_job(
            tables=tables, ints=ints, floats=floats, shape=self.fixed or choose(batch, processors),
            k=k, unit=unit, warm=warm, steps=run.steps, instances=INSTANCES_PER_MULTIPROCESSOR * processors,
        )

    def tables(self, run: Run, soft: bool) -> AnchoredTables:
        key = (run.inputs == "neural", run.outputs == "targets", soft)
        if key not in self._tables:
            self._tables[key] = pack(self._plan(run), run.outputs == "targets", soft)
        return self._tables[key]

    def _plan(self, run: Run) -> LevelPlan:
        return self.program.level_plan(run.inputs == "neural", run.outputs == "targets")

    def _tensors(self, run: Run, tables: AnchoredTables, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        return self._moved((run.inputs, run.outputs, tables.soft), tables.ints, tables.floats, device)


def _job(V0: torch.Tensor, weights: torch.Tensor, engine: int, *run: Any) -> Job:
    steps, gamma, outputs, inputs = run
    asked = Run(None if steps < 0 else steps, gamma, outputs=outputs, inputs=inputs)
    return ENGINES[engine].job(len(V0), len(weights) > 0, asked, V0.device)


@torch.library.custom_op("nsfrc::reason_anchored", mutates_args=(), tags=UNCAPTURED)
def reason_anchored(
    V0: torch.Tensor, weights: torch.Tensor, engine: int, digest: str,
    steps: int, gamma: float, outputs: str, inputs: str, keep: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """V0 [B, G] → outputs, and what the backward pass needs if it is to be kept. steps: -1 for as many as suffice."""
    return _job(V0, weights, engine, steps, gamma, outputs, inputs).forward(V0, weights, keep)


@reason_anchored.register_fake
def _(V0, weights, engine, digest, steps, gamma, outputs, inputs, keep):  # type: ignore[no-untyped-def]
    run = Run(None if steps < 0 else steps, gamma, outputs=outputs, inputs=inputs)
    runner, soft = ENGINES[engine], weights.shape[0] > 0
    columns = len(runner.program.targets) if outputs == "targets" else V0.shape[1]
    written = runner.fixed is None and fits(runner._plan(run), soft)
    kept = 0 if written or not keep else past_size(runner.tables(run, soft), run.steps, V0.shape[0])
    return V0.new_empty(V0.shape[0], columns), V0.new_empty(kept)


@torch.library.custom_op("nsfrc::reason_anchored_backward", mutates_args=(), tags=UNCAPTURED)
def reason_anchored_backward(
    V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: torch.Tensor, engine: int, digest: str,
    steps: int, gamma: float, outputs: str, inputs: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of V0 [B, G] and weights [M, C]."""
    return _job(V0, weights, engine, steps, gamma, outputs, inputs).backward(V0, weights, g_out, past)


differentiate(reason_anchored, reason_anchored_backward)
