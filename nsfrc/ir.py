"""The typed program: what `check` makes of a text and `ground` takes in.

Every node is frozen and carries the span it came from (left out of comparisons). Nothing here
knows about syntax, numpy or torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nsfrc.errors import Span

INPUT, OBJECT, ATTRIBUTE = "input", "object", "attribute"
NEURAL, BACKGROUND, DERIVED = "neural", "background", "derived"

PredicateKey = tuple[str, int]


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; `_` has been given a name of its own (`_1`, `_2`, ...)."""

    name: str
    span: Span | None = _span()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Const:
    """A constant by its plain name (`red`, `3`, `big box`); `str` quotes it where Prolog needs it."""

    name: str
    span: Span | None = _span()

    def __str__(self) -> str:
        return quoted(self.name)


@dataclass(frozen=True, slots=True)
class Compute:
    """Arithmetic inside a comparison: `+ - * / // mod` of two operands, or `-` of one."""

    op: str
    args: tuple[Expr, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        if len(self.args) == 1:
            return f"{self.op}({self.args[0]})"
        return f"({self.args[0]} {self.op} {self.args[1]})"


Term = Var | Const
Expr = Var | Const | Compute


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms; a ground atom has constants only."""

    name: str
    args: tuple[Term, ...]
    span: Span | None = _span()

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.args)

    def variables(self) -> Iterator[Var]:
        return (arg for arg in self.args if isinstance(arg, Var))

    def __str__(self) -> str:
        return atom_text(self.name, [str(arg) for arg in self.args])


@dataclass(frozen=True, slots=True)
class Filter:
    """A test on constants, decided at grounding time: `== != < > =< >=` or `=:= =\\=`."""

    op: str
    left: Expr
    right: Expr
    span: Span | None = _span()

    def variables(self) -> Iterator[Var]:
        return _variables_of(self.left, self.right)

    def __str__(self) -> str:
        return f"{self.left} {_FILTER_TEXT.get(self.op, self.op)} {self.right}"


_FILTER_TEXT = {"!=": "\\=="}


def _variables_of(*exprs: Expr) -> Iterator[Var]:
    for expr in exprs:
        if isinstance(expr, Var):
            yield expr
        elif isinstance(expr, Compute):
            yield from _variables_of(*expr.args)


@dataclass(frozen=True, slots=True)
class Clause:
    """`head :- body, filters.` with the datatype of every variable, in order of appearance."""

    head: Atom
    body: tuple[Atom, ...]
    filters: tuple[Filter, ...]
    types: tuple[tuple[str, str], ...]
    span: Span | None = _span()

    def type_of(self, variable: str) -> str:
        return dict(self.types)[variable]

    def __str__(self) -> str:
        goals = [str(goal) for goal in (*self.body, *self.filters)] or ["true"]
        return f"{self.head} :- {', '.join(goals)}."


@dataclass(frozen=True, slots=True)
class DataType:
    """A finite, ordered list of constants. `slots` says that its size may be overridden."""

    name: str
    constants: tuple[str, ...]
    role: str
    slots: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate with the datatype of each argument and where its values come from."""

    name: str
    types: tuple[str, ...]
    role: str
    span: Span | None = _span()

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.types)

    def __str__(self) -> str:
        return f"{self.name}/{len(self.types)}"


# What float32 can reason with.
LEAST_GAMMA, MOST_GAMMA = 1e-12, 1e12
GAMMA_RANGE = "a number from 1e-12 to 1e12"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a program may say about how it is run; None means the default of the engine."""

    steps: int | None = None
    gamma: float | None = None
    perception: str | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A checked program. Names resolve, types agree, targets are ground."""

    name: str
    types: tuple[DataType, ...]
    predicates: tuple[Predicate, ...]
    facts: tuple[Atom, ...]
    clauses: tuple[Clause, ...]
    targets: tuple[Atom, ...]
    settings: Settings = Settings()

    def type(self, name: str) -> DataType:
        return next(t for t in self.types if t.name == name)

    def predicate(self, key: PredicateKey) -> Predicate:
        return next(p for p in self.predicates if p.key == key)


def quoted(name: str) -> str:
    """A constant or predicate name as Prolog text."""
    plain = name[:1].isalpha() and name[:1].islower() and name.replace("_", "a").isalnum()
    if plain or is_number(name):
        return name
    return f"'{''.join(_ESCAPES.get(c) or _printable(c) for c in name)}'"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n"}


def _printable(character: str) -> str:
    return character if character.isprintable() else f"\\x{ord(character):x}\\"


def atom_text(name: str, args: list[str]) -> str:
    """`name(arg,arg)` as Prolog text; arguments are already text."""
    return f"{quoted(name)}({','.join(args)})" if args else quoted(name)


def is_number(name: str) -> bool:
    """Whether a name is a number as Prolog text spells it."""
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", name) is not None
