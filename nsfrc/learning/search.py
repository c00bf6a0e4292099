"""The search for one clause: beams over conjunctions, one for each number of variables and literals.

A clause is refined by one literal at a time (its bits AND the literal's); those with k variables come from those with
k or fewer. Short clauses of any number of variables are tried before long ones: what is known of these rules out most
of the others, since a clause is dropped when not even the best that could still be made of it, all its positives and no
negative, would beat the best that is known. Variables are brought in in their order, and of clauses that are equal up
to the names of variables the first stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from math import log2

import numpy as np

from nsfrc.learning.lengths import Length, literal_bits
from nsfrc.learning.relations import Relation
from nsfrc.learning.scoring import Scoring
from nsfrc.learning.tables import Literal, Table, Tables, kernels

TWINS = 4  # clauses of a beam that cover the same examples
KEPT = 2000  # clauses that are remembered beside the best
NEAR = 12.0  # bits by which they may be worse
DEEPER = 3  # variables beyond those of the best clause, where no limit is given
TIES = 4.0  # bits by which others that explain as much may cost more, and are still looked for


@dataclass(frozen=True, eq=False)
class Clause:
    """A conjunction of literals over `k` variables and what it covers. cost: in bits; score: what it saves beyond that.

    mark: a hash of the examples it covers.
    """

    literals: tuple[Literal, ...]
    k: int
    cost: float
    tp: int
    fp: int
    score: float
    mark: int


EMPTY = Clause((), 0, 0.0, 0, 0, 0.0, 0)


@dataclass(frozen=True)
class Limits:
    """How far to search. variables: None deepens until nothing more is found; until: when to stop (time.monotonic)."""

    beam: int = 30
    literals: int = 8
    variables: int | None = None
    until: float | None = None
    stopped: Callable[[], bool] = lambda: False

    def over(self) -> bool:
        return (self.until is not None and time.monotonic() > self.until) or self.stopped()


@dataclass
class Progress:
    """What a search has done so far; `tell` is called now and then."""

    scored: int = 0
    seconds: float = 0.0
    variables: int = 0
    best: str = ""
    tell: Callable[[Progress], None] = lambda progress: None


@dataclass(frozen=True, eq=False)
class _Scored:
    """Refinements of one clause, as arrays: literals by their places in `table`, or among those of whole images."""

    parent: Clause
    table: Table | None
    rows: np.ndarray
    cost: np.ndarray
    tp: np.ndarray
    fp: np.ndarray
    mark: np.ndarray
    score: np.ndarray


@dataclass(eq=False)
class Search:
    """The search for the clause that saves most bits. label [B]: POSITIVE, NEGATIVE or IGNORED.

    most: relation → how often a clause may have it or one of its like, `like` saying which these are.
    """

    tables: Tables
    label: np.ndarray
    scoring: Scoring
    limits: Limits
    most: dict[int, int] = field(default_factory=dict)
    like: dict[int, frozenset[int]] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.label = self.label.astype(np.int8)
        self.tables.renew()
        self.relations: list[Relation] = self.tables.relations
        self.bits = np.array([literal_bits(one) for one in self.relations])
        self.several = np.array([len(one.parts) or 1 for one in self.relations], dtype=np.int64)
        self.cheapest = float(self.bits.min(initial=1.0)) - log2(self.limits.literals)
        self.best = EMPTY
        self.kept: list[Clause] = []
        self.cut_short = False

    def run(self) -> Clause:
        """The best clause, EMPTY if none saves anything. `kept` has those that came near."""
        start, tried = time.process_time(), self.progress.seconds
        deepest = int(self.tables.counts.max(initial=0))
        self.last = deepest if self.limits.variables is None else min(self.limits.variables, deepest)
        beams: dict[tuple[int, int], list[Clause]] = {(0, 0): [EMPTY]}
        seen: dict[int, set[tuple[int, int]]] = {}
        for length in range(1, self.limits.literals + 1):
            for k in range(self.last + 1):
                if not self._deep_enough(k) or not self._longer(k, length, beams, seen.setdefault(k, set())):
                    break
                self.progress.seconds = tried + time.process_time() - start
                self.progress.tell(self.progress)
        return self.best

    def _deep_enough(self, k: int) -> bool:
        """Whether clauses of k variables are to be tried: without a limit, a few more than the best has."""
        return self.limits.variables is not None or not self.best.literals or k <= self.best.k + DEEPER

    def _longer(self, k: int, length: int, beams: dict[tuple[int, int], list[Clause]],
                seen: set[tuple[int, int]]) -> bool:
        """Fill the beam of clauses with exactly k variables and so many steps; False where the search is to end."""
        parents = [clause for fewer in range(k + 1) for clause in beams.get((fewer, length - 1), [])
                   if not self._hopeless(clause.tp, clause.cost)]
        if parents and k and not self.tables.fits(k):
            self.cut_short, self.last = True, k - 1
            return False
        self.progress.variables = max(k, self.progress.variables)
        found: list[_Scored] = []
        for clause in parents:
            if self.limits.over():
                self.cut_short = True
                return False
            found += self._refined(clause, k)
        beams[k, length] = self._chosen(found, k, seen)
        return True

    def _chosen(self, found: list[_Scored], k: int, seen: set[tuple[int, int]]) -> list[Clause]:
        """The best of some refinements, without those that were there before; all that are near the best are kept."""
        if not found:
            return []
        score = np.concatenate([one.score for one in found])
        where = np.concatenate([np.full(len(one.score), i) for i, one in enumerate(found)])
        place = np.concatenate([np.arange(len(one.score)) for one in found])
        chosen: list[Clause] = []
        twins: dict[int, int] = {}
        for i in np.argsort(-score, kind="stable")[: 40 * self.limits.beam].tolist():
            near = score[i] > max(self.best.score - NEAR, 0)
            if (len(chosen) >= self.limits.beam and not near) or score[i] == -np.inf:
                break
            one = self._clause(found[where[i]], int(place[i]), k)
            if self.best.score < one.score:
                self.best = one
            hopeless = self._hopeless(one.tp, one.cost)
            if not near and (hopeless or twins.get(one.mark, 0) >= TWINS):
                continue
            key = canonical(one.literals, self.relations), one.mark
            if key in seen:
                continue
            seen.add(key)
            if near and len(self.kept) < KEPT:
                self.kept.append(one)
            if len(chosen) < self.limits.beam and not hopeless and twins.get(one.mark, 0) < TWINS:
                twins[one.mark] = twins.get(one.mark, 0) + 1
                chosen.append(one)
        return chosen

    def _clause(self, scored: _Scored, i: int, k: int) -> Clause:
        row = int(scored.rows[i])
        relation, args = (self.tables.whole[row], ()) if scored.table is None else scored.table.literals[row]
        parts = [(part, in_order(args, self.relations[part])) for part in self.relations[relation].parts or (relation,)]
        literals = (*scored.parent.literals, *(part for part in parts if part not in scored.parent.literals))
        return Clause(literals, k, float(scored.cost[i]), int(scored.tp[i]), int(scored.fp[i]),
                      float(scored.score[i]), int(scored.mark[i]))

    def _hopeless(self, tp: int, cost: float) -> bool:
        """Whether nothing made of a clause can come near the best, as another literal has its cost, too."""
        if not cost:
            return False
        return float(self.scoring.most(tp)) - cost - self.cheapest <= max(self.best.score - TIES, 0.0)

    def narrowed(self, clause: Clause, kinds: Collection[str]) -> Iterator[Clause]:
        """The clause with one literal more, of certain kinds, that covers the same, if not by the same objects."""
        wanted = np.array([one.kind in kinds for one in self.relations])
        for k in range(clause.k, min(clause.k + 1, self.last) + 1):
            if k and self.tables.fits(k):
                for scored in self._refined(clause, k, wanted):
                    for i in np.flatnonzero((scored.tp == clause.tp) & (scored.fp == clause.fp)).tolist():
                        yield self._clause(scored, i, k)

    def _refined(self, clause: Clause, k: int, wanted: np.ndarray | None = None) -> Iterator[_Scored]:
        """The clause with one literal more, and k variables. wanted: of which relations, whether it is worth it or not.
        """
        length = Length.of(clause.literals, self.relations)
        if k:
            table = self.tables.table(k)
            new = (1 << k) - (1 << clause.k)
            fits = (table.needed & new) == new
            if k > clause.k + 1:  # new variables stand in their order
                fits &= table.rising
            fits &= self._free(clause)[table.relation]
            for literal in clause.literals:
                if literal in table.row:  # which one that was cut anew is not
                    fits[table.row[literal]] = False
            if wanted is not None:
                fits &= wanted[table.relation]
            rows, cost = self._worth(clause, length, table, np.flatnonzero(fits), table.relation, wanted is None)
            if len(rows):
                yield self._scored(clause, table, rows, cost, clause_bits(self.tables, clause.literals, k))
        if k == clause.k and self.tables.whole and wanted is None:
            fits = self._free(clause)[self.tables.whole]
            for literal in clause.literals:
                if not literal[1]:
                    fits[self.tables.whole_row[literal]] = False
            rows, cost = self._worth(clause, length, None, np.flatnonzero(fits), np.array(self.tables.whole))
            if len(rows):
                yield self._scored(clause, None, rows, cost, covered(self.tables, clause.literals))

    def _worth(self, clause: Clause, length: Length, table: Table | None, rows: np.ndarray,
               relation: np.ndarray, pruned: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Which literals leave a chance to beat the best, and what the clause costs with each; relation: of rows."""
        tp = clause.tp if clause.literals else self.scoring.P - self.scoring.tp
        chosen = relation[rows]
        cost = length.with_one_more(table, rows, self.bits[chosen], self.several[chosen])
        if not pruned:
            return rows, cost
        worth = self.scoring.most(tp) - cost > max(self.best.score - TIES, 0.0)
        return rows[worth], cost[worth]

    def _free(self, clause: Clause) -> np.ndarray:
        """Which relations the clause may have one more of."""
        free = np.ones(len(self.relations), dtype=bool)
        for relation, most in self.most.items():
            free[relation] = sum(one in self.like[relation] for one, _ in clause.literals) < most
        return free

    def _scored(self, clause: Clause, table: Table | None, rows: np.ndarray, cost: np.ndarray,
                parent: np.ndarray) -> _Scored:
        tp, fp, mark = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint64)
        if table is None:
            kernels.refine_whole(self.tables.whole_bits, rows, parent, self.label, self.tables.keys, tp, fp, mark)
        else:
            kernels.refine(table.ready(rows), rows, parent, table.starts, self.label, self.tables.keys, tp, fp, mark)
        self.progress.scored += len(rows)
        score = np.where(tp > 0, self.scoring.gain(tp, fp) - cost, -np.inf)
        return _Scored(clause, table, rows, cost, tp, fp, mark, score)


