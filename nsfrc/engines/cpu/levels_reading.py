"""What a kernel of `anchored` is told, as arrays: the tables of a plan and the call's own."""

from __future__ import annotations

from numba import njit

from nsfrc.engines.cpu.levels_tables import Arguments, Levels
from nsfrc.engines.cpu.maths import INNER
from nsfrc.engines.cpu.memory import counts, doubles, floats, ints, table
from nsfrc.engines.cpu.reading import some


@njit(**INNER)
def read_call(address):
    r = ints(address, 28)
    atoms, clauses, blocks, outputs, examples, mixtures = r[5], r[6], r[9], r[12], r[14], r[19]
    return Arguments(
        floats(r[4], atoms), table(r[13], examples, atoms), r[15], r[16], r[17], table(r[18], mixtures, clauses),
        mixtures == 0, r[20] != 0, ints(r[7], blocks), ints(r[8], blocks + 1), table(r[21], r[22], examples),
        counts(r[23], r[24], blocks), ints(r[10], outputs), ints(r[11], outputs), table(r[25], examples, outputs),
        table(r[26], examples, atoms), doubles(r[27], mixtures, clauses),
    )


@njit(**INNER)
def read_tables(address):
    """The tables of a packed plan."""
    r = ints(address, 3)
    at = ints(r[2], 20)
    i, f, blocks = r[0], r[1], at[19] + 1
    ends = r[2] + 8 * 20
    return Levels(
        some(i, at, 0), some(i, at, 1), some(i, at, 2), some(i, at, 3), some(i, at, 4), some(i, at, 5),
        some(i, at, 6), some(i, at, 7), some(i, at, 8), some(i, at, 9), some(i, at, 10), some(i, at, 11),
        some(i, at, 12), floats(f, at[14]), floats(f + 4 * at[14], at[2] - at[1]),
        ints(ends, blocks), ints(ends + 8 * blocks, blocks), ints(ends + 16 * blocks, blocks),
        at[15], at[16], at[17], at[18],
    )
