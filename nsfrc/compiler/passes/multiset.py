"""Merge rows of a pair that are equal as multisets of slots; count them instead.

    has_red_triple(X) :- in(O1,X), in(O2,X), in(O3,X), color(O1,red), ...      nine_circles
    before: 504 rows, one for every ordered choice of three objects
    after:   84 rows with multiplicity 6

Factors that are `true` move into the row's power of true.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.passes.hashing import equal_rows, hash_rows, mix


def multiset(program: GroundProgram) -> GroundProgram:
    """Rows that are left stand in the order of the first of those that they stand for."""
    program = _trues_to_power(program)
    with np.errstate(over="ignore"):
        code = mix(hash_rows(program, np.arange(program.slots))) + mix(np.arange(program.pairs))[program.pair_of_row]
    order = np.argsort(code)
    ordered = code[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(order)])
    if len(starts) == program.rows:
        return program
    first = np.minimum.reduceat(order, starts)
    _check_no_collision(program, order, np.repeat(first, np.diff(np.append(starts, len(order)))))
    counts = np.add.reduceat(program.multiplicity[order], starts)
    by_first = np.argsort(first)
    return program.with_rows(first[by_first], multiplicity=counts[by_first])


def _trues_to_power(program: GroundProgram) -> GroundProgram:
    row, column = np.nonzero(program.factors == program.true)
    if not len(row):
        return program
    factors = program.factors.copy()
    factors[row, column] = NOTHING
    trues = np.bincount(row, minlength=program.rows)
    return replace(program, factors=factors, power=program.power + trues.astype(program.power.dtype))


def _check_no_collision(program: GroundProgram, rows: np.ndarray, merged_into: np.ndarray) -> None:
    moved = rows != merged_into
    rows, merged_into, pair = rows[moved], merged_into[moved], program.pair_of_row
    if not equal_rows(program, rows, merged_into) or (pair[rows] != pair[merged_into]).any():
        raise AssertionError("two different rows have the same 64-bit hash")
