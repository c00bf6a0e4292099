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
from nsfrc.compiler.passes.hashing import hash_rows, mix, sorted_colours


def multiset(program: GroundProgram) -> GroundProgram:
    program = _trues_to_power(program)
    slots = np.arange(program.slots)
    with np.errstate(over="ignore"):
        code = mix(hash_rows(program, slots)) + mix(program.pair_of_row)
    _, first, same_as = np.unique(code, return_index=True, return_inverse=True)
    if len(first) == program.rows:
        return program
    _check_no_collision(program, slots, first[same_as])
    counts = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, same_as, program.multiplicity)
    order = np.argsort(first)
    return program.with_rows(first[order], multiplicity=counts[order])


def _trues_to_power(program: GroundProgram) -> GroundProgram:
    true = program.factors == program.true
    if not true.any():
        return program
    power = program.power + true.sum(axis=1).astype(program.power.dtype)
    return replace(program, factors=np.where(true, NOTHING, program.factors).astype(np.int32), power=power)


def _check_no_collision(program: GroundProgram, slots: np.ndarray, merged_into: np.ndarray) -> None:
    moved = np.flatnonzero(merged_into != np.arange(program.rows))
    same = sorted_colours(program, slots, moved) == sorted_colours(program, slots, merged_into[moved])
    pair = program.pair_of_row
    if not same.all() or (pair[moved] != pair[merged_into[moved]]).any():
        raise AssertionError("two different rows have the same 64-bit hash")
