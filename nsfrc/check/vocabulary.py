"""What the names of a program stand for, and how messages speak about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nsfrc.check import shipped
from nsfrc.errors import Diagnostics, Span, did_you_mean
from nsfrc.ir import Atom, DataType, PredicateKey, quoted
from nsfrc.syntax import ANY, quoted_functor


@dataclass(frozen=True, slots=True)
class Declared:
    """A `pred` or `neural` declaration."""

    name: str
    types: tuple[str, ...]
    neural: bool
    span: Span

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.types)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.types)})" if self.types else self.name


@dataclass(slots=True)
class Unknown:
    """An unknown predicate of one file: its first place, the hint, and how often it is called."""

    span: Span | None
    hint: str | None
    calls: int = 0


@dataclass(slots=True)
class Vocabulary:
    """Types, predicates and constants by name.

    `defined` has the first fact or clause of every predicate; `lost` the words of sentences with
    syntax errors, `spoilt` the predicates of clauses with errors: what they define is not known.
    """

    found: Diagnostics
    types: dict[str, DataType] = field(default_factory=dict)
    declared: dict[PredicateKey, Declared] = field(default_factory=dict)
    defined: dict[PredicateKey, Span] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    spoilt: set[PredicateKey] = field(default_factory=set)
    homes: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[tuple[str, PredicateKey], Unknown] = field(default_factory=dict)

    def index_constants(self) -> None:
        """Fill `homes`: the types that each constant belongs to."""
        for datatype in self.types.values():
            for constant in datatype.constants:
                self.homes.setdefault(constant, []).append(datatype.name)

    def knows(self, key: PredicateKey) -> bool:
        return key in self.declared or key in self.defined

    def may_be_lost(self, name: str) -> bool:
        return name in self.lost or ANY in self.lost

    def unknown_predicate(self, key: PredicateKey, span: Span | None, head: PredicateKey | None = None) -> None:
        """Note a predicate that has no declaration, no facts and no clauses; `head`: what its clause defines."""
        name = key[0]
        if self.may_be_lost(name):
            return
        known = {**self.declared, **self.defined}
        arities = sorted(n for other, n in known if other == name)
        if arities:
            self.wrong_arity(key, arities, span)
        else:
            file = span.source.name if span else ""
            first = self.unknown.get((file, key))
            if first is None:
                hint = shipped.hint(key, self.types) or did_you_mean(text(key), [text(k) for k in known if k != head])
                first = self.unknown[file, key] = Unknown(span, hint)
            first.calls += 1

    def report_unknown(self) -> None:
        """Report the unknown predicates, each once a file."""
        for (_, key), first in self.unknown.items():
            self.found.error(first.span, f"unknown predicate {text(key)}{and_more(first.calls)}", first.hint)

    def wrong_arity(self, key: PredicateKey, arities: list[int], span: Span | None) -> None:
        name, arity = key
        declared = self.declared.get((name, arities[0]))
        wanted = " or ".join(str(n) for n in arities)
        plural = "" if arities == [1] else "s"
        message = f"{quoted(name)} takes {wanted} argument{plural}, not {arity}"
        self.found.error(span, message, f"it is declared as {declared}" if declared else None)

    def unknown_constant(self, name: str, datatype: DataType | None, span: Span | None) -> None:
        """Report a constant that is in no type; `datatype` is the one that was expected."""
        if self.may_be_lost(name):
            return
        known = datatype.constants if datatype else tuple(self.homes)
        suffix = f": type {datatype.name} has {listed(known)}" if datatype else ""
        hint = did_you_mean(name, known)
        self.found.error(span, f"unknown constant {quoted(name)}{suffix}", hint)


def text(key: PredicateKey) -> str:
    return f"{quoted_functor(key[0])}/{key[1]}"


def name_span(atom: Atom) -> Span | None:
    """Where the name of an atom stands, without its arguments."""
    span = atom.span
    return span and Span(span.source, span.line, span.column, span.line, span.column + len(quoted(atom.name)))


def listed(names: Iterable[str], limit: int = 10) -> str:
    """`red, yellow, blue`; long lists are cut."""
    shown = [quoted(name) for name in names]
    return ", ".join(shown[:limit]) + (f", ... ({len(shown)} in all)" if len(shown) > limit else "")


def and_more(places: int) -> str:
    """What follows the message about the first of several places."""
    more = places - 1
    return f" (and {more} more place{'s' if more > 1 else ''})" if more else ""


def a(word: str) -> str:
    """The word with its article: `a color`, `an object`."""
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def where(first: Span, here: Span) -> str:
    """`on line 3`, or `in kandinsky.pl, line 3` when it is in another file."""
    same = first.source.name == here.source.name
    return f"on line {first.line}" if same else f"in {first.source.name}, line {first.line}"
