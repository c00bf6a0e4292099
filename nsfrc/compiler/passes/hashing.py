"""64-bit hashes of rows as multisets, the shared tool of `multiset` and `number`.

A multiset hashes to the sum of its elements' hashes, so order does not matter. Callers that merge
by hash compare what they merged, so a collision costs a second look and never a wrong answer.
"""

from __future__ import annotations

import numpy as np

from nsfrc.compiler.grounded import NOTHING, GroundProgram


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
        by_slot = np.append(mix(colour), np.uint64(0))  # NOTHING is -1 and finds the 0 at the end
        total = by_slot[colour_index(program)].sum(axis=1, dtype=np.uint64)
        return total + program.power.astype(np.uint64) * by_slot[program.true]


def colour_index(program: GroundProgram) -> np.ndarray:
    """Factors as indices into an array over slots with one entry more, for NOTHING."""
    return np.where(program.factors == NOTHING, program.slots, program.factors)


def sorted_colours(program: GroundProgram, colour: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows spelt out as sorted colours, `true` included, for exact comparison: [len(rows), L]."""
    spelt = np.append(colour, -1)[colour_index(program)[rows]]
    spelt = np.where(spelt == colour[program.true], -2, spelt)
    trues = program.power[rows] + (spelt == -2).sum(axis=1)
    spelt = np.sort(np.where(spelt == -2, -1, spelt), axis=1)
    return np.concatenate([spelt, trues[:, None]], axis=1)
