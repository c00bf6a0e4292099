"""`learn`, `vars` and `body`: what `nsfrc learn` is to find rules for, and what these may be made of.

They change nothing of what a program means: a predicate that is to be learnt is declared and has no clauses yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from nsfrc.compiler.check.builtin import is_core
from nsfrc.compiler.check.vocabulary import Declared, Vocabulary, text, where
from nsfrc.compiler.ir import (
    DERIVED,
    NEURAL,
    Allowed,
    Atom,
    Clause,
    Learning,
    PredicateKey,
    Program,
    Target,
    Var,
    quoted,
)
from nsfrc.compiler.syntax import Compound, ListTerm, Name, Number, Term, calls
from nsfrc.errors import Span
from nsfrc.records import dataclass

Signatures = Mapping[PredicateKey, Sequence[str | None]]  # as `infer` gives them

MAX_VARIABLES = 9
_LEARN = ":- learn(kp(image)).  or  :- learn([kp1(image), kp2(image)])."
_BODY = ":- body(closeby(object, object), [max(1), symmetric])."


@dataclass(frozen=True, slots=True)
class _Signature:
    """A name with types, as it was written."""

    name: str
    types: tuple[str, ...]
    span: Span
    spans: tuple[Span, ...]

    @property
    def key(self) -> PredicateKey:
        return self.name, len(self.types)

    def __str__(self) -> str:
        return f"{quoted(self.name)}({', '.join(map(quoted, self.types))})" if self.types else quoted(self.name)


@dataclass(slots=True)
class LearningReader:
    """Collects the three directives; `settle` and `resolve` look at them when more is known."""

    vocabulary: Vocabulary
    heads: list[_Signature] = field(default_factory=list)
    classes: bool = False
    variables: dict[str, tuple[int, Span]] = field(default_factory=dict)
    bodies: list[tuple[_Signature, int | None, bool]] = field(default_factory=list)
    first: Span | None = None

    def learn(self, goal: Compound) -> None:
        found, (given,) = self.vocabulary.found, goal.args
        if self.first is not None:
            found.error("declared-twice", goal.span, f"learn is already set {where(self.first, goal.span)}",
                        "name all of them in one list: :- learn([kp1(image), kp2(image)]).")
            return
        self.first = goal.span
        several = isinstance(given, ListTerm) and given.tail is None
        terms: Iterable[Term] = given.items if isinstance(given, ListTerm) and several else (given,)
        for term in terms:
            one = self._signature(term, "learn needs a predicate with the types of its arguments", _LEARN)
            if one is None:
                continue
            if any(one.key == other.key for other in self.heads):
                found.error("bad-learn", one.span, f"learn names {text(one.key)} twice")
            elif is_core(one.key):
                found.error("built-in", one.span, f"{text(one.key)} is built into Prolog and cannot be learnt")
            else:
                self.heads.append(one)
        self.classes = several and len(self.heads) > 1

    def vars(self, goal: Compound) -> None:
        found, (name, count) = self.vocabulary.found, goal.args
        whole = isinstance(count, Number) and isinstance(count.value, int) and 0 <= count.value <= MAX_VARIABLES
        if not isinstance(name, Name):
            found.error("bad-learn", name.span, "vars needs the name of a type", ":- vars(object, 4).")
        elif not (whole and isinstance(count, Number)):
            found.error("bad-learn", count.span, f"vars needs a whole number from 0 to {MAX_VARIABLES}",
                        f":- vars({name}, 4).")
        elif name.name in self.variables:
            first = self.variables[name.name][1]
            found.error("declared-twice", goal.span, f"vars of {name} is already set {where(first, goal.span)}")
        else:
            self.variables[name.name] = int(count.value), name.span

    def body(self, goal: Compound) -> None:
        one = self._signature(goal.args[0], "body needs a predicate or number with the types of its arguments", _BODY)
        options = goal.args[1] if len(goal.args) == 2 else ListTerm((), None, goal.span)
        if isinstance(options, Name) and options.name == "[]":
            options = ListTerm((), None, options.span)
        if not isinstance(options, ListTerm) or options.tail is not None:
            self.vocabulary.found.error("bad-learn", options.span, "the options of body are a list", _BODY)
            return
        most, symmetric = None, False
        for option in options.items:
            if isinstance(option, Name) and option.name == "symmetric":
                symmetric = True
            elif calls(option, "max", 1) and isinstance(option.args[0], Number) \
                    and isinstance(option.args[0].value, int) and option.args[0].value >= 0:
                most = option.args[0].value
            else:
                self.vocabulary.found.error("bad-learn", option.span, f"body has no option {option}",
                                            "there are max(N) and symmetric")
        if one is not None and any(one.key == other.key for other, _, _ in self.bodies):
            self.vocabulary.found.error("bad-learn", one.span, f"body names {text(one.key)} twice")
        elif one is not None:
            self.bodies.append((one, most, symmetric))

    def _signature(self, term: Term, message: str, hint: str) -> _Signature | None:
        args = term.args if isinstance(term, Compound) else ()
        types = tuple(arg.name for arg in args if isinstance(arg, Name))
        if not isinstance(term, Name | Compound) or term.name == "[]" or len(types) < len(args):
            self.vocabulary.found.error("bad-learn", term.span, message, hint)
            return None
        return _Signature(term.name, types, term.span, tuple(arg.span for arg in args))

    def settle(self) -> list[tuple[Declared, list[Span]]]:
        """Declare what is to be learnt, when all directives have been read; gives what declares types for the first
        time, for their names to be checked."""
        added, vocabulary = [], self.vocabulary
        for one in self.heads:
            declared = vocabulary.declared.get(one.key)
            if declared is None:
                new = Declared(one.name, one.types, False, one.span)
                vocabulary.declare(new)
                added.append((new, list(one.spans)))
            elif declared.neural or declared.types != one.types:
                message = f"{text(one.key)} is declared as {'neural' if declared.neural else declared}, " \
                    f"{where(declared.span, one.span)}, and so cannot be learnt as {one}"
                vocabulary.found.error("bad-learn", one.span, message)
        for name, (_, span) in self.variables.items():
            if name not in vocabulary.types and not vocabulary.may_be_lost(name) and not vocabulary.no_types(span):
                hint = vocabulary.found.did_you_mean(name, vocabulary.types)
                vocabulary.found.error("unknown-type", span, f"unknown type {quoted(name)}", hint)
        if self.first is None and (self.variables or self.bodies):
            span = next(iter([span for _, span in self.variables.values()] + [one.span for one, _, _ in self.bodies]))
            message = "vars and body say what learn may use, and there is no learn"
            vocabulary.found.error("bad-learn", span, message, _LEARN)
        return added

    def resolve(self, signatures: Signatures) -> Learning | None:
        """What is to be learnt, once the types of all predicates are known."""
        if self.first is None:
            return None
        vocabulary = self.vocabulary
        heads = []
        for one in self.heads:
            sizes = [len(vocabulary.types[name].constants) for name in one.types if name in vocabulary.types]
            if one.key in vocabulary.defined:
                span = vocabulary.defined[one.key]
                message = f"{text(one.key)} is to be learnt, so it cannot have clauses yet"
                hint = "give it another name, or leave out the learn directive"
                vocabulary.found.error("bad-learn", span, message, hint)
            elif any(size != 1 for size in sizes):
                vocabulary.found.error(
                    "bad-learn", one.span, f"{one} cannot be learnt: a label is about a whole image, so each argument "
                    f"must be of a type with one constant", ":- type(image, [img]).  and  :- learn(kp(image)).")
            elif len(sizes) == len(one.types):
                heads.append(Target(one.name, tuple(vocabulary.types[name].constants[0] for name in one.types)))
        allowed = [self._allowed(*body, signatures) for body in self.bodies]
        return Learning(tuple(heads), self.classes, tuple((name, n) for name, (n, _) in self.variables.items()),
                        tuple(one for one in allowed if one is not None))

    def _allowed(self, one: _Signature, most: int | None, symmetric: bool, signatures: Signatures) -> Allowed | None:
        vocabulary = self.vocabulary
        number = vocabulary.numbers.get(one.key)
        types = signatures.get(one.key) or (number.types if number is not None else None)
        if any(one.key == head.key for head in self.heads):
            message = f"{text(one.key)} is to be learnt, and so cannot be in its own body"
            vocabulary.found.error("bad-learn", one.span, message)
        elif types is None:
            vocabulary.unknown_predicate(one.key, one.span)
        elif tuple(types) != one.types:
            wanted = f"{quoted(one.name)}({', '.join(map(str, types))})"
            vocabulary.found.error("bad-learn", one.span, f"{one} has other types than {wanted}", f":- body({wanted}).")
        elif symmetric and len(set(one.types)) != 1:
            message = f"{one} cannot be symmetric: its arguments have several types"
            vocabulary.found.error("bad-learn", one.span, message)
        else:
            return Allowed(one.key, most, symmetric)
        return None


def with_stand_in(program: Program) -> Program:
    """A program without clauses has nothing to ground, so one whose clauses are all still to be learnt gets a clause.

    It has no span and asks nothing that a target would need.
    """
    neural = [predicate for predicate in program.predicates if predicate.role == NEURAL and predicate.types]
    if program.learning is None or program.clauses or not neural or not program.learning.targets:
        return program
    head = program.predicate(program.learning.targets[0].key)
    fewest = min(neural, key=lambda predicate: len(predicate.types))
    of_head = {name: Var(f"_X{i}") for i, name in enumerate(head.types)}
    args = tuple(of_head.get(name) or Var(f"_A{i}") for i, name in enumerate(fewest.types))
    types = [*((of_head[name].name, name) for name in dict.fromkeys(head.types)),
             *((arg.name, name) for arg, name in zip(args, fewest.types, strict=True) if name not in of_head)]
    clause = Clause(Atom(head.name, tuple(of_head[name] for name in head.types)), (Atom(fewest.name, args),), (),
                    tuple(types))
    derived = tuple(replace(p, role=DERIVED) if p.key == head.key else p for p in program.predicates)
    return replace(program, clauses=(clause,), predicates=derived)
