"""How kernels of `anchored` are started: for a batch, a tile and a number of instances; one launch each way."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import torch
import triton
import triton.language as tl

from nsfrc.engines.gpu.anchored_shapes import Shape
from nsfrc.engines.gpu.anchored_tables import AnchoredTables
from nsfrc.engines.gpu.anchored_written import LANES, Written
from nsfrc.kernels.anchored import anchored_forward
from nsfrc.kernels.anchored_back import anchored_backward
from nsfrc.kernels.launch import stride


def past_size(tables: AnchoredTables, steps: int | None, batch: int) -> int:
    """Rows of X of all examples and, for soft weights, a ticket by which the last instance to end knows that it is."""
    return tables.kept(steps) * stride(batch) + int(tables.soft)


@dataclass(frozen=True, eq=False)
class TableJob:
    """The table-driven kernels for a program on a device. steps: as in `Run`."""

    tables: AnchoredTables
    ints: torch.Tensor
    floats: torch.Tensor
    shape: Shape
    k: float
    unit: float
    warm: bool
    steps: int | None
    instances: int  # that run at once

    def forward(self, V0: torch.Tensor, weights: torch.Tensor, keep: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """V0 [B, G], weights [M, C] (any when hard) → outputs [B, outputs], and what `backward` needs."""
        batch, instances = len(V0), self._instances(len(V0))
        out = self.empty(V0, batch, self.tables.n.outputs)
        past = self.empty(V0, past_size(self.tables, self.steps, batch) if keep else 0)
        rows = past if keep else self.empty(V0, instances * self.tables.row.top * self.shape.wide)
        self.launch(
            anchored_forward, (instances,), V0, weights, out, rows, self._ticket(past), self.ints, self.floats,
            self.k, self.unit, batch, stride(batch), self._steps, len(weights), KEEP=keep,
        )
        return out, past

    def backward(
        self, V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradients of V0 [B, G] and of weights [M, C] (undefined when hard)."""
        batch, instances, n, row = len(V0), self._instances(len(V0)), self.tables.n, self.tables.row
        g_V0, g_weights = self.empty(V0, *V0.shape), self.empty(V0, *weights.shape)
        partial = self.empty(V0, instances * len(weights) * n.pairs)
        g = self.empty(V0, instances * (row.chosen + len(weights) * n.heads) * self.shape.wide)
        self.launch(
            anchored_backward, (instances,), V0, weights, g_out, g_V0, g_weights, past, self._ticket(past), partial, g,
            self.ints, self.floats, self.k, self.unit, batch, stride(batch), self._steps, len(weights),
        )
        return g_V0, g_weights

    def empty(self, V0: torch.Tensor, *shape: int) -> torch.Tensor:
        """The one place where these kernels' memory comes from."""
        return V0.new_empty(shape)

    def _ticket(self, past: torch.Tensor) -> torch.Tensor:
        """A whole number behind the rows; hard weights need none, but an argument all the same."""
        return (past[-1:] if self.tables.soft else past[:1]).view(torch.int32)

    @property
    def _steps(self) -> int:
        return -1 if self.steps is None else self.steps

    def _instances(self, batch: int) -> int:
        return min(self.instances, -(-batch // self.shape.wide))

    def launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        """The one place from which these kernels start."""
        layout = self.tables.layout(self.shape, self.warm)
        with torch.cuda.device_of(self.ints):
            kernel[grid](*arguments, L=layout, maxnreg=self.shape.registers, **self.options, **constants)

    @property
    def options(self) -> dict[str, Any]:
        """For Triton; see anchored_maths for the second."""
        return {"num_warps": self.shape.warps, "enable_fp_fusion": False}


@lru_cache(maxsize=64)
def functions_of(text: str) -> dict[str, Any]:
    """What a text of Triton functions defines. Triton reads their source again, so it is kept where Python looks."""
    name = f"nsfrc.written_{sha256(text.encode()).hexdigest()[:16]}"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    defined = {"__name__": name, "triton": triton, "tl": tl}
    exec(compile(text, file, "exec"), defined)
    return defined


@dataclass(frozen=True, eq=False)
class WrittenJob:
    """The kernels of a program that is written out."""

    written: Written
    k: float
    unit: float

    def forward(self, V0: torch.Tensor, weights: torch.Tensor, keep: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """V0 [B, G] → outputs [B, outputs]; nothing is kept, since it is sooner computed again than loaded."""
        out = self.empty(V0, len(V0), len(self.written.outputs))
        self.launch("written_forward", V0, out)
        return out, self.empty(V0, 0)

    def backward(
        self, V0: torch.Tensor, weights: torch.Tensor, g_out: torch.Tensor, past: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradient of V0 [B, G]; that of hard weights is undefined."""
        g_V0 = self.empty(V0, *V0.shape)
        self.launch("written_backward", V0, g_out, g_V0)
        return g_V0, self.empty(V0, *weights.shape)

    def empty(self, V0: torch.Tensor, *shape: int) -> torch.Tensor:
        """The one place where these kernels' memory comes from."""
        return V0.new_empty(shape)

    def launch(self, name: str, V0: torch.Tensor, *arguments: Any) -> None:
        self.start(name, (-(-len(V0) // LANES),), V0, *arguments, self.k, self.unit, len(V0))

    def start(self, name: str, grid: tuple[int, ...], *arguments: Any) -> None:
        """The one place from which these kernels start."""
        kernel = functions_of(self.written.text)[name]
        with torch.cuda.device_of(arguments[0]):
            kernel[grid](*arguments, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        return {"num_warps": 1, "enable_fp_fusion": False}
