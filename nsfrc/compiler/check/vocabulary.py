"""What the names of a program stand for, and how messages speak about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from itertools import islice

from nsfrc.compiler.check import shipped
from nsfrc.compiler.ir import ANCHORED, OBJECT, PAPER, Atom, Chance, Count, DataType, Number, PredicateKey, quoted
from nsfrc.compiler.syntax import ANY, quoted_functor
from nsfrc.errors import Diagnostics, Span
from nsfrc.records import dataclass


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
    `counted` has the predicates that stand for negations and counts, and how their values come about.
    `arities` and `spoken` have all predicates that are declared or defined, by name and as `name/arity`.
    `numbers` has what `number` declares, and what perception offers once a comparison names it (see `measures`);
    `chances` the probabilities of clauses, by the predicates that stand for them.
    """

    found: Diagnostics
    types: dict[str, DataType] = field(default_factory=dict)
    declared: dict[PredicateKey, Declared] = field(default_factory=dict)
    defined: dict[PredicateKey, Span] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    spoilt: set[PredicateKey] = field(default_factory=set)
    homes: dict[str, dict[str, None]] = field(default_factory=dict)
    unknown: dict[tuple[str, PredicateKey], Unknown] = field(default_factory=dict)
    arities: dict[str, set[int]] = field(default_factory=dict)
    spoken: dict[str, None] = field(default_factory=dict)
    untyped: bool = False  # it has been said that there are no types at all
    semantics: str = ANCHORED
    counted: dict[PredicateKey, Count] = field(default_factory=dict)
    numbers: dict[PredicateKey, Number] = field(default_factory=dict)
    chances: dict[PredicateKey, tuple[Chance, Span]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)  # what else classes of perception may be called

    def needs_anchored(self, span: Span | None, what: str) -> bool:
        """Whether what the paper's arithmetic has no place for is asked of it, which is reported."""
        if self.semantics != PAPER:
            return False
        message = f"{what} needs semantics(anchored): under semantics(paper) values rise at every step"
        self.found.error("needs-anchored", span, message, "leave out :- semantics(paper).")
        return True

    def apart(self, datatype: str) -> bool:
        """Whether no atom repeats a constant of this type and no two variables share one: under `paper` always."""
        return self.semantics == PAPER or self.types[datatype].role == OBJECT

    def declare(self, declared: Declared) -> None:
        self.declared[declared.key] = declared
        self._know(declared.key)

    def define(self, key: PredicateKey, span: Span) -> None:
        """Note where a predicate is defined first."""
        if key not in self.defined:
            self.defined[key] = span
            self._know(key)

    def count(self, key: PredicateKey, count: Count, span: Span) -> None:
        """Note a predicate that stands for a negation or a count; one that is there already is the same."""
        self.counted[key] = count
        self.defined.setdefault(key, span)

    def _know(self, key: PredicateKey) -> None:
        self.arities.setdefault(key[0], set()).add(key[1])
        self.spoken[text(key)] = None

    def index_constants(self) -> None:
        """Fill `homes`: the types that each constant belongs to."""
        for datatype in self.types.values():
            for constant in datatype.constants:
                self.homes.setdefault(constant, {})[datatype.name] = None

    def knows(self, key: PredicateKey) -> bool:
        return key in self.declared or key in self.defined or key in self.chances

    def may_be_lost(self, name: str) -> bool:
        return name in self.lost or ANY in self.lost

    def unknown_predicate(self, key: PredicateKey, span: Span | None, head: PredicateKey | None = None) -> None:
        """Note a predicate that has no declaration, no facts and no clauses; `head`: what its clause defines."""
        name = key[0]
        if self.may_be_lost(name):
            return
        if name in self.arities:
            self.wrong_arity(key, sorted(self.arities[name]), span)
            return
        file = span.source.name if span else ""
        first = self.unknown.get((file, key))
        if first is None:
            near = self.found.did_you_mean(text(key), self.spoken, besides=text(head) if head else None)
            first = self.unknown[file, key] = Unknown(span, shipped.hint(key, self.types) or near)
        first.calls += 1

    def report_unknown(self) -> None:
        """Report the unknown predicates, each once per file."""
        for (_, key), first in self.unknown.items():
            message = f"unknown predicate {text(key)}{and_more(first.calls)}"
            self.found.error("unknown-predicate", first.span, message, first.hint)

    def wrong_arity(self, key: PredicateKey, arities: list[int], span: Span | None) -> None:
        name, arity = key
        declared = self.declared.get((name, arities[0]))
        wanted = " or ".join(str(n) for n in arities)
        plural = "" if arities == [1] else "s"
        message = f"{quoted(name)} takes {wanted} argument{plural}, not {arity}"
        self.found.error("wrong-arity", span, message, f"it is declared as {declared}" if declared else None)

    def unknown_constant(self, name: str, datatype: DataType | None, span: Span | None) -> None:
        """Report a constant that is in no type; `datatype` is the one that was expected."""
        if self.may_be_lost(name) or self.no_types(span):
            return
        known = datatype.constants if datatype else self.homes
        suffix = f": type {datatype.name} has {listed(known)}" if datatype else ""
        hint = self.found.did_you_mean(name, known)
        self.found.error("unknown-constant", span, f"unknown constant {quoted(name)}{suffix}", hint)

    def no_types(self, span: Span | None) -> bool:
        """Whether there are no types at all, which is said once, where one is needed first."""
        if self.types or self.may_be_lost("type"):
            return False
        if not self.untyped:
            self.untyped = True
            hint = "declare them, as in :- type(color, [red, blue])., or include a file that does, such as 'clevr.pl'"
            self.found.error("no-types", span, "this program declares no types", hint)
        return True


def text(key: PredicateKey) -> str:
    return f"{quoted_functor(key[0])}/{key[1]}"


def name_span(atom: Atom) -> Span | None:
    """Where the name of an atom stands, without its arguments."""
    span = atom.span
    return span and Span(span.source, span.line, span.column, span.line, span.column + len(quoted(atom.name)))


def listed(names: Collection[str], limit: int = 10) -> str:
    """`red, yellow, blue`; long lists are cut."""
    shown = ", ".join(quoted(name) for name in islice(names, limit))
    return shown + (f", ... ({len(names)} in all)" if len(names) > limit else "")


def either(names: Collection[str], limit: int = 5) -> str:
    """`color or mood`; long lists are cut."""
    return " or ".join(islice(names, limit)) + (f" or ... ({len(names)} in all)" if len(names) > limit else "")


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
