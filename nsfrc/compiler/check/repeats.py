"""No atom has one object twice, under `paper` no constant at all: what that rules out once types are known.

    p(X) :- near(X, Y), Y = obj1, (X = obj1 ; X = obj2).

has one plain clause: the first alternative is dropped, since near(obj1,obj1) never holds. A constant belongs to its
type: 2 of type row and 2 of type column are two constants, so at(2, 2) may well hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from nsfrc.compiler.check.alternatives import Draft
from nsfrc.compiler.check.infer import Signatures
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ir import PAPER, Atom, Const, Term, Var
from nsfrc.errors import Span


def refuse_repeats(atom: Atom, signatures: Signatures, vocabulary: Vocabulary) -> bool:
    """Whether an atom that is written like this has the same constant twice, which is reported."""
    repeats = _repeats(atom, signatures, vocabulary)
    if repeats:
        message = f"{atom} can never hold: it has the same argument twice"
        paper = vocabulary.semantics == PAPER
        hint = f"the arguments of an atom are pairwise different{'' if paper else ' objects'}"
        vocabulary.found.error("repeated-argument", atom.span, message, hint)
    return repeats


def possible_facts(facts: Sequence[Atom], signatures: Signatures, vocabulary: Vocabulary) -> list[Atom]:
    """The facts that can hold; the others are reported."""
    kept: list[Atom] = []
    for fact in facts:
        if refuse_repeats(fact, signatures, vocabulary):
            vocabulary.spoilt.add(fact.key)
        else:
            kept.append(fact)
    return kept


def possible_drafts(drafts: Sequence[Draft], signatures: Signatures, vocabulary: Vocabulary) -> list[Draft]:
    """The plain clauses that can hold. A sentence of which none is left is reported."""
    kept: list[Draft] = []
    for _, sentence in groupby(drafts, key=lambda draft: id(draft.span)):
        alternatives = list(sentence)
        impossible = [(draft, atom) for draft in alternatives if (atom := _impossible(draft, signatures, vocabulary))]
        if not impossible:
            kept += alternatives
            continue
        written = [refuse_repeats(atom, signatures, vocabulary) for _, atom in impossible if _as_written(atom)]
        dropped = [draft for draft, atom in impossible if not _as_written(atom)]  # others may have more errors to tell
        left = [draft for draft in alternatives if not any(draft is dead for dead in dropped)]
        kept += left
        if not left:
            vocabulary.spoilt.add(alternatives[0].head.key)
            if not written:
                reason = f"{impossible[0][1]} has the same argument twice"
                vocabulary.found.error("never-fires", alternatives[0].span, "this clause can never fire", reason)
    return kept


def _impossible(draft: Draft, signatures: Signatures, vocabulary: Vocabulary) -> Atom | None:
    """An atom of a clause that has the same argument twice."""
    atoms = (draft.head, *draft.body, *draft.measured)
    return next((atom for atom in atoms if _repeats(atom, signatures, vocabulary)), None)


def _repeats(atom: Atom, signatures: Signatures, vocabulary: Vocabulary) -> bool:
    if len(atom.args) < 2:
        return False
    typed = zip(atom.args, signatures.get(atom.key, ()), strict=False)
    apart = [(name, isinstance(arg, Var), arg.name) for arg, name in typed if name and vocabulary.apart(name)]
    return len(set(apart)) < len(apart)


def _as_written(atom: Atom) -> bool:
    """Whether all arguments stand like this in the atom itself; others came there by way of `=`."""
    return all(_stands_in(arg, atom.span) for arg in atom.args)


def _stands_in(arg: Term, whole: Span | None) -> bool:
    span = arg.span
    if whole is None or span is None:
        return False
    inside = (whole.line, whole.column) <= (span.line, span.column) < (whole.end_line, whole.end_column)
    # A variable keeps its place when it gets another's name.
    word = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    return inside and (isinstance(arg, Const) or word in (arg.name, "_"))
