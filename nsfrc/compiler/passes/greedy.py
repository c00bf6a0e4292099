"""Common factors of many products, found greedily and all at once with numpy.

Each round replaces those pairs of factors that are the first choice of every row they occur in, a row choosing the
pair that occurs most often in all rows. So the outcome is that of taking the most frequent pair again and again, in
far fewer rounds; and since a round changes few rows, how often pairs occur is kept up to date and not counted anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.grounded import NOTHING, distinct
from nsfrc.compiler.passes.hashing import mix

# All pairs of the factors of a row are counted, which takes the square of its length; longer rows are halved first.
MOST_FACTORS = 40
BITS = 31  # of either factor in a packed pair


class Pairs(NamedTuple):
    """The pairs of factors in some rows.

    distinct: each pair once, packed, in order; the first is NOTHING, for places that hold no pair. which: of them, by
    row and pair of columns. counts: how often each occurs; rows_with: in how many rows.
    """

    distinct: np.ndarray
    which: np.ndarray
    counts: np.ndarray
    rows_with: np.ndarray


Counted = dict[tuple[int, bytes], Pairs]


class Products:
    """Grows a list of two-factor nodes; factors below `slots` are slots, the rest nodes.

    counted: pairs by rows, to share between seeds, all of which begin with the same rows.
    """

    def __init__(self, slots: int, seed: int = 0, counted: Counted | None = None) -> None:
        self.slots = slots
        self.seed = seed
        self._counted: Counted = {} if counted is None else counted
        self.chosen = False  # whether there was a choice between pairs, which may have been a tie
        self._nodes = _Numbers(np.zeros(0, dtype=np.int64))

    def nodes(self) -> np.ndarray:
        """Factors of every node: [nodes, 2]."""
        codes = self._nodes.values
        return np.stack([codes >> BITS, codes & ((1 << BITS) - 1)], axis=1)

    def intern(self, bags: np.ndarray) -> np.ndarray:
        """A factor that stands for each whole bag (multiset of factors), all of them different. [bags]"""
        pairs = self.shrink(bags)
        full = pairs[:, 1] != NOTHING
        values = pairs[:, 0].copy()
        values[full] = self._node(_pack(pairs[full, 0], pairs[full, 1]))
        return values

    def shrink(self, rows: np.ndarray) -> np.ndarray:
        """Replace common pairs by nodes until every row has at most two factors: [rows, 2]."""
        rows = _left_aligned(rows)
        while rows.shape[1] > MOST_FACTORS:
            rows = _left_aligned(self._halve(rows))
        if rows.shape[1] > 2:
            wide = np.flatnonzero(rows[:, 2] != NOTHING)
            rows[wide] = self._share(rows[wide])
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
        left[both] = self._node(_pack(left[both], right[both]))
        right[both] = NOTHING
        return rows

    def _share(self, rows: np.ndarray) -> np.ndarray:
        """Rows of three factors and more, each left with two at most."""
        if not len(rows):
            return rows
        self.chosen = True
        key = rows.shape[1], rows.tobytes()
        if key not in self._counted:
            self._counted[key] = _pairs(rows)
        choice = _Choice(rows, self._counted[key], self._tie_break)
        while True:
            hit, columns, codes = choice.winners()
            if not len(hit):
                return choice.rows
            choice.replace(hit, columns, self._node(codes))

    def _tie_break(self, codes: np.ndarray) -> np.ndarray:
        """What decides between pairs that occur equally often; different for different pairs."""
        return codes if self.seed == 0 else mix(codes + self.seed * 0x51ED2701)

    def _node(self, codes: np.ndarray) -> np.ndarray:
        """Nodes for packed pairs, making those that do not exist yet."""
        return self.slots + self._nodes.of(codes)



class _Choice:
    """Which pair each row would replace, while rows change; `rows` keep their columns, with NOTHING where one went."""

    def __init__(self, rows: np.ndarray, pairs: Pairs, tie_break: Callable[[np.ndarray], np.ndarray]) -> None:
        self.rows = rows
        self._left, self._right = np.triu_indices(rows.shape[1], 1)
        self._tie_break = tie_break
        self._codes, self._which = pairs.distinct, pairs.which.copy()
        self._counts, self._rows_with = pairs.counts.copy(), pairs.rows_with.copy()
        self._numbers = _Numbers(tie_break(pairs.distinct))
        self._row = np.arange(len(rows))  # of each row of `_which`
        self._done = 0  # rows that `_which` still has, without any pair

    def winners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows whose first choice is that of all rows with that pair; between which columns, and the packed pair."""
        score = self._numbers.places() - self._counts * len(self._codes)
        score[0] = len(score)
        chosen = score[self._which].argmin(axis=1)
        best = self._which[np.arange(len(chosen)), chosen]
        wins = np.bincount(best, minlength=len(score)) == self._rows_with
        wins[0] = False
        hit = np.flatnonzero(wins[best])
        return hit, chosen[hit], self._codes[best[hit]]

    def replace(self, hit: np.ndarray, columns: np.ndarray, nodes: np.ndarray) -> None:
        """Put nodes for pairs of columns of the rows that `winners` named."""
        rows = self._row[hit]
        self.rows[rows, self._left[columns]] = nodes
        self.rows[rows, self._right[columns]] = NOTHING
        changed = self.rows[rows]
        done = (changed != NOTHING).sum(axis=1) <= 2
        changed[done] = NOTHING
        codes = _codes(changed, self._left, self._right)
        self._count(hit, -1)
        self._which[hit] = which = self._numbers.of(self._tie_break(codes))
        new = np.zeros(len(self._numbers.values) - len(self._codes), dtype=np.int64)
        self._codes = np.concatenate([self._codes, new])
        self._counts, self._rows_with = np.concatenate([self._counts, new]), np.concatenate([self._rows_with, new])
        self._codes[which] = codes
        self._count(hit, 1)
        self._done += int(done.sum())
        if 2 * self._done > len(self._row):
            left = np.flatnonzero(self._which.any(axis=1))
            self._which, self._row, self._done = self._which[left], self._row[left], 0

    def _count(self, rows: np.ndarray, sign: int) -> None:
        """Add the pairs of some rows to what is counted, or take them away."""
        which = self._which[rows]
        self._counts += sign * np.bincount(which.ravel(), minlength=len(self._counts))
        self._rows_with += sign * np.bincount(_distinct_per_row(which), minlength=len(self._rows_with))


