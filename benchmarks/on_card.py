"""Times of the Triton kernels and of the dense reference on a real card.

Each file of kernels of `paper` is forced in turn. A run is timed by two CUDA events around it, so waiting for Python to
start a kernel counts and copying results does not. The second cache is not flushed between runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch

from nsfrc.benchmarks import dense
from nsfrc.benchmarks.measure import Timing
from nsfrc.engines import Engine, Run
from nsfrc.engines.gpu.anchored_engine import AnchoredGpuEngine
from nsfrc.engines.gpu.engine import GpuEngine
from nsfrc.engines.gpu.launch import Shape
from nsfrc.engines.reference import ReferenceEngine
from nsfrc.program import Program

Timer = Callable[[Callable[[], object]], Timing]
# The dense reference is left out where the model says that one run takes longer, or needs more of the memory.
DENSE_SECONDS, DENSE_SHARE = 2.0, 0.8


def forced(program: Program, shape: Shape | None) -> Engine:
    """The GPU engine with one file of kernels for all batches; for `anchored` with what it chooses."""
    if program.anchored:
        return AnchoredGpuEngine(program)
    engine = GpuEngine(program)
    engine.fixed = shape
    return engine


@dataclass(frozen=True)
class Sample:
    """How targets of one batch follow from neural atoms. direction: "forward", or "training", forward and backward."""

    program: Program
    direction: str
    V0: torch.Tensor
    gamma: float = 0.01

    def run(self, engine: Engine) -> Callable[[], object]:
        """What is timed."""
        steps = self.program.settings.steps if self.program.anchored else self.program.steps
        run = Run(steps, self.gamma, inputs="neural", outputs="targets")
        if self.direction == "forward":
            return lambda: _forward(engine, self.V0, run)
        V0 = self.V0.clone().requires_grad_()
        given = V0.new_ones(len(V0), len(self.program.targets))
        return lambda: torch.autograd.grad(engine(V0, None, run), V0, given)


@torch.no_grad()
def _forward(engine: Engine, V0: torch.Tensor, run: Run) -> torch.Tensor:
    return engine(V0, None, run)


def by_events(work: Callable[[], object], budget: float = 0.3, most: int = 200, least: int = 5) -> Timing:
    """Three runs to warm up, of which the last says how many fit the budget (seconds); then those."""
    for _ in range(3):
        first = _between_events([work])
    runs = int(min(most, max(least, budget / max(first[0], 1e-7))))
    times = sorted(_between_events([work] * runs))
    return Timing(statistics.median(times), times[len(times) // 5], times[len(times) * 4 // 5], len(times))


def _between_events(works: list[Callable[[], object]]) -> list[float]:
    """Seconds of each; all are queued before any is waited for."""
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in works]
    torch.cuda.synchronize()
    for work, (begin, end) in zip(works, events, strict=True):
        begin.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in events]


def reference_on(program: Program, device: torch.device) -> ReferenceEngine:
    """The dense reference with its tables on the device; torch would copy them there at every call."""
    engine = ReferenceEngine(program)
    engine.index, engine.targets, engine.constant = (
        table.to(device) for table in (engine.index, engine.targets, engine.constant)
    )
    return engine


def time_dense(sample: Sample, reference: ReferenceEngine | None, timer: Timer, memory: float) -> Timing | None:
    """None where there is none, or it does not fit the memory (bytes) or would take too long."""
    if reference is None:
        return None
    plan, batch, training = sample.program.plan, len(sample.V0), sample.direction == "training"
    moved = dense.forward(plan, sample.program.steps, batch)
    if training:
        moved += dense.backward(plan, sample.program.steps, batch)
    needed = dense.peak(plan, sample.program.steps, batch, training)
    if dense.seconds(moved) > DENSE_SECONDS or needed > DENSE_SHARE * memory:
        return None
    try:
        return timer(sample.run(reference))
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return None
