"""Common factors of many products, found greedily and all at once with numpy.

Each round counts how often every pair of factors occurs together in a row and replaces those pairs
that are the first choice of every row they occur in, so the outcome is that of taking the most
frequent pair again and again, in far fewer rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nsfrc.compiler.grounded import NOTHING
from nsfrc.compiler.passes.hashing import mix

# All pairs of the factors of a row are counted, which takes the square of its length; longer rows are halved first.
MOST_FACTORS = 40


class Pairs(NamedTuple):
    """The different pairs of factors in some rows, packed; which of them each place of a row has; how often each
    occurs, and in how many rows."""

    distinct: np.ndarray
    which: np.ndarray
    counts: np.ndarray
    rows_with: np.ndarray


Counted = dict[tuple[int, bytes], Pairs]


class Products:
    """Grows a list of two-factor nodes; factors below `slots` are slots, the rest nodes.

    counted: pairs by rows, to share between seeds, most of which meet the same rows.
    """

    def __init__(self, slots: int, seed: int = 0, counted: Counted | None = None) -> None:
        self.slots = slots
        self.seed = seed
        self._counted: Counted = {} if counted is None else counted
        self.chosen = False  # whether there was a choice between pairs, which may have been a tie
        self._codes = np.zeros(0, dtype=np.int64)  # node -> its factors, packed
        self._bits = 31

    def nodes(self) -> np.ndarray:
        """Factors of every node: [nodes, 2]."""
        return np.stack(self._unpack(self._codes), axis=1)

    def intern(self, bags: np.ndarray) -> np.ndarray:
        """A factor that stands for each whole bag (multiset of factors), all of them different. [bags]"""
        pairs = self.shrink(bags)
        full = pairs[:, 1] != NOTHING
        values = pairs[:, 0].copy()
        values[full] = self._node(self._pack(pairs[full, 0], pairs[full, 1]))
        return values

    def shrink(self, rows: np.ndarray) -> np.ndarray:
        """Replace common pairs by nodes until every row has at most two factors: [rows, 2]."""
        rows = _left_aligned(rows)
        while rows.shape[1] > MOST_FACTORS:
            rows = _left_aligned(self._halve(rows))
        while rows.shape[1] > 2:
            wide = np.flatnonzero(rows[:, 2] != NOTHING)
            if not len(wide):
                break
            rows[wide] = self._round(rows[wide])
            rows = _left_aligned(rows)
        out = np.full((len(rows), 2), NOTHING, dtype=np.int64)
        out[:, : min(2, rows.shape[1])] = rows[:, :2]
        return out

    def _halve(self, rows: np.ndarray) -> np.ndarray:
        """Multiply neighbours; rows have their factors in one order, so that equal stretches still share nodes."""
        rows = rows.copy()
        left = rows[:, 0 : rows.shape[1] - 1 : 2]
        right = rows[:, 1::2]
        both = right != NOTHING
        left[both] = self._node(self._pack(left[both], right[both]))
        right[both] = NOTHING
        return rows

    def _round(self, rows: np.ndarray) -> np.ndarray:
        self.chosen = True
        key = rows.shape[1], rows.tobytes()
        pairs = self._counted.get(key)
        if pairs is None:
            pairs = self._counted[key] = self._pairs(rows)
        rank = np.empty(len(pairs.distinct), dtype=np.int64)
        rank[np.lexsort((self._tie_break(pairs.distinct), -pairs.counts))] = np.arange(len(rank))
        best_column = np.argmin(rank[pairs.which], axis=1)
        best = pairs.which[np.arange(len(rows)), best_column]
        winners = np.bincount(best, minlength=len(rank)) == pairs.rows_with
        hit = np.flatnonzero(winners[best])
        left, right = np.triu_indices(rows.shape[1], 1)
        rows = rows.copy()
        rows[hit, left[best_column[hit]]] = self._node(pairs.distinct[best[hit]])
        rows[hit, right[best_column[hit]]] = NOTHING
        return rows

    def _pairs(self, rows: np.ndarray) -> Pairs:
        left, right = np.triu_indices(rows.shape[1], 1)
        a, b = rows[:, left], rows[:, right]
        codes = np.where((a != NOTHING) & (b != NOTHING), self._pack(a, b), -1)
        distinct, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
        which = which.reshape(codes.shape)
        counts[distinct < 0] = 0
        return Pairs(distinct, which, counts, np.bincount(_distinct_per_row(which), minlength=len(distinct)))

    def _tie_break(self, codes: np.ndarray) -> np.ndarray:
        return codes if self.seed == 0 else mix(codes + self.seed * 0x51ED2701)

    def _pack(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (np.minimum(a, b).astype(np.int64) << self._bits) | np.maximum(a, b)

    def _unpack(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return codes >> self._bits, codes & ((1 << self._bits) - 1)

    def _node(self, codes: np.ndarray) -> np.ndarray:
        """Nodes for packed pairs, making those that do not exist yet."""
        if not len(self._codes):
            self._codes, nodes = np.unique(codes, return_inverse=True)
            return self.slots + nodes
        order = np.argsort(self._codes)
        nodes = order[np.minimum(np.searchsorted(self._codes, codes, sorter=order), len(order) - 1)]
        new = self._codes[nodes] != codes
        fresh, places = np.unique(codes[new], return_inverse=True)
        nodes[new] = len(self._codes) + places
        self._codes = np.concatenate([self._codes, fresh])
        return self.slots + nodes


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different rows in lexicographic order, and which of them each row is; quicker than `np.unique` along an axis."""
    if not len(rows):
        return rows, np.zeros(0, dtype=np.int64)
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)]
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.cumsum(first) - 1
    return ordered[first], back


def _left_aligned(rows: np.ndarray) -> np.ndarray:
    """Factors sorted with NOTHING last, and no more columns than the widest row needs."""
    rows = -np.sort(-rows, axis=1)
    width = max(1, int((rows != NOTHING).sum(axis=1).max(initial=1)))
    return rows[:, :width]


def _distinct_per_row(which: np.ndarray) -> np.ndarray:
    """The pairs of every row, each once, flattened."""
    ordered = np.sort(which, axis=1)
    first = np.ones_like(ordered, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered[first]
