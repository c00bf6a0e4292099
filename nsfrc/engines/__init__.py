"""Engines: one interface, several ways to run a compiled program.

`reference` is the dense definition and the oracle of all others; `cpu` runs the plan with numba and
`gpu` with Triton; `auto` takes one of these two, by where V0 is. `ptx` executes the machine code of `gpu` on the CPU,
slowly, and checks it.
An engine is built once for a program and called with valuations; `run` describes one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from nsfrc.errors import NsfrcError, did_you_mean

if TYPE_CHECKING:
    import torch

    from nsfrc.program import Program

NAMES = ("auto", "cpu", "gpu", "ptx", "reference")
GAMMA = 0.01  # where neither the program nor the caller says another


@dataclass(frozen=True)
class Run:
    """How to reason: T steps of soft-or with γ; whose maximum Z is; what comes out and what goes in.

    steps: under `anchored` the rounds of what depends on itself, None for as many as suffice. normalise, for `paper`:
    "example" or "batch". outputs: "all" atoms or "targets". inputs: "all" honours every
    entry of V0 and gives its gradient; "neural" takes the others from the program.
    """

    steps: int | None
    gamma: float
    normalise: str = "example"
    outputs: str = "all"
    inputs: str = "all"

    @property
    def T(self) -> int:
        """The steps of a program under `paper`, which always has a number of them."""
        assert self.steps is not None
        return self.steps


class Engine(Protocol):
    """Runs one program. `weights`: [M, C], rows sum to 1; None chooses every clause once."""

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        """V0 [B, G] → [B, G] or, for outputs="targets", [B, targets]; differentiable in V0 and weights."""
        ...


class AutoEngine:
    """CUDA tensors go to the GPU kernels, all others to the CPU engine; either is built when first needed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._engines: dict[str, Engine] = {}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        name = "gpu" if V0.is_cuda else "cpu"
        if name not in self._engines:
            self._engines[name] = engine(name, self.program)
        return self._engines[name](V0, weights, run)


def engine(name: str, program: Program, arch: str | None = None) -> Engine:
    """Build an engine by name; its libraries are imported only now. arch: what "ptx" compiles for, sm_80 by default."""
    if arch is not None and name != "ptx":
        raise NsfrcError(f'arch is for engine "ptx" alone, which executes machine code of that card, not for {name!r}')
    if name == "auto":
        return AutoEngine(program)
    if name == "cpu":
        if program.anchored:
            from nsfrc.engines.cpu.levels_engine import LevelsEngine

            return LevelsEngine(program)
        from nsfrc.engines.cpu.engine import CpuEngine

        return CpuEngine(program)
    if name == "gpu":
        if find_spec("triton") is None:
            raise NsfrcError('engine "gpu" needs the package triton: pip install "nsfrc[gpu]", or use engine="auto"')
        if program.anchored:
            from nsfrc.engines.gpu.anchored_engine import AnchoredGpuEngine

            return AnchoredGpuEngine(program)
        from nsfrc.engines.gpu.engine import GpuEngine

        return GpuEngine(program)
    if name == "ptx":
        if find_spec("triton") is None:
            raise NsfrcError('engine "ptx" needs the package triton: pip install "nsfrc[gpu]"')
        from nsfrc.engines.ptx.engine import engine_for

        return engine_for(program, arch or "sm_80")
    if name == "reference":
        if program.anchored:
            from nsfrc.engines.anchored_reference import AnchoredReference

            return AnchoredReference(program)
        from nsfrc.engines.reference import ReferenceEngine

        return ReferenceEngine(program)
    hint = did_you_mean(str(name), NAMES) or f"the engines are {', '.join(NAMES)}"
    raise NsfrcError(f"there is no engine called {name!r}: {hint}")
