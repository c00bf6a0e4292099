"""Sentences to facts and plain clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nsfrc.check.alternatives import Draft, drafts
from nsfrc.check.builtin import is_core, refusal, remedy
from nsfrc.check.declare import is_query
from nsfrc.check.goals import GoalReader
from nsfrc.check.vocabulary import Vocabulary, text
from nsfrc.errors import Span
from nsfrc.ir import Atom, PredicateKey
from nsfrc.syntax import CLAUSE, Compound, Name, Sentence, Term, calls, variables

_UNSUPPORTED = {
    "::": ("a probabilistic clause (p::clause)", "put a neural predicate into the body, or learn clause weights"),
    "-->": ("a grammar rule (-->)", "write clauses"),
}


def define(sentences: Iterable[Sentence], vocabulary: Vocabulary) -> tuple[list[Atom], list[Draft]]:
    """The facts and the plain clauses of a program; fills the vocabulary's `defined`.

    `h :- true.` with a ground head is a fact. Facts may still hold variables: `typed` reports them.
    """
    terms = [s.term for s in sentences if s.kind == CLAUSE and s.term and not is_query(s.term, vocabulary)]
    for term in terms:
        head = _head(term)
        if isinstance(head, Name | Compound) and not _other_arities(_key(head), vocabulary):
            vocabulary.defined.setdefault(_key(head), head.span)
    facts: list[Atom] = []
    clauses: list[Draft] = []
    for term in terms:
        if not _well_formed(term, vocabulary):
            continue
        for draft in _read(term, vocabulary):
            ground = not any(True for _ in draft.head.variables())
            is_fact = not (draft.body or draft.filters or draft.doubtful) and (ground or _head(term) is term)
            if is_fact and not ground:
                vocabulary.spoilt.add(draft.head.key)  # `typed` says why; nothing else is said of it
            facts.append(draft.head) if is_fact else clauses.append(draft)
    return facts, clauses


def _head(term: Term) -> Term:
    return term.args[0] if calls(term, ":-", 2) else term


def _key(head: Name | Compound) -> PredicateKey:
    return head.name, len(head.args) if isinstance(head, Compound) else 0


def _well_formed(term: Term, vocabulary: Vocabulary) -> bool:
    """Refuse sentences that define nothing a program can define."""
    head, found = _head(term), vocabulary.found
    if isinstance(head, Compound) and len(head.args) == 2 and head.name in ("::", "-->"):
        spoken, instead = _UNSUPPORTED[head.name]
        found.error(head.name_span, f"{spoken} is not supported yet", instead)
        defines = head.args[1] if head.name == "::" else head.args[0]
        if isinstance(defines, Name | Compound):
            vocabulary.defined.setdefault(_key(defines), defines.span)
            vocabulary.spoilt.add(_key(defines))
        return False
    if isinstance(head, Compound) and len(head.args) == 2 and head.name in (",", ";", ":-"):
        found.error(head.name_span, f"a clause has one head, not a '{head.name}' of several")
        return False
    if isinstance(head, Name | Compound) and is_core(_key(head)):
        why = refusal(_key(head), defined=False) if head is term else None
        message = why or f"{text(_key(head))} is built into Prolog and cannot be defined"
        found.error(_name_span(head), message, remedy(head.name) if why else None)
        return False
    if isinstance(head, Name | Compound) and (arities := _other_arities(_key(head), vocabulary)):
        vocabulary.wrong_arity(_key(head), arities, _name_span(head))
        return False
    return True


def _other_arities(key: PredicateKey, vocabulary: Vocabulary) -> list[int]:
    """The arities that are declared for a name when the given one is not."""
    declared = vocabulary.declared
    return [] if key in declared else sorted(arity for name, arity in declared if name == key[0])


def _read(term: Term, vocabulary: Vocabulary) -> list[Draft]:
    """The plain clauses of one sentence; none after an error in its head."""
    head = _head(term)
    reader = GoalReader(vocabulary, term)
    if head is term:
        fact = reader.atom(term, "fact")
        if fact is None:
            _spoil(head, vocabulary)
        return [] if fact is None else [Draft(fact, (), (), term.span)]
    assert isinstance(term, Compound)
    atom = reader.atom(head, "clause head")
    body = reader.goal(term.args[1])
    _warn_singletons(term, head, vocabulary)
    if atom is None:
        _spoil(head, vocabulary)
        return []
    return drafts(atom, body, term.span, vocabulary)


def _spoil(head: Term, vocabulary: Vocabulary) -> None:
    if isinstance(head, Name | Compound):
        vocabulary.spoilt.add(_key(head))


def _warn_singletons(term: Term, head: Term, vocabulary: Vocabulary) -> None:
    """A variable that occurs once is most often misspelt. In a head it is an error of its own."""
    occurrences = list(variables(term))
    counts = Counter(variable.name for variable in occurrences)
    in_head = {variable.name for variable in variables(head)}
    for variable in occurrences:
        name = variable.name
        if counts[name] == 1 and not name.startswith("_") and name not in in_head:
            vocabulary.found.warn(variable.span, f"singleton variable {name}; write _{name} if that is meant")


def _name_span(head: Name | Compound) -> Span:
    return head.name_span if isinstance(head, Compound) else head.span
