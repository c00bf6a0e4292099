"""Small random programs that pass every check, for comparing engines, passes and oracles.

`python -m tests.random_programs SEED` prints one, `python -m tests.random_programs SEED anchored` one that may do what
only that semantics allows: attribute variables that share a constant, atoms that repeat one.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from nsfrc.compiler import ir
from tests.random_clauses import ClauseBuilder
from tests.random_text import program_text
from tests.swi import crisp

MAX_ROWS = 3000

Signature = tuple[str, tuple[str, ...]]

ATTRIBUTES = {
    "color": ("red", "yellow", "blue"),
    "shape": ("square", "circle", "triangle"),
    "size": ("1", "2", "3"),
}
# Under `anchored` also a second type of numbers, whose constants have the names of the first one's.
MORE_ATTRIBUTES = {**ATTRIBUTES, "rank": ("1", "2", "3")}


@dataclass(frozen=True)
class Options:
    """What a program may contain."""

    recursion: bool = True
    filters: bool = True
    max_objects: int = 4
    semantics: str = ir.PAPER

    @property
    def anchored(self) -> bool:
        return self.semantics == ir.ANCHORED


def random_program(rng: random.Random, **options: Any) -> str:
    """The text of a small, valid, well-typed program; see `Options`."""
    return program_text(random_value(rng, **options), rng)


def random_value(rng: random.Random, **options: Any) -> ir.Program:
    """Such a program as a value."""
    while True:
        program = _Builder(rng, Options(**options)).program()
        if program is not None and _is_sound(program):
            return program


def _is_sound(program: ir.Program) -> bool:
    """Every clause can fire, every target can be reached, and the program is small."""
    constants = {datatype.name: datatype.constants for datatype in program.types}
    if sum(_assignments(clause, constants) for clause in program.clauses) > MAX_ROWS:
        return False
    apart = crisp.kept_apart(program)
    by_clause = [list(crisp.clause_rows(clause, program)) for clause in program.clauses]
    neural = [predicate for predicate in program.predicates if predicate.role == ir.NEURAL]
    everything = {str(atom) for predicate in neural for atom in instances(predicate, constants, apart)}
    model = crisp.derive(program, [row for rows in by_clause for row in rows], everything)
    fires = (any(model.issuperset(body) for _, body in rows) for rows in by_clause)
    return all(fires) and all(str(target) in model for target in program.targets)


def _assignments(clause: ir.Clause, constants: Mapping[str, Sequence[str]]) -> int:
    """How many assignments a clause has at most."""
    return math.prod(len(constants[datatype]) for _, datatype in clause.types)


def instances(
    predicate: ir.Predicate, constants: Mapping[str, Sequence[str]], apart: frozenset[str]
) -> Iterator[ir.Atom]:
    """The ground atoms of a predicate; apart: see `crisp.kept_apart`."""
    for args in product(*(constants[name] for name in predicate.types)):
        if crisp.different(predicate.types, args, apart):
            yield ir.Atom(predicate.name, tuple(map(ir.Const, args)))


class _Builder:
    """One attempt at a program; `program()` may give None where it got stuck."""

    def __init__(self, rng: random.Random, options: Options):
        self.rng, self.options = rng, options
        lists = MORE_ATTRIBUTES if options.anchored else ATTRIBUTES
        attributes = rng.sample(list(lists), rng.randint(1, 2))
        objects = tuple(f"obj{i + 1}" for i in range(rng.randint(2, options.max_objects)))
        self.types = (
            ir.DataType("image", ("img",), ir.INPUT),
            ir.DataType("object", objects, ir.OBJECT, slots=True),
            *(ir.DataType(name, lists[name][:rng.randint(2, 3)], ir.ATTRIBUTE) for name in attributes),
        )
        if options.anchored and self.chance(0.3):
            self.types += (ir.DataType("place", ("place1", "place2"), ir.OBJECT, slots=True),)
        self.constants = {datatype.name: datatype.constants for datatype in self.types}
        self.apart = frozenset(t.name for t in self.types if t.role == ir.OBJECT or not options.anchored)
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
        if self.options.anchored:
            chosen += self._more_neural()
        return [ir.Predicate(name, types, ir.NEURAL) for name, types in chosen]

    def _more_neural(self) -> Iterator[Signature]:
        """Atoms that may repeat an attribute, and objects of a second type."""
        if "place" in self.constants:
            yield "at", ("object", "place")
        if self.chance(0.3):
            yield "goes", (self.rng.choice(self.attributes), self.rng.choice(self.attributes))

    def _background(self) -> list[ir.Predicate]:
        attribute, other = self.rng.choice(self.attributes), self.rng.choice(self.attributes)
        choices = [("bright", (attribute,)), ("differs", (attribute, attribute)),
                   ("suits", (attribute, other)), ("fixed", ("object",))]
        chosen = self.rng.sample(choices, self.rng.randint(0, 2))
        if self.options.anchored and choices[1] not in chosen and self.chance(0.3):
            chosen.append(choices[1])
        return [ir.Predicate(name, types, ir.BACKGROUND) for name, types in chosen]

    def _derived(self) -> list[ir.Predicate]:
        attribute = self.rng.choice(self.attributes)
        shapes = [(), ("image",), ("image",), ("object",), ("object", "object"), ("object", attribute),
                  (attribute,), ("object", "image")]
        if self.options.anchored:
            shapes += [(attribute, attribute), (attribute, attribute), (attribute, self.rng.choice(self.attributes))]
        names = [f"d{i + 1}" for i in range(self.rng.randint(1, 4))]
        return [ir.Predicate(name, self.rng.choice(shapes), ir.DERIVED) for name in names]

    def program(self) -> ir.Program | None:
        clauses = self._clauses()
        if clauses is None:
            return None
        predicates = (*self.neural, *self.background, *self.derived)
        return ir.Program(
            "random", self.types, predicates, tuple(self._facts()), tuple(clauses),
            tuple(self._targets(clauses)), ir.Settings(semantics=self.options.semantics),
        )

    def _facts(self) -> Iterator[ir.Atom]:
        """Some of the background atoms, and now and then one of a derived predicate."""
        for predicate in self.background:
            atoms = list(instances(predicate, self.constants, self.apart))
            yield from self.rng.sample(atoms, self.rng.randint(1, max(1, len(atoms) - 1)))
        for predicate in self.derived:
            if predicate.types and self.chance(0.3 if self.options.anchored else 0.08):
                yield self.rng.choice(list(instances(predicate, self.constants, self.apart)))

    def _targets(self, clauses: Sequence[ir.Clause]) -> Iterator[ir.Atom]:
        """Instances of the last predicate and of some others."""
        for predicate in reversed(self.derived):
            if predicate is self.derived[-1] or self.chance(0.3):
                heads = [clause.head for clause in clauses if clause.head.key == predicate.key]
                atoms = [atom for atom in instances(predicate, self.constants, self.apart) if _matches(atom, heads)]
                yield from self.rng.sample(atoms, min(len(atoms), self.rng.randint(1, 2)))

    def _clauses(self) -> list[ir.Clause] | None:
        """A clause for each derived predicate from those before it, then a few more."""
        known = [*self.neural, *self.background]
        clauses: list[ir.Clause | None] = []
        for predicate in self.derived:
            clauses.append(self._clause(predicate, known if not self._from_facts() else self.background))
            known.append(predicate)
        earlier = [*self.neural, *self.background]
        for _ in range(self.rng.randint(0, 6 - len(clauses))):
            index = self.rng.randrange(len(self.derived))
            usable = known if self.options.recursion else [*earlier, *self.derived[:index]]
            clauses.append(self._clause(self.derived[index], usable))
        found = [clause for clause in clauses if clause is not None]
        if len(found) < len(clauses):
            return None
        if not self.options.recursion:
            return found
        found += self._path("path", [p for p in self.neural if p.name == "near"])
        if self.options.anchored:  # along attributes, by facts or by what is seen
            edges = [p for p in (*self.background, *self.neural) if p.name in ("differs", "goes")]
            found += self._path("way", [p for p in edges if p.types[0] == p.types[1]])
        return found

    def _from_facts(self) -> bool:
        """At times something follows from facts alone."""
        return self.options.anchored and bool(self.background) and self.chance(0.25)

    def _path(self, name: str, edges: Sequence[ir.Predicate]) -> list[ir.Clause]:
        """Paths over a predicate such as near/2, at times; used by a new last predicate."""
        if not edges or self.chance(0.6):
            return []
        edge, datatype = edges[0].name, edges[0].types[0]
        x, y, z = (ir.Var(name) for name in "XYZ")
        types = (("X", datatype), ("Y", datatype))
        base = ir.Clause(ir.Atom(name, (x, y)), (ir.Atom(edge, (x, y)),), (), types)
        hops = (ir.Atom(edge, (x, z)), ir.Atom(name, (z, y)))
        self.derived.append(ir.Predicate(name, (datatype, datatype), ir.DERIVED))
        return [base, ir.Clause(base.head, hops, (), (*types, ("Z", datatype)))]

    def _clause(self, head: ir.Predicate, usable: Sequence[ir.Predicate]) -> ir.Clause | None:
        return ClauseBuilder(self, head).build(usable)


def _matches(atom: ir.Atom, heads: Sequence[ir.Atom]) -> bool:
    return any(
        all(isinstance(x, ir.Var) or x.name == y.name for x, y in zip(head.args, atom.args, strict=True))
        for head in heads
    )  # a head that repeats a variable may still not be reached, which `_is_sound` finds


if __name__ == "__main__":
    seed, semantics = [*sys.argv[1:], None, None][:2]
    chosen = random.Random(None if seed is None else int(seed))
    print(random_program(chosen, semantics=semantics or ir.PAPER), end="")
