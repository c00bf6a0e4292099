"""Probabilities: annotated sentences to plain ones, each with one more atom in its body that has it as its value.

    0.9::f.                        f :- '0.9::f'.
    t(0.5)::h(X) :- b(X).          h(X) :- b(X), 't(0.5)::h(X)'.          learnt, from 0.5 on
    0.3::a ; 0.7::b :- c.          a :- c, '0.3::a'.   b :- c, '0.7::b'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nsfrc.compiler.check import arithmetic
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ir import OPERATIONS, Atom, Chance, Compute, Const, Expr
from nsfrc.compiler.syntax import Compound, Number, Term, Variable, calls, spine
from nsfrc.records import dataclass

UNSAID = 0.5  # where t(_) starts
ROUNDING = 1e-9
_WANTED = "a probability is a number from 0 to 1, or t(0.5) or t(_) for one that is learnt"


@dataclass(frozen=True)
class Plain:
    """A sentence without its annotation, if it has one; whole: the sentence as it is written."""

    term: Term
    whole: Term
    annotation: Term | None = None

    @property
    def head(self) -> Term:
        return head_of(self.term)


def head_of(term: Term) -> Term:
    return term.args[0] if calls(term, ":-", 2) else term


def plain(term: Term) -> list[Plain]:
    """The sentences that a clause or a fact stands for: itself, or one for each head if any is annotated."""
    head = head_of(term)
    heads = list(spine(head, ";"))
    if not any(calls(one, "::", 2) for one in heads):
        return [Plain(term, term)]
    return [_without(one, term, alone=len(heads) == 1) for one in heads]


def _without(head: Term, term: Term, alone: bool) -> Plain:
    annotation, rest = head.args if calls(head, "::", 2) else (None, head)
    if not calls(term, ":-", 2):
        return Plain(rest, term, annotation)
    # Of several heads each is a sentence of its own, also for messages.
    written = replace(term, args=(rest, term.args[1]), written=term.span if alone else head.span)
    return Plain(written, term, annotation)


def refuse(sentences: Sequence[Plain], vocabulary: Vocabulary) -> bool:
    """Whether the annotations of one sentence cannot be, which is reported."""
    marked = [one.annotation for one in sentences if one.annotation is not None]
    if not marked:
        return False
    span, found = head_of(sentences[0].whole).span, vocabulary.found
    before = found.errors
    for one in sentences:
        if one.annotation is None:
            found.error("bad-probability", one.head.span, "each of several heads has a probability of its own",
                        "as in 0.3::a ; 0.7::b :- c.")
    if vocabulary.needs_anchored(span, "a probability (p::clause)"):
        return True
    total = sum(chance.value for chance in (_chance(one, vocabulary) for one in marked) if chance is not None)
    if found.errors == before and total > 1 + ROUNDING:
        found.error("bad-probability", span, f"these probabilities add up to {total:.6g}, more than 1",
                    "at most one of the heads holds, so that their probabilities add up to 1 at most")
    return found.errors > before


def atom(annotation: Term, head: Atom, vocabulary: Vocabulary) -> Atom:
    """The atom that stands for the probability of a clause with this head; its predicate is noted."""
    chance = _chance(annotation, vocabulary)
    assert chance is not None  # `refuse` came first
    learnt = calls(annotation, "t", 1)
    spelt = "_" if calls(annotation, "t", 1) and _is_open(annotation.args[0]) else repr(chance.value)
    stem = f"{f't({spelt})' if learnt else spelt}::{head}"
    name, number = stem, 1
    while vocabulary.knows((name, 0)):
        number += 1
        name = f"{stem} #{number}"
    vocabulary.chances[name, 0] = chance, annotation.span
    return Atom(name, (), annotation.span)


def _is_open(term: Term) -> bool:
    return isinstance(term, Variable) and term.name.startswith("_")


def _chance(annotation: Term, vocabulary: Vocabulary) -> Chance | None:
    """The value that an annotation gives, or None after an error."""
    learnt = calls(annotation, "t", 1)
    inner = annotation.args[0] if calls(annotation, "t", 1) else annotation
    if learnt and _is_open(inner):
        return Chance(UNSAID, learnt=True)
    value = _value(inner)
    if value is not None and 0 <= value <= 1 and (0 < value < 1 or not learnt):
        return Chance(value, learnt)
    message, hint = f"{annotation} is not a probability", _WANTED
    if value in (0, 1):
        message = f"a probability that starts at {value:g} cannot be learnt"
        hint = "start it between 0 and 1, as in t(0.5)"
    elif isinstance(inner, Variable):
        hint = "where it depends on what is seen, put a neural predicate into the body"
    vocabulary.found.error("bad-probability", annotation.span, message, hint)
    return None


def _value(term: Term) -> float | None:
    """The value of plain numbers and arithmetic on them, such as 1/3; None for anything else."""
    expr = _number(term)
    try:
        return None if expr is None else float(arithmetic.value(expr))
    except (ArithmeticError, TypeError):
        return None


def _number(term: Term) -> Expr | None:
    if isinstance(term, Number):
        return Const(repr(term.value))
    if not isinstance(term, Compound) or len(term.args) not in OPERATIONS.get(term.name, ()):
        return None
    args = [_number(arg) for arg in term.args]
    known = tuple(arg for arg in args if arg is not None)
    return Compute(term.name, known) if len(known) == len(args) else None
