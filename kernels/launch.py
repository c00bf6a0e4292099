"""What a launcher is given: the layout and tables of a plan, and how to run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from nsfrc.kernels.layout import Layout

LINE = 32  # values in a line of 128 bytes


@dataclass(frozen=True)
class Job:
    """A plan on a device, with the tile it is worked on in. k, unit: see `layout`."""

    layout: Layout
    indices: torch.Tensor
    floats: torch.Tensor
    k: float
    unit: float
    steps: int
    whole_batch: bool
    keep: bool  # whether the forward pass leaves what the backward pass needs; its layout has no room for gradients
    warps: int
    registers: int  # most a thread may use
    instances: int  # most of the whole-program kernel

    def __post_init__(self) -> None:
        assert LINE % self.layout.wide == 0, "a tile must not reach beyond the stride of a row"

    def tiles(self, batch: int) -> int:
        return -(-batch // self.layout.wide)

    def empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.float32, device=self.indices.device)

    def partial(self, tiles: int) -> torch.Tensor:
        """Room for the gradient of the weights, tile by tile."""
        n = self.layout.n
        return self.empty(tiles if not self.layout.hard else 0, n.mixtures, n.pairs + n.clauses)

    def launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        """The one place from which kernels start."""
        with torch.cuda.device_of(self.indices):  # Triton launches on the current device, whatever the tensors' is
            kernel[grid](*arguments, L=self.layout, num_warps=self.warps, maxnreg=self.registers, **constants)


def stride(batch: int) -> int:
    """Distance of two rows of values: the same for every tile, so that what is kept does not depend on it."""
    return (batch + LINE - 1) // LINE * LINE


@dataclass(frozen=True)
class Past:
    """What the forward pass leaves for the backward pass, one array: V of every step [steps + 1, kept, stride],
    its Z [steps, stride], and a ticket, 0, by which the last instance to end knows that it is."""

    data: torch.Tensor
    values: torch.Tensor
    z: torch.Tensor
    ticket: torch.Tensor

    @staticmethod
    def size(batch: int, steps: int, kept: int) -> int:
        return stride(batch) * ((steps + 1) * kept + steps) + 1

    @classmethod
    def of(cls, job: Job, batch: int, data: torch.Tensor) -> Past:
        values = stride(batch) * (job.steps + 1) * job.layout.n.kept
        return cls(data, data[:values], data[values:-1], data[-1:].view(torch.int32))

    @classmethod
    def new(cls, job: Job, batch: int) -> Past:
        """Room for it; next to none when it is not to be kept."""
        if not job.keep:
            nothing = job.empty(1)
            return cls(nothing, nothing, nothing, nothing.view(torch.int32))
        return cls.of(job, batch, job.empty(cls.size(batch, job.steps, job.layout.n.kept)))
