"""The GPU engine of `anchored` programs as torch sees it: picks plan and kernels, and registers them as an operator.

As in `engine`, operators take tensors and numbers only; the engine behind a call is found by its number, and the
program's digest tells apart what torch.compile has cached in other processes.
"""

from __future__ import annotations

import itertools
import weakref
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import torch

from nsfrc.engines import Run
from nsfrc.engines.base import base_two
from nsfrc.engines.gpu.anchored_launch import TableJob, WrittenJob, past_size
from nsfrc.engines.gpu.anchored_shapes import INSTANCES_PER_MULTIPROCESSOR, WARM, Shape, choose
from nsfrc.engines.gpu.anchored_tables import AnchoredTables, pack
from nsfrc.engines.gpu.anchored_written import Written, fits
from nsfrc.engines.gpu.engine import (
    MOST_JOBS,
    MOST_VALUES,
    UNCAPTURED,
    _multiprocessors,
    interpreted,
    needs_a_card,
    refuse_device,
)
from nsfrc.errors import NsfrcError
from nsfrc.kernels.launch import LINE, stride

if TYPE_CHECKING:
    from nsfrc.compiler.levels import LevelPlan
    from nsfrc.program import Program

Job = TableJob | WrittenJob

_ENGINES: weakref.WeakValueDictionary[int, AnchoredGpuEngine] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


class AnchoredGpuEngine:
    """Runs level plans with Triton: small ones written out, others from tables. Arithmetic is float32.

    V0 is not looked at, since that would wait for the card: non-neural atoms start as V0 says unless
    `inputs="neural"`, which is faster, and a NaN that goes in comes out.
    """

    def __init__(self, program: Program) -> None:
        self._needs()
        self.program = program
        # Plain numbers, which torch.compile can follow.
        self.clauses = program.ground.C
        self.digest = _digest(program.lowered)
        self.anywhere = interpreted()
        self.fixed: Shape | None = None  # table-driven kernels in this tile whatever the batch, for tests
        self.number = next(_NUMBERS)
        _ENGINES[self.number] = self
        self._tables: dict[tuple[bool, bool, bool], AnchoredTables] = {}
        self._on_device: dict[tuple[Any, ...], tuple[torch.Tensor, torch.Tensor]] = {}
        self._jobs: dict[tuple[Any, ...], Job] = {}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        self._refuse_device(V0)
        if weights is None:
            mixed = V0.new_empty((0, self.clauses), dtype=torch.float32)
        else:
            mixed = weights.to(V0.device, torch.float32).contiguous()
        values = V0.to(torch.float32).contiguous()
        keep = torch.is_grad_enabled() and (values.requires_grad or mixed.requires_grad)
        steps = -1 if run.steps is None else run.steps
        out, _ = torch.ops.nsfrc.reason_anchored(
            values, mixed, self.number, self.digest, steps, run.gamma, run.outputs, run.inputs, keep
        )
        return out.to(V0.dtype)

    def _needs(self) -> None:
        needs_a_card()

    def _refuse_device(self, V0: torch.Tensor) -> None:
        refuse_device(V0, self.anywhere)

    def _make_table_job(self, **fields: Any) -> TableJob:
        return TableJob(**fields)

    def _make_written_job(self, **fields: Any) -> WrittenJob:
        return WrittenJob(**fields)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy prepares itself again, where it is used."""
        return AnchoredGpuEngine, (self.program,)

    def job(self, batch: int, soft: bool, run: Run, device: torch.device) -> Job:
        """The kernels for a batch and what they are to do."""
        key = (batch, soft, run, device, self.fixed)
        found = self._jobs.get(key)
        if found is None:
            if len(self._jobs) >= MOST_JOBS:
                self._jobs.pop(next(iter(self._jobs)), None)
            found = self._jobs[key] = self._new_job(batch, soft, run, device)
        return found

    def _new_job(self, batch: int, soft: bool, run: Run, device: torch.device) -> Job:
        plan, warm = self._plan(run), run.gamma > WARM
        _, k, unit = base_two(run.gamma).tolist()
        if self.fixed is None and fits(plan, soft):
            written = Written(plan, run.outputs == "targets", warm, self.program.atoms, self.program.clauses)
            return self._make_written_job(written=written, k=k, unit=unit)
        tables, multiprocessors = self.tables(run, soft), _multiprocessors(device)
        if tables.kept(run.steps) * stride(batch) > MOST_VALUES:
            most = MOST_VALUES // tables.kept(run.steps) // LINE * LINE
            raise NsfrcError(f"{batch:,} examples are too many at once for {self.program.name}: at most {most:,}")
        ints, floats = self._tensors(run, tables, device)
        return self._make_table_job(
            tables=tables, ints=ints, floats=floats, shape=self.fixed or choose(batch, multiprocessors),
            k=k, unit=unit, warm=warm, steps=run.steps, instances=INSTANCES_PER_MULTIPROCESSOR * multiprocessors,
        )

    def tables(self, run: Run, soft: bool) -> AnchoredTables:
        key = (run.inputs == "neural", run.outputs == "targets", soft)
        if key not in self._tables:
            self._tables[key] = pack(self._plan(run), run.outputs == "targets", soft)
        return self._tables[key]

    def _plan(self, run: Run) -> LevelPlan:
        return self.program.level_plan(run.inputs == "neural", run.outputs == "targets")

    def _tensors(self, run: Run, tables: AnchoredTables, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        key = (run.inputs, run.outputs, tables.soft, device)
        if key not in self._on_device:
            self._on_device[key] = (
                torch.from_numpy(tables.ints).to(device), torch.from_numpy(tables.floats).to(device)
            )
        return self._on_device[key]


def _digest(plan: Any) -> str:
    found = sha256()
    for table in plan.tables().values():
        found.update(table.tobytes())
    return found.hexdigest()[:16]


def _job(V0: torch.Tensor, weights: torch.Tensor, engine: int, *run: Any) -> Job:
    steps, gamma, outputs, inputs = run
    asked = Run(None if steps < 0 else steps, gamma, outputs=outputs, inputs=inputs)
    return _ENGINES[engine].job(len(V0), len(weights) > 0, asked, V0.device)


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
    runner, soft = _ENGINES[engine], weights.shape[0] > 0
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


@reason_anchored_backward.register_fake
def _(V0, weights, *_):  # type: ignore[no-untyped-def]
    return torch.empty_like(V0), torch.empty_like(weights)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    V0, weights, engine, digest, *run, _keep = inputs
    ctx.save_for_backward(V0, weights, output[1])
    ctx.engine = _ENGINES.get(engine)  # which must outlive the graph
    ctx.arguments = (engine, digest, *run)
    ctx.mark_non_differentiable(output[1])


def _gradients(ctx: Any, g_out: torch.Tensor, _g_past: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    V0, weights, past = ctx.saved_tensors
    g_V0, g_weights = torch.ops.nsfrc.reason_anchored_backward(
        V0, weights, g_out.contiguous(), past, *ctx.arguments
    )
    return g_V0, g_weights, *[None] * 7


reason_anchored.register_autograd(_gradients, setup_context=_remember)
