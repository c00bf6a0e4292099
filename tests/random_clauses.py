"""Random clauses, for `random_programs`."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from nsfrc.compiler import ir

MAX_BODY = 4


class Owner(Protocol):
    """The program that a clause is for: constants by datatype, the datatypes it keeps apart, what it may contain."""

    rng: random.Random
    constants: Mapping[str, Sequence[str]]
    apart: frozenset[str]
    options: Any

    def chance(self, share: float) -> bool: ...


class ClauseBuilder:
    """Grows one clause: every head variable is bound, no variable exceeds its datatype."""

    def __init__(self, owner: Owner, head: ir.Predicate):
        self.owner, self.rng, self.constants = owner, owner.rng, owner.constants
        self.types: dict[str, str] = {}
        self.head = self._head(head)
        self.in_head = set(self.types)
        self.unbound = set(self.types)

    def _head(self, predicate: ir.Predicate) -> ir.Atom:
        args: list[ir.Term] = []
        for datatype in predicate.types:
            if self._repeats(datatype) and self.owner.chance(0.15):
                old = [ir.Var(name) for name, of in self.types.items() if of == datatype]
                args += [self.rng.choice(old) if old else self._new(datatype)]
                continue
            free = [c for c in self.constants[datatype] if self._repeats(datatype) or ir.Const(c) not in args]
            constant = self.rng.random() < (0.3 if datatype == "image" else 0.12)
            args.append(ir.Const(self.rng.choice(free)) if constant else self._new(datatype))
        return ir.Atom(predicate.name, tuple(args))

    def _repeats(self, datatype: str) -> bool:
        """Whether an atom may have a constant of this type twice."""
        return datatype not in self.owner.apart

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
        if (self.unbound and not self._may_stay_unbound()) or not body or len(body) > MAX_BODY:
            return None
        used = {variable.name for atom in (self.head, *body) for variable in atom.variables()}
        types = tuple((name, datatype) for name, datatype in self.types.items() if name in used)
        return self._with_filters(ir.Clause(self.head, tuple(body), (), types))

    def _may_stay_unbound(self) -> bool:
        """At times a head variable that the body does not mention runs over its type."""
        return self.owner.options.anchored and self.owner.chance(0.3)

    def _atom(self, predicate: ir.Predicate) -> ir.Atom | None:
        args: list[ir.Term] = []
        for datatype in predicate.types:
            arg = self._argument(datatype, args)
            if arg is None:
                return None
            args.append(arg)
        return ir.Atom(predicate.name, tuple(args))

    def _argument(self, datatype: str, taken: list[ir.Term]) -> ir.Term | None:
        """A variable of the clause, a new one, or a constant; never one that the atom has and must not repeat."""
        taken = [] if self._repeats(datatype) else taken
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
        numeric = datatype in ("size", "rank") and self.rng.random() < 0.6
        op = self.rng.choice(("<", ">", "=<", ">=", "=:=", "=\\=") if numeric else ("!=", "!=", "=="))
        right: ir.Expr = self.rng.choice(others)
        if numeric and self.rng.random() < 0.3:
            right = ir.Compute(self.rng.choice("+-"), (right, ir.Const("1")))
        return ir.Filter(op, ir.Var(name), right)
