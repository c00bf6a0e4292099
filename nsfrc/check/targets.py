"""Targets: what a program is asked, as ground atoms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from nsfrc.check.builtin import is_core
from nsfrc.check.goals import GoalReader
from nsfrc.check.infer import Signatures
from nsfrc.check.typed import Typing
from nsfrc.check.vocabulary import Vocabulary, text
from nsfrc.ir import Atom, Clause, Const, PredicateKey, Var
from nsfrc.syntax import Compound, Term

MAX_TARGETS = 10_000


def read_targets(
    terms: Iterable[Term],
    clauses: Sequence[Clause],
    vocabulary: Vocabulary,
    signatures: Signatures,
    typing: Typing,
) -> tuple[Atom, ...]:
    """The ground targets in order, each once. A variable stands for every constant of its type."""
    heads: dict[PredicateKey, list[Atom]] = {}
    for clause in clauses:
        heads.setdefault(clause.head.key, []).append(clause.head)
    targets: dict[Atom, None] = {}
    for term in terms:
        if isinstance(term, Compound) and is_core((term.name, len(term.args))):
            hint = ":- target([kp1(img), kp2(img)])."
            vocabulary.found.error(term.name_span, "a target is one atom; several are given as a list", hint)
            continue
        atom = GoalReader(vocabulary, term).atom(term, "target")
        if atom is None or not _derivable(atom, heads, vocabulary):
            continue
        before = len(vocabulary.found.found)
        typing.atom(atom, {})
        if len(vocabulary.found.found) == before:
            _add_instances(atom, targets, vocabulary, signatures)
    return tuple(targets)


def _derivable(atom: Atom, heads: Mapping[PredicateKey, list[Atom]], vocabulary: Vocabulary) -> bool:
    """Whether some clause can derive an instance of the target; reports when none can."""
    key = atom.key
    if not vocabulary.knows(key):
        vocabulary.unknown_predicate(key, atom.span)
        return False
    if key in vocabulary.spoilt or vocabulary.may_be_lost(atom.name):
        return key in heads
    if any(unifiable(atom, head) for head in heads.get(key, ())):
        return True
    declared = vocabulary.declared.get(key)
    if key in heads:
        why = "the head of each clause has another constant"
    elif declared and declared.neural:
        why = f"{text(key)} is neural"
    elif key in vocabulary.defined:
        why = f"{text(key)} has only facts"
    else:
        why = f"{text(key)} is declared, but has no clauses"
    vocabulary.found.error(atom.span, f"no clause derives the target {atom}", why)
    return False


def unifiable(first: Atom, second: Atom) -> bool:
    """Whether two atoms of one predicate agree wherever both have a constant."""
    pairs = zip(first.args, second.args, strict=True)
    return all(isinstance(x, Var) or isinstance(y, Var) or x.name == y.name for x, y in pairs)


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
        vocabulary.found.error(atom.span, message)
        return
    size = len(targets)
    for instance in _instances(atom, vocabulary, signatures):
        targets.setdefault(instance)
    if count and len(targets) == size and any(True for _ in atom.variables()):
        _check_instances(atom, vocabulary, signatures)


def _instances(atom: Atom, vocabulary: Vocabulary, signatures: Signatures) -> Iterator[Atom]:
    choices = []
    for arg, name in zip(atom.args, signatures[atom.key], strict=True):
        names = [arg.name] if isinstance(arg, Const) else vocabulary.types[name].constants if name else ()
        choices.append(names)
    for names in product(*choices):
        if len(set(names)) == len(names):
            args = tuple(Const(name, arg.span) for name, arg in zip(names, atom.args, strict=True))
            yield Atom(atom.name, args, atom.span)


def _check_instances(atom: Atom, vocabulary: Vocabulary, signatures: Signatures) -> None:
    """A target with variables that no different constants can fill can never hold."""
    if next(_instances(atom, vocabulary, signatures), None) is None:
        vocabulary.found.error(atom.span, f"the target {atom} has no instance with different arguments")
