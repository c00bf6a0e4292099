"""Common factors of many products, found greedily and all at once with numpy.

Each round replaces those pairs of factors that are the first choice of every row they occur in, a row choosing the
pair that occurs most often in all rows. So the outcome is that of taking the most frequent pair again and again, in
far fewer rounds; and since a round changes few rows, how often pairs occur is kept up to date and not counted anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nsfrc.compiler.grounded import NOTHING
from nsfrc.compiler.passes.hashing import mix

# All pairs of the factors of a row are counted, which takes the square of its length; longer rows are halved first.
MOST_FACTORS = 40
BITS = 31  # of either factor in a packed pair
MOST_CELLS = 1 << 20  # of a table of all pairs of factors


class Pairs(NamedTuple):
    """The pairs of factors in some rows.

    distinct: each pair once, packed, in order; the first is NOTHING, for places that hold no pair. which: of them, by
    row and pair of columns. counts: how often each occurs. once: no row has a factor twice, nor then a pair.
    """

    distinct: np.ndarray
    which: np.ndarray
    counts: np.ndarray
    once: bool


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
            fresh = self.slots + len(self._nodes.values)
            nodes = self._node(codes)
            choice.replace(hit, columns, nodes, bool((nodes >= fresh).all()))

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
        self._left, self._right, self._others, self._pair_with = _columns(rows.shape[1])
        self._tie_break = tie_break
        self._codes, self._which = pairs.distinct, pairs.which.copy()
        self._once, self._counts = pairs.once, pairs.counts.copy()
        self._counts[0] = NOTHING  # less than any pair's: a place that holds no pair comes last
        self._numbers = _Numbers(tie_break(pairs.distinct))
        self._row = np.arange(len(rows))  # of each row of `_which`
        self._done = 0  # rows that `_which` still has, without any pair
        self._best, self._column = np.zeros_like(self._row), np.zeros_like(self._row)
        self._choose(self._row)

    def _choose(self, some: np.ndarray) -> None:
        """The first choice of some rows: the pair that occurs most often, the first by `tie_break` of several."""
        which = self._which.take(some, axis=0)
        counts, ties = self._counts.take(which, mode="clip"), self._numbers.values.take(which, mode="clip")
        np.putmask(ties, counts < counts.max(axis=1, keepdims=True), np.iinfo(ties.dtype).max)
        columns = ties.argmin(axis=1)
        self._column[some], self._best[some] = columns, which[np.arange(len(some)), columns]

    def winners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows whose first choice is that of all rows with that pair; between which columns, and the packed pair."""
        rows_with = self._counts if self._once else self._rows_with()
        wins = np.bincount(self._best, minlength=len(self._codes)) == rows_with
        wins[0] = False
        hit = np.flatnonzero(wins[self._best])
        return hit, self._column[hit], self._codes[self._best[hit]]

    def _rows_with(self) -> np.ndarray:
        """In how many rows each pair is."""
        ordered = np.sort(self._which, axis=1)
        first = np.ones_like(ordered, dtype=bool)
        first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        return np.bincount(ordered[first], minlength=len(self._codes))

    def replace(self, hit: np.ndarray, columns: np.ndarray, nodes: np.ndarray, fresh: bool) -> None:
        """Put nodes for pairs of columns of the rows that `winners` named. fresh: no row has any of them yet."""
        rows, left, right = self._row[hit], self._left[columns], self._right[columns]
        self._once &= fresh
        self.rows[rows, left], self.rows[rows, right] = nodes, NOTHING
        done = (self.rows[rows] != NOTHING).sum(axis=1) <= 2
        before, known = self._which[hit], len(self._codes)
        after = before.copy()
        at = np.arange(len(hit))[:, None]
        after[at, self._pair_with[right]] = 0
        after[at, self._pair_with[left]] = self._with_nodes(rows, left, nodes, done, fresh)
        after[done] = 0
        self._which[hit] = after
        added = self._added(before.ravel(), after.ravel())
        added[0] = 0
        added[:known] += self._counts
        self._counts, added = added, added[:known] - self._counts
        self._choose(self._unsettled(hit, added))
        self._done += int(done.sum())
        if 2 * self._done > len(self._row):
            left = np.flatnonzero(self._which.any(axis=1))
            self._which, self._row, self._done = self._which[left], self._row[left], 0
            self._best, self._column = self._best[left], self._column[left]

    def _with_nodes(
        self, rows: np.ndarray, columns: np.ndarray, nodes: np.ndarray, done: np.ndarray, fresh: bool
    ) -> np.ndarray:
        """Numbers of the pairs of each row's node, in its column, with the row's other factors; none if it is done."""
        others = self.rows[rows[:, None], self._others[columns]]
        there = (others != NOTHING) & ~done[:, None]
        codes = _pack(nodes.repeat(there.sum(axis=1)), others[there])
        ties = self._tie_break(codes)
        numbers = self._numbers.of_new(ties) if fresh else self._numbers.of(ties)
        new = np.zeros(len(self._numbers.values) - len(self._codes), dtype=np.int64)
        self._codes = np.concatenate([self._codes, new])
        self._codes[numbers] = codes
        result = np.zeros(others.shape, dtype=np.int64)
        result[there] = numbers
        return result

    def _added(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """By number of a pair: how many more there are after than before."""
        size = len(self._codes)
        return np.bincount(after, minlength=size) - np.bincount(before, minlength=size)

    def _unsettled(self, hit: np.ndarray, added: np.ndarray) -> np.ndarray:
        """Rows that may choose anew: that changed, whose choice is rarer now, or that have a pair that is more often.

        added: how many more there are now of the pairs that were there; others are only in rows that changed.
        """
        more = np.flatnonzero(added > 0)
        rarer = np.zeros(len(self._codes), dtype=bool)
        rarer[: len(added)] = added < 0
        unsettled = rarer[self._best]
        unsettled[hit] = True
        if len(more):
            unsettled |= np.isin(self._which, more).any(axis=1)
        return np.flatnonzero(unsettled)


class _Numbers:
    """Numbers values as they come up, those of one call in increasing order."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self._order = np.zeros(0, dtype=np.int64)  # of the values that can be looked up, by size
        self._sorted = values[:0]

    def of(self, values: np.ndarray) -> np.ndarray:
        """The number of every value."""
        if len(self._order) < len(self.values):
            self._order = np.argsort(self.values)
            self._sorted = self.values[self._order]
        each, back = _distinct(values)
        at = self._sorted.searchsorted(each)
        known = at < len(self._sorted)
        known[known] = self._sorted[at[known]] == each[known]
        numbers = np.empty(len(each), dtype=np.int64)
        numbers[known] = self._order[at[known]]
        numbers[~known] = self._add(each[~known])
        return numbers[back]

    def of_new(self, values: np.ndarray) -> np.ndarray:
        """As `of`, for values none of which has a number yet."""
        each, back = _distinct(values)
        return self._add(each)[back]

    def _add(self, values: np.ndarray) -> np.ndarray:
        first = len(self.values)
        self.values = np.concatenate([self.values, values])
        return np.arange(first, len(self.values))


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value once, in increasing order, and which of them each value is."""
    order = values.argsort()
    ordered = values[order]
    first = np.ones(len(values), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    back = np.empty(len(values), dtype=np.int64)
    back[order] = first.cumsum() - 1
    return ordered[first], back


def _pairs(rows: np.ndarray) -> Pairs:
    left, right, _, _ = _columns(rows.shape[1])
    seen = np.zeros(rows.max(initial=0) + 2, dtype=bool)
    seen[rows] = True
    values = np.flatnonzero(seen[:-1])
    size = len(values) + 1
    if size * size > MOST_CELLS:
        codes = _codes(rows, left, right)
        distinct, which, counts = np.unique(np.append(codes, NOTHING), return_inverse=True, return_counts=True)
        which = which[:-1].reshape(codes.shape)
    else:  # few factors: a table of all their pairs is quicker than sorting
        rank = np.cumsum(seen) - 1
        rank[NOTHING] = len(values)
        ranks = rank[rows]
        a, b = ranks[:, left], ranks[:, right]
        cell = np.minimum(a, b) * size + np.maximum(a, b)
        counts = np.bincount(cell.ravel(), minlength=size * size)
        counts[size - 1 :: size] = 0  # with NOTHING
        cells = np.flatnonzero(counts)
        number = np.zeros(size * size, dtype=np.int64)
        number[cells] = np.arange(1, len(cells) + 1)
        which, counts = number[cell], np.append(0, counts[cells])
        distinct = np.append(NOTHING, _pack(values[cells // size], values[cells % size]))
    again = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] != NOTHING)  # equal factors are neighbours
    return Pairs(distinct, which, counts, not again.any())


@cache
def _columns(width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Left and right columns of every pair of them; by column, the others, and which pair each makes with it.

    [pairs], [pairs], [width, width - 1], [width, width - 1]
    """
    left, right = np.triu_indices(width, 1)
    number = np.zeros((width, width), dtype=np.int64)
    number[left, right] = number[right, left] = np.arange(len(left))
    others = np.array([[other for other in range(width) if other != one] for one in range(width)])
    return left, right, others, number[np.arange(width)[:, None], others]


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
