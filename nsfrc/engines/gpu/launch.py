"""Which kernels run a batch, and in what tiles.

Two tile shapes are used, one for each file of kernels, and `benchmarks/aot.py` shows that neither
spills registers for any shipped program. The choice between the files is an estimate of both times; its
constants come from published latencies of the A100 and have not been measured on one.
"""

from __future__ import annotations

from dataclasses import dataclass

from nsfrc.engines.gpu.tables import Tables, bands

# Four warps of at most 128 registers: four instances fit a multiprocessor (65,536 registers), which hides the
# latency of gathers, and no kernel needs more. Left to itself ptxas aims for fewer and spills some bytes.
WARPS, REGISTERS = 4, 128


@dataclass(frozen=True)
class Shape:
    """Kernels ("program" or "clause"), their tile, and how many rows of a pair an instance takes (None: all)."""

    kernels: str
    tall: int
    wide: int
    rows_of_part: int | None = None


# 1,024 values a tile, eight a thread. 32 examples are a line of 128 bytes, so every gather is one transaction.
PROGRAM = Shape("program", tall=32, wide=32)
# Eight examples fill a sector of 32 bytes, the least that memory moves; the other threads are for rows.
# 512 rows of a part are four rounds of a tile: enough to outweigh its start, few enough to spread over a card.
CLAUSE = Shape("clause", tall=128, wide=8, rows_of_part=512)

INSTANCES_PER_MULTIPROCESSOR = 4
# Seconds: a kernel's start from Python; a tile of rows (two dependent gathers from cache, exponentials and a
# reduction over warps, about 900 cycles at 1.41 GHz); and the phases of a step that are not rows.
LAUNCH, TILE, REST_OF_STEP = 8e-6, 6.5e-7, 1.2e-5


def choose(program: Tables, clause: Tables, batch: int, steps: int, whole_batch: bool, multiprocessors: int) -> Shape:
    """The faster shape by estimate; Z over a batch needs launches between its phases, whatever they cost.

    program, clause: the plan's tables as packed for either.
    """
    if whole_batch or _clause_time(clause, batch, steps, multiprocessors) < _program_time(
        program, batch, steps, multiprocessors
    ):
        return CLAUSE
    return PROGRAM


def row_tiles(tables: Tables, tall: int) -> int:
    """Tiles of rows in a step, one after another."""
    total = 0
    for band in bands(tables.part_counts, tall):
        segments = tall // band.width
        longest = tables.part_counts[band.first: band.last: segments]
        total += int((-(-longest // band.width)).sum())
    return total


def _program_time(tables: Tables, batch: int, steps: int, multiprocessors: int) -> float:
    """An instance does all rows of its examples; the card does so many instances at once."""
    at_once = multiprocessors * INSTANCES_PER_MULTIPROCESSOR
    rounds = -(-batch // (PROGRAM.wide * at_once))
    return LAUNCH + rounds * steps * (row_tiles(tables, PROGRAM.tall) * TILE + REST_OF_STEP)


def _clause_time(tables: Tables, batch: int, steps: int, multiprocessors: int) -> float:
    """Tiles of rows and examples share the card; a step is a launch a band, and one for the rest."""
    at_once = multiprocessors * INSTANCES_PER_MULTIPROCESSOR
    tiles = row_tiles(tables, CLAUSE.tall) * -(-batch // CLAUSE.wide)
    launches = len(bands(tables.part_counts, CLAUSE.tall)) + 1
    return LAUNCH + steps * (launches * LAUNCH + -(-tiles // at_once) * TILE + REST_OF_STEP)

