"""Clauses as English sentences.

    same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).
    For any two different objects X and Y, same_shape_pair(X,Y) holds if there is a shape Z such that X and Y
    have shape Z.

A body atom becomes a phrase with a subject, a verb and a complement. Phrases that agree in all but their subjects
become one, and then those that have the same subjects: "O1 and O2 are in X and have size large". Predicates that
nsfrc has no words for keep their names: "near holds for O1 and O2".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nsfrc.compiler import ir, spelling
from nsfrc.compiler.expressions import expression
from nsfrc.compiler.goal_text import Alternative, GoalText
from nsfrc.describe.inner_goals import InnerWords, Inside, Kind
from nsfrc.records import dataclass
from nsfrc.vocabulary import HAS, IS, LIE, find

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOLDS = ("holds", "hold")
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


def sentence(clause: ir.Clause, program: ir.Program) -> Sentence:
    """A clause of a program."""
    said = _said(clause.body, GoalText(program)) + [_test(condition) for condition in clause.filters]
    predicates = map(program.predicate, (atom.key for atom in clause.body))
    chance = "".join(_chance(predicate.chance) for predicate in predicates if predicate.chance is not None)
    notes = _notes(clause, anchored=program.anchored)
    return Sentence(f"{_lead(clause, program.apart)}{_such(clause, said, program)}{chance}.", tuple(notes))


def _lead(clause: ir.Clause, apart: frozenset[str]) -> str:
    bound = _by_type(clause, free=False)
    if not bound:
        return f"{clause.head} holds"
    kinds = listed([_any(datatype, names, apart) for datatype, names in bound.items()])
    return f"For {kinds}, {clause.head} holds"


def _such(clause: ir.Clause, said: Sequence[str], program: ir.Program) -> str:
    free, bound = _by_type(clause, free=True), _by_type(clause, free=False)
    body = "; ".join(said[:-1]) + ("; and " if len(said) > 1 else "") + "".join(said[-1:])
    if not free:
        return f" if {body}" if body else " always"
    there = "are" if len(free) > 1 or len(next(iter(free.values()))) > 1 else "is"
    # Under `anchored` objects are kept from those of the head as well.
    others = set(bound) & program.apart if program.anchored else set()
    kinds = listed([_some(datatype, names, program.apart, datatype in others) for datatype, names in free.items()])
    return f" if there {there} {kinds}" + (f" such that {body}" if body else "")


def _said(body: Iterable[ir.Atom], text: GoalText) -> list[str]:
    """What is said by atoms, then by comparisons, and by negations and counts of more than one atom."""
    phrases, others = [], []
    for atom in body:
        negated, predicate = text.negated(atom), text.program.predicate(atom.key)
        if predicate.comparison is not None:
            others.append(_compared(atom, predicate.comparison))
        elif predicate.chance is not None:
            continue
        elif text.count_of(atom) is None:
            phrases.append(_phrase(atom, text.program))
        elif negated is not None and text.count_of(negated) is None and negated.key not in text.inner:
            phrases.append(_denied(_phrase(negated, text.program)))
        else:
            others.append(_inner(atom, text))
    return _told(_shared(phrases)) + others


def _denied(phrase: Phrase) -> Phrase:
    """`does not have`, `is not`."""
    several = phrase.verb[1]
    verb = ("is not", "are not") if phrase.verb is IS else (f"does not {several}", f"do not {several}")
    return replace(phrase, verb=verb)


def _inner(atom: ir.Atom, text: GoalText) -> str:
    """A negation or count in words."""
    words, count, negated = InnerWords(number, listed), text.count_of(atom), text.negated(atom)
    assert count is not None
    if negated is not None:
        every = text.every(negated)
        if every is None:
            return words.none(_inside(negated, text))
        given, then = every
        return words.every(_within(negated, [given], text), _inside(then, text).said)
    counted = [_inside(one, text) for one in text.counted(atom)]
    if count.less is not None:
        first, second = counted
        return " and ".join(words.compared(first, second, test) for test in count.tests)
    if not count.tests:
        return words.as_argument(counted[0], str(atom.args[-1]))
    return words.counted(counted[0], count.tests, ir.NUMBER)


def _inside(atom: ir.Atom, text: GoalText) -> Inside:
    """What a negation or count is about."""
    alternatives = text.alternatives(atom) if atom.key in text.inner else [Alternative((atom,), ())]
    return _within(atom, alternatives, text)


def _within(atom: ir.Atom, alternatives: Sequence[Alternative], text: GoalText) -> Inside:
    said = ", or ".join(listed([*_said(one.body, text), *one.tests]) for one in alternatives)
    kinds = []
    for datatype, names in text.own_variables(atom).items():
        apart = datatype in text.program.apart
        other = apart and text.shares(atom, datatype)
        kinds.append(Kind(_kind(datatype), _plural(datatype), tuple(names), other, apart))
    return Inside(tuple(kinds), said)


def _by_type(clause: ir.Clause, free: bool) -> dict[str, list[str]]:
    """Variables that the head leaves free, or that it binds, by datatype."""
    bound = {variable.name for variable in clause.head.variables()}
    names: dict[str, list[str]] = {}
    for name, datatype in clause.types:
        if (name not in bound) == free:
            names.setdefault(datatype, []).append(name)
    return names


def _some(datatype: str, names: Sequence[str], apart: frozenset[str], others: bool = False) -> str:
    """`an object O`, `another object O`, `two different objects O and P`, `two colors Z and W`."""
    if len(names) == 1:
        return f"{'another ' + _kind(datatype) if others else _article(datatype)} {names[0]}"
    different = "other " * others + "different " * (datatype in apart)
    return f"{number(len(names))} {different}{_plural(datatype)} {listed(names)}"


def _any(datatype: str, names: Sequence[str], apart: frozenset[str]) -> str:
    """`any image X`, `any two different objects X and Y`."""
    return f"any {_kind(datatype)} {names[0]}" if len(names) == 1 else f"any {_some(datatype, names, apart)}"


def _phrase(atom: ir.Atom, program: ir.Program) -> Phrase:
    args, predicate = [str(arg) for arg in atom.args], program.predicate(atom.key)
    if predicate.role == ir.BACKGROUND:
        return Phrase((str(atom),), IS, "among the facts", things=False)
    of_objects = bool(predicate.types) and program.type(predicate.types[0]).role == ir.OBJECT
    known = find(*atom.key) if predicate.role == ir.NEURAL and of_objects else None
    if known is not None and not known.is_attribute:
        subjects = tuple(args) if known.together else (args[0],)
        return Phrase(subjects, known.verb, known.complement.format(*args), things=not known.together)
    if of_objects and predicate.types[1:] == (atom.name,):
        return Phrase((args[0],), HAS, f"{ir.quoted(atom.name)} {args[1]}")
    return Phrase((ir.quoted(atom.name),), _HOLDS, f"for {listed(args)}" if args else "", things=False)


def _shared(phrases: Iterable[Phrase]) -> list[Phrase]:
    """Phrases that say the same of several subjects, as one: at the place of the first."""
    merged: dict[tuple[object, ...], Phrase] = {}
    for phrase in phrases:
        # Those that lie on a line do so together: no other group joins them.
        group = phrase.subjects if phrase.verb is LIE else ()
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


def _compared(atom: ir.Atom, comparison: ir.Comparison) -> str:
    """`area(X) is more than 1.5 * area(Y)`."""
    left, right = expression(comparison.test.left), expression(comparison.test.right)
    args = [str(arg) for arg in atom.args]
    left, right = spelling.put_in(left, args), spelling.put_in(right, args)
    return f"{left} {_TESTS[comparison.test.op]} {right}"


def _chance(chance: ir.Chance) -> str:
    return f", with the probability {chance.value:g}" + (", which is learnt" if chance.learnt else "")


def _test(condition: ir.Filter) -> str:
    left, right = (_expression(side) for side in (condition.left, condition.right))
    return f"{left} {_TESTS.get(condition.op, condition.op)} {right}"


def _expression(side: ir.Expr) -> str:
    text = str(side)
    return text[1:-1] if isinstance(side, ir.Compute) and len(side.args) == 2 else text


def _notes(clause: ir.Clause, anchored: bool) -> Iterable[str]:
    for variable, heads in ({} if anchored else _may_be_equal(clause)).items():
        yield f"{variable} may be the same as {listed(heads, 'or')}, which the head binds."
    for atom, times in Counter(clause.body).items():
        if times > 1:
            yield f"{atom} is written {number(times)} times and counts each time."


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
    """A datatype as a noun; a name that is not a plain word is quoted."""
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
