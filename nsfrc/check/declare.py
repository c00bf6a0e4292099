"""Directives: the types, predicates, targets and settings that a program declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from nsfrc.check import shipped
from nsfrc.check.builtin import is_core
from nsfrc.check.vocabulary import Declared, Vocabulary, and_more, text, where
from nsfrc.errors import Span, did_you_mean
from nsfrc.ir import ATTRIBUTE, GAMMA_RANGE, INPUT, LEAST_GAMMA, MOST_GAMMA, OBJECT, DataType, Settings, quoted
from nsfrc.syntax import (
    CLAUSE,
    DIRECTIVE,
    QUERY,
    Compound,
    ListTerm,
    Name,
    Number,
    Sentence,
    Term,
    calls,
    spine,
)

MAX_SLOTS = 100_000
MAX_STEPS = 1_000_000

# What other Prolog systems need and this compiler does not.
_IGNORED = {
    "use_module", "module", "discontiguous", "dynamic", "multifile", "table", "set_prolog_flag",
    "style_check", "ensure_loaded", "initialization", "encoding",
}


@dataclass(slots=True)
class Declarations:
    """What the directives say, apart from the vocabulary: target terms as written, and settings."""

    targets: list[Term] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)


def declare(sentences: Sequence[Sentence], vocabulary: Vocabulary, slots: Mapping[str, int]) -> Declarations:
    """Fill the vocabulary's types and declared predicates; `slots` overrides `slots(N)` by type name."""
    reader = _Directives(vocabulary)
    for sentence in sentences:
        if sentence.kind == DIRECTIVE and sentence.term:
            for goal in spine(sentence.term, ","):
                reader.read(goal)
    for sentence in sentences:
        if sentence.kind == QUERY and sentence.term:
            reader.result.targets.append(sentence.term)
        elif sentence.kind == CLAUSE and is_query(sentence.term, vocabulary):
            reader.result.targets.append(sentence.term.args[0])
    reader.override(slots)
    vocabulary.index_constants()
    reader.check_signatures()
    return reader.result


def is_query(term: Term | None, vocabulary: Vocabulary) -> TypeGuard[Compound]:
    """`query(atom).`, another way to write a target; a declared query/1 is a predicate like others."""
    return calls(term, "query", 1) and ("query", 1) not in vocabulary.declared


def does_nothing(term: Term | None) -> bool:
    """Whether a directive is one that other Prolog systems need and this compiler passes over."""
    return isinstance(term, Name | Compound) and term.name in _IGNORED


