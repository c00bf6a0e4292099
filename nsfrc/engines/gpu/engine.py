"""The GPU engine as torch sees it: picks plan and kernels, and registers them as an operator with gradients.

`nsfrc::reason` and `nsfrc::reason_backward` are opaque to torch.compile, so a graph with a reasoner in it is
not broken. An operator takes tensors and numbers only; the engine behind a call is found by its number, and the
program's digest tells apart what torch.compile has cached in other processes, where numbers were given anew.
"""

from __future__ import annotations

import itertools
import weakref
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import torch
import triton

from nsfrc.engines import Run
from nsfrc.engines.base import base_two
from nsfrc.engines.gpu.launch import (
    CLAUSE,
    INSTANCES_BACKWARD,
    INSTANCES_PER_MULTIPROCESSOR,
    PROGRAM,
    WARPS,
    Shape,
    choose,
    most_registers,
)
from nsfrc.engines.gpu.tables import Tables, layout, pack
from nsfrc.errors import NsfrcError
from nsfrc.kernels import clause, program
from nsfrc.kernels.launch import LINE, Job, Past, stride
from nsfrc.kernels.layout import Layout

if TYPE_CHECKING:
    from nsfrc.compiler.plan import Plan
    from nsfrc.program import Program

KERNELS = {"program": program, "clause": clause}
# Rows of the workspace are addressed with 32 bits.
MOST_VALUES = 2**31 - 1
# Sizes of batch for which the preparations are remembered.
MOST_JOBS = 64
# What the interpreter, which has no multiprocessors, stands in for: the A100's.
MULTIPROCESSORS = 108

_ENGINES: weakref.WeakValueDictionary[int, GpuEngine] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


def interpreted() -> bool:
    """Whether Triton runs kernels in Python, on any tensor, instead of compiling them."""
    return bool(triton.knobs.runtime.interpret)


def needs_a_card() -> None:
    """Refuse to be built where kernels cannot run."""
    if not torch.cuda.is_available() and not interpreted():
        raise NsfrcError(
            'engine "gpu" needs a CUDA device, and torch finds none: use engine="auto" or "cpu" '
            '(engine "ptx" executes its machine code slowly without one)'
        )


def refuse_device(V0: torch.Tensor, anywhere: bool) -> None:
    """anywhere: whether kernels are interpreted, as `interpreted` said once; torch.compile cannot ask it."""
    if V0.device.type != "cuda" and not anywhere:
        raise NsfrcError(f'V0 is on {V0.device}; engine "gpu" needs it on a CUDA device, "auto" takes either')


