"""How much shorter labels can be told with a rule than without: its description length against its exceptions.

All in bits. Without a rule, n labels of which P are positive take n·H(P/n). A rule parts the examples into those it
covers and the others; what is left to be told is which of either part are exceptions. A literal costs the logarithm of
how many there were to choose from, and the order of literals is free. So the cost of a clause is about the logarithm
of how many such clauses there are, which is what keeps a search over many of them from finding rules in noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

LEAST_GAIN = 6.0  # bits that a rule must save beyond its own cost; chance does that once in 2 ** 6 searches
LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class Scoring:
    """Of P positives and N negatives, `tp` and `fp` are covered by earlier clauses already.

    noise: the share of labels that are wrong, if it is known; None estimates it by what a rule gets wrong. weight: as
    how many each label counts.
    """

    P: int
    N: int
    tp: int = 0
    fp: int = 0
    noise: float | None = None
    weight: float = 1.0

    def exceptions(self, tp: np.ndarray | int, fp: np.ndarray | int) -> np.ndarray:
        """Bits to tell the labels if so many further ones are covered."""
        tp, fp = np.asarray(tp, dtype=float) + self.tp, np.asarray(fp, dtype=float) + self.fp
        fn, size = self.P - tp, self.P + self.N
        if self.noise is not None:
            rate = min(max(self.noise, LEAST_NOISE), 0.499)
            wrong = fp + fn
            return np.asarray(self.weight * (wrong * -np.log2(rate) + (size - wrong) * -np.log2(1 - rate)))
        covered = tp + fp
        parts = entropy(fp, covered) + entropy(fn, size - covered)
        rates = 0.5 * np.log2(size + 1) * ((fp > 0).astype(float) + (fn > 0))
        return np.asarray(self.weight * (parts + rates))

    @cached_property
    def nothing(self) -> float:
        """Bits to tell the labels without another clause."""
        if not self.tp and not self.fp:
            size = self.P + self.N
            return self.weight * float(entropy(np.asarray(self.P), np.asarray(size)) + 0.5 * np.log2(size + 1))
        return float(self.exceptions(0, 0))

    def gain(self, tp: np.ndarray | int, fp: np.ndarray | int) -> np.ndarray:
        """Bits that a clause saves, without its own cost; below 0 where it holds of negatives rather."""
        saved = self.nothing - self.exceptions(tp, fp)
        tp, fp = np.asarray(tp), np.asarray(fp)
        better = tp * max(self.N - self.fp, 1) > fp * max(self.P - self.tp, 1)
        return np.where(better, saved, -np.abs(saved) - 1e-9)

    def most(self, tp: np.ndarray | int) -> np.ndarray:
        """What a clause may save at most that covers so many positives and loses all its negatives."""
        return np.asarray(self._most[tp])

    @cached_property
    def _most(self) -> np.ndarray:
        """`most` of every number of positives that are left: it is asked for at every clause."""
        left = np.arange(self.P - self.tp + 1)
        return self.gain(left, np.zeros_like(left))


def entropy(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """whole · H(part / whole), 0 where either end is reached."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    rest = whole - part
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = -(part * np.log2(part / whole) + rest * np.log2(rest / whole))
    return np.where((part <= 0) | (rest <= 0), 0.0, bits)
