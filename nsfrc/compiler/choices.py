"""Counts as choices between two values: how an engine computes how likely it is that so many atoms hold.

Whether at least 2 of x1, x2, x3 hold is asked atom by atom. Let g(i, j) be the answer once the first i are known and j
of them hold: it is known at the end, and before that

    g(i, j) = g(i+1, j) + x·(g(i+1, j+1) − g(i+1, j))          x the next one

which is one *choice*: by x between `no` and `yes`. The answer is g(0, 0), the probability that so many of independent
atoms hold. `\\+ p` is one choice, by p between 1 and 0.

    at least 2 of 3:   g(2,1) = x3               by x3 between 0 and 1
                       g(1,0) = x2·g(2,1)        by x2 between 0 and g(2,1)
                       g(1,1) = …                by x2 between g(2,1) and 1
                       g(0,0) = …                by x1 between g(1,0) and g(1,1)

The number of choices is at most atoms × numbers that are told apart, whatever the number of subsets. Choices that are
equal are one.
"""

from __future__ import annotations

import numpy as np

ZERO, ONE = 0, 1  # rows of X that hold these


class Choices:
    """Choices as rows of X from `first` on, in an order in which each uses earlier ones only.

    first_head: rows before it are given, and may be above 1, which counts as 1; no others are.
    """

    def __init__(self, first: int, first_head: int) -> None:
        self._first, self._first_head = first, first_head
        self._rows: dict[tuple[int, int, int], int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, sources: np.ndarray, wanted: np.ndarray) -> int:
        """The row of X that says how likely it is that a wanted number of sources holds.

        sources: rows of X; wanted: True for 0, 1, … of them where that is so, the last for all larger numbers.
        """
        answers = [ONE if yes else ZERO for yes in wanted]
        rows = sorted(sources.tolist())
        for i in range(len(rows) - 1, -1, -1):  # before the one at i, at most i hold
            answers.append(answers[-1])
            answers = [self._choose(rows[i], answers[j], answers[j + 1]) for j in range(min(i + 1, len(wanted)))]
        return answers[0]

    def _choose(self, by: int, no: int, yes: int) -> int:
        if no == yes or by == ZERO:
            return no
        if by == ONE:
            return yes
        if (no, yes) == (ZERO, ONE) and by >= self._first_head:
            return by
        return self._rows.setdefault((by, no, yes), self._first + len(self._rows))

    def tables(self) -> dict[str, np.ndarray]:
        """`choice_by`, `choice_no` and `choice_yes` as `LevelPlan` has them."""
        columns = np.array(list(self._rows), dtype=np.int64).reshape(-1, 3).T
        names = ("choice_by", "choice_no", "choice_yes")
        return {name: column.astype(np.min_scalar_type(int(column.max(initial=0))))
                for name, column in zip(names, columns, strict=True)}