class _Numbers:
    """Numbers values as they come up, those of one call in increasing order."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self._order = np.argsort(values)
        self._sorted = values[self._order]

    def of(self, values: np.ndarray) -> np.ndarray:
        """The number of every value."""
        at = np.searchsorted(self._sorted, values)
        new = np.ones(values.shape, dtype=bool)
        inside = at < len(self._sorted)
        new[inside] = self._sorted[at[inside]] != values[inside]
        if new.any():
            self._add(distinct(values[new]))
            at = np.searchsorted(self._sorted, values)
        return self._order[at]

    def places(self) -> np.ndarray:
        """By number: how many values are smaller."""
        places = np.empty(len(self._order), dtype=np.int64)
        places[self._order] = np.arange(len(places))
        return places

    def _add(self, values: np.ndarray) -> None:
        """values: in increasing order, none of them here yet."""
        at = np.searchsorted(self._sorted, values)
        self._order = np.insert(self._order, at, len(self.values) + np.arange(len(values)))
        self._sorted = np.insert(self._sorted, at, values)
        self.values = np.concatenate([self.values, values])


def _pairs(rows: np.ndarray) -> Pairs:
    codes = _codes(rows, *np.triu_indices(rows.shape[1], 1))
    distinct, which, counts = np.unique(np.append(codes, NOTHING), return_inverse=True, return_counts=True)
    which = which[:-1].reshape(codes.shape)
    return Pairs(distinct, which, counts, np.bincount(_distinct_per_row(which), minlength=len(distinct)))


def _codes(rows: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Packed pairs of columns of rows, NOTHING where either is: [rows, pairs]."""
    a, b = rows[:, left], rows[:, right]
    return np.where((a != NOTHING) & (b != NOTHING), _pack(a, b), NOTHING)


def _pack(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.minimum(a, b).astype(np.int64) << BITS) | np.maximum(a, b)


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
