"""Engine "ptx": the GPU engine with every launch executed on the CPU, instruction by instruction.

What is compiled, and with which arguments it is launched, is the GPU engine's own business; only where a kernel would
be handed to a card, and where memory would be taken from one, this engine steps in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from nsfrc.engines.gpu import aot
from nsfrc.engines.gpu.anchored_aot import table_kernel, written_kernel
from nsfrc.engines.gpu.anchored_engine import AnchoredGpuEngine
from nsfrc.engines.gpu.anchored_launch import TableJob, WrittenJob
from nsfrc.engines.gpu.engine import GpuEngine
from nsfrc.engines.ptx.launch import Launch, Runner, poisoned
from nsfrc.errors import NsfrcError
from nsfrc.kernels.launch import Job

if TYPE_CHECKING:
    from nsfrc.program import Program


@dataclass(frozen=True, kw_only=True)
class PtxJob(Job):
    """A job of `paper`'s kernels. file: that they are in."""

    runner: Runner
    file: str

    def empty(self, *shape: int) -> torch.Tensor:
        return poisoned(super().empty(*shape))

    def launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        self.runner.launch(aot.kernel_of(kernel, grid, arguments, constants, self.file, self.layout), grid, arguments)


@dataclass(frozen=True, eq=False, kw_only=True)
class PtxTableJob(TableJob):
    runner: Runner

    def empty(self, V0: torch.Tensor, *shape: int) -> torch.Tensor:
        return poisoned(super().empty(V0, *shape))

    def launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        self.runner.launch(table_kernel(self, kernel, arguments, constants), grid, arguments)


@dataclass(frozen=True, eq=False, kw_only=True)
class PtxWrittenJob(WrittenJob):
    runner: Runner

    def empty(self, V0: torch.Tensor, *shape: int) -> torch.Tensor:
        return poisoned(super().empty(V0, *shape))

    def start(self, name: str, grid: tuple[int, ...], *arguments: Any) -> None:
        self.runner.launch(written_kernel(self, name, arguments), grid, arguments)


class _Executed:
    """What both engines have: where they run, and how."""

    name = "ptx"
    runner: Runner

    @property
    def launches(self) -> list[Launch]:
        """What was launched so far, in order; empty it as you like."""
        return self.runner.launches

    def _needs(self) -> None:
        """No card."""

    def _refuse_device(self, V0: torch.Tensor) -> None:
        if V0.device.type != "cpu":
            raise NsfrcError(f'V0 is on {V0.device}; engine "ptx" executes machine code on the CPU and needs it there')


class PtxEngine(_Executed, GpuEngine):
    """Programs under `paper`. runner: how launches are run; `fixed`: kernels and tile whatever the batch."""

    def __init__(self, program: Program, arch: str = "sm_80") -> None:
        self.runner = Runner(arch)
        super().__init__(program)

    def __reduce__(self) -> tuple[Any, ...]:
        return PtxEngine, (self.program, self.runner.arch)

    def _make_job(self, kernels: str, **fields: Any) -> Job:
        return PtxJob(runner=self.runner, file=kernels, **fields)


class AnchoredPtxEngine(_Executed, AnchoredGpuEngine):
    """Programs under `anchored`."""

    def __init__(self, program: Program, arch: str = "sm_80") -> None:
        self.runner = Runner(arch)
        super().__init__(program)

    def __reduce__(self) -> tuple[Any, ...]:
        return AnchoredPtxEngine, (self.program, self.runner.arch)

    def _make_table_job(self, **fields: Any) -> TableJob:
        return PtxTableJob(runner=self.runner, **fields)

    def _make_written_job(self, **fields: Any) -> WrittenJob:
        return PtxWrittenJob(runner=self.runner, **fields)


def engine_for(program: Program, arch: str) -> PtxEngine | AnchoredPtxEngine:
    return AnchoredPtxEngine(program, arch) if program.anchored else PtxEngine(program, arch)
