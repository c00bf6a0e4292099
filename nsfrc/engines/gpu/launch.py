"""Which kernels run a batch, and in what tiles.

Two tile shapes are used, one for each file of kernels, and `benchmarks/aot.py` shows that neither
spills registers for any shipped program. The choice between the files is an estimate of both times; its
constants come from published latencies of the A100 and have not been measured on one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
# reduction over warps, about 900 cycles at 1.41 GHz); and the phases of a step that are not rows, of which there
# are five forwards (products, Z of clauses, R, V', its Z) and twelve backwards, most of them recomputation's.
LAUNCH, TILE, REST_OF_STEP = 8e-6, 6.5e-7, 1.2e-5
REST_OF_STEP_BACK = REST_OF_STEP * 12 / 5


def choose(program: Tables, clause: Tables, batch: int, steps: int, whole_batch: bool, multiprocessors: int) -> Shape:
    """The faster shape by estimate; Z over a batch needs launches between its phases, whatever they cost.

    program, clause: the plan's tables as packed for either.
    """
    if whole_batch:
        return CLAUSE
    return min(
        (waiting(PROGRAM, program, batch, steps, multiprocessors), 0, PROGRAM),
        (waiting(CLAUSE, clause, batch, steps, multiprocessors), 1, CLAUSE),
    )[2]


def waiting(
    shape: Shape, tables: Tables, batch: int, steps: int, multiprocessors: int, backward: bool = False
) -> float:
    """Estimated seconds by latency alone.

    An instance of "program" does all tiles in turn, and the card so many instances at once. Tiles of "clause" share
    the card, as do its tiles of examples for the rest of a step, and every band of a step is a launch.
    """
    at_once = multiprocessors * INSTANCES_PER_MULTIPROCESSOR
    lists = [tables.part_counts, *([tables.use_counts] if backward else [])]
    tiles = sum(tiles_in_turn(counts, shape.tall) for counts in lists)
    rest = REST_OF_STEP_BACK if backward else REST_OF_STEP
    examples = -(-batch // shape.wide)
    if shape.kernels == "program":
        return LAUNCH + -(-examples // at_once) * steps * (tiles * TILE + rest)
    rounds, rests = -(-tiles * examples // at_once), -(-examples // at_once)
    launches = sum(len(bands(counts, shape.tall)) for counts in lists) + (2 if backward else 1)
    return LAUNCH + steps * (launches * LAUNCH + rounds * TILE + rests * rest)


def tiles_in_turn(counts: np.ndarray, tall: int) -> int:
    """Tiles in which segments of such lengths, falling, are summed one tile after another."""
    total = 0
    for band in bands(counts, tall):
        longest = counts[band.first : band.last : tall // band.width]
        total += int((-(-longest // band.width)).sum())
    return total
