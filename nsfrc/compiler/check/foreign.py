"""Sentences that mean something in another language only: each is told what to write here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.syntax import CLAUSE, DIRECTIVE, Compound, Name, Sentence, Term, calls, spine


def refuse(term: Term, vocabulary: Vocabulary) -> bool:
    """Refuse a clause of ProbLog or DeepProbLog; says whether it is one."""
    head = term.args[0] if calls(term, ":-", 2) else term
    if calls(head, "::", 2) and isinstance(head.args[0], Compound) and head.args[0].name == "nn":
        _network(head.args[0], head.args[1], vocabulary)
        return True
    if (calls(term, "evidence", 1) or calls(term, "evidence", 2)) and isinstance(term.args[0], Compound):
        vocabulary.found.error(
            "not-possible", term.name_span, f"evidence/{len(term.args)} is not possible: answers are computed forwards "
            "from what perception says", "give what is known as facts, nsfrc reason --facts, or in training as a label")
        return True
    return False


def _network(network: Compound, atom: Term, vocabulary: Vocabulary) -> None:
    name = atom.name if isinstance(atom, Name | Compound) else "p"
    types = ", ".join(["..."] * len(atom.args)) if isinstance(atom, Compound) else "..."
    vocabulary.found.error("not-supported", network.name_span, "networks are not named in clauses (nn(…)::)",
                           f"declare :- neural({name}({types})). and give it a function with @nsfrc.neural_predicate")
    if isinstance(atom, Name | Compound):
        key = atom.name, len(atom.args) if isinstance(atom, Compound) else 0
        vocabulary.define(key, atom.span)
        vocabulary.spoilt.add(key)


def own_names(sentences: Iterable[Sentence]) -> set[str]:
    """The predicates that a program declares or defines, by name."""
    names = set()
    for sentence in sentences:
        if sentence.kind == CLAUSE and sentence.term:
            names.add(_name(sentence.term.args[0] if calls(sentence.term, ":-", 2) else sentence.term))
        elif sentence.kind == DIRECTIVE and sentence.term:
            goals = (goal for goal in spine(sentence.term, ",") if isinstance(goal, Compound))
            names |= {_name(goal.args[0]) for goal in goals if goal.name in ("neural", "pred")}
    return names - {""}


def _name(term: Term) -> str:
    return term.name if isinstance(term, Name | Compound) else ""


def refuse_constraint(term: Term, goals: Sequence[Term], own: set[str], vocabulary: Vocabulary) -> bool:
    """Refuse `:- a, b.`, which forbids in answer set programming what is a directive here; says whether it is one."""
    inside = [goal.args[0] if calls(goal, "\\+", 1) else goal for goal in goals]
    if not own & set(map(_name, inside)):
        return False
    body = ", ".join(map(str, goals))
    vocabulary.found.error(
        "bad-directive", term.span, "':- goals.' is a directive here and not a constraint",
        f"ask for what must not hold, wrong :- {body}. with :- target(wrong)., or say \\+ ({body}) in a clause")
    return True
