"""Directives: the types, predicates, targets and settings that a program declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TypeGuard

from nsfrc.compiler.check import foreign, measures, seen, shipped
from nsfrc.compiler.check.builtin import is_core
from nsfrc.compiler.check.learning import LearningReader
from nsfrc.compiler.check.vocabulary import Declared, Vocabulary, and_more, text, where
from nsfrc.compiler.ir import (
    ATTRIBUTE,
    GAMMA_RANGE,
    INPUT,
    LEAST_GAMMA,
    MAX_STEPS,
    MOST_GAMMA,
    OBJECT,
    SEMANTICS,
    DataType,
    Settings,
    quoted,
)
from nsfrc.compiler.syntax import (
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
from nsfrc.errors import Span
from nsfrc.models.outside import Outside
from nsfrc.records import dataclass

MAX_SLOTS = 100_000
AUTO_SLOTS = 10  # of slots(auto), before the images are known
MAX_ARGUMENTS = 50  # an argument is a dimension of an array, of which numpy has 64

# What other Prolog systems need and this compiler does not.
_IGNORED = {
    "use_module", "module", "discontiguous", "dynamic", "multifile", "table", "set_prolog_flag",
    "style_check", "ensure_loaded", "initialization", "encoding",
}


@dataclass(slots=True)
class Declarations:
    """What the directives say, apart from the vocabulary: target terms as written, and settings.

    classes: the directive, where there is one. thresholds: for single targets, terms as written.
    """

    learning: LearningReader
    targets: list[Term] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    classes: Compound | None = None
    thresholds: list[tuple[Term, float]] = field(default_factory=list)


def declare(
    sentences: Sequence[Sentence], vocabulary: Vocabulary, slots: Mapping[str, int],
    outside: Outside = Outside(), folder: Path = Path(),  # noqa: B008 (both are values)
) -> Declarations:
    """Fill the vocabulary's types and declared predicates.

    slots: overrides `slots(N)` by type name. outside, folder: where `from_perception` finds the names of classes.
    """
    reader = _Directives(vocabulary)
    own = foreign.own_names(sentences)
    for sentence in sentences:
        if sentence.kind == DIRECTIVE and sentence.term:
            goals = list(spine(sentence.term, ","))
            if not any(map(reader.knows, goals)) and foreign.refuse_constraint(sentence.term, goals, own, vocabulary):
                continue
            for goal in goals:
                reader.read(goal)
    for sentence in sentences:
        if sentence.kind == QUERY and sentence.term:
            reader.result.targets.append(sentence.term)
        elif sentence.kind == CLAUSE and is_query(sentence.term, vocabulary):
            reader.result.targets.append(sentence.term.args[0])
    reader.override(slots)
    seen.fill(reader.from_perception, reader.result.settings, vocabulary, outside, folder)
    vocabulary.semantics = reader.result.settings.semantics
    reader.check_auto()
    vocabulary.index_constants()
    reader.settle_learning()
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
        self.result = Declarations(LearningReader(vocabulary))
        self._type_names: list[tuple[Declared, list[Span]]] = []
        self._set: dict[str, Span] = {}
        self.from_perception: list[DataType] = []
        self._readers: dict[tuple[str, int], Callable[[Compound], None]] = {
            ("type", 2): self._type,
            ("pred", 1): self._predicate,
            ("neural", 1): self._predicate,
            ("number", 1): self._predicate,
            ("target", 1): self._target,
            ("query", 1): self._target,
            ("steps", 1): self._steps,
            ("gamma", 1): self._gamma,
            ("threshold", 1): self._threshold,
            ("threshold", 2): self._threshold_of,
            ("classes", 1): self._classes,
            ("perception", 1): self._perception,
            ("semantics", 1): self._semantics,
            ("model", 1): self._seen,
            ("presence", 1): self._seen,
            ("attributes", 1): self._seen,
            ("learn", 1): self.result.learning.learn,
            ("vars", 2): self.result.learning.vars,
            ("body", 1): self.result.learning.body,
            ("body", 2): self.result.learning.body,
        }

    def knows(self, goal: Term) -> bool:
        """Whether this is a directive by its name."""
        names = {name for name, _ in self._readers} | _IGNORED | {"include", "op"}
        return isinstance(goal, Name | Compound) and goal.name in names

    def read(self, goal: Term) -> None:
        """Read one directive goal."""
        if not isinstance(goal, Name | Compound):
            hint = ":- target(kp(img))."
            self.found.error("bad-directive", goal.span, "a directive must be a name with arguments", hint)
            return
        args = goal.args if isinstance(goal, Compound) else ()
        span = goal.name_span if isinstance(goal, Compound) else goal.span
        if isinstance(goal, Compound) and (goal.name, len(args)) in self._readers:
            self._readers[goal.name, len(args)](goal)
        elif goal.name == "ensure_loaded" and not (args and calls(args[0], "library", 1)):
            hint = "read a file with :- include('file.pl')."
            self.found.error("bad-directive", span, "ensure_loaded reads libraries only", hint)
        elif goal.name in _IGNORED:
            return
        elif goal.name == "include":
            self.found.error("bad-directive", span, "include must be a directive of its own, in a file")
        elif goal.name == "op":
            self.found.error("not-supported", span, "new operators (op/3) are not supported")
        else:
            self._unknown(goal.name, len(args), span)

    def _unknown(self, name: str, arity: int, span: Span) -> None:
        arities = [n for known, n in self._readers if known == name]
        if arities:
            plural = "" if arities == [1] else "s"
            message = f"directive {quoted(name)} takes {' or '.join(map(str, arities))} argument{plural}, not {arity}"
            self.found.error("bad-directive", span, message)
        else:
            names = [known for known, _ in self._readers] + ["include", *_IGNORED]
            hint = self.found.did_you_mean(name, names)
            self.found.error("unknown-directive", span, f"unknown directive {quoted(name)}/{arity}", hint)

    def _type(self, goal: Compound) -> None:
        name, values = goal.args
        if not isinstance(name, Name):
            hint = ":- type(color, [red, blue])."
            self.found.error("bad-type", name.span, "the name of a type must be a lower-case word", hint)
            return
        first = self.vocabulary.types.get(name.name)
        if first and first.span:
            message = f"type {name} is already declared {where(first.span, goal.span)}"
            self.found.error("declared-twice", goal.span, message)
            return
        if isinstance(values, Name) and values.name == seen.FROM:
            datatype = DataType(name.name, (), ATTRIBUTE, False, goal.span)
            self.vocabulary.types[name.name] = datatype
            self.from_perception.append(datatype)
            return
        is_slots = calls(values, "slots", 1)
        read = self._slots if is_slots else self._constants
        constants = read(name.name, values.args[0] if calls(values, "slots", 1) else values)
        role = INPUT if name.name == "image" else OBJECT if is_slots or name.name == "object" else ATTRIBUTE
        auto = calls(values, "slots", 1) and _is_auto(values.args[0])
        self.vocabulary.types[name.name] = DataType(name.name, constants, role, is_slots, goal.span, auto)

    def _slots(self, name: str, count: Term) -> tuple[str, ...]:
        if _is_auto(count):
            return slot_names(name, AUTO_SLOTS)
        if not (isinstance(count, Number) and isinstance(count.value, int)):
            hint = f":- type({quoted(name)}, slots(4))."
            self.found.error("bad-slots", count.span, "slots needs a whole number, or auto", hint)
            return ()
        if count.value < 1:
            self.found.error("bad-slots", count.span, f"type {quoted(name)} has no constants: slots must be at least 1")
            return ()
        if count.value > MAX_SLOTS:
            self.found.error("bad-slots", count.span, f"slots is limited to {MAX_SLOTS}")
            return ()
        return slot_names(name, count.value)

    def _constants(self, name: str, values: Term) -> tuple[str, ...]:
        if calls(values, "..", 2):
            return self._range(name, values)
        if isinstance(values, Name) and values.name == "[]":
            self.found.error("bad-type", values.span, f"type {quoted(name)} has no constants")
            return ()
        if not isinstance(values, ListTerm) or values.tail is not None:
            hint = f":- type({quoted(name)}, [red, blue]).  or  :- type({quoted(name)}, slots(4))."
            self.found.error("bad-type", values.span, "the constants of a type are a list, slots(N) or 0..9", hint)
            return ()
        constants: dict[str, Span] = {}
        for item in values.items:
            if not isinstance(item, Name | Number) or str(item) == "[]":
                self.found.error("bad-type", item.span, f"{item} is not a constant", "constants are names or numbers")
                continue
            constant = constant_name(item)
            if constant in constants:
                self.found.error("bad-type", item.span, f"type {quoted(name)} lists {item} twice")
            constants[constant] = item.span
        return tuple(constants)

    def _range(self, name: str, values: Compound) -> tuple[str, ...]:
        """`0..18`: the whole numbers from one to the other."""
        ends = [end.value for end in values.args if isinstance(end, Number) and isinstance(end.value, int)]
        if len(ends) != 2 or not 0 <= ends[1] - ends[0] < MAX_SLOTS:
            message = f"a range goes up from one whole number to another and has at most {MAX_SLOTS} numbers"
            self.found.error("bad-type", values.span, message, f":- type({quoted(name)}, 0..9).")
            return ()
        return tuple(map(str, range(ends[0], ends[1] + 1)))

    def _predicate(self, goal: Compound) -> None:
        signature = goal.args[0]
        args = signature.args if isinstance(signature, Compound) else ()
        types = tuple(arg.name for arg in args if isinstance(arg, Name))
        if not isinstance(signature, Name | Compound) or len(types) < len(args):
            what, example = ("name", "area(object)") if goal.name == "number" else ("predicate", "color(object, color)")
            message = f"{goal.name} needs a {what} with the types of its arguments"
            self.found.error("bad-predicate", signature.span, message, f":- {goal.name}({example}).")
            return
        declared = Declared(signature.name, types, goal.name == "neural", signature.span)
        first = self.vocabulary.declared.get(declared.key) or self.vocabulary.numbers.get(declared.key)
        if len(args) > MAX_ARGUMENTS:
            message = f"{quoted(signature.name)} has {len(args)} arguments (the limit is {MAX_ARGUMENTS})"
            self.found.error("too-many-arguments", signature.span, message)
        elif is_core(declared.key):
            message = f"{text(declared.key)} is built into Prolog and cannot be declared"
            self.found.error("built-in", signature.span, message)
        elif first and first.span:
            message = f"predicate {text(declared.key)} is already declared {where(first.span, signature.span)}"
            self.found.error("declared-twice", signature.span, message)
        elif goal.name == "number":
            if measures.declare(declared, self.vocabulary):
                self._type_names.append((declared, [arg.span for arg in args]))
        else:
            self.vocabulary.declare(declared)
            self._type_names.append((declared, [arg.span for arg in args]))

    def settle_learning(self) -> None:
        """Declare what is to be learnt."""
        self._type_names += self.result.learning.settle()

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
        if self.vocabulary.no_types(uses[0][1].in_own_file()):
            return
        own = [span for _, span in uses if span.source.included is None]
        if own:
            hint = self.found.did_you_mean(name, self.vocabulary.types) or f"declare it: {shipped.example(name)}"
            self.found.error("unknown-type", own[0], f"unknown type {quoted(name)}{and_more(len(uses))}", hint)
        else:
            declared, span = uses[0]
            message = f"type {quoted(name)} is not declared, and {text(declared.key)} in this file needs it"
            hint = f"add to this program: {shipped.example(name)}"
            self.found.error("unknown-type", span.in_own_file(), message, hint)

    def _target(self, goal: Compound) -> None:
        term = goal.args[0]
        if isinstance(term, ListTerm) and term.tail is None:
            self.result.targets += term.items
        else:
            self.result.targets.append(term)

    def _classes(self, goal: Compound) -> None:
        if self._once(goal):
            self.result.classes = goal

    def _once(self, goal: Compound) -> bool:
        first = self._set.setdefault(goal.name, goal.span)
        if first is not goal.span:
            self.found.error("declared-twice", goal.span, f"{goal.name} is already set {where(first, goal.span)}")
        return first is goal.span

    def _number(self, goal: Compound, fits: Callable[[int | float], bool], what: str) -> int | float | None:
        """The number in `goal` when it fits; otherwise an error that says `what` is needed."""
        value = goal.args[0]
        if isinstance(value, Number) and fits(value.value):
            return value.value if self._once(goal) else None
        self.found.error("bad-setting", value.span, f"{goal.name} needs {what}")
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

    def _threshold_of(self, goal: Compound) -> None:
        target, value = goal.args
        if isinstance(value, Number) and 0 <= value.value <= 1:
            self.result.thresholds.append((target, float(value.value)))
        else:
            self.found.error("bad-setting", value.span, "threshold needs a number from 0 to 1",
                             f":- threshold({target}, 0.5).")

    def _perception(self, goal: Compound) -> None:
        value = goal.args[0]
        if not isinstance(value, Name):
            self.found.error("bad-setting", value.span, "perception needs a name", ":- perception(yolo).")
        elif self._once(goal):
            self.result.settings = replace(self.result.settings, perception=value.name)

    def _semantics(self, goal: Compound) -> None:
        value = goal.args[0]
        if not isinstance(value, Name) or value.name not in SEMANTICS:
            message = f"semantics must be one of {', '.join(SEMANTICS)}"
            self.found.error("bad-setting", value.span, message, ":- semantics(paper).")
        elif self._once(goal):
            self.result.settings = replace(self.result.settings, semantics=value.name)

    def _seen(self, goal: Compound) -> None:
        """What is said of perception; see `seen`."""
        if not self._once(goal):
            return
        if goal.name == "attributes":
            self.result.settings = seen.read_attributes(goal, self.result.settings, self.vocabulary)
        else:
            read = seen.read_model if goal.name == "model" else seen.read_presence
            self.result.settings = read(goal, self.result.settings, self.found)

    def check_auto(self) -> None:
        """The paper's values depend on how many objects there could be, so that nothing may choose their number."""
        for datatype in self.vocabulary.types.values():
            if datatype.auto:
                self.vocabulary.needs_anchored(datatype.span, "slots(auto)")

    def override(self, slots: Mapping[str, int]) -> None:
        """Replace the number of slots of the named types."""
        types = self.vocabulary.types
        for name, count in slots.items():
            datatype = types.get(name)
            if datatype is None:
                if not self.vocabulary.may_be_lost(name):
                    hint = self.found.did_you_mean(name, types)
                    self.found.error("bad-slots", None, f"slots for unknown type {quoted(name)}", hint)
            elif not datatype.slots:
                message = f"type {quoted(name)} is not declared with slots(N), so its size cannot be changed"
                self.found.error("bad-slots", datatype.span, message)
            elif not 1 <= count <= MAX_SLOTS:
                message = f"slots of {quoted(name)} must be from 1 to {MAX_SLOTS}, not {count}"
                self.found.error("bad-slots", datatype.span, message)
            else:
                types[name] = replace(datatype, constants=slot_names(name, count), auto=False)


def _is_auto(count: Term) -> bool:
    return isinstance(count, Name) and count.name == "auto"


def slot_names(name: str, count: int) -> tuple[str, ...]:
    """`obj1 ... objN` for the type object, `NAME1 ... NAMEN` for another type."""
    stem = "obj" if name == "object" else name
    return tuple(f"{stem}{i}" for i in range(1, count + 1))


def constant_name(term: Name | Number) -> str:
    return term.name if isinstance(term, Name) else repr(term.value)
