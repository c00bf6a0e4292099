"""Common factors of many products, found greedily and all at once with numpy.

Each round counts how often every pair of factors occurs together in a row and replaces those pairs
that are the first choice of every row they occur in, so the outcome is that of taking the most
frequent pair again and again, in far fewer rounds.
"""

from __future__ import annotations

import numpy as np

from nsfrc.compiler.grounded import NOTHING
from nsfrc.compiler.passes.hashing import mix

# All pairs of the factors of a row are counted, which takes the square of its length; longer rows are halved first.
MOST_FACTORS = 40


class Products:
    """Grows a list of two-factor nodes; factors below `slots` are slots, the rest nodes."""

    def __init__(self, slots: int, seed: int = 0) -> None:
        self.slots = slots
        self.seed = seed
        self._codes = np.zeros(0, dtype=np.int64)  # node -> its factors, packed
        self._bits = 31

    def nodes(self) -> np.ndarray:
        """Factors of every node: [nodes, 2]."""
        return np.stack(self._unpack(self._codes), axis=1)

    def intern(self, bags: np.ndarray) -> np.ndarray:
        """A factor that stands for each whole bag (multiset of factors); equal bags share it. [bags]"""
        distinct, back = _distinct_rows(np.sort(bags, axis=1))
        pairs = self.shrink(distinct)
        full = pairs[:, 1] != NOTHING
        values = pairs[:, 0].copy()
        values[full] = self._node(self._pack(pairs[full, 0], pairs[full, 1]))
        return values[back]

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
        left, right = np.triu_indices(rows.shape[1], 1)
        a, b = rows[:, left], rows[:, right]
        codes = np.where((a != NOTHING) & (b != NOTHING), self._pack(a, b), -1)
        distinct, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
        which = which.reshape(codes.shape)
        counts[distinct < 0] = 0
        rank = np.empty(len(distinct), dtype=np.int64)
        rank[np.lexsort((self._tie_break(distinct), -counts))] = np.arange(len(distinct))
        best_column = np.argmin(rank[which], axis=1)
        best = which[np.arange(len(rows)), best_column]
        chosen = np.bincount(best, minlength=len(distinct))
        rows_with = np.bincount(_distinct_per_row(which), minlength=len(distinct))
        winners = chosen == rows_with
        hit = np.flatnonzero(winners[best])
        rows = rows.copy()
        rows[hit, left[best_column[hit]]] = self._node(distinct[best[hit]])
        rows[hit, right[best_column[hit]]] = NOTHING
        return rows

    def _tie_break(self, codes: np.ndarray) -> np.ndarray:
        return codes if self.seed == 0 else mix(codes + self.seed * 0x51ED2701)

    def _pack(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (np.minimum(a, b).astype(np.int64) << self._bits) | np.maximum(a, b)

    def _unpack(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return codes >> self._bits, codes & ((1 << self._bits) - 1)

    def _node(self, codes: np.ndarray) -> np.ndarray:
        """Nodes for packed pairs, making those that do not exist yet."""
        order = np.argsort(self._codes)
        fresh = np.setdiff1d(codes, self._codes)
        at = np.searchsorted(self._codes, codes, sorter=order) if len(order) else np.zeros(len(codes), int)
        known = np.isin(codes, self._codes)
        nodes = len(self._codes) + np.searchsorted(fresh, codes)
        if len(order):
            nodes = np.where(known, order[np.minimum(at, len(order) - 1)], nodes)
        self._codes = np.concatenate([self._codes, fresh])
        return self.slots + nodes


def _distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
