"""Surface terms: what a sentence says, before anything is known about its names.

    kp(X) :- color(X, 'red').

is a `Sentence` of kind CLAUSE whose term is `Compound(":-", (kp(X), color(X, red)))`. Terms know the
span they were written at. `str` gives canonical Prolog text that reads back as the same term.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeGuard

from nsfrc.compiler.ir import quoted
from nsfrc.errors import Span
from nsfrc.records import dataclass

CLAUSE, DIRECTIVE, QUERY, BROKEN = "clause", "directive", "query", "broken"
ANY = "*"  # among the words of a broken sentence: a whole file is missing, any name may be in it

INFIX = frozenset(
    ":- --> ; -> *-> , :: = \\= == \\== @< @> @=< @>= =.. is =:= =\\= < > =< >= :"
    " + - /\\ \\/ .. * / // mod rem div << >> ** ^".split()
)


def _span() -> Span:
    return field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`X`, `_X` or `_`."""

    name: str
    span: Span = _span()

    depth = 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Name:
    """A word that stands alone: `red`, `'big box'`, `[]`, `!`."""

    name: str
    span: Span = _span()

    depth = 1

    def __str__(self) -> str:
        return self.name if self.name in ("[]", "{}", "!") else quoted(self.name)


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a finite float."""

    value: int | float
    span: Span = _span()

    depth = 1

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Text:
    """A "string" (or `codes`)."""

    value: str
    span: Span = _span()

    depth = 1

    def __str__(self) -> str:
        inner = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{inner}"'


@dataclass(frozen=True, slots=True)
class ListTerm:
    """`[a, b]` or `[a, b | tail]`; the empty list is the name `[]`."""

    items: tuple[Term, ...]
    tail: Term | None
    span: Span = _span()
    depth: int = field(default=1, compare=False, repr=False)

    def __str__(self) -> str:
        tail = "" if self.tail is None else f"|{_operand(self.tail)}"
        return f"[{','.join(_operand(item) for item in self.items)}{tail}]"


@dataclass(frozen=True, slots=True)
class Compound:
    """A name applied to arguments: `color(X, red)`, or an operator applied to operands: `X = red`.

    Spans take most of the memory of a text, so those that follow from others are None here. written: from the first
    operand to the last; name_written: where it begins, as long as the name.
    """

    name: str
    args: tuple[Term, ...]
    written: Span | None = field(compare=False, repr=False)
    name_written: Span | None = field(compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)

    @property
    def span(self) -> Span:
        if self.written is not None:
            return self.written
        first: Term = self
        last: Term = self
        while isinstance(first, Compound) and first.written is None:  # chains may be long
            first = first.args[0]
        while isinstance(last, Compound) and last.written is None:
            last = last.args[-1]
        return first.span.to(last.span)

    @property
    def name_span(self) -> Span:
        if self.name_written is not None:
            return self.name_written
        span = self.span
        return Span(span.source, span.line, span.column, span.line, span.column + len(self.name))

    def __str__(self) -> str:
        if calls(self, ",", 2):
            return ", ".join(_operand(goal) for goal in spine(self, ","))
        if calls(self, ";", 2):
            return " ; ".join(_operand(goal) for goal in spine(self, ";"))
        if is_infix(self):
            return f"{_operand(self.args[0])} {self.name} {_operand(self.args[1])}"
        if calls(self, "{}", 1):
            return f"{{{self.args[0]}}}"
        return f"{quoted_functor(self.name)}({','.join(_operand(arg) for arg in self.args)})"


Term = Variable | Name | Number | Text | ListTerm | Compound


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a file. A DIRECTIVE or QUERY holds its goal without the `:-` or `?-`.

    A BROKEN sentence has a syntax error, has been reported and has no term; `words` are the names
    in it, so that `check` does not complain about names that it may well have defined.
    written: its span, or None where that is its term's and the '.' right behind it.
    """

    kind: str
    term: Term | None
    written: Span | None = field(compare=False, repr=False)
    words: frozenset[str] = frozenset()

    @property
    def span(self) -> Span:
        if self.written is not None:
            return self.written
        assert self.term is not None
        span = self.term.span
        return Span(span.source, span.line, span.column, span.end_line, span.end_column + 1)

    def __str__(self) -> str:
        lead = {DIRECTIVE: ":- ", QUERY: "?- "}.get(self.kind, "")
        if self.term is None:
            return "% a sentence with a syntax error"
        if calls(self.term, ":-", 2):
            head, body = self.term.args
            return f"{_operand(head)} :-\n    {body}."
        return f"{lead}{self.term}."


def calls(term: Term | None, name: str, arity: int) -> TypeGuard[Compound]:
    """Whether a term is `name` applied to this many arguments."""
    return isinstance(term, Compound) and term.name == name and len(term.args) == arity


def is_infix(term: Term) -> bool:
    return isinstance(term, Compound) and term.name in INFIX and len(term.args) == 2


def spine(term: Term, operator: str) -> Iterator[Term]:
    """The operands of a chain of one right-associative operator: `a, (b, c)` gives a, b, c."""
    while calls(term, operator, 2):
        yield term.args[0]
        term = term.args[1]
    yield term


def variables(term: Term) -> Iterator[Variable]:
    """Every occurrence of a variable, in the order of the text."""
    waiting: list[Term] = [term]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Variable):
            yield term
        elif isinstance(term, Compound):
            waiting += reversed(term.args)
        elif isinstance(term, ListTerm):
            waiting += [*([] if term.tail is None else [term.tail]), *reversed(term.items)]


def quoted_functor(name: str) -> str:
    symbolic = bool(name) and all(c in "#$&*+-./:<=>?@^~\\" for c in name) and not name.startswith("/*")
    return name if symbolic else quoted(name)


def _operand(term: Term) -> str:
    """A term as an operand or argument: operators in parentheses, so that no priority is needed."""
    return f"({term})" if is_infix(term) else str(term)
