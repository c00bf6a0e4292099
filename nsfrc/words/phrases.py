"""Clauses as English sentences.

    same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).
    For any two different objects X and Y, same_shape_pair(X,Y) holds where there is a shape Z such that X and Y
    have shape Z.

A body atom becomes a phrase with a subject, a verb and a complement. Phrases that agree in all but their subjects
become one, and then those that have the same subjects: "O1 and O2 are in X and have size large". Predicates that
nsfrc has no words for keep their names: "near holds of O1 and O2".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nsfrc import ir

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_IS, _HAS, _HOLDS, _LIE = ("is", "are"), ("has", "have"), ("holds", "hold"), ("lies", "lie")

# Neural predicates whose meaning nsfrc knows, because it values them: verb and complement of the first argument.
_KNOWN = {
    ("in", 2): (_IS, "in {1}"),
    ("closeby", 2): (_IS, "close by {1}"),
    ("front", 2): (_IS, "in front of {1}"),
    ("leftside", 1): (_IS, "on the left side"),
    ("rightside", 1): (_IS, "on the right side"),
}
_TESTS = {
    "==": "is the same as", "!=": "is not the same as", "<": "is less than", ">": "is more than",
    "=<": "is at most", ">=": "is at least", "=:=": "equals", "=\\=": "does not equal",
}


@dataclass(frozen=True)
class Sentence:
    """A clause in words, and what a reader of it might get wrong."""

    words: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phrase:
    """`O1 and O2 | are | in X`. things: whether the subjects are objects, which may be told several things of."""

    subjects: tuple[str, ...]
    verb: tuple[str, str]
    complement: str
    things: bool = True


def sentence(
    clause: ir.Clause, predicates: Mapping[ir.PredicateKey, ir.Predicate], roles: Mapping[str, str]
) -> Sentence:
    """predicates: by name and arity; roles: of each datatype, by name (input, object or attribute)."""
    phrases = [_phrase(atom, predicates[atom.key], roles) for atom in clause.body]
    said = _told(_shared(phrases)) + [_test(condition) for condition in clause.filters]
    return Sentence(f"{_lead(clause)}{_such(clause, said)}.", tuple(_notes(clause)))


def _lead(clause: ir.Clause) -> str:
    bound = _by_type(clause, free=False)
    if not bound:
        return f"{clause.head} holds"
    kinds = listed([_any(datatype, names) for datatype, names in bound.items()])
    return f"For {kinds}, {clause.head} holds"


def _such(clause: ir.Clause, said: Sequence[str]) -> str:
    free = _by_type(clause, free=True)
    body = "; ".join(said[:-1]) + ("; and " if len(said) > 1 else "") + "".join(said[-1:])
    if not free:
        return f" where {body}" if body else " always"
    there = "are" if len(free) > 1 or len(next(iter(free.values()))) > 1 else "is"
    kinds = listed([_some(datatype, names) for datatype, names in free.items()])
    return f" where there {there} {kinds}" + (f" such that {body}" if body else "")


def _by_type(clause: ir.Clause, free: bool) -> dict[str, list[str]]:
    """Variables that the head leaves free, or that it binds, by datatype."""
    bound = {variable.name for variable in clause.head.variables()}
    names: dict[str, list[str]] = {}
    for name, datatype in clause.types:
        if (name not in bound) == free:
            names.setdefault(datatype, []).append(name)
    return names


def _some(datatype: str, names: Sequence[str]) -> str:
    """`an object O`, `two different objects O and P`."""
    if len(names) == 1:
        return f"{_article(datatype)} {names[0]}"
    return f"{number(len(names))} different {_plural(datatype)} {listed(names)}"


def _any(datatype: str, names: Sequence[str]) -> str:
    """`any image X`, `any two different objects X and Y`."""
    return f"any {_kind(datatype)} {names[0]}" if len(names) == 1 else f"any {_some(datatype, names)}"


def _phrase(atom: ir.Atom, predicate: ir.Predicate, roles: Mapping[str, str]) -> Phrase:
    args = [str(arg) for arg in atom.args]
    if predicate.role == ir.BACKGROUND:
        return Phrase((str(atom),), _IS, "among the facts", things=False)
    if predicate.role == ir.NEURAL and atom.key in _KNOWN and roles[predicate.types[0]] == ir.OBJECT:
        verb, complement = _KNOWN[atom.key]
        return Phrase((args[0],), verb, complement.format(*args))
    if predicate.role == ir.NEURAL and atom.name == "online" and len(args) > 1:
        return Phrase(tuple(args), _LIE, "on one line", things=False)
    if predicate.types[1:] == (atom.name,) and roles[predicate.types[0]] == ir.OBJECT:
        return Phrase((args[0],), _HAS, f"{ir.quoted(atom.name)} {args[1]}")
    return Phrase((ir.quoted(atom.name),), _HOLDS, f"of {listed(args)}" if args else "", things=False)


def _shared(phrases: Iterable[Phrase]) -> list[Phrase]:
    """Phrases that say the same of several subjects, as one: at the place of the first."""
    merged: dict[tuple[object, ...], Phrase] = {}
    for phrase in phrases:
        # Those that lie on a line do so together: no other group joins them.
        group = phrase.subjects if phrase.verb is _LIE else ()
        key = (phrase.verb, phrase.complement, phrase.things, group)
        before = merged[key].subjects if key in merged else ()
        merged[key] = replace(phrase, subjects=tuple(dict.fromkeys([*before, *phrase.subjects])))
    return list(merged.values())


def _told(phrases: Iterable[Phrase]) -> list[str]:
    """All that is said of the same objects together: `O1 and O2 are in X and have size large`."""
    groups: dict[tuple[object, ...], list[Phrase]] = {}
    for place, phrase in enumerate(phrases):
        groups.setdefault((phrase.subjects, None if phrase.things else place), []).append(phrase)
    return [f"{listed(group[0].subjects)} {listed(_verbs(group))}" for group in groups.values()]


def _verbs(group: Sequence[Phrase]) -> list[str]:
    """Phrases of one group; a verb that comes again with the next complement is said once."""
    complements: dict[tuple[str, str], list[str]] = {}
    for phrase in group:
        complements.setdefault(phrase.verb, []).append(phrase.complement)
    plural = len(group[0].subjects) > 1
    return [f"{verb[plural]} {listed(parts)}".rstrip() for verb, parts in complements.items()]


def _test(condition: ir.Filter) -> str:
    left, right = (_expression(side) for side in (condition.left, condition.right))
    return f"{left} {_TESTS.get(condition.op, condition.op)} {right}"


def _expression(side: ir.Expr) -> str:
    text = str(side)
    return text[1:-1] if isinstance(side, ir.Compute) and len(side.args) == 2 else text


def _notes(clause: ir.Clause) -> Iterable[str]:
    for variable, heads in _may_be_equal(clause).items():
        yield f"{variable} may be the same as {listed(heads, 'or')}, which the head binds."
    for atom, times in Counter(clause.body).items():
        if times > 1:
            yield f"{atom} stands there {number(times)} times, and counts as often."


def _may_be_equal(clause: ir.Clause) -> dict[str, list[str]]:
    """Free variables and the head's variables of their type, where no atom or test keeps them apart."""
    free, bound = _by_type(clause, free=True), _by_type(clause, free=False)
    together = [{v.name for v in atom.variables()} for atom in clause.body]
    together += [{str(test.left), str(test.right)} for test in clause.filters if test.op in ("!=", "=\\=", "<", ">")]
    found: dict[str, list[str]] = {}
    for datatype, names in free.items():
        for name in names:
            for head in bound.get(datatype, ()):
                if not any({name, head} <= both for both in together):
                    found.setdefault(name, []).append(head)
    return found


def listed(parts: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {last} ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def number(count: int) -> str:
    """Small numbers as words."""
    return _NUMBERS[count] if 0 <= count < len(_NUMBERS) else f"{count:,}"


def _kind(datatype: str) -> str:
    """A datatype as a noun; a name that is no plain word is quoted."""
    return datatype.replace("_", " ") if _is_word(datatype) else f"constant of {ir.quoted(datatype)}"


def _plural(datatype: str) -> str:
    if not _is_word(datatype):
        return f"constants of {ir.quoted(datatype)}"
    kind = _kind(datatype)
    if re.search("(s|x|z|ch|sh)$", kind):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if re.search("[^aeiou]y$", kind) else f"{kind}s"


def _is_word(name: str) -> bool:
    return re.fullmatch("[a-z][a-z_]*[a-z]", name) is not None


def _article(datatype: str) -> str:
    kind = _kind(datatype)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