class GpuEngine:
    """Runs plans with Triton. Arithmetic is float32; other inputs are converted and the result back.

    V0 is not looked at, since that would wait for the card: every atom has a slot of its own unless
    `inputs="neural"`, which is faster, and a NaN that goes in comes out.
    """

    def __init__(self, program: Program) -> None:
        self._needs()
        self.program = program
        # Plain numbers, which torch.compile can follow.
        self.clauses = program.plan.C
        self.digest = _digest(program.plan)
        self.anywhere = interpreted()
        self.fixed: Shape | None = None  # kernels and tile to use whatever the batch, for tests and measurements
        self._register()
        self._prepared: dict[tuple[bool, bool, int | None], Tables] = {}
        self._on_device: dict[tuple[Any, ...], tuple[torch.Tensor, torch.Tensor]] = {}
        self._jobs: dict[tuple[Any, ...], tuple[Any, Job]] = {}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        self._refuse_device(V0)
        if weights is None:
            mixed = V0.new_empty((0, self.clauses), dtype=torch.float32)
        else:
            mixed = weights.to(V0.device, torch.float32).contiguous()
        values = V0.to(torch.float32).contiguous()
        keep = torch.is_grad_enabled() and (values.requires_grad or mixed.requires_grad)
        out, _ = torch.ops.nsfrc.reason(values, mixed, self.number, self.digest, *_as_arguments(run), keep)
        return out.to(V0.dtype)

    def _needs(self) -> None:
        needs_a_card()

    def _refuse_device(self, V0: torch.Tensor) -> None:
        refuse_device(V0, self.anywhere)

    def _make_job(self, kernels: str, **fields: Any) -> Job:
        return Job(**fields)

    def _register(self) -> None:
        """Take a number by which the operator finds this engine."""
        self.number = next(_NUMBERS)
        _ENGINES[self.number] = self

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy prepares itself again, where it is used."""
        return GpuEngine, (self.program,)

    def job(
        self, batch: int, mixtures: int, run: Run, direction: str, device: torch.device
    ) -> tuple[Any, Job]:
        """The kernels for a batch and what they are to do.

        mixtures: M, or 0 when hard. direction: "forward", "keep" (the same, for a backward pass) or "backward".
        """
        assert batch > 0 and run.T > 0, "a reasoner answers these itself"
        key = (batch, mixtures, run, direction, device)
        found = self._jobs.get((*key, self.fixed))
        if found is None:
            if len(self._jobs) >= MOST_JOBS:
                self._jobs.pop(next(iter(self._jobs)), None)
            found = self._jobs[*key, self.fixed] = self._new_job(*key)
        return found

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
            warps=WARPS, registers=most_registers(shape.kernels, back),
            instances=(INSTANCES_BACKWARD if back else INSTANCES_PER_MULTIPROCESSOR) * _multiprocessors(device),
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
            run.normalise == "batch", _multiprocessors(device),
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
        key = (run.inputs, run.outputs, rows_of_part, device)
        if key not in self._on_device:
            self._on_device[key] = (
                torch.from_numpy(tables.indices).to(device), torch.from_numpy(tables.floats).to(device)
            )
        return self._on_device[key]


def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return MULTIPROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


def _digest(plan: Plan) -> str:
    found = sha256()
    for table in plan.tables().values():
        found.update(table.tobytes())
    return found.hexdigest()[:16]


def _as_arguments(run: Run) -> tuple[int, float, str, str, str]:
    return run.T, run.gamma, run.normalise, run.outputs, run.inputs


# A first call copies tables to the card, which a CUDA graph cannot hold: torch.compile leaves these out of its own.
UNCAPTURED = (torch.Tag.cudagraph_unsafe,)


@torch.library.custom_op("nsfrc::reason", mutates_args=(), tags=UNCAPTURED)
def reason(
    V0: torch.Tensor, weights: torch.Tensor, engine: int, digest: str,
    steps: int, gamma: float, normalise: str, outputs: str, inputs: str, keep: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """V0 [B, G] → outputs, and what the backward pass needs if it is to be kept."""
    run = Run(steps, gamma, normalise, outputs, inputs)
    kernels, job = _ENGINES[engine].job(len(V0), len(weights), run, "keep" if keep else "forward", V0.device)
    out, past = kernels.forward(job, V0, weights)
    return out, past.data


@reason.register_fake
def _(V0, weights, engine, digest, steps, gamma, normalise, outputs, inputs, keep):  # type: ignore[no-untyped-def]
    tables = _ENGINES[engine].tables(Run(steps, gamma, normalise, outputs, inputs), PROGRAM.rows_of_part)
    batch = V0.shape[0]
    return V0.new_empty(batch, tables.outputs), V0.new_empty(Past.size(batch, steps, tables.kept) if keep else 1)


@torch.library.custom_op("nsfrc::reason_backward", mutates_args=(), tags=UNCAPTURED)
def reason_backward(
    V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: torch.Tensor, engine: int, digest: str,
    steps: int, gamma: float, normalise: str, outputs: str, inputs: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of V0 [B, G] and weights [M, C]."""
    run = Run(steps, gamma, normalise, outputs, inputs)
    kernels, job = _ENGINES[engine].job(len(V0), len(weights), run, "backward", V0.device)
    g_V0, g_weights = kernels.backward(job, V0, weights, g_out, Past.of(job, len(V0), past))
    return g_V0, g_weights


@reason_backward.register_fake
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
    g_V0, g_weights = torch.ops.nsfrc.reason_backward(
        V0, weights, g_out.contiguous(), past, *ctx.arguments
    )
    return g_V0, g_weights, *[None] * 8


reason.register_autograd(_gradients, setup_context=_remember)
