"""What no target needs: warnings, and what is left out of included files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nsfrc.compiler.check.unify import Heads
from nsfrc.compiler.check.vocabulary import Vocabulary, text
from nsfrc.compiler.ir import (
    CHANCE,
    COMPARED,
    COUNTED,
    INNER,
    Atom,
    Clause,
    Const,
    Count,
    Number,
    Predicate,
    PredicateKey,
    Program,
    measured_in,
)
from nsfrc.errors import Span


def warn_unneeded(
    targets: Sequence[Atom], clauses: Sequence[Clause], facts: Sequence[Atom], vocabulary: Vocabulary
) -> None:
    """Warn of predicates that no target reaches, and of clauses whose head no call or target matches.

    Not of those in included files, which may well hold more than one program uses.
    """
    found = vocabulary.found
    needed_keys, needed_clauses = _reach(targets, Heads(clauses), vocabulary.counted)
    defined: dict[PredicateKey, Span | None] = {}
    for atom in sorted((*(clause.head for clause in clauses), *facts), key=_place):
        if not _included(atom):
            defined.setdefault(atom.key, atom.span)
    for key, span in defined.items():
        if key not in needed_keys and INNER not in key[0]:
            found.warn("unneeded-predicate", span, f"no target needs {text(key)}")
    unneeded = [clause for clause in clauses if id(clause) not in needed_clauses]
    for clause in unneeded:
        if clause.head.key in needed_keys and INNER not in clause.head.name and not _included(clause.head):
            hint = "every call has a different constant"
            found.warn("unneeded-clause", clause.head.span, "no target needs this clause", hint)


def without_unneeded(program: Program) -> Program:
    """Leave out what included files define and no target needs, so that a library costs what is used of it.

    Under `paper` every atom counts, needed or not.
    """
    if not program.anchored or not program.targets or program.learning is not None:
        return program
    counted = {p.key: p.count for p in program.predicates if p.count is not None}
    needed, _ = _reach(program.targets, Heads(program.clauses), counted)
    clauses = tuple(c for c in program.clauses if c.head.key in needed or not _included(c.head))
    facts = tuple(fact for fact in program.facts if fact.key in needed or not _included(fact))
    if len(clauses) + len(facts) == len(program.clauses) + len(program.facts):
        return program
    kept, _ = _reach((*program.targets, *(c.head for c in clauses), *facts), Heads(clauses), counted)
    predicates = tuple(p for p in program.predicates if p.key in kept or not (_generated(p) or _included(p)))
    measured = {one.key for p in predicates if p.comparison for one in measured_in(p.comparison.test.left,
                                                                                   p.comparison.test.right)}
    numbers = tuple(n for n in program.numbers if n.key in measured or not (n.span is None or _included(n)))
    return replace(program, clauses=clauses, facts=facts, predicates=predicates, numbers=numbers)


def _generated(predicate: Predicate) -> bool:
    return predicate.role in (COUNTED, COMPARED, CHANCE) or INNER in predicate.name


def _reach(
    targets: Sequence[Atom], heads: Heads, counted: Mapping[PredicateKey, Count]
) -> tuple[set[PredicateKey], set[int]]:
    """The predicates and the clauses (by identity) that lie on a way to a target."""
    keys: set[PredicateKey] = set()
    reached: set[int] = set()
    seen: set[tuple[PredicateKey, tuple[str | None, ...]]] = set()
    waiting = list(targets)
    while waiting:
        atom = waiting.pop()
        keys.add(atom.key)
        pattern = atom.key, tuple(arg.name if isinstance(arg, Const) else None for arg in atom.args)
        if pattern in seen:
            continue
        seen.add(pattern)
        if atom.key in counted:
            waiting += counted[atom.key].looks_at(atom)
        for clause in heads.matching(atom):
            if id(clause) not in reached:
                reached.add(id(clause))
                waiting += clause.body
    return keys, reached


def _included(one: Atom | Predicate | Number) -> bool:
    return one.span is not None and one.span.source.included is not None


def _place(atom: Atom) -> tuple[str, int, int]:
    return (atom.span.source.name, atom.span.line, atom.span.column) if atom.span else ("", 0, 0)
