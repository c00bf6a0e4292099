"""What the GPU engines of both semantics share: how torch's operators find an engine, and what an engine keeps.

Operators are opaque to torch.compile, so a graph with a reasoner in it is not broken. They take tensors and numbers
only; the engine behind a call is found by its number, and the program's digest tells apart what torch.compile has
cached in other processes, where numbers were given anew.
"""

from __future__ import annotations

import itertools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton

from nsfrc.engines import Run
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.program import Program

# Rows of the workspace are addressed with 32 bits.
MOST_VALUES = 2**31 - 1
# Sizes of batch for which the preparations are remembered.
MOST_JOBS = 64
# What the interpreter, which has no multiprocessors, stands in for: the A100's.
MULTIPROCESSORS = 108
# A first call copies tables to the card, which a CUDA graph cannot hold: torch.compile leaves these out of its own.
UNCAPTURED = (torch.Tag.cudagraph_unsafe,)

ENGINES: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


def interpreted() -> bool:
    """Whether Triton runs kernels in Python, on any tensor, instead of compiling them."""
    return bool(triton.knobs.runtime.interpret)


def multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return MULTIPROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


class CardEngine(ABC):
    """Arithmetic is float32; other inputs are converted and the result back.

    V0 is not looked at, since that would wait for the card, and a NaN that goes in comes out.
    """

    def __init__(self, program: Program, clauses: int, tables: Mapping[str, np.ndarray]) -> None:
        self._needs()
        self.program = program
        # Plain numbers, which torch.compile can follow.
        self.clauses = clauses
        self.digest = _digest(tables)
        self.anywhere = interpreted()
        self.number = next(_NUMBERS)
        ENGINES[self.number] = self
        self._on_device: dict[Hashable, tuple[torch.Tensor, torch.Tensor]] = {}
        self._jobs: dict[Hashable, Any] = {}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        self._refuse_device(V0)
        if weights is None:
            mixed = V0.new_empty((0, self.clauses), dtype=torch.float32)
        else:
            mixed = weights.to(V0.device, torch.float32).contiguous()
        values = V0.to(torch.float32).contiguous()
        keep = torch.is_grad_enabled() and (values.requires_grad or mixed.requires_grad)
        return self._reason(values, mixed, run, keep).to(V0.dtype)

    @abstractmethod
    def _reason(self, values: torch.Tensor, mixed: torch.Tensor, run: Run, keep: bool) -> torch.Tensor:
        """Call the engine's operator."""

    def _needs(self) -> None:
        """Refuse to be built where kernels cannot run."""
        if not torch.cuda.is_available() and not interpreted():
            raise NsfrcError(
                'engine "gpu" needs a CUDA device, and torch finds none: use engine="auto" or "cpu" '
                '(engine "ptx" executes its machine code slowly without one)'
            )

    def _refuse_device(self, V0: torch.Tensor) -> None:
        if V0.device.type != "cuda" and not self.anywhere:
            raise NsfrcError(f'V0 is on {V0.device}; engine "gpu" needs it on a CUDA device, "auto" takes either')

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy prepares itself again, where it is used."""
        return type(self), (self.program,)

    def _job_for(self, key: Hashable, make: Callable[[], Any]) -> Any:
        found = self._jobs.get(key)
        if found is None:
            if len(self._jobs) >= MOST_JOBS:
                self._jobs.pop(next(iter(self._jobs)), None)
            found = self._jobs[key] = make()
        return found

    def _moved(
        self, key: Hashable, whole: np.ndarray, floats: np.ndarray, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tables on a device, copied there once."""
        if (key, device) not in self._on_device:
            self._on_device[key, device] = torch.from_numpy(whole).to(device), torch.from_numpy(floats).to(device)
        return self._on_device[key, device]


def _digest(tables: Mapping[str, np.ndarray]) -> str:
    found = sha256()
    for table in tables.values():
        found.update(table.tobytes())
    return found.hexdigest()[:16]


def differentiate(forward: Any, backward: Any) -> None:
    """Have torch call one operator for the gradients of the other.

    forward(V0, weights, engine, digest, *run, keep) → outputs, past;
    backward(V0, weights, g_out, past, engine, digest, *run) → gradients of V0 and weights.
    """

    def remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        V0, weights, engine, digest, *run, _keep = inputs
        ctx.save_for_backward(V0, weights, output[1])
        ctx.engine = ENGINES.get(engine)  # which must outlive the graph
        ctx.arguments = (engine, digest, *run)
        ctx.mark_non_differentiable(output[1])

    def gradients(ctx: Any, g_out: torch.Tensor, _g_past: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        V0, weights, past = ctx.saved_tensors
        return *backward(V0, weights, g_out.contiguous(), past, *ctx.arguments), *[None] * (len(ctx.arguments) + 1)

    def empty_gradients(V0: torch.Tensor, weights: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.empty_like(V0), torch.empty_like(weights)

    backward.register_fake(empty_gradients)
    forward.register_autograd(gradients, setup_context=remember)
