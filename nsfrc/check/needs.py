"""Warnings about what no target needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nsfrc.check.targets import unifiable
from nsfrc.check.vocabulary import text
from nsfrc.errors import Diagnostics, Span
from nsfrc.ir import Atom, Clause, Const, PredicateKey


def warn_unneeded(
    targets: Sequence[Atom], clauses: Sequence[Clause], facts: Sequence[Atom], found: Diagnostics
) -> None:
    """Warn of predicates that no target reaches, and of clauses whose head no call or target matches.

    Not of those in included files, which may well hold more than one program uses.
    """
    by_head: dict[PredicateKey, list[Clause]] = defaultdict(list)
    for clause in clauses:
        by_head[clause.head.key].append(clause)
    needed_keys, needed_clauses = _reach(targets, by_head)
    defined: dict[PredicateKey, Span | None] = {}
    for atom in sorted((*(clause.head for clause in clauses), *facts), key=_place):
        if not _included(atom):
            defined.setdefault(atom.key, atom.span)
    for key, span in defined.items():
        if key not in needed_keys:
            found.warn(span, f"no target needs {text(key)}")
    unneeded = [clause for clause in clauses if id(clause) not in needed_clauses]
    for clause in unneeded:
        if clause.head.key in needed_keys and not _included(clause.head):
            found.warn(clause.head.span, "no target needs this clause", "every call has another constant")


def _reach(
    targets: Sequence[Atom], by_head: dict[PredicateKey, list[Clause]]
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
        for clause in by_head.get(atom.key, ()):
            if id(clause) not in reached and unifiable(atom, clause.head):
                reached.add(id(clause))
                waiting += clause.body
    return keys, reached


def _included(atom: Atom) -> bool:
    return atom.span is not None and atom.span.source.included is not None


def _place(atom: Atom) -> tuple[str, int, int]:
    return (atom.span.source.name, atom.span.line, atom.span.column) if atom.span else ("", 0, 0)
