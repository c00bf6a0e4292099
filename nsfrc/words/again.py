"""Clauses read back from the texts that a .nsfrc file keeps."""

from __future__ import annotations

from nsfrc import ir
from nsfrc.check.clauses import define
from nsfrc.check.typed import Typing
from nsfrc.check.vocabulary import Declared, Vocabulary
from nsfrc.errors import Diagnostics, Source, Span
from nsfrc.herbrand import Herbrand
from nsfrc.parse import parse


def read_back(text: str, language: Herbrand) -> ir.Clause | None:
    """The clause of a text that `str` of a clause made; None for any other text."""
    found = Diagnostics()
    source = Source("", text)
    vocabulary = Vocabulary(found, types=dict(language.type_by_name))
    nowhere = Span(source, 1, 1, 1, 1)
    for predicate in language.predicates:
        neural = predicate.role == ir.NEURAL
        vocabulary.declared[predicate.key] = Declared(predicate.name, predicate.types, neural, nowhere)
        if not neural:  # by the other clauses and facts, which are not read here
            vocabulary.defined[predicate.key] = nowhere
    vocabulary.index_constants()
    _, drafts = define(parse(source, found), vocabulary)
    if found.failed or len(drafts) != 1:
        return None
    clause = Typing(vocabulary, {p.key: p.types for p in language.predicates}).clause(drafts[0])
    vocabulary.report_unknown()
    return None if found.failed else clause
