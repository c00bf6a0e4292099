"""Thresholds of learnt comparisons: cut where they tell the labels best, given the rest of the clause."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from nsfrc.learning.extended import number_relation, rounded
from nsfrc.learning.kernels import IGNORED, POSITIVE
from nsfrc.learning.relations import Relation
from nsfrc.learning.scoring import Scoring
from nsfrc.learning.search import clause_bits
from nsfrc.learning.tables import Literal, Tables


def refined(
    tables: Tables, others: tuple[Literal, ...], relation: Relation, variable: int, numbers: dict[str, np.ndarray],
    left: np.ndarray, scoring: Scoring,
) -> Relation | None:
    """The comparison with the best threshold for a clause with these other literals; None where there is no other.

    Of an example only its most extreme number counts, among the objects that fit the rest of the clause.
    """
    assert relation.cut is not None
    name, op, _ = relation.cut
    extreme = _extremes(tables, others, variable, numbers[name], largest=op == ">")
    there = np.isfinite(extreme) & (left != IGNORED)
    values, label = extreme[there], left[there] == POSITIVE
    order = np.argsort(-values if op == ">" else values, kind="stable")
    values, label = values[order], label[order]
    between = np.flatnonzero(values[1:] != values[:-1])
    if not len(between):
        return None
    tp, fp = np.cumsum(label)[between], np.cumsum(~label)[between]
    gain = np.asarray(scoring.gain(tp, fp))
    gap = np.abs(values[between + 1] - values[between])
    best = between[np.lexsort((-gap, -gain))[0]]  # of equally good ones that in the widest gap
    cut = rounded(float((values[best] + values[best + 1]) / 2), values)
    table = numbers[name]
    return number_relation(name, op, cut, table > cut if op == ">" else table < cut, relation.bits)


def _extremes(
    tables: Tables, others: tuple[Literal, ...], variable: int, table: np.ndarray, largest: bool
) -> np.ndarray:
    """[B]: the largest or smallest number that the variable may have, NaN where the other literals do not hold."""
    k = max([variable, *(a for _, args in others for a in args)]) + 1
    bits, starts = clause_bits(tables, others, k), tables.table(k).starts
    found = np.full(tables.B, np.nan)
    ways = {n: np.array(list(permutations(range(n), k)), dtype=np.int64).reshape(-1, k)[:, variable]
            for n in np.unique(tables.counts).tolist()}
    for b in range(tables.B):
        words = bits[starts[b] : starts[b + 1]]
        assigned = ways[int(tables.counts[b])]
        holds = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(assigned)].astype(bool)
        if holds.any():
            numbers = table[b, tables.objects[b, assigned[holds]]]
            numbers = numbers[np.isfinite(numbers)]
            if len(numbers):
                found[b] = numbers.max() if largest else numbers.min()
    return found
