r"""Random programs with goals within goals: negations to any depth, forall, counts of all kinds.

`random_inner(rng)` puts rules with such goals on top of a random program of `random_programs`, as a structure of its
own that an oracle can walk without the compiler. `python -m tests.inner_text SEED` prints one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nsfrc.compiler import ir
from tests.random_programs import instances, random_value

NUMBER = ir.DataType("number", ("0", "1", "2", "3"), ir.ATTRIBUTE)
MAX_DEPTH = 4
OPERATORS = ("<", ">", "=<", ">=", "=:=", "=\\=")


@dataclass(frozen=True)
class Not:
    r"""`\+ (goals)`."""

    goals: tuple[Goal, ...]


@dataclass(frozen=True)
class Forall:
    """`forall(given, then)`."""

    given: tuple[Goal, ...]
    then: tuple[Goal, ...]


@dataclass(frozen=True)
class Either:
    """`( way ; way )`, each a conjunction of atoms."""

    ways: tuple[tuple[ir.Atom, ...], ...]


@dataclass(frozen=True)
class Tested:
    """A count that is compared with constants: tests on it that hold together, `op number` each."""

    goals: tuple[Goal, ...]
    tests: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Compared:
    """Two counts: left `op` right + more."""

    left: tuple[Goal, ...]
    right: tuple[Goal, ...]
    op: str
    more: int


@dataclass(frozen=True)
class Numbered:
    """A count that is a variable of its clause, of the type `number`."""

    goals: tuple[Goal, ...]
    name: str


Goal = ir.Atom | ir.Filter | Not | Forall | Either | Tested | Compared | Numbered


@dataclass(frozen=True)
class Rule:
    """`head :- goals`; types: of every variable, wherever it occurs."""

    head: ir.Atom
    goals: tuple[Goal, ...]
    types: dict[str, str]


@dataclass(frozen=True)
class Surface:
    """A program as it is written: `base` has its types, predicates, facts and targets; `rules` are all of its rules."""

    base: ir.Program
    rules: tuple[Rule, ...]

    @property
    def constants(self) -> dict[str, tuple[str, ...]]:
        return {datatype.name: datatype.constants for datatype in self.base.types}


def random_inner(rng: random.Random, max_objects: int = 3, recursion: bool = True) -> Surface:
    base = random_value(rng, semantics=ir.ANCHORED, max_objects=max_objects, recursion=recursion)
    base = replace(base, types=(*base.types, NUMBER))
    return _Builder(rng, base).surface()


class _Builder:
    def __init__(self, rng: random.Random, base: ir.Program) -> None:
        self.rng, self.base = rng, base
        self.known = list(base.predicates)
        self.attributes = [t.name for t in base.types if t.role == ir.ATTRIBUTE and t.name != NUMBER.name]

    def surface(self) -> Surface:
        rules = [Rule(c.head, (*c.body, *c.filters), dict(c.types)) for c in self.base.clauses]
        added, targets = [], []
        for number in range(1, self.rng.randint(1, 3) + 1):
            predicate = ir.Predicate(f"e{number}", self._shape(), ir.DERIVED)
            rules += [self._rule(predicate) for _ in range(self.rng.choice((1, 1, 2)))]
            if self._may_be_walked(predicate) and self.rng.random() < 0.6:
                rules.append(self._walk(predicate))
            added.append(predicate)
            self.known.append(predicate)
            atoms = list(instances(predicate, {t.name: t.constants for t in self.base.types}, self.base.apart))
            targets += self.rng.sample(atoms, min(len(atoms), 2))
        base = replace(self.base, predicates=(*self.base.predicates, *added), targets=(*self.base.targets, *targets))
        return Surface(base, tuple(rules))

    def _shape(self) -> tuple[str, ...]:
        attribute = self.rng.choice(self.attributes)
        return self.rng.choice(((), ("image",), ("image",), ("object",), ("object", "object"), ("object", "object"),
                                ("object", attribute), ("object", NUMBER.name), ("image", NUMBER.name), (NUMBER.name,)))

    def _may_be_walked(self, predicate: ir.Predicate) -> bool:
        return predicate.types == ("object", "object")

    def _walk(self, predicate: ir.Predicate) -> Rule:
        """A rule that leads from a predicate to itself: recursion above what its other rules negate and count."""
        x, y, z = map(ir.Var, ("X", "Y", "Z"))
        goals = (ir.Atom(predicate.name, (x, z)), ir.Atom(predicate.name, (z, y)))
        return Rule(ir.Atom(predicate.name, (x, y)), goals, dict.fromkeys("XYZ", "object"))

    def _rule(self, predicate: ir.Predicate) -> Rule:
        return _RuleBuilder(self.rng, self.base, self.known).build(predicate)


@dataclass
class _RuleBuilder:
    rng: random.Random
    base: ir.Program
    known: Sequence[ir.Predicate]
    types: dict[str, str] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)  # variables of goals that are complete

    def build(self, predicate: ir.Predicate) -> Rule:
        args: list[ir.Term] = []
        for datatype in predicate.types:
            constants = [c for c in self.base.type(datatype).constants if ir.Const(c) not in args]
            constant = self.rng.random() < 0.1
            args.append(ir.Const(self.rng.choice(constants)) if constant else self._new(datatype))
        head = ir.Atom(predicate.name, tuple(args))
        scope = [variable.name for variable in head.variables()]
        goals: list[Goal] = [self._atom(scope) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        numbers = [name for name in scope if self.types[name] == NUMBER.name and self.rng.random() < 0.8]
        goals += [Numbered(self._counted(1, scope), name) for name in numbers]
        goals += self._filters(scope)
        for _ in range(self.rng.choice((1, 1, 2)) if not numbers or self.rng.random() < 0.3 else 0):
            goals += self._inner(1, scope)
        self.rng.shuffle(goals)
        return Rule(head, tuple(goals), self.types)

    def _new(self, datatype: str) -> ir.Var:
        name = f"{datatype[0].upper()}{len(self.types) + 1}"
        self.types[name] = datatype
        return ir.Var(name)

    def _atom(self, scope: list[str], among: Sequence[ir.Predicate] | None = None) -> ir.Atom:
        """An atom over variables in scope and new ones, which join the scope."""
        predicate = self.rng.choice(among or self.known)
        args: list[ir.Term] = []
        for datatype in predicate.types:
            args.append(self._argument(datatype, scope, args))
        scope += [arg.name for arg in args if isinstance(arg, ir.Var) and arg.name not in scope]
        return ir.Atom(predicate.name, tuple(args))

    def _argument(self, datatype: str, scope: list[str], taken: list[ir.Term]) -> ir.Term:
        """`taken`: no object stands twice in an atom."""
        old = [ir.Var(name) for name in scope if self.types[name] == datatype]
        constants: list[ir.Term] = [ir.Const(c) for c in self.base.type(datatype).constants]
        if datatype in self.base.apart:
            old, constants = ([t for t in terms if t not in taken] for terms in (old, constants))
        draw = self.rng.random()
        if old and draw < 0.6:
            return self.rng.choice(old)
        few = sum(self.types[name] == datatype for name in scope) < min(3, len(self.base.type(datatype).constants))
        if (draw < 0.85 and few) or not constants:
            # Now and then a name that another goal has for itself; which of the two is meant is clear.
            free = [name for name in self.finished if self.types[name] == datatype and name not in scope
                    and ir.Var(name) not in taken]
            again = self.rng.random() < 0.2 and free
            return ir.Var(self.rng.choice(free)) if again else self._new(datatype)
        return self.rng.choice(constants)

    def _filters(self, scope: Sequence[str]) -> Iterator[ir.Filter]:
        names = [name for name in scope if self.types[name] != "image"]
        if names and self.rng.random() < 0.2:
            name = self.rng.choice(names)
            datatype = self.types[name]
            others = [ir.Var(n) for n in names if n != name and self.types[n] == datatype]
            right = self.rng.choice([*others, *map(ir.Const, self.base.type(datatype).constants)])
            numeric = datatype in ("size", "rank", NUMBER.name)
            yield ir.Filter(self.rng.choice(OPERATORS if numeric else ("!=",)), ir.Var(name), right)

    def _conjunction(self, depth: int, scope: Sequence[str]) -> tuple[Goal, ...]:
        """What stands within a goal: atoms, tests on their variables, and goals of its own."""
        inside = list(scope)
        goals: list[Goal] = [self._atom(inside) for _ in range(self.rng.choice((1, 1, 1, 2, 2)))]
        if self.rng.random() < 0.15:
            goals.append(self._either(inside))
        in_atoms = [v.name for goal in goals for v in (goal.variables() if isinstance(goal, ir.Atom) else ())]
        goals += self._filters(list(dict.fromkeys(in_atoms)))
        if depth < MAX_DEPTH and self.rng.random() < 0.55:
            goals += self._inner(depth + 1, inside)
        self.finished += [name for name in inside if name not in scope and name not in self.finished]
        self.rng.shuffle(goals)
        return tuple(goals)

    def _counted(self, depth: int, scope: Sequence[str]) -> tuple[Goal, ...]:
        return self._conjunction(max(depth, MAX_DEPTH - 1), scope)

    def _either(self, scope: list[str]) -> Either:
        """Two ways over variables that are there already, so that no way leaves one open."""
        fixed = [p for p in self.known if all(any(self.types[n] == t for n in scope) for t in set(p.types))]
        ways = []
        for _ in range(2):
            inside = list(scope)
            ways.append((self._atom(inside, fixed),) if fixed else (self._atom(inside),))
        return Either(tuple(ways))

    def _inner(self, depth: int, scope: list[str]) -> Iterator[Goal]:
        kind = self.rng.random()
        if kind < 0.2:
            yield Not((self._atom(list(scope)),))
        elif kind < 0.5:
            yield Not(self._conjunction(depth, scope))
        elif kind < 0.65:
            given = self._conjunction(MAX_DEPTH, scope)
            inside = [*scope, *(v.name for g in given if isinstance(g, ir.Atom) for v in g.variables())]
            yield Forall(given, self._conjunction(max(depth, MAX_DEPTH - 1), list(dict.fromkeys(inside))))
        elif kind < 0.8:
            count = self.rng.choice((1, 1, 2))
            tests = tuple((self.rng.choice(OPERATORS), self.rng.randint(0, 3)) for _ in range(count))
            yield Tested(self._counted(depth, scope), tests)
        elif kind < 0.92:
            yield Compared(self._counted(depth, scope), self._counted(depth, scope), self.rng.choice(OPERATORS),
                           self.rng.choice((0, 0, 0, 1, -1)))
        else:
            yield from self._argued(depth, scope)

    def _argued(self, depth: int, scope: list[str]) -> Iterator[Goal]:
        """A count whose number is what a negated atom is about, which gives it its type."""
        bearers = [p for p in self.known if NUMBER.name in p.types]
        if not bearers:
            yield Tested(self._counted(depth, scope), ((">=", 2),))
            return
        number = self._new(NUMBER.name)
        yield Numbered(self._counted(depth, scope), number.name)
        atom = self._atom(list(scope), bearers)
        place = next(p for p in bearers if p.name == atom.name).types.index(NUMBER.name)
        yield Not((replace(atom, args=(*atom.args[:place], number, *atom.args[place + 1:])),))
        scope.append(number.name)
