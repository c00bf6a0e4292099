"""Surface sentences to a typed program, or every error that stands in the way.

    declare       directives: types, predicates, targets, settings
    clauses       sentences to facts and plain clauses (`goals` reads them, `alternatives` expands ; and =)
    infer         types of the arguments that no declaration gives
    typed         names, arities, constants and variables of every atom
    targets       what is asked, as ground atoms
    needs         warnings about what no target needs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsfrc.check.clauses import define
from nsfrc.check.declare import declare
from nsfrc.check.infer import Signatures, infer
from nsfrc.check.needs import warn_unneeded
from nsfrc.check.targets import read_targets
from nsfrc.check.typed import Typing
from nsfrc.check.vocabulary import Vocabulary
from nsfrc.errors import Diagnostics
from nsfrc.ir import BACKGROUND, DERIVED, NEURAL, Clause, Predicate, PredicateKey, Program
from nsfrc.syntax import BROKEN, Sentence

__all__ = ["check"]


def check(
    sentences: Sequence[Sentence], name: str, found: Diagnostics, slots: Mapping[str, int] | None = None
) -> Program:
    """The program that the sentences make.

    `slots` overrides the size of types declared with slots(N). Warnings are left in `found`; raises
    CompileError with everything in `found` when there is an error in it.
    """
    lost = frozenset(word for sentence in sentences if sentence.kind == BROKEN for word in sentence.words)
    vocabulary = Vocabulary(found, lost=lost)
    declarations = declare(sentences, vocabulary, slots or {})
    facts, drafts = define(sentences, vocabulary)
    signatures = infer(vocabulary, facts, drafts)
    typing = Typing(vocabulary, signatures)
    for fact in facts:
        typing.fact(fact)
    clauses = [typing.clause(draft) for draft in drafts]
    targets = read_targets(declarations.targets, clauses, vocabulary, signatures, typing)
    vocabulary.report_unknown()
    if not declarations.targets and not lost:
        found.warn(None, f"{name} has no target", "say what is asked: :- target(kp(img)).")
    elif not found.failed:
        warn_unneeded(targets, clauses, facts, found)
    found.stop()
    return Program(
        name=name,
        types=tuple(vocabulary.types.values()),
        predicates=_predicates(vocabulary, signatures, clauses),
        facts=tuple(dict.fromkeys(facts)),
        clauses=tuple(clauses),
        targets=targets,
        settings=declarations.settings,
    )


def _predicates(
    vocabulary: Vocabulary, signatures: Signatures, clauses: Sequence[Clause]
) -> tuple[Predicate, ...]:
    """Declared predicates in the order of the text, then the others in the order of their definitions."""
    heads = {clause.head.key for clause in clauses}

    def predicate(key: PredicateKey) -> Predicate:
        declared = vocabulary.declared.get(key)
        role = NEURAL if declared and declared.neural else DERIVED if key in heads else BACKGROUND
        span = declared.span if declared else vocabulary.defined[key]
        return Predicate(key[0], tuple(name for name in signatures[key] if name), role, span)

    return tuple(predicate(key) for key in dict.fromkeys([*vocabulary.declared, *vocabulary.defined]))
