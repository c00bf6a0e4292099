"""Where parts of a batch that share a maximum tell each other of it: a board, a row for each part, and a barrier.

A part says something, all meet, and then each reads what the others said. The largest of all is the same in whatever
order it is sought, so that results do not depend on how many parts there are. A place on the board is written again
only after another meeting, when everybody has read it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER
from nsfrc.engines.cpu.memory import call_at, doubles, ints, table

# Places on the board; from CLAUSES on two for every clause and two for every head, see `tables.board_width`.
FINE_AT, BOUNDED_AT, DERIVED_Z, VALUES_Z, DERIVED_FIRST, VALUES_FIRST, LEAST_BOTTOM, MOST_BOTTOM, CLAUSES = range(9)
NOBODY = 2**52  # in the place of a key, as the others a whole number that float64 holds


class Meeting(NamedTuple):
    """What a part knows of the others: see `tables.Seat`."""

    parts: int
    part: int
    barrier: int
    gate: int
    board: np.ndarray  # [parts, width], float64
    rows: np.ndarray  # [clauses + 2, B]: gradients of Z, example by example
    chunk: int


@njit(**INNER)
def read_meeting(address, examples):
    """The meeting whose `tables.Seat` is there, or, with address 0, one of nobody else."""
    if address == 0:
        return Meeting(1, 0, 0, 0, doubles(0, 0, 0), table(0, 0, examples), examples)
    r = ints(address, 9)
    return Meeting(r[0], r[1], r[2], r[3], doubles(r[4], r[0], r[5]), table(r[6], r[7], examples), r[8])


@njit(**INNER)
def meet(m):
    """Returns when every part is here."""
    if m.parts > 1:
        call_at(m.barrier, m.gate)


@njit(**INNER)
def say(m, at, number):
    if m.board.shape[0]:
        m.board[m.part, at] = number


@njit(**INNER)
def largest_said(m, at, own):
    """The largest that any part said there; `own` where there is one part alone."""
    largest = own
    for part in range(m.parts if m.parts > 1 else 0):
        largest = max(largest, np.float32(m.board[part, at]))
    return largest


@njit(**INNER)
def smallest_said(m, at, own):
    smallest = own
    for part in range(m.parts if m.parts > 1 else 0):
        smallest = min(smallest, np.float32(m.board[part, at]))
    return smallest


@njit(**INNER)
def all_say(m, at, yes):
    """Whether every part says yes."""
    say(m, at, 1.0 if yes else 0.0)
    meet(m)
    agreed = yes
    for part in range(m.parts if m.parts > 1 else 0):
        agreed &= m.board[part, at] != 0.0
    return agreed


@njit(**INNER)
def is_first(m, at, key):
    """Whether this part has the smallest key there, after all said theirs and met."""
    mine = key < NOBODY
    for part in range(m.parts if m.parts > 1 else 0):
        mine &= key <= m.board[part, at]
    return mine
