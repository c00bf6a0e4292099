"""Several clauses for one target: each explains some of the positives that those before it left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, permutations

import numpy as np

from nsfrc.learning.kernels import IGNORED, NEGATIVE, POSITIVE
from nsfrc.learning.lengths import cost_of
from nsfrc.learning.relations import PLAIN, SHARED, Relation
from nsfrc.learning.scoring import LEAST_GAIN, Scoring
from nsfrc.learning.search import TIES, Clause, Limits, Progress, Search, canonical, clause_bits, covered, in_order
from nsfrc.learning.tables import Literal, Tables, kernels
from nsfrc.learning.thresholds import refined

WIDER = 4  # times the beam, where nothing was found
SHOWN = 50  # alternatives that are kept of a clause
NARROWER = 10  # clauses that ask for more, of one
TELLING = 5  # examples in which one literal goes with another before it is taken to follow from it
RECUT = 20  # others that are cut anew, to see whether they explain as much then


@dataclass(frozen=True, eq=False)
class Theory:
    """Clauses in order.

    alternatives: of each clause, others that explain the same labels; narrower: of each clause, those that ask for
    more, which all examples that it explains have. best: the best clause that was found, even where it does not save
    enough to be one of them. saved: bits, by all of them. complete: the search came to its end.
    """

    clauses: tuple[Clause, ...] = ()
    alternatives: tuple[tuple[Clause, ...], ...] = ()
    narrower: tuple[tuple[Clause, ...], ...] = ()
    best: Clause | None = None
    saved: float = 0.0
    complete: bool = True


@dataclass(eq=False)
class Cover:
    """Learns the clauses of one target. label [B]: POSITIVE, NEGATIVE or IGNORED. most: see `Search`."""

    tables: Tables
    label: np.ndarray
    limits: Limits
    noise: float | None = None
    clauses: int = 5
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)
    like: dict[int, frozenset[int]] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    tell: Callable[[Clause], None] = lambda clause: None
    weight: float = 1.0

    def run(self) -> Theory:
        left = self.label.copy()
        whole = Scoring(int((left == POSITIVE).sum()), int((left == NEGATIVE).sum()), noise=self.noise,
                        weight=self.weight)
        found: list[Clause] = []
        others: list[tuple[Clause, ...]] = []
        narrower: list[tuple[Clause, ...]] = []
        best, scoring, complete = None, whole, True
        while len(found) < self.clauses and (left == POSITIVE).any():
            search, clause = self._searched(left, scoring, wider=not found)
            complete = complete and not self.limits.over()
            if best is None:
                best = clause if clause.literals else None
            clause = self._polished(clause, left, scoring)
            if clause.score < LEAST_GAIN:
                break
            self.tell(clause)
            found.append(clause)
            others.append(tuple(self._alternatives(clause, search, left, scoring)))
            narrower.append(tuple(self._narrower(clause, search, left, scoring)))
            hit = covered(self.tables, clause.literals)
            scoring = replace(scoring, tp=scoring.tp + int((hit & (left == POSITIVE)).sum()),
                              fp=scoring.fp + int((hit & (left == NEGATIVE)).sum()))
            left[hit] = IGNORED
            if not complete:
                break
        kept = self._needed(found, whole)
        saved = whole.nothing - float(scoring.exceptions(0, 0)) - sum(clause.cost for clause in found)
        return Theory(tuple(found[i] for i in kept), tuple(others[i] for i in kept), tuple(narrower[i] for i in kept),
                      best, saved, complete)

    def _searched(self, left: np.ndarray, scoring: Scoring, wider: bool) -> tuple[Search, Clause]:
        """The best clause. wider: if none is good enough, look again with a larger beam."""
        search = Search(self.tables, left, scoring, self.limits, self.most, self.like, self.progress)
        clause = search.run()
        if wider and clause.score < LEAST_GAIN and not self.limits.over():
            limits = replace(self.limits, beam=WIDER * self.limits.beam)
            search = Search(self.tables, left, scoring, limits, self.most, self.like, self.progress)
            clause = search.run()
        return search, clause

    def judged(self, literals: Sequence[Literal], left: np.ndarray, scoring: Scoring) -> Clause:
        """A clause with what it covers and costs, its variables numbered in their order."""
        named = renamed(literals, self.tables.relations)
        hit = covered(self.tables, named)
        tp, fp = int((hit & (left == POSITIVE)).sum()), int((hit & (left == NEGATIVE)).sum())
        mark = int(np.bitwise_xor.reduce(self.tables.keys[hit & (left != IGNORED)], initial=0))
        cost = cost_of(named, self.tables.relations)
        k = 1 + max((a for _, args in named for a in args), default=-1)
        return Clause(named, k, cost, tp, fp, float(scoring.gain(tp, fp)) - cost if tp else -np.inf, mark)

    def _polished(self, clause: Clause, left: np.ndarray, scoring: Scoring) -> Clause:
        """Without literals that it can do without, and its numbers cut where that is best."""
        clause = self._shorter(clause, left, scoring)
        numeric = self._numeric(clause)
        for i in numeric:
            clause = self._recut(clause, i, left, scoring)
        return self._shorter(clause, left, scoring) if numeric else clause

    def _numeric(self, clause: Clause) -> list[int]:
        """Which of its literals cut a number."""
        return [i for i, (relation, _) in enumerate(clause.literals) if self.tables.relations[relation].cut]

    def _shorter(self, clause: Clause, left: np.ndarray, scoring: Scoring) -> Clause:
        while len(clause.literals) > 1:
            tries = [self.judged((*clause.literals[:i], *clause.literals[i + 1 :]), left, scoring)
                     for i in range(len(clause.literals))]
            best = max(tries, key=lambda one: one.score)
            if best.score < clause.score:
                break
            clause = best
        return clause

    def _recut(self, clause: Clause, i: int, left: np.ndarray, scoring: Scoring) -> Clause:
        relation, args = clause.literals[i]
        others = (*clause.literals[:i], *clause.literals[i + 1 :])
        new = refined(self.tables, others, self.tables.relations[relation], args[0], self.numbers, left, scoring)
        if new is None:
            return clause
        number = self.tables.add(new)
        tried = self.judged((*clause.literals[:i], (number, args), *clause.literals[i + 1 :]), left, scoring)
        return tried if tried.score >= clause.score - 1e-9 else clause

    def _alternatives(self, clause: Clause, search: Search, left: np.ndarray, scoring: Scoring) -> list[Clause]:
        """Other clauses that get as many labels right, the shortest first; none that only says more than another."""
        chosen = [clause]
        seen, shapes = {canonical(clause.literals, self.tables.relations)}, {self._uncut(clause)}
        recut: set[tuple[object, ...]] = set()
        for one in sorted(search.kept, key=lambda one: one.cost):
            if one.cost > clause.cost + TIES:
                break
            shape = self._uncut(one)
            if one.fp - one.tp > clause.fp - clause.tp:  # perhaps only for where its numbers are cut
                if shape in recut or shape in shapes or len(recut) >= RECUT or not self._numeric(one):
                    continue
                recut.add(shape)
            plain = self._polished(self.judged(one.literals, left, scoring), left, scoring)
            key, shape = canonical(plain.literals, self.tables.relations), self._uncut(plain)
            if plain.fp - plain.tp > clause.fp - clause.tp or key in seen or shape in shapes:
                continue
            seen.add(key)
            shapes.add(shape)
            if not any(subsumes(other.literals, plain.literals, self.tables.relations) for other in chosen):
                chosen.append(plain)
            if len(chosen) > SHOWN:
                break
        return chosen[1:]

    def _narrower(self, clause: Clause, search: Search, left: np.ndarray, scoring: Scoring) -> list[Clause]:
        """Clauses that ask for more than this one and cover the same: perhaps what they ask for is meant, too.

        Only where chance does not explain that all examples have it, as so many of the negatives have not.
        """
        found: list[tuple[float, Clause]] = []
        for one in search.narrowed(clause, (PLAIN, SHARED)):
            new = [literal for literal in one.literals if literal not in clause.literals]
            surprise = self._unlikely(clause, new, one.k, left) - (one.cost - clause.cost) if new else 0.0
            if surprise > 0 and not any(self._implied(clause, literal, left) for literal in new):
                found.append((surprise, self.judged(one.literals, left, scoring)))
        chosen: list[Clause] = []
        for _, one in sorted(found, key=lambda pair: -pair[0]):
            if not any(subsumes(other.literals, one.literals, self.tables.relations) for other in chosen):
                chosen.append(one)
            if len(chosen) == NARROWER:
                break
        return chosen

    def _unlikely(self, clause: Clause, new: Sequence[Literal], k: int, left: np.ndarray) -> float:
        """Bits of how unlikely it is that all positives of a clause have more by chance; k: variables of both together.

        Chance is how many negatives have it anywhere; or how often any objects of these have it, if that is less, for
        as many objects as fit the clause.
        """
        more = renamed(new, self.tables.relations)
        negative, positive = left == NEGATIVE, (left == POSITIVE) & covered(self.tables, clause.literals)
        anywhere = (int((covered(self.tables, more) & negative).sum()) + 1) / (int(negative.sum()) + 2)
        few = 1 + max(a for _, args in more for a in args)
        had, of = (int(_counts(bits, self.tables.table(few).starts)[negative].sum())
                   for bits in (clause_bits(self.tables, more, few), self.tables.table(few).every))
        fitting = _counts(clause_bits(self.tables, clause.literals, k), self.tables.table(k).starts)[positive]
        among = 1 - (1 - (had + 1) / (of + 2)) ** fitting
        return float(-np.log2(np.minimum(among, anywhere)).sum())

    def _implied(self, clause: Clause, literal: Literal, left: np.ndarray) -> bool:
        """Whether one or two literals of the clause never go without another: different shapes, of a cube and a sphere.

        Told by examples that the clause does not cover; of few of these nothing is concluded.
        """
        k = max([clause.k, *(a + 1 for a in literal[1])])
        table = self.tables.table(k)
        without = ~table.of(literal)
        others = (left != IGNORED) & ~covered(self.tables, clause.literals)
        for some in chain(combinations(clause.literals, 1), combinations(clause.literals, 2)):
            bits = clause_bits(self.tables, some, k)
            if not (bits & without).any():
                there = np.zeros(self.tables.B, dtype=bool)
                kernels.covers(bits, table.starts, there)
                if int((there & others).sum()) >= TELLING:
                    return True
        return False

    def _uncut(self, clause: Clause) -> tuple[object, ...]:
        """What a clause says apart from where numbers are cut."""
        named = [(cut[:2] if (cut := self.tables.relations[relation].cut) else relation, args)
                 for relation, args in clause.literals]
        return tuple(sorted(map(str, named)))

    def _needed(self, found: list[Clause], scoring: Scoring) -> list[int]:
        """Clauses without those that later ones made superfluous."""
        kept = list(range(len(found)))
        for i in range(len(found)):
            without = [j for j in kept if j != i]
            if without and self._length(found, without, scoring) <= self._length(found, kept, scoring):
                kept = without
        return kept

    def _length(self, found: list[Clause], some: list[int], scoring: Scoring) -> float:
        hit = np.zeros(len(self.label), dtype=bool)
        for i in some:
            hit |= covered(self.tables, found[i].literals)
        tp, fp = int((hit & (self.label == POSITIVE)).sum()), int((hit & (self.label == NEGATIVE)).sum())
        return float(scoring.exceptions(tp, fp)) + sum(found[i].cost for i in some)


def _counts(bits: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """[B]: how many bits each example has."""
    before = np.concatenate([[0], np.cumsum(np.bitwise_count(bits), dtype=np.int64)])
    return np.asarray(before[starts[1:]] - before[starts[:-1]])


def renamed(literals: Sequence[Literal], relations: list[Relation]) -> tuple[Literal, ...]:
    """With variables numbered in the order in which they appear."""
    numbers: dict[int, int] = {}
    for _, args in literals:
        for a in args:
            numbers.setdefault(a, len(numbers))
    return tuple((one, in_order(tuple(numbers[a] for a in args), relations[one])) for one, args in literals)


def subsumes(general: Sequence[Literal], special: Sequence[Literal], relations: list[Relation]) -> bool:
    """Whether the literals of one clause are among those of another, with other names for variables."""
    def matches(i: int, names: dict[int, int]) -> bool:
        if i == len(general):
            return True
        relation, args = general[i]
        for other, terms in special:
            if other != relation:
                continue
            for order in permutations(terms) if relations[relation].symmetric else (terms,):
                bound = dict(names)
                if all(bound.setdefault(a, b) == b for a, b in zip(args, order, strict=True)) \
                        and len(set(bound.values())) == len(bound) and matches(i + 1, bound):
                    return True
        return False

    return matches(0, {})