class _Directives:
    """Reads one directive after another into a vocabulary."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary, self.found = vocabulary, vocabulary.found
        self.result = Declarations()
        self._type_names: list[tuple[Declared, list[Span]]] = []
        self._set: dict[str, Span] = {}
        self._readers: dict[tuple[str, int], Callable[[Compound], None]] = {
            ("type", 2): self._type,
            ("pred", 1): self._predicate,
            ("neural", 1): self._predicate,
            ("target", 1): self._target,
            ("query", 1): self._target,
            ("steps", 1): self._steps,
            ("gamma", 1): self._gamma,
            ("threshold", 1): self._threshold,
            ("perception", 1): self._perception,
        }

    def read(self, goal: Term) -> None:
        """Read one directive goal."""
        if not isinstance(goal, Name | Compound):
            self.found.error(goal.span, "a directive must be a name with arguments", ":- target(kp(img)).")
            return
        args = goal.args if isinstance(goal, Compound) else ()
        span = goal.name_span if isinstance(goal, Compound) else goal.span
        if isinstance(goal, Compound) and (goal.name, len(args)) in self._readers:
            self._readers[goal.name, len(args)](goal)
        elif goal.name == "ensure_loaded" and not (args and calls(args[0], "library", 1)):
            self.found.error(span, "ensure_loaded reads libraries only", "read a file with :- include('file.pl').")
        elif goal.name in _IGNORED:
            return
        elif goal.name == "include":
            self.found.error(span, "include must be a directive of its own, in a file")
        elif goal.name == "op":
            self.found.error(span, "new operators (op/3) are not supported")
        else:
            self._unknown(goal.name, len(args), span)

    def _unknown(self, name: str, arity: int, span: Span) -> None:
        arities = [n for known, n in self._readers if known == name]
        if arities:
            plural = "" if arities == [1] else "s"
            message = f"directive {quoted(name)} takes {arities[0]} argument{plural}, not {arity}"
            self.found.error(span, message)
        else:
            names = [known for known, _ in self._readers] + ["include", *_IGNORED]
            self.found.error(span, f"unknown directive {quoted(name)}/{arity}", did_you_mean(name, names))

    def _type(self, goal: Compound) -> None:
        name, values = goal.args
        if not isinstance(name, Name):
            hint = ":- type(color, [red, blue])."
            self.found.error(name.span, "a type is named by a word in lower case", hint)
            return
        first = self.vocabulary.types.get(name.name)
        if first and first.span:
            message = f"type {name} is already declared {where(first.span, goal.span)}"
            self.found.error(goal.span, message)
            return
        is_slots = calls(values, "slots", 1)
        read = self._slots if is_slots else self._constants
        constants = read(name.name, values.args[0] if calls(values, "slots", 1) else values)
        role = INPUT if name.name == "image" else OBJECT if is_slots or name.name == "object" else ATTRIBUTE
        self.vocabulary.types[name.name] = DataType(name.name, constants, role, is_slots, goal.span)

    def _slots(self, name: str, count: Term) -> tuple[str, ...]:
        if not (isinstance(count, Number) and isinstance(count.value, int)):
            self.found.error(count.span, "slots needs a whole number", f":- type({quoted(name)}, slots(4)).")
            return ()
        if count.value < 1:
            self.found.error(count.span, f"type {quoted(name)} has no constants: slots must be at least 1")
            return ()
        if count.value > MAX_SLOTS:
            self.found.error(count.span, f"slots is limited to {MAX_SLOTS}")
            return ()
        return slot_names(name, count.value)

    def _constants(self, name: str, values: Term) -> tuple[str, ...]:
        if isinstance(values, Name) and values.name == "[]":
            self.found.error(values.span, f"type {quoted(name)} has no constants")
            return ()
        if not isinstance(values, ListTerm) or values.tail is not None:
            hint = f":- type({quoted(name)}, [red, blue]).  or  :- type({quoted(name)}, slots(4))."
            self.found.error(values.span, "the constants of a type are a list or slots(N)", hint)
            return ()
        constants: dict[str, Span] = {}
        for item in values.items:
            if not isinstance(item, Name | Number) or str(item) == "[]":
                self.found.error(item.span, f"{item} is not a constant", "constants are names or numbers")
                continue
            constant = constant_name(item)
            if constant in constants:
                self.found.error(item.span, f"type {quoted(name)} lists {item} twice")
            constants[constant] = item.span
        return tuple(constants)

    def _predicate(self, goal: Compound) -> None:
        signature = goal.args[0]
        args = signature.args if isinstance(signature, Compound) else ()
        types = tuple(arg.name for arg in args if isinstance(arg, Name))
        if not isinstance(signature, Name | Compound) or len(types) < len(args):
            hint = f":- {goal.name}(color(object, color))."
            message = f"{goal.name} needs a predicate with the types of its arguments"
            self.found.error(signature.span, message, hint)
            return
        declared = Declared(signature.name, types, goal.name == "neural", signature.span)
        first = self.vocabulary.declared.get(declared.key)
        if is_core(declared.key):
            message = f"{text(declared.key)} is built into Prolog and cannot be declared"
            self.found.error(signature.span, message)
        elif first:
            place = where(first.span, signature.span)
            self.found.error(signature.span, f"predicate {text(declared.key)} is already declared {place}")
        else:
            self.vocabulary.declared[declared.key] = declared
            self._type_names.append((declared, [arg.span for arg in args]))

    def check_signatures(self) -> None:
        """Every type that a predicate names must exist; run when all directives have been read."""
        unknown: dict[str, list[tuple[Declared, Span]]] = {}
        for declared, spans in self._type_names:
            for name, span in zip(declared.types, spans, strict=True):
                if name not in self.vocabulary.types and not self.vocabulary.may_be_lost(name):
                    unknown.setdefault(name, []).append((declared, span))
        for name, uses in unknown.items():
            self._unknown_type(name, uses)

    def _unknown_type(self, name: str, uses: list[tuple[Declared, Span]]) -> None:
        """Report a type once: where the user's own file names it first, else where that includes who does."""
        own = [span for _, span in uses if span.source.included is None]
        if own:
            hint = did_you_mean(name, self.vocabulary.types) or f"declare it: {shipped.example(name)}"
            self.found.error(own[0], f"unknown type {quoted(name)}{and_more(len(uses))}", hint)
        else:
            declared, span = uses[0]
            message = f"type {quoted(name)} is not declared, and {text(declared.key)} in this file needs it"
            self.found.error(span.in_own_file(), message, f"add to this program: {shipped.example(name)}")

    def _target(self, goal: Compound) -> None:
        term = goal.args[0]
        if isinstance(term, ListTerm) and term.tail is None:
            self.result.targets += term.items
        else:
            self.result.targets.append(term)

    def _once(self, goal: Compound) -> bool:
        first = self._set.setdefault(goal.name, goal.span)
        if first is not goal.span:
            self.found.error(goal.span, f"{goal.name} is already set {where(first, goal.span)}")
        return first is goal.span

    def _number(self, goal: Compound, fits: Callable[[int | float], bool], what: str) -> int | float | None:
        """The number in `goal` when it fits; otherwise an error that says `what` is needed."""
        value = goal.args[0]
        if isinstance(value, Number) and fits(value.value):
            return value.value if self._once(goal) else None
        self.found.error(value.span, f"{goal.name} needs {what}")
        return None

    def _steps(self, goal: Compound) -> None:
        what = f"a whole number from 1 to {MAX_STEPS}"
        steps = self._number(goal, lambda x: isinstance(x, int) and 1 <= x <= MAX_STEPS, what)
        if steps is not None:
            self.result.settings = replace(self.result.settings, steps=int(steps))

    def _gamma(self, goal: Compound) -> None:
        if (gamma := self._number(goal, lambda x: LEAST_GAMMA <= x <= MOST_GAMMA, GAMMA_RANGE)) is not None:
            self.result.settings = replace(self.result.settings, gamma=float(gamma))

    def _threshold(self, goal: Compound) -> None:
        if (value := self._number(goal, lambda x: 0 <= x <= 1, "a number from 0 to 1")) is not None:
            self.result.settings = replace(self.result.settings, threshold=float(value))

    def _perception(self, goal: Compound) -> None:
        value = goal.args[0]
        if not isinstance(value, Name):
            self.found.error(value.span, "perception needs a name", ":- perception(yolo).")
        elif self._once(goal):
            self.result.settings = replace(self.result.settings, perception=value.name)

    def override(self, slots: Mapping[str, int]) -> None:
        """Replace the number of slots of the named types."""
        types = self.vocabulary.types
        for name, count in slots.items():
            datatype = types.get(name)
            if datatype is None:
                if not self.vocabulary.may_be_lost(name):
                    hint = did_you_mean(name, types)
                    self.found.error(None, f"slots for unknown type {quoted(name)}", hint)
            elif not datatype.slots:
                message = f"type {quoted(name)} is not declared with slots(N), so its size cannot be changed"
                self.found.error(datatype.span, message)
            elif not 1 <= count <= MAX_SLOTS:
                message = f"slots of {quoted(name)} must be from 1 to {MAX_SLOTS}, not {count}"
                self.found.error(datatype.span, message)
            else:
                types[name] = replace(datatype, constants=slot_names(name, count))


def slot_names(name: str, count: int) -> tuple[str, ...]:
    """`obj1 ... objN` for the type object, `NAME1 ... NAMEN` for another type."""
    stem = "obj" if name == "object" else name
    return tuple(f"{stem}{i}" for i in range(1, count + 1))


def constant_name(term: Name | Number) -> str:
    return term.name if isinstance(term, Name) else repr(term.value)
