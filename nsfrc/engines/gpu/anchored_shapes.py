"""Tiles of the table-driven kernels of `anchored`, and which a batch is given. Needs neither torch nor triton."""

from __future__ import annotations

from typing import NamedTuple

# A γ above this is WARM: differences of exponentials would lose digits. Below it, exp(x/γ) may overflow.
WARM = 0.25


class Shape(NamedTuple):
    """A tile of the table-driven kernels, its warps, and the most registers that a thread may use."""

    tall: int
    wide: int
    warps: int
    registers: int

    @property
    def few(self) -> int:
        """Rows of a tile with a value for every thread."""
        return min(self.tall, 32 * self.warps // self.wide)


# 32 examples are a line of 128 bytes, so every gather is one transaction; a thread reads four values at once.
LARGE = Shape(tall=16, wide=32, warps=4, registers=128)
# For batches that would leave multiprocessors idle: eight examples fill a sector, the least that memory moves, and
# 16 warps share out the lists of a phase.
SMALL = Shape(tall=128, wide=8, warps=16, registers=128)
INSTANCES_PER_MULTIPROCESSOR = 4  # of LARGE: 4 × 4 warps of 128 registers are all there are


def choose(batch: int, multiprocessors: int) -> Shape:
    """Tiles of few examples until there is one for every multiprocessor."""
    return SMALL if batch <= SMALL.wide * multiprocessors else LARGE
