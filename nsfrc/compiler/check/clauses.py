"""Sentences to facts and plain clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nsfrc.compiler.check import chances, foreign, measures
from nsfrc.compiler.check.alternatives import Draft, drafts
from nsfrc.compiler.check.builtin import is_core, refusal, remedy
from nsfrc.compiler.check.chances import Plain, head_of
from nsfrc.compiler.check.declare import is_query
from nsfrc.compiler.check.goals import Both, GoalReader
from nsfrc.compiler.check.vocabulary import Vocabulary, text
from nsfrc.compiler.ir import Atom, PredicateKey
from nsfrc.compiler.syntax import CLAUSE, Compound, Name, Sentence, Term, calls, variables
from nsfrc.errors import Span


def define(sentences: Iterable[Sentence], vocabulary: Vocabulary) -> tuple[list[Atom], list[Draft]]:
    """The facts and the plain clauses of a program; fills the vocabulary's `defined`.

    `h :- true.` with a ground head is a fact. Facts may still hold variables: `typed` reports them.
    """
    terms = [s.term for s in sentences if s.kind == CLAUSE and s.term and not is_query(s.term, vocabulary)
             and not foreign.refuse(s.term, vocabulary)]
    written = [chances.plain(term) for term in terms]
    for one in (one for several in written for one in several):
        if isinstance(one.head, Name | Compound) and not _other_arities(_key(one.head), vocabulary):
            vocabulary.define(_key(one.head), one.head.span)
    measures.refuse_definitions(vocabulary)
    facts: list[Atom] = []
    clauses: list[Draft] = []
    for several in written:
        if chances.refuse(several, vocabulary):
            for one in several:
                _spoil(one.head, vocabulary)
            continue
        for one in several:
            if not _well_formed(one.term, vocabulary):
                continue
            if one is several[0]:
                _warn_singletons(one, vocabulary)
            for draft in _read(one, vocabulary):
                ground = not any(True for _ in draft.head.variables())
                is_fact = not (draft.body or draft.filters or draft.doubtful) and (ground or one.head is one.term)
                if is_fact and not ground:
                    vocabulary.spoilt.add(draft.head.key)  # `typed` says why; nothing else is said of it
                facts.append(draft.head) if is_fact else clauses.append(draft)
    return facts, clauses


def _key(head: Name | Compound) -> PredicateKey:
    return head.name, len(head.args) if isinstance(head, Compound) else 0


def _well_formed(term: Term, vocabulary: Vocabulary) -> bool:
    """Refuse sentences that define nothing a program can define."""
    head, found = head_of(term), vocabulary.found
    if calls(head, "-->", 2):
        found.error("not-supported", head.name_span, "a grammar rule (-->) is not supported yet", "write clauses")
        if isinstance(head.args[0], Name | Compound):
            vocabulary.define(_key(head.args[0]), head.args[0].span)
            _spoil(head.args[0], vocabulary)
        return False
    if isinstance(head, Compound) and len(head.args) == 2 and head.name in (",", ";", ":-", "::"):
        found.error("several-heads", head.name_span, f"a clause has one head, not a '{head.name}' of several")
        return False
    if isinstance(head, Name | Compound) and is_core(_key(head)):
        why = refusal(_key(head), defined=False) if head is term else None
        if why:
            found.error(why.code, _name_span(head), why.message, remedy(head.name))
        else:
            found.error("built-in", _name_span(head), f"{text(_key(head))} is built into Prolog and cannot be defined")
        return False
    if isinstance(head, Name | Compound) and (arities := _other_arities(_key(head), vocabulary)):
        vocabulary.wrong_arity(_key(head), arities, _name_span(head))
        return False
    return True


def _other_arities(key: PredicateKey, vocabulary: Vocabulary) -> list[int]:
    """The arities that are declared for a name when the given one is not."""
    declared = vocabulary.declared
    known = vocabulary.arities.get(key[0], ())
    return [] if key in declared else sorted(arity for arity in known if (key[0], arity) in declared)


def _read(one: Plain, vocabulary: Vocabulary) -> list[Draft]:
    """The plain clauses of one sentence; none after an error in its head."""
    term, is_fact = one.term, one.head is one.term
    reader = GoalReader(vocabulary, term)
    atom = reader.atom(one.head, "fact" if is_fact else "clause head")
    body = None if is_fact or not isinstance(term, Compound) else reader.goal(term.args[1])
    if atom is None:
        _spoil(one.head, vocabulary)
        return []
    chance = None if one.annotation is None else chances.atom(one.annotation, atom, vocabulary)
    if body is None:
        return [Draft(atom, () if chance is None else (chance,), (), term.span)]
    return drafts(atom, body if chance is None else Both((body, chance)), term.span, vocabulary)


def _spoil(head: Term, vocabulary: Vocabulary) -> None:
    if isinstance(head, Name | Compound):
        vocabulary.spoilt.add(_key(head))


def _warn_singletons(sentence: Plain, vocabulary: Vocabulary) -> None:
    """A variable that occurs once is most often misspelt. `typed` speaks of those in heads."""
    occurrences = list(variables(sentence.whole))
    counts = Counter(variable.name for variable in occurrences)
    in_head = {variable.name for variable in variables(head_of(sentence.whole))}
    for variable in occurrences:
        name = variable.name
        if counts[name] == 1 and not name.startswith("_") and name not in in_head:
            message = f"singleton variable {name}; write _{name} if that is meant"
            vocabulary.found.warn("singleton", variable.span, message)


def _name_span(head: Name | Compound) -> Span:
    return head.name_span if isinstance(head, Compound) else head.span
