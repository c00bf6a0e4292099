"""What a kernel of `paper` is told, as arrays: the tables of a plan and the call's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nsfrc.engines.cpu.maths import INNER, RETURNS_ARRAY
from nsfrc.engines.cpu.meeting import Meeting, read_meeting
from nsfrc.engines.cpu.memory import doubles, floats, indices, ints, stack, table
from nsfrc.engines.cpu.tables import Tables


class Call(NamedTuple):
    """One call: see `tables.Fixed` and `tables.Own`."""

    V0: np.ndarray
    first: int
    last: int
    tile: int
    weights: np.ndarray
    hard: bool
    steps: int
    whole_batch: bool
    outputs: np.ndarray
    targets_only: bool
    neural_only: bool
    must_start_so: bool
    past: np.ndarray
    past_z: np.ndarray
    out: np.ndarray
    g_V0: np.ndarray
    g_weights: np.ndarray
    meeting: Meeting


@njit(**INNER)
def read_call(address):
    r = ints(address, 28)
    examples, atoms, clauses, steps, mixtures, kept = r[13], r[6], r[7], r[8], r[18], r[21]
    meeting = read_meeting(r[27], examples)
    chunks = (r[15] - r[14] + meeting.chunk - 1) // meeting.chunk
    return Call(
        table(r[12], examples, atoms), r[14], r[15], r[16], table(r[17], mixtures, clauses), mixtures == 0, steps,
        r[9] != 0, indices(r[4], r[5]), r[10] != 0, r[11] != 0, r[19] != 0, stack(r[20], steps + 1, kept, examples),
        table(r[22], r[23], examples), table(r[24], examples, r[5]), table(r[25], examples, atoms),
        doubles(r[26], chunks * mixtures, clauses), meeting,
    )


@njit(**INNER)
def read_base(address):
    """γ, k and unit as numbers of 32 bits, see `engines.base.base_two`."""
    base = floats(ints(address, 4)[3], 3)
    return base[0], base[1], base[2]


@njit(**RETURNS_ARRAY)
def some(start, at, number):
    """One table of indices."""
    return indices(start + 4 * at[number], at[number + 1] - at[number])


@njit(**RETURNS_ARRAY)
def _numbers(start, of, number):
    return floats(start + 4 * of[number], of[number + 1] - of[number])


@njit(**INNER)
def read_tables(address):
    """The tables of a packed plan."""
    r = ints(address, 3)
    layout = ints(r[2], 27)
    i, f, of = r[0], r[1], ints(r[2] + 8 * 19, 5)
    return Tables(
        some(i, layout, 0), some(i, layout, 1), some(i, layout, 2), some(i, layout, 3), some(i, layout, 4),
        some(i, layout, 5), some(i, layout, 6), some(i, layout, 7), some(i, layout, 8), some(i, layout, 9),
        some(i, layout, 10), some(i, layout, 11), some(i, layout, 12), some(i, layout, 13), some(i, layout, 14),
        some(i, layout, 15), some(i, layout, 16), some(i, layout, 17),
        _numbers(f, of, 0), _numbers(f, of, 1), _numbers(f, of, 2), floats(f + 4 * of[3], 1)[0],
        layout[24], layout[25], layout[26],
    )