def in_order(args: tuple[int, ...], relation: Relation) -> tuple[int, ...]:
    """Arguments as literals have them: sorted where their order does not matter."""
    return tuple(sorted(args)) if relation.symmetric else args


def clause_bits(tables: Tables, literals: tuple[Literal, ...], k: int) -> np.ndarray:
    """The bits of a clause over k variables, those of its literals together."""
    table = tables.table(k)
    bits = table.every.copy()
    for literal in literals:
        if literal[1]:
            bits &= table.of(literal)
        else:
            kernels.only_where(bits, table.starts, tables.whole_bits[tables.whole_row[literal]])
    return bits


def covered(tables: Tables, literals: tuple[Literal, ...]) -> np.ndarray:
    """[B]: which examples a clause covers."""
    k = 1 + max((a for _, args in literals for a in args), default=-1)
    found = np.ones(tables.B, dtype=bool)
    if k:
        kernels.covers(clause_bits(tables, literals, k), tables.table(k).starts, found)
        return found
    for literal in literals:
        found &= tables.whole_bits[tables.whole_row[literal]]
    return found


def canonical(literals: tuple[Literal, ...], relations: list[Relation]) -> int:
    """A number that does not depend on the order of literals nor on the names of variables.

    Variables are told apart by what is said of them, then by what is said of those they are related to, and so on.
    """
    color = {a: 0 for _, args in literals for a in args}
    for _ in range(min(3, len(color))):
        said: dict[int, list[object]] = {a: [] for a in color}
        for relation, args in literals:
            around = tuple(color[a] for a in args)
            for place, a in enumerate(args):
                same = relations[relation].symmetric
                said[a].append((relation, -1 if same else place, tuple(sorted(around)) if same else around))
        color = {a: hash((color[a], tuple(sorted(map(hash, parts))))) for a, parts in said.items()}
    return hash(tuple(sorted(
        hash((relation, tuple(sorted(color[a] for a in args)) if relations[relation].symmetric
              else tuple(color[a] for a in args)))
        for relation, args in literals)))

