"""64-bit hashes of rows as multisets, the shared tool of `multiset` and `number`.

A multiset hashes to the sum of its elements' hashes, so order does not matter. Callers that merge
by hash compare what they merged, so a collision costs a second look and never a wrong answer.
"""

from __future__ import annotations

import numpy as np

from nsfrc.compiler.grounded import BLOCK, GroundProgram, over_factors


def mix(values: np.ndarray) -> np.ndarray:
    """Scramble integers into uint64 so that sums of scrambled values tell multisets apart."""
    with np.errstate(over="ignore"):
        x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def hash_rows(program: GroundProgram, colour: np.ndarray) -> np.ndarray:
    """Hash of every row's multiset of colours; `colour` gives one of each slot. uint64 [rows]."""
    with np.errstate(over="ignore"):
        by_slot = np.append(mix(colour), np.uint64(0))
        total = over_factors(np.add, by_slot, program.factors)
        return total + program.power.astype(np.uint64) * by_slot[program.true]


def equal_rows(program: GroundProgram, some: np.ndarray, others: np.ndarray) -> bool:
    """Whether rows are the same multisets of slots as others, compared one by one; no factor is `true`."""
    for first in range(0, len(some), BLOCK):
        one, other = some[first : first + BLOCK], others[first : first + BLOCK]
        mine, theirs = (np.sort(program.factors.take(rows, axis=0), axis=1) for rows in (one, other))
        if not np.array_equal(mine, theirs):
            return False
    return bool((program.power[some] == program.power[others]).all())
