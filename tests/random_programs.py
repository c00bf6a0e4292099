"""Small random programs that pass every check, for comparing engines, passes and oracles.

`python -m tests.random_programs SEED` prints one.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from nsfrc import ir
from tests.random_text import program_text
from tests.swi import crisp

MAX_ROWS = 3000
MAX_BODY = 4

Signature = tuple[str, tuple[str, ...]]

ATTRIBUTES = {
    "color": ("red", "yellow", "blue"),
    "shape": ("square", "circle", "triangle"),
    "size": ("1", "2", "3"),
}


@dataclass(frozen=True)
class Options:
    """What a program may contain."""

    recursion: bool = True
    filters: bool = True
    max_objects: int = 4


def random_program(
    rng: random.Random, *, recursion: bool = True, filters: bool = True, max_objects: int = 4
) -> str:
    """The text of a small, valid, well-typed program."""
    options = Options(recursion, filters, max_objects)
    while True:
        program = _Builder(rng, options).program()
        if program is not None and _is_sound(program):
            return program_text(program, rng)


def _is_sound(program: ir.Program) -> bool:
    """Every clause can fire, every target can be reached, and the program is small."""
    constants = {datatype.name: datatype.constants for datatype in program.types}
    if sum(_assignments(clause, constants) for clause in program.clauses) > MAX_ROWS:
        return False
    by_clause = [list(crisp.clause_rows(clause, constants)) for clause in program.clauses]
    neural = [predicate for predicate in program.predicates if predicate.role == ir.NEURAL]
    everything = {str(atom) for predicate in neural for atom in instances(predicate, constants)}
    model = crisp.derive(program, [row for rows in by_clause for row in rows], everything)
    fires = (any(model.issuperset(body) for _, body in rows) for rows in by_clause)
    return all(fires) and all(str(target) in model for target in program.targets)


def _assignments(clause: ir.Clause, constants: Mapping[str, Sequence[str]]) -> int:
    """How many assignments a clause has at most."""
    return math.prod(len(constants[datatype]) for _, datatype in clause.types)


def instances(predicate: ir.Predicate, constants: Mapping[str, Sequence[str]]) -> Iterator[ir.Atom]:
    """The ground atoms of a predicate."""
    for args in product(*(constants[name] for name in predicate.types)):
        if len(set(args)) == len(args):
            yield ir.Atom(predicate.name, tuple(map(ir.Const, args)))


class _Builder:
    """One attempt at a program; `program()` may give None where it got stuck."""

    def __init__(self, rng: random.Random, options: Options):
        self.rng, self.options = rng, options
        attributes = rng.sample(list(ATTRIBUTES), rng.randint(1, 2))
        objects = tuple(f"obj{i + 1}" for i in range(rng.randint(2, options.max_objects)))
        self.types = (
            ir.DataType("image", ("img",), ir.INPUT),
            ir.DataType("object", objects, ir.OBJECT, slots=True),
            *(ir.DataType(name, ATTRIBUTES[name][:rng.randint(2, 3)], ir.ATTRIBUTE) for name in attributes),
        )
        self.constants = {datatype.name: datatype.constants for datatype in self.types}
        self.attributes = attributes
        self.neural = self._neural()
        self.background = self._background()
        self.derived = self._derived()

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def _neural(self) -> list[ir.Predicate]:
        """in/2 and an attribute each, so that every datatype can be bound, and up to two more."""
        rng, attributes = self.rng, self.attributes
        more: list[Signature] = [("marked", ("object",)), ("near", ("object", "object")),
                ("linked", ("object", "object", rng.choice(attributes)))]
        chosen: list[Signature] = [("in", ("object", "image"))]
        chosen += [(name, ("object", name)) for name in attributes]
        chosen += rng.sample(more, rng.randint(1 if len(chosen) == 2 else 0, 4 - len(chosen)))
        if self.options.recursion and len(chosen) < 4 and more[1] not in chosen:
            chosen.append(more[1])
        return [ir.Predicate(name, types, ir.NEURAL) for name, types in chosen]

    def _background(self) -> list[ir.Predicate]:
        attribute, other = self.rng.choice(self.attributes), self.rng.choice(self.attributes)
        choices = [("bright", (attribute,)), ("differs", (attribute, attribute)),
                   ("suits", (attribute, other)), ("fixed", ("object",))]
        chosen = self.rng.sample(choices, self.rng.randint(0, 2))
        return [ir.Predicate(name, types, ir.BACKGROUND) for name, types in chosen]

    def _derived(self) -> list[ir.Predicate]:
        attribute = self.rng.choice(self.attributes)
        shapes = [(), ("image",), ("image",), ("object",), ("object", "object"), ("object", attribute),
                  (attribute,), ("object", "image")]
        names = [f"d{i + 1}" for i in range(self.rng.randint(1, 4))]
        return [ir.Predicate(name, self.rng.choice(shapes), ir.DERIVED) for name in names]

    def program(self) -> ir.Program | None:
        clauses = self._clauses()
        if clauses is None:
            return None
        predicates = (*self.neural, *self.background, *self.derived)
        return ir.Program(
            "random", self.types, predicates, tuple(self._facts()), tuple(clauses),
            tuple(self._targets(clauses)),
        )

    def _facts(self) -> Iterator[ir.Atom]:
        """Some of the background atoms, and now and then one of a derived predicate."""
        for predicate in self.background:
            atoms = list(instances(predicate, self.constants))
            yield from self.rng.sample(atoms, self.rng.randint(1, max(1, len(atoms) - 1)))
        for predicate in self.derived:
            if predicate.types and self.chance(0.08):
                yield self.rng.choice(list(instances(predicate, self.constants)))

    def _targets(self, clauses: Sequence[ir.Clause]) -> Iterator[ir.Atom]:
        """Instances of the last predicate and of some others."""
        for predicate in reversed(self.derived):
            if predicate is self.derived[-1] or self.chance(0.3):
                heads = [clause.head for clause in clauses if clause.head.key == predicate.key]
                atoms = [atom for atom in instances(predicate, self.constants) if _matches(atom, heads)]
                yield from self.rng.sample(atoms, min(len(atoms), self.rng.randint(1, 2)))

    def _clauses(self) -> list[ir.Clause] | None:
        """A clause for each derived predicate from those before it, then a few more."""
        known = [*self.neural, *self.background]
        clauses: list[ir.Clause | None] = []
        for predicate in self.derived:
            clauses.append(self._clause(predicate, known))
            known.append(predicate)
        earlier = [*self.neural, *self.background]
        for _ in range(self.rng.randint(0, 6 - len(clauses))):
            index = self.rng.randrange(len(self.derived))
            usable = known if self.options.recursion else [*earlier, *self.derived[:index]]
            clauses.append(self._clause(self.derived[index], usable))
        found = [clause for clause in clauses if clause is not None]
        if len(found) < len(clauses):
            return None
        return found + self._path()

    def _path(self) -> list[ir.Clause]:
        """path/2 over near/2, at times; used by a new last predicate."""
        if not self.options.recursion or not any(p.name == "near" for p in self.neural) or self.chance(0.6):
            return []
        path = ir.Predicate("path", ("object", "object"), ir.DERIVED)
        x, y, z = (ir.Var(name) for name in "XYZ")
        step = ir.Atom("near", (x, y))
        types = (("X", "object"), ("Y", "object"))
        base = ir.Clause(ir.Atom("path", (x, y)), (step,), (), types)
        hops = (ir.Atom("near", (x, z)), ir.Atom("path", (z, y)))
        self.derived.append(path)
        return [base, ir.Clause(base.head, hops, (), (*types, ("Z", "object")))]

    def _clause(self, head: ir.Predicate, usable: Sequence[ir.Predicate]) -> ir.Clause | None:
        return _ClauseBuilder(self, head).build(usable)


def _matches(atom: ir.Atom, heads: Sequence[ir.Atom]) -> bool:
    return any(
        all(isinstance(x, ir.Var) or x.name == y.name for x, y in zip(head.args, atom.args, strict=True))
        for head in heads
    )


class _ClauseBuilder:
    """Grows one clause: every head variable is bound, no variable exceeds its datatype."""

    def __init__(self, owner: _Builder, head: ir.Predicate):
        self.owner, self.rng, self.constants = owner, owner.rng, owner.constants
        self.types: dict[str, str] = {}
        self.head = self._head(head)
        self.in_head = set(self.types)
        self.unbound = set(self.types)

    def _head(self, predicate: ir.Predicate) -> ir.Atom:
        args: list[ir.Term] = []
        for datatype in predicate.types:
            free = [c for c in self.constants[datatype] if ir.Const(c) not in args]
            constant = self.rng.random() < (0.3 if datatype == "image" else 0.12)
            args.append(ir.Const(self.rng.choice(free)) if constant else self._new(datatype))
        return ir.Atom(predicate.name, tuple(args))

    def _new(self, datatype: str) -> ir.Var:
        variable = ir.Var(f"{datatype[0].upper()}{len(self.types) + 1}")
        self.types[variable.name] = datatype
        return variable

    def build(self, usable: Sequence[ir.Predicate]) -> ir.Clause | None:
        body: list[ir.Atom] = []
        length = self.rng.randint(1, MAX_BODY)
        for _ in range(30):
            if len(body) >= length and not self.unbound:
                break
            wanted = {self.types[name] for name in self.unbound} if len(body) + 1 >= length else set()
            choices = [p for p in usable if not wanted or wanted & set(p.types)]
            atom = self._atom(self.rng.choice(choices)) if choices else None
            if atom is not None and atom != self.head and atom not in body:
                body.append(atom)
                self.unbound -= {variable.name for variable in atom.variables()}
        if self.unbound or not body or len(body) > MAX_BODY:
            return None
        used = {variable.name for atom in (self.head, *body) for variable in atom.variables()}
        types = tuple((name, datatype) for name, datatype in self.types.items() if name in used)
        return self._with_filters(ir.Clause(self.head, tuple(body), (), types))

    def _atom(self, predicate: ir.Predicate) -> ir.Atom | None:
        args: list[ir.Term] = []
        for datatype in predicate.types:
            arg = self._argument(datatype, args)
            if arg is None:
                return None
            args.append(arg)
        return ir.Atom(predicate.name, tuple(args))

    def _argument(self, datatype: str, taken: list[ir.Term]) -> ir.Term | None:
        """A variable of the clause, a new one, or a constant; never one that the atom has already."""
        old = [ir.Var(n) for n, t in self.types.items() if t == datatype and ir.Var(n) not in taken]
        waiting = [variable for variable in old if variable.name in self.unbound]
        if waiting and self.rng.random() < 0.8:
            return self.rng.choice(waiting)
        draw = self.rng.random()
        if draw < 0.15 or (datatype not in ("object", "image") and draw < 0.3):
            free = [c for c in self.constants[datatype] if ir.Const(c) not in taken]
            return ir.Const(self.rng.choice(free)) if free else None
        if old and draw < 0.7:
            return self.rng.choice(old)
        body_only = sum(t == datatype for n, t in self.types.items() if n not in self.in_head)
        if body_only < min(len(self.constants[datatype]), 3):
            return self._new(datatype)
        return self.rng.choice(old) if old else None

    def _with_filters(self, clause: ir.Clause) -> ir.Clause:
        """At times one or two tests on variables that the body binds."""
        if not self.owner.options.filters or self.rng.random() < 0.6:
            return clause
        names = [name for name, datatype in clause.types if datatype != "image"]
        tests = [test for _ in range(self.rng.randint(1, 2)) if names and (test := self._test(names))]
        return replace(clause, filters=tuple(dict.fromkeys(tests)))

    def _test(self, names: list[str]) -> ir.Filter | None:
        name = self.rng.choice(names)
        datatype = self.types[name]
        others: list[ir.Term] = [ir.Var(n) for n in names if n != name and self.types[n] == datatype]
        others += map(ir.Const, self.constants[datatype])
        numeric = datatype == "size" and self.rng.random() < 0.6
        op = self.rng.choice(("<", ">", "=<", ">=", "=:=", "=\\=") if numeric else ("!=", "!=", "=="))
        right: ir.Expr = self.rng.choice(others)
        if numeric and self.rng.random() < 0.3:
            right = ir.Compute(self.rng.choice("+-"), (right, ir.Const("1")))
        return ir.Filter(op, ir.Var(name), right)


if __name__ == "__main__":
    print(random_program(random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else None)), end="")
