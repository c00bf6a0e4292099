"""What `anchored` says, in plain Python loops over names of atoms, in float64: an oracle for the dense reference.

It takes a checked `ir.Program` and shares no code with the compiler: substitutions are tried one by one, what depends
on what is found by walking, and softor⁰ is written as defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from nsfrc.compiler import ir
from tests.random_programs import instances
from tests.swi import crisp

Values = dict[str, float]
# The atoms that are counted, those that are taken away, and the tests on the difference.
Counting = tuple[list[str], list[str], tuple[ir.Filter, ...]]
# By clause: the bodies of each head.
Rows = list[dict[str, list[tuple[str, ...]]]]


@dataclass(frozen=True)
class Oracle:
    """A program spelt out: its atoms, its rows, and the atoms that clauses derive, by component, in order."""

    atoms: list[str]
    rows: Rows
    components: list[list[str]]
    recursive: list[bool]
    counts: dict[str, Counting]

    @classmethod
    def of(cls, program: ir.Program) -> Oracle:
        constants = {datatype.name: datatype.constants for datatype in program.types}
        apart = crisp.kept_apart(program)
        atoms = [str(atom) for predicate in program.predicates for atom in instances(predicate, constants, apart)]
        rows: Rows = []
        for clause in program.clauses:
            rows.append({})
            for head, body in crisp.clause_rows(clause, program):
                rows[-1].setdefault(head, []).append(body)
        uses: dict[str, set[str]] = {}
        for by_head in rows:
            for head, bodies in by_head.items():
                uses.setdefault(head, set()).update(atom for body in bodies for atom in body)
        counts = dict(_counts(program, constants, apart))
        uses |= {atom: {*plus, *minus} for atom, (plus, minus, _) in counts.items()}
        components = _components(uses)
        return cls(atoms, rows, components, [c[0] in _reachable(c[0], uses) for c in components], counts)

    def values(
        self, V0: Mapping[str, float], gamma: float, steps: int | None = None,
        weights: Sequence[Sequence[float]] | None = None,
    ) -> Values:
        """V of every atom. weights [M, C]: rows sum to 1; None takes every clause once."""
        V = {atom: V0[atom] for atom in self.atoms}
        for members, recursive in zip(self.components, self.recursive, strict=True):
            rounds = 1 if not recursive else len(members) if steps is None else steps
            for _ in range(rounds):
                V |= {atom: self._derived(atom, V, V0, gamma, weights) for atom in members}
        return V

    def _derived(
        self, atom: str, V: Values, V0: Mapping[str, float], gamma: float, weights: Sequence[Sequence[float]] | None
    ) -> float:
        if atom in self.counts:
            return _counted(*self.counts[atom], V)
        C = [softor([math.prod(V[a] for a in body) for body in by_head.get(atom, [])], gamma) for by_head in self.rows]
        H = C if weights is None else [sum(w * c for w, c in zip(row, C, strict=True)) for row in weights]
        return min(1.0, softor([V0[atom], *H], gamma))


def _counts(
    program: ir.Program, constants: Mapping[str, Sequence[str]], apart: frozenset[str]
) -> Iterator[tuple[str, Counting]]:
    """What every atom that counts looks at."""
    by_key = {p.key: list(instances(p, constants, apart)) for p in program.predicates}

    def looked_at(source: ir.Source | None, atom: ir.Atom) -> list[str]:
        if source is None:
            return []
        first = tuple(atom.args[i] for i in source.args)
        return [str(other) for other in by_key[source.key] if other.args[: len(first)] == first]

    for predicate in program.predicates:
        count = predicate.count
        for atom in by_key[predicate.key] if count else ():
            plus, minus = looked_at(count.of, atom), looked_at(count.less, atom)
            exactly = (ir.Filter("=:=", ir.Var(ir.NUMBER), atom.args[-1]),) if not count.tests else ()
            yield str(atom), (plus, minus, count.tests or exactly)


def _counted(plus: Sequence[str], minus: Sequence[str], tests: Sequence[ir.Filter], V: Values) -> float:
    """P(the tests hold of how many there are) over all ways in which independent atoms may hold or not."""
    left, right = ([subsets([min(1.0, V[atom]) for atom in atoms]) for atoms in (plus, minus)])
    return sum(p * q for (n, p), (m, q) in product(enumerate(left), enumerate(right))
               if all(crisp.holds(test, {ir.NUMBER: str(n - m)}) for test in tests))


def subsets(values: Sequence[float]) -> list[float]:
    """P(0 happen), P(1 happens), …, subset by subset; many are taken in two halves."""
    if len(values) > 12:
        halves = subsets(values[::2]), subsets(values[1::2])
        return [sum(p * q for (n, p), (m, q) in product(*map(enumerate, halves)) if n + m == total)
                for total in range(len(values) + 1)]
    found = [0.0] * (len(values) + 1)
    for happens in product((False, True), repeat=len(values)):
        found[sum(happens)] += math.prod(x if yes else 1 - x for x, yes in zip(values, happens, strict=True))
    return found


def softor(x: Sequence[float], gamma: float) -> float:
    """γ·log(1 + Σ_k (exp(x_k/γ) − 1)), divided through by the largest so that nothing overflows."""
    top = max(x, default=0.0)
    total = math.exp(-top / gamma)
    for value in x:
        total += math.exp((value - top) / gamma) - math.exp(-top / gamma)
    return top + gamma * math.log(total)


def _components(uses: Mapping[str, set[str]]) -> list[list[str]]:
    """Heads that reach each other, those that others need first."""
    reached = {head: _reachable(head, uses) for head in uses}
    components: list[list[str]] = []
    placed: set[str] = set()
    while len(placed) < len(uses):
        for head in uses:
            together = [h for h in uses if h == head or (h in reached[head] and head in reached[h])]
            outside = {h for member in together for h in reached[member] if h in uses} - set(together)
            if head not in placed and outside <= placed:
                components.append(together)
                placed.update(together)
    return components


def _reachable(atom: str, uses: Mapping[str, set[str]]) -> set[str]:
    """The atoms that one depends on, in one step or more."""
    found: set[str] = set()
    waiting = [atom]
    while waiting:
        for other in uses.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
