"""A batch whose examples share Z, in parts that meet: how it is split, and what the parts meet with."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import pairwise

import numpy as np

from nsfrc.engines.cpu.native import GATE
from nsfrc.engines.cpu.tables import Seat

CHUNKS = 64  # at most; gradients of weights are summed in each and then over all, however many threads there are
CHUNK = 16  # lanes of the widest vectors: whole ones in all parts but the last


def chunk_of(examples: int) -> int:
    """Examples in a chunk."""
    return -(-examples // (CHUNKS * CHUNK)) * CHUNK


def split_in_chunks(examples: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of examples, about as many as threads: whole chunks, two for each at least, as a part of very few examples
    would add them up in another order."""
    size = chunk_of(examples)
    chunks = -(-examples // size)
    threads = max(1, min(threads, chunks // 2))
    return list(pairwise(min(examples, chunks * i // threads * size) for i in range(threads + 1)))


@cache
def _give_way() -> int:
    """The address of `sched_yield`, or 0 on systems without it, which have no OpenMP that is used either."""
    try:
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0


class Seats:
    """The board of a meeting, and what each part is told of it. width: of the board; rows: of gradients of Z."""

    def __init__(self, parts: int, examples: int, width: int, rows: int) -> None:
        self.board, self.gate = np.empty((parts, width)), np.zeros(GATE, np.int64)
        self.gate[:2] = parts, _give_way()
        self.rows = np.empty((rows, examples), np.float32)
        board, gradients, chunk = self.board.ctypes.data, self.rows.ctypes.data, chunk_of(examples)
        self.seats = np.array([
            Seat(parts, part, 0, self.gate.ctypes.data, board, width, gradients, rows, chunk) for part in range(parts)])

    @property
    def barrier(self) -> np.ndarray:
        """[parts]: where each is told what to call to meet the others."""
        return self.seats[:, Seat._fields.index("barrier")]

    def address(self, part: int) -> int:
        return int(self.seats[part].ctypes.data)
