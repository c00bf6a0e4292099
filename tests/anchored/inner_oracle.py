r"""What programs with goals within goals mean, in plain Python: an oracle that shares nothing with the compiler.

It walks the structure that `tests.random_inner` draws, before any text is written: assignments are tried one by one,
counts are sums over subsets of solutions, negations 1 − soft-or of what they hold. Nothing is made a predicate of its
own, nothing is ground beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import nsfrc
from nsfrc.compiler import ir
from tests.anchored.oracle import softor, subsets
from tests.anchored.support import GAMMAS, random_within, valuations
from tests.random_inner import Compared, Either, Forall, Goal, Not, Numbered, Rule, Surface, Tested
from tests.random_programs import instances

Binding = dict[str, str]
Ground = tuple[str, tuple[str, ...]]  # name and arguments
LOOPS = 1e-9  # how far the reference in float64 may be from these loops

_HOLDS = {
    "<": lambda x, y: x < y, ">": lambda x, y: x > y, "=<": lambda x, y: x <= y, ">=": lambda x, y: x >= y,
    "=:=": lambda x, y: x == y, "=\\=": lambda x, y: x != y,
}


def names(goal: Goal) -> Iterator[str]:
    """Every variable that a goal mentions, however deep."""
    if isinstance(goal, ir.Atom | ir.Filter):
        yield from (variable.name for variable in goal.variables())
    elif isinstance(goal, Either):
        yield from (variable.name for way in goal.ways for atom in way for variable in atom.variables())
    else:
        if isinstance(goal, Numbered):
            yield goal.name
        for inner in _parts(goal):
            for part in inner:
                yield from names(part)


def _parts(goal: Goal) -> tuple[tuple[Goal, ...], ...]:
    if isinstance(goal, Not | Tested | Numbered):
        return (goal.goals,)
    if isinstance(goal, Forall):
        return goal.given, goal.then
    return (goal.left, goal.right) if isinstance(goal, Compared) else ()


class InnerOracle:
    """The values of a program's atoms for one valuation: `value(name, arguments)`."""

    def __init__(self, surface: Surface, V0: Mapping[Ground, float], gamma: float) -> None:
        self.surface, self.V0, self.gamma = surface, V0, gamma
        self.constants = surface.constants
        self.objects = {t.name for t in surface.base.types if t.role == ir.OBJECT}
        self.signatures = {p.name: p.types for p in surface.base.predicates}
        self.rules: dict[str, list[Rule]] = {}
        for rule in surface.rules:
            self.rules.setdefault(rule.head.name, []).append(rule)
        self.found: dict[Ground, float] = {}
        self.uses: dict[Ground, set[Ground]] = {}

    def value(self, atom: Ground) -> float:
        if atom[0] not in self.rules:
            return self.V0[atom]
        if atom not in self.found:
            self._component(atom)
        return self.found[atom]

    def _component(self, atom: Ground) -> None:
        """The values of an atom and of those that it needs and that need it, in as many rounds as they are."""
        members = [other for other in self._reached(atom) if atom in self._reached(other)]
        others = {other for member in members or [atom] for other in self._used(member)} - set(members)
        for other in others:
            self.value(other)
        for member in members:
            self.found[member] = self.V0[member]
        for _ in members or [atom]:
            self.found |= {member: self._derived(member) for member in members or [atom]}

    def _derived(self, atom: Ground) -> float:
        reasons = [value for rule, binding in self._heads(atom) for value, _ in self._rows(rule, binding)]
        return min(1.0, softor([self.V0[atom], *reasons], self.gamma))

    def _reached(self, atom: Ground) -> set[Ground]:
        seen: set[Ground] = set()
        waiting = [atom]
        while waiting:
            for other in self._used(waiting.pop()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    def _used(self, atom: Ground) -> set[Ground]:
        """The derived atoms in the bodies for an atom; not what is negated or counted, which cannot need it."""
        if atom not in self.uses:
            found: set[Ground] = set()
            for rule, binding in self._heads(atom):
                for way in _ways(rule.goals):
                    for full in self._assignments(way, list(binding), binding, rule.types):
                        found.update(a for a in self._atoms(way, full) if a[0] in self.rules)
            self.uses[atom] = found
        return self.uses[atom]

    def _heads(self, atom: Ground) -> Iterator[tuple[Rule, Binding]]:
        """The rules whose head is this atom with some variables put in."""
        for rule in self.rules[atom[0]]:
            binding: Binding = {}
            pairs = list(zip(rule.head.args, atom[1], strict=True))
            if all(term.name == constant if isinstance(term, ir.Const) else
                   binding.setdefault(term.name, constant) == constant for term, constant in pairs):
                yield rule, binding

    def _rows(self, rule: Rule, binding: Binding) -> Iterator[tuple[float, Binding]]:
        return self._solutions(rule.goals, list(binding), binding, rule.types)

    def _solutions(
        self, goals: Sequence[Goal], shared: Sequence[str], outer: Binding, types: Mapping[str, str]
    ) -> Iterator[tuple[float, Binding]]:
        """The worth of every assignment of a conjunction, for given values of the shared variables."""
        for way in _ways(goals):
            for binding in self._assignments(way, shared, outer, types):
                yield math.prod(self._worth(goal, binding, types) for goal in way), binding

    def _assignments(
        self, way: Sequence[Goal], shared: Sequence[str], outer: Binding, types: Mapping[str, str]
    ) -> Iterator[Binding]:
        """Constants for the shared variables and those of atoms and numbers, objects pairwise different."""
        own = dict.fromkeys(shared)
        for goal in way:
            if isinstance(goal, ir.Atom):
                own |= dict.fromkeys(names(goal))
            elif isinstance(goal, Numbered):
                own[goal.name] = None
        choices = [[outer[name]] if name in shared else self.constants[types[name]] for name in own]
        for chosen in product(*choices):
            taken = [(types[n], c) for n, c in zip(own, chosen, strict=True) if types[n] in self.objects]
            binding = dict(zip(own, chosen, strict=True))
            if len(set(taken)) == len(taken) and self._possible(way, binding):
                yield binding

    def _possible(self, way: Sequence[Goal], binding: Binding) -> bool:
        """Whether tests hold and no atom has an object twice."""
        if not all(_test(goal, binding) for goal in way if isinstance(goal, ir.Filter)):
            return False
        for name, args in self._atoms(way, binding):
            objects = [(t, a) for t, a in zip(self.signatures[name], args, strict=True) if t in self.objects]
            if len(set(objects)) < len(objects):
                return False
        return True

    def _atoms(self, way: Iterable[Goal], binding: Binding) -> Iterator[Ground]:
        for goal in way:
            if isinstance(goal, ir.Atom):
                yield goal.name, tuple(_constant(arg, binding) for arg in goal.args)

    def _worth(self, goal: Goal, binding: Binding, types: Mapping[str, str]) -> float:
        if isinstance(goal, ir.Filter):
            return 1.0
        if isinstance(goal, ir.Atom):
            (atom,) = self._atoms([goal], binding)
            return self.value(atom)
        if isinstance(goal, Not):
            return self._none(goal.goals, binding, types)
        if isinstance(goal, Forall):
            return self._none((*goal.given, Not(goal.then)), binding, types)
        if isinstance(goal, Compared):
            left, right = (self._numbers(part, binding, types) for part in (goal.left, goal.right))
            return sum(p * q for n, p in left.items() for m, q in right.items() if _HOLDS[goal.op](n, m + goal.more))
        assert isinstance(goal, Tested | Numbered)
        found = self._numbers(goal.goals, binding, types)
        tests = goal.tests if isinstance(goal, Tested) else (("=:=", int(binding[goal.name])),)
        return sum(p for n, p in found.items() if all(_HOLDS[op](n, constant) for op, constant in tests))

    def _none(self, goals: Sequence[Goal], binding: Binding, types: Mapping[str, str]) -> float:
        shared = [name for name in dict.fromkeys(n for goal in goals for n in names(goal)) if name in binding]
        return 1 - min(1.0, softor([v for v, _ in self._solutions(goals, shared, binding, types)], self.gamma))

    def _numbers(self, goals: Sequence[Goal], binding: Binding, types: Mapping[str, str]) -> dict[int, float]:
        """How likely it is that so many assignments of a goal's own variables are solutions."""
        shared = [name for name in dict.fromkeys(n for goal in goals for n in names(goal)) if name in binding]
        atoms = [atom for way in _ways(goals) for atom in way if isinstance(atom, ir.Atom)]
        own = [name for name in dict.fromkeys(v.name for atom in atoms for v in atom.variables()) if name not in shared]
        by_assignment: dict[tuple[str, ...], list[float]] = {}
        for chosen in product(*(self.constants[types[name]] for name in own)):
            taken = [(types[n], c) for n, c in (*((n, binding[n]) for n in shared), *zip(own, chosen, strict=True))
                     if types[n] in self.objects]
            if len(set(taken)) < len(taken):
                continue
            inside = {**{name: binding[name] for name in shared}, **dict(zip(own, chosen, strict=True))}
            by_assignment[chosen] = [v for v, _ in self._solutions(goals, list(inside), inside, types)]
        return dict(enumerate(subsets([min(1.0, softor(v, self.gamma)) for v in by_assignment.values() if v])))


def loops(seed: int) -> float:
    """How far the reference is from the oracle on a random program: the largest difference of a value."""
    surface, text = random_within(seed)
    program = nsfrc.compile(source=text)
    V0, gamma = valuations(program, 1, seed), GAMMAS[seed % len(GAMMAS)]
    column = {atom: number for number, atom in enumerate(program.atoms)}
    atoms = {(atom.name, tuple(arg.name for arg in atom.args)): column[str(atom)] for p in surface.base.predicates
             for atom in instances(p, surface.constants, surface.base.apart)}
    oracle = InnerOracle(surface, {atom: float(V0[0, number]) for atom, number in atoms.items()}, gamma)
    values = program.reasoner("reference", gamma=gamma)(V0)[0].tolist()
    return max(abs(oracle.value(atom) - values[number]) for atom, number in atoms.items())


def _ways(goals: Sequence[Goal]) -> Iterator[list[Goal]]:
    """One way through every disjunction."""
    choices = [goal.ways if isinstance(goal, Either) else ((goal,),) for goal in goals]
    for chosen in product(*choices):
        yield [goal for part in chosen for goal in part]


def _constant(term: ir.Expr, binding: Binding) -> str:
    assert not isinstance(term, ir.Compute)
    return binding[term.name] if isinstance(term, ir.Var) else term.name


def _test(test: ir.Filter, binding: Binding) -> bool:
    if isinstance(test.right, ir.Compute) or isinstance(test.left, ir.Compute):
        return _HOLDS[test.op](_number(test.left, binding), _number(test.right, binding))
    left, right = _constant(test.left, binding), _constant(test.right, binding)
    if test.op in ("==", "!="):
        return (left == right) == (test.op == "==")
    return _HOLDS[test.op](int(left), int(right))


def _number(expr: ir.Expr, binding: Binding) -> int:
    if not isinstance(expr, ir.Compute):
        return int(_constant(expr, binding))
    left, right = (_number(arg, binding) for arg in expr.args)
    return left + right if expr.op == "+" else left - right
