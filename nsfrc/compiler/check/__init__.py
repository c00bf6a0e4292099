"""Surface sentences to a typed program, or every error that stands in the way.

    declare       directives: types, predicates, targets, settings
    clauses       sentences to facts and plain clauses (`goals` reads them, `alternatives` expands ; and =)
    infer         types of the arguments that no declaration gives
    repeats       what atoms with the same constant twice rule out
    measures      numbers of objects, and comparisons of them as atoms; chances: probabilities of clauses, likewise
    typed         names, arities, constants and variables of every atom
    targets       what is asked, as ground atoms
    learning      what `nsfrc learn` is asked for
    needs         warnings about what no target needs, and included files without it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nsfrc.compiler.check.clauses import define
from nsfrc.compiler.check.declare import declare
from nsfrc.compiler.check.infer import Signatures, infer
from nsfrc.compiler.check.learning import with_stand_in
from nsfrc.compiler.check.needs import warn_unneeded, without_unneeded
from nsfrc.compiler.check.repeats import possible_drafts, possible_facts
from nsfrc.compiler.check.seen import with_atoms
from nsfrc.compiler.check.targets import read_classes, read_targets, read_thresholds
from nsfrc.compiler.check.typed import Typing
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ir import BACKGROUND, CHANCE, COUNTED, DERIVED, NEURAL, Clause, Predicate, PredicateKey, Program
from nsfrc.compiler.syntax import BROKEN, Sentence
from nsfrc.errors import Diagnostics
from nsfrc.models.outside import Outside

__all__ = ["check"]


def check(
    sentences: Sequence[Sentence], name: str, found: Diagnostics, slots: Mapping[str, int] | None = None,
    outside: Outside = Outside(), folder: Path = Path(),  # noqa: B008 (both are values)
) -> Program:
    """The program that the sentences make.

    `slots` overrides the size of types declared with slots(N); `outside` and `folder` say where class names of a
    perception are found. Warnings are left in `found`; raises
    CompileError with everything in `found` when there is an error in it.
    """
    lost = frozenset(word for sentence in sentences if sentence.kind == BROKEN for word in sentence.words)
    vocabulary = Vocabulary(found, lost=lost)
    declarations = declare(sentences, vocabulary, slots or {}, outside, folder)
    sentences = with_atoms(sentences, vocabulary.aliases)
    facts, drafts = define(sentences, vocabulary)
    signatures = infer(vocabulary, facts, drafts)
    facts, drafts = possible_facts(facts, signatures, vocabulary), possible_drafts(drafts, signatures, vocabulary)
    typing = Typing(vocabulary, signatures)
    for fact in facts:
        typing.fact(fact)
    clauses = [typing.clause(draft) for draft in drafts]
    targets = read_targets(declarations.targets, clauses, vocabulary, signatures, typing)
    classes = read_classes(declarations.classes, targets, clauses, vocabulary, signatures, typing)
    thresholds = read_thresholds(declarations.thresholds, targets, classes, vocabulary)
    targets = (*targets, *classes)
    learning = declarations.learning.resolve(signatures)
    vocabulary.report_unknown()
    if learning is not None:
        pass  # it may need whatever there is, and what it finds is asked
    elif not declarations.targets and not declarations.classes and not lost:
        found.warn("no-target", None, f"{name} has no target", "say what is asked: :- target(kp(img)).")
    elif not found.failed:
        warn_unneeded(targets, clauses, facts, vocabulary)
    found.stop()
    return with_stand_in(without_unneeded(Program(
        name=name,
        types=tuple(vocabulary.types.values()),
        predicates=(*_predicates(vocabulary, signatures, clauses), *typing.comparisons.predicates(),
                    *_chances(vocabulary, clauses)),
        facts=tuple(dict.fromkeys(facts)),
        clauses=tuple(clauses),
        targets=targets,
        settings=replace(declarations.settings, thresholds=thresholds),
        classes=classes,
        numbers=tuple(vocabulary.numbers.values()),
        learning=learning,
    )))


def _predicates(
    vocabulary: Vocabulary, signatures: Signatures, clauses: Sequence[Clause]
) -> tuple[Predicate, ...]:
    """Declared predicates in the order of the text, then the others in the order of their definitions."""
    heads = {clause.head.key for clause in clauses}

    def predicate(key: PredicateKey) -> Predicate:
        declared = vocabulary.declared.get(key)
        count = vocabulary.counted.get(key)
        role = COUNTED if count else NEURAL if declared and declared.neural else DERIVED if key in heads else BACKGROUND
        span = declared.span if declared else vocabulary.defined[key]
        return Predicate(key[0], tuple(name for name in signatures[key] if name), role, span, count)

    return tuple(predicate(key) for key in dict.fromkeys([*vocabulary.declared, *vocabulary.defined]))


def _chances(vocabulary: Vocabulary, clauses: Sequence[Clause]) -> tuple[Predicate, ...]:
    """The probabilities of clauses that are left."""
    used = {atom.key for clause in clauses for atom in clause.body}
    return tuple(Predicate(key[0], (), CHANCE, span, chance=chance)
                 for key, (chance, span) in vocabulary.chances.items() if key in used)
