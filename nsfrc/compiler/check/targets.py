"""Targets: what a program is asked, as ground atoms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TypeGuard

from nsfrc.compiler.check.builtin import is_core
from nsfrc.compiler.check.declare import constant_name
from nsfrc.compiler.check.goals import GoalReader
from nsfrc.compiler.check.infer import Signatures
from nsfrc.compiler.check.repeats import refuse_repeats
from nsfrc.compiler.check.typed import Typing
from nsfrc.compiler.check.unify import Heads
from nsfrc.compiler.check.vocabulary import Vocabulary, text
from nsfrc.compiler.ir import CLASSES, NO_CLASS, Atom, Clause, Const, PredicateKey, Var
from nsfrc.compiler.syntax import Compound, ListTerm, Name, Number, Term, Variable

MAX_TARGETS = 10_000


def read_targets(
    terms: Iterable[Term],
    clauses: Sequence[Clause],
    vocabulary: Vocabulary,
    signatures: Signatures,
    typing: Typing,
    kind: str = "target",
) -> tuple[Atom, ...]:
    """The ground targets in order, each once. A variable stands for every constant of its type.

    kind: what messages call them.
    """
    heads = Heads(clauses)
    targets: dict[Atom, None] = {}
    for term in terms:
        if isinstance(term, Compound) and is_core((term.name, len(term.args))):
            hint = f":- {'classes' if kind == 'class' else 'target'}([kp1(img), kp2(img)])."
            message = f"a {kind} is one atom; several are given as a list"
            vocabulary.found.error("bad-target", term.name_span, message, hint)
            continue
        atom = GoalReader(vocabulary, term).atom(term, kind)
        if atom is None or refuse_repeats(atom, signatures, vocabulary):
            continue
        if not _derivable(atom, heads, vocabulary, kind):
            continue
        before = vocabulary.found.errors
        typing.atom(atom, {})
        if vocabulary.found.errors == before:
            _add_instances(atom, targets, vocabulary, signatures)
    return tuple(targets)


def read_classes(
    directive: Compound | None,
    targets: Sequence[Atom],
    clauses: Sequence[Clause],
    vocabulary: Vocabulary,
    signatures: Signatures,
    typing: Typing,
) -> tuple[Atom, ...]:
    """The ground atoms of `:- classes([...])` in order: at least two, and none of them a target too."""
    if directive is None:
        return ()
    found, (given,) = vocabulary.found, directive.args
    hint = ":- classes([kp1(img), kp2(img)])."
    if (isinstance(given, Name) and given.name == "[]") or (isinstance(given, ListTerm) and given.tail is not None):
        found.error("bad-classes", given.span, "classes needs a list of at least two atoms", hint)
        return ()
    terms, before = given.items if isinstance(given, ListTerm) else (given,), found.errors
    classes = read_targets(terms, clauses, vocabulary, signatures, typing, "class")
    for atom in classes:
        if atom in targets:
            hint_both = "a target is a question of its own; leave out one of the two"
            found.error("bad-classes", atom.span, f"{atom} is a target and a class", hint_both)
        elif str(atom) == NO_CLASS:
            message = f"no class can be called {NO_CLASS}, which is the answer where no class stands out"
            found.error("bad-classes", atom.span, message)
    for atom in targets:
        if str(atom) == CLASSES:
            message = f"beside classes no target can be called {CLASSES}, as results call that question so"
            found.error("bad-classes", atom.span, message)
    if len(classes) == 1 and found.errors == before:
        message = "one class leaves nothing to choose from"
        found.error("bad-classes", given.span, message, f"ask whether it holds: :- target({classes[0]}).")
    return classes


def read_thresholds(
    given: Iterable[tuple[Term, float]], targets: Sequence[Atom], classes: Sequence[Atom], vocabulary: Vocabulary
) -> tuple[tuple[str, float], ...]:
    """The thresholds of single questions: targets as text, or `classes`. A variable stands for any constant."""
    found: dict[str, float] = {}
    by_key: dict[PredicateKey, list[Atom]] = {}
    for atom in targets:
        by_key.setdefault(atom.key, []).append(atom)
    for term, value in given:
        key = (term.name, len(term.args) if isinstance(term, Compound) else 0) if _is_callable(term) else ("", 0)
        named = [str(atom) for atom in by_key.get(key, ()) if _is_instance(atom, term)]
        if classes and key == (CLASSES, 0):
            named = [CLASSES]
        if not named and not (_is_callable(term) and vocabulary.may_be_lost(term.name)):
            _unknown_threshold(term, targets, classes, vocabulary)
        for name in named:
            if name in found:
                vocabulary.found.error("declared-twice", term.span, f"{name} has a threshold already")
            found.setdefault(name, value)
    return tuple(found.items())


def _is_callable(term: Term) -> TypeGuard[Name | Compound]:
    return isinstance(term, Name | Compound)


def _is_instance(atom: Atom, term: Term) -> bool:
    """Whether a ground atom is a term, with constants for its variables."""
    if isinstance(term, Name):
        return atom.key == (term.name, 0)
    if not isinstance(term, Compound) or atom.key != (term.name, len(term.args)):
        return False
    bound: dict[str, str] = {}
    for arg, wanted in zip(atom.args, term.args, strict=True):
        if isinstance(wanted, Variable):
            if wanted.name != "_" and bound.setdefault(wanted.name, arg.name) != arg.name:
                return False
        elif not isinstance(wanted, Name | Number) or constant_name(wanted) != arg.name:
            return False
    return True


def _unknown_threshold(term: Term, targets: Sequence[Atom], classes: Sequence[Atom], vocabulary: Vocabulary) -> None:
    if any(_is_instance(atom, term) for atom in classes):
        message = f"{term} is a class, and these share one threshold"
        vocabulary.found.error("bad-setting", term.span, message, ":- threshold(classes, 0.5).")
        return
    names = [str(atom) for atom in targets]
    hint = vocabulary.found.did_you_mean(str(term), names)
    if hint is None and names:
        hint = f"the targets are {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"
    vocabulary.found.error("bad-setting", term.span, f"threshold names {term}, which is not a target", hint)


def _derivable(atom: Atom, heads: Heads, vocabulary: Vocabulary, kind: str) -> bool:
    """Whether some clause can derive an instance of the target; reports when none can."""
    key = atom.key
    if not vocabulary.knows(key):
        vocabulary.unknown_predicate(key, atom.span)
        return False
    if key in vocabulary.spoilt or vocabulary.may_be_lost(atom.name):
        return key in heads
    if heads.matching(atom):
        return True
    declared = vocabulary.declared.get(key)
    if key in heads:
        why = "the head of each clause has a different constant"
    elif declared and declared.neural:
        why = f"{text(key)} is neural"
    elif key in vocabulary.defined:
        why = f"{text(key)} has only facts"
    else:
        why = f"{text(key)} is declared, but has no clauses"
    vocabulary.found.error("underivable-target", atom.span, f"no clause derives the {kind} {atom}", why)
    return False


def _add_instances(
    atom: Atom, targets: dict[Atom, None], vocabulary: Vocabulary, signatures: Signatures
) -> None:
    """Add the ground instances of a target to `targets`."""
    count = 1
    for arg, name in zip(atom.args, signatures[atom.key], strict=True):
        if isinstance(arg, Var):
            count *= len(vocabulary.types[name].constants) if name else 0
    if count > MAX_TARGETS:
        message = f"the target {atom} stands for {count} atoms (the limit is {MAX_TARGETS})"
        vocabulary.found.error("too-many-targets", atom.span, message)
        return
    size = len(targets)
    for instance in _instances(atom, vocabulary, signatures):
        targets.setdefault(instance)
    if count and len(targets) == size and any(True for _ in atom.variables()):
        _check_instances(atom, vocabulary, signatures)


def _instances(atom: Atom, vocabulary: Vocabulary, signatures: Signatures) -> Iterator[Atom]:
    types, choices = signatures[atom.key], []
    for arg, name in zip(atom.args, types, strict=True):
        names = [arg.name] if isinstance(arg, Const) else vocabulary.types[name].constants if name else ()
        choices.append(names)
    apart = [place for place, name in enumerate(types) if name and vocabulary.apart(name)]
    for names in product(*choices):
        if len({(types[place], names[place]) for place in apart}) == len(apart):
            args = tuple(Const(name, arg.span) for name, arg in zip(names, atom.args, strict=True))
            yield Atom(atom.name, args, atom.span)


def _check_instances(atom: Atom, vocabulary: Vocabulary, signatures: Signatures) -> None:
    """A target with variables that no different constants can fill can never hold."""
    if next(_instances(atom, vocabulary, signatures), None) is None:
        vocabulary.found.error("bad-target", atom.span, f"the target {atom} has no instance with different arguments")
