"""The typed program: what `check` makes of a text and `ground` takes in.

Every node is frozen and carries the span it came from (left out of comparisons). Nothing here
knows about syntax, numpy or torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property

from nsfrc.compiler import spelling
from nsfrc.errors import Span
from nsfrc.records import dataclass

INPUT, OBJECT, ATTRIBUTE = "input", "object", "attribute"
NEURAL, BACKGROUND, DERIVED, COUNTED = "neural", "background", "derived", "counted"
COMPARED, CHANCE = "compared", "chance"
INPUTS = (NEURAL, COMPARED, CHANCE)  # predicates whose atoms have their values from outside

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


# What can be computed while grounding, and of how many numbers.
OPERATIONS: dict[str, tuple[int, ...]] = {
    "+": (2,), "-": (1, 2), "*": (2,), "/": (2,), "//": (2,), "mod": (2,), "rem": (2,), "div": (2,), "^": (2,),
    "min": (2,), "max": (2,), "gcd": (2,), "abs": (1,), "sign": (1,), "sqrt": (1,), "**": (2,),
}
SMOOTH = frozenset(("+", "-", "*", "/", "min", "max", "abs", "sqrt", "**"))  # what may be done to measured numbers
_FUNCTIONS = frozenset(("min", "max", "gcd"))  # written before their two operands


@dataclass(frozen=True, slots=True)
class Compute:
    """Arithmetic inside a comparison: one of `OPERATIONS`."""

    op: str
    args: tuple[Expr, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        if len(self.args) == 1 or self.op in _FUNCTIONS:
            return f"{self.op}({','.join(map(str, self.args))})"
        return f"({self.args[0]} {self.op} {self.args[1]})"


@dataclass(frozen=True, slots=True)
class Measured:
    """A number of objects or of the image, inside a comparison: `area(A)`. An image tells it, not the program."""

    name: str
    args: tuple[Term, ...]
    span: Span | None = _span()

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.args)

    def __str__(self) -> str:
        return atom_text(self.name, [str(arg) for arg in self.args])


Term = Var | Const
Expr = Var | Const | Compute | Measured


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

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The measured numbers in it; with any it is no test on constants, but a comparison that images decide."""
        return tuple(measured_in(self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} {_FILTER_TEXT.get(self.op, self.op)} {self.right}"


_FILTER_TEXT = {"!=": "\\=="}


def _variables_of(*exprs: Expr) -> Iterator[Var]:
    for expr in exprs:
        if isinstance(expr, Var):
            yield expr
        elif isinstance(expr, Compute | Measured):
            yield from _variables_of(*expr.args)


def measured_in(*exprs: Expr) -> Iterator[Measured]:
    """The measured numbers of expressions, from left to right."""
    for expr in exprs:
        if isinstance(expr, Measured):
            yield expr
        elif isinstance(expr, Compute):
            yield from measured_in(*expr.args)


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
        chances = [None if atom.args else spelling.annotation(atom.name) for atom in self.body]
        atoms = [str(atom) for atom, chance in zip(self.body, chances, strict=True) if chance is None]
        goals = [*atoms, *map(str, self.filters)] or ["true"]
        return f"{''.join(filter(None, chances))}{self.head} :- {', '.join(goals)}."


@dataclass(frozen=True, slots=True)
class DataType:
    """A finite, ordered list of constants. slots: its size may be overridden; auto: it follows the images."""

    name: str
    constants: tuple[str, ...]
    role: str
    slots: bool = False
    span: Span | None = _span()
    auto: bool = False


NUMBER = "N"  # how the tests of a count call what was counted


@dataclass(frozen=True, slots=True)
class Source:
    """Atoms that are counted: those of a predicate whose first arguments are some of the counting atom's own."""

    key: PredicateKey
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """Where the values of a COUNTED predicate come from: how many atoms of another one hold.

    It counts the atoms of `of`, takes those of `less` away, and holds if `tests`, on the variable NUMBER, do; without
    tests its last argument is the number itself. `\\+ p(X)` is the atom of a predicate with the arguments of p that
    counts one atom and wants 0.
    """

    of: Source
    less: Source | None = None
    tests: tuple[Filter, ...] = ()

    @property
    def sources(self) -> tuple[Source, ...]:
        """Whose values it looks at; of those that are taken away it looks at the complements."""
        less = () if self.less is None else (Source(complement_of(self.less.key), self.less.args),)
        return (self.of, *less)

    def looks_at(self, atom: Atom) -> tuple[Atom, ...]:
        """The atoms that a counting atom looks at, with variables for the arguments that run."""
        return tuple(
            Atom(source.key[0], tuple(atom.args[i] for i in source.args) + tuple(
                Var(f"_{i}") for i in range(source.key[1] - len(source.args))), atom.span)
            for source in self.sources
        )


def complement(predicate: Predicate) -> Predicate:
    """The predicate that holds where another one does not."""
    places = tuple(range(len(predicate.types)))
    none = Filter("=:=", Var(NUMBER), Const("0"))
    return Predicate(complement_of(predicate.key)[0], predicate.types, COUNTED, predicate.span,
                     Count(Source(predicate.key, places), tests=(none,)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a COMPARED predicate says of its arguments, the variables of `test` in order of appearance."""

    test: Filter
    span: Span | None = _span()

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(variable.name for variable in self.test.variables()))


@dataclass(frozen=True, slots=True)
class Chance:
    """The value of a CHANCE atom: that of `0.7::`, or where it starts if it is learnt, as `t(0.7)::` asks."""

    value: float
    learnt: bool = False


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate with the datatype of each argument and where its values come from.

    count, comparison, chance: of a COUNTED, COMPARED or CHANCE one.
    """

    name: str
    types: tuple[str, ...]
    role: str
    span: Span | None = _span()
    count: Count | None = None
    comparison: Comparison | None = None
    chance: Chance | None = None

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.types)

    def __str__(self) -> str:
        return f"{self.name}/{len(self.types)}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number that may be measured: `area(object)`."""

    name: str
    types: tuple[str, ...]
    span: Span | None = _span()

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.types)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.types)})"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A predicate or number that learnt clauses may use: at most `most` times in each, None for any number of times."""

    key: PredicateKey
    most: int | None = None
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A predicate that is to be learnt, with the constants that its labels are about: kp(img)."""

    name: str
    constants: tuple[str, ...]

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.constants)

    def __str__(self) -> str:
        return atom_text(self.name, [quoted(constant) for constant in self.constants])


@dataclass(frozen=True, slots=True)
class Learning:
    """What `nsfrc learn` is asked for. It is no part of what a program means, and compiled files do without it.

    classes: the targets exclude each other. variables: type → how many a clause may have. allowed: what bodies may be
    made of; () for everything that there is.
    """

    targets: tuple[Target, ...]
    classes: bool = False
    variables: tuple[tuple[str, int], ...] = ()
    allowed: tuple[Allowed, ...] = ()


# What float32 can reason with.
LEAST_GAMMA, MOST_GAMMA = 1e-12, 1e12
GAMMA_RANGE = "a number from 1e-12 to 1e12"
MAX_STEPS = 1_000_000

# What a program means: local soft-ors in the order of dependencies, or the paper's arithmetic.
ANCHORED, PAPER = "anchored", "paper"
SEMANTICS = (ANCHORED, PAPER)
CRISP, SOFT = "crisp", "soft"  # what makes an object be there

# The name of the question that `:- classes` asks, and the answer to it where no class stands out.
CLASSES, NO_CLASS = "classes", "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a program may say about how it is run; None means the default of the engine.

    threshold: for every question; thresholds: for single ones, targets as text, or CLASSES. names, size: of the classes
    and images of a model file that does not say them itself. presence: CRISP, where an object is there or not, or SOFT,
    where it is there as far as perception is sure; conf: the least confidence of an object. attributes: types and their
    values, in which the names of a detector's classes fall apart.
    """

    steps: int | None = None
    gamma: float | None = None
    perception: str | None = None
    threshold: float | None = None
    semantics: str = ANCHORED
    thresholds: tuple[tuple[str, float], ...] = ()
    names: tuple[str, ...] = ()
    size: tuple[int, int] | None = None
    presence: str | None = None
    conf: float | None = None
    attributes: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Program:
    """A checked program. Names resolve, types agree, targets are ground.

    targets: all that is asked. classes: the last of them, of which one is the answer; each of the others is a question
    of its own. learning: what `nsfrc learn` is asked for.
    """

    name: str
    types: tuple[DataType, ...]
    predicates: tuple[Predicate, ...]
    facts: tuple[Atom, ...]
    clauses: tuple[Clause, ...]
    targets: tuple[Atom, ...]
    settings: Settings = Settings()
    classes: tuple[Atom, ...] = ()
    numbers: tuple[Number, ...] = ()
    learning: Learning | None = None

    @property
    def anchored(self) -> bool:
        return self.settings.semantics == ANCHORED

    @cached_property
    def apart(self) -> frozenset[str]:
        """Datatypes whose constants no atom repeats and no two variables of a clause share: under `paper` all."""
        return frozenset(t.name for t in self.types if t.role == OBJECT or not self.anchored)

    def type(self, name: str) -> DataType:
        return self._types[name]

    def predicate(self, key: PredicateKey) -> Predicate:
        return self._predicates[key]

    @cached_property
    def _types(self) -> dict[str, DataType]:
        return {t.name: t for t in self.types}

    @cached_property
    def _predicates(self) -> dict[PredicateKey, Predicate]:
        return {p.key: p for p in self.predicates}


def quoted(name: str) -> str:
    """A constant or predicate name as Prolog text."""
    plain = name[:1].isalpha() and name[:1].islower() and name.replace("_", "a").isalnum()
    if plain or is_number(name):
        return name
    return f"'{''.join(_ESCAPES.get(c) or _printable(c) for c in name)}'"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n"}


def _printable(character: str) -> str:
    return character if character.isprintable() else f"\\x{ord(character):x}\\"


INNER = "#"  # in the names of predicates that stand for goals within goals, as in kp#1


def complement_of(key: PredicateKey) -> PredicateKey:
    """What the predicate is called that holds where another does not."""
    return _NOT + key[0], key[1]


_NOT = "\\+ "


def atom_text(name: str, args: list[str]) -> str:
    """`name(arg,arg)` as Prolog text; arguments are already text."""
    if name.startswith(_NOT):
        return _NOT + atom_text(name.removeprefix(_NOT), args)
    if (spelt := spelling.spelt(name, args)) is not None:
        return spelt
    return f"{quoted(name)}({','.join(args)})" if args else quoted(name)


def is_number(name: str) -> bool:
    """Whether a name is a number as Prolog text spells it."""
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", name) is not None
