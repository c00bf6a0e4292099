"""The types of arguments that no declaration gives.

A type flows along the variables of clauses: in

    pair(X, Y) :- shape(X, Z), shape(Y, Z).

X and Y are objects because shape/2 says so, so pair/2 takes two objects, and so do the variables
in calls of pair/2. Where no variable tells, a constant that belongs to one type does.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from nsfrc.compiler.check.alternatives import Draft
from nsfrc.compiler.check.vocabulary import Vocabulary, either, text
from nsfrc.compiler.ir import Atom, Count, PredicateKey, Var, quoted
from nsfrc.errors import Span

Position = tuple[PredicateKey, int]
Signatures = dict[PredicateKey, tuple[str | None, ...]]


def infer(vocabulary: Vocabulary, facts: Sequence[Atom], drafts: Sequence[Draft]) -> Signatures:
    """The type of every argument; None where it could not be told (which has been reported)."""
    flow = _Flow(vocabulary, facts, drafts)
    known = [(key, declared.types) for key, declared in vocabulary.declared.items()]
    known += [(key, number.types) for key, number in vocabulary.numbers.items()]
    for key, types in known:
        for index, name in enumerate(types):
            flow.settle((key, index), name if name in vocabulary.types else None)
    flow.spread()
    while flow.settle_by_constants():
        flow.spread()
    flow.settle_unknowable(drafts)
    flow.spread()
    return flow.signatures()


def _shared_part(whole: Atom, count: Count) -> Iterator[Atom]:
    """What a counting atom counts, with a variable of its own for every argument that runs."""
    for turn, atom in enumerate(count.looks_at(whole)):
        shared = len(count.sources[turn].args)
        own = tuple(Var(f"_{turn}_{i}") for i in range(len(atom.args) - shared))
        yield Atom(atom.name, (*atom.args[:shared], *own))


class _Flow:
    """The positions of all predicates, the variables and constants that stand there, and their types.

    None flows like a type from places that already have an error, so that no other follows from it.
    """

    def __init__(self, vocabulary: Vocabulary, facts: Sequence[Atom], drafts: Sequence[Draft]):
        self._vocabulary = vocabulary
        self._type: dict[Position, str | None] = {}
        self._queue: deque[Position] = deque()
        self._variables: dict[Position, list[tuple[int, str]]] = defaultdict(list)
        self._positions: dict[tuple[int, str], list[Position]] = defaultdict(list)
        self._constants: dict[Position, dict[str, Span | None]] = defaultdict(dict)
        self._keys: dict[PredicateKey, None] = dict.fromkeys(vocabulary.declared)
        for atom in facts:
            self._add(atom, -1)
        for number, draft in enumerate(drafts):
            for atom in (draft.head, *draft.body, *draft.measured):
                self._add(atom, number)
        for number, (key, count) in enumerate(vocabulary.counted.items(), len(drafts)):
            whole = Atom(key[0], tuple(Var(f"_{i}") for i in range(key[1])))
            for atom in (whole, *_shared_part(whole, count)):  # what counts has the types of what is counted
                self._add(atom, number)

    def _add(self, atom: Atom, clause: int) -> None:
        key = atom.key
        self._keys.setdefault(key)
        for index, arg in enumerate(atom.args):
            position = key, index
            if not isinstance(arg, Var):
                self._constants[position].setdefault(arg.name, arg.span)
            elif clause >= 0:
                self._variables[position].append((clause, arg.name))
                self._positions[clause, arg.name].append(position)

    def settle(self, position: Position, name: str | None) -> None:
        if position not in self._type:
            self._type[position] = name
            self._queue.append(position)

    def spread(self) -> None:
        """Carry types along variables until nothing changes."""
        done: set[tuple[int, str]] = set()
        while self._queue:
            position = self._queue.popleft()
            for variable in self._variables[position]:
                if variable in done:
                    continue
                done.add(variable)
                for other in self._positions[variable]:
                    self.settle(other, self._type[position])

    def _open(self) -> list[Position]:
        return [(key, i) for key in self._keys for i in range(key[1]) if (key, i) not in self._type]

    def _candidates(self, position: Position) -> list[str]:
        """The types that hold every known constant at a position, else those of the first one."""
        homes = [self._vocabulary.homes[c] for c in self._constants[position] if c in self._vocabulary.homes]
        if not homes:
            return []
        return [name for name in homes[0] if all(name in other for other in homes)] or list(homes[0])

    def settle_by_constants(self) -> bool:
        """Settle the first open position whose constants belong to one type."""
        for position in self._open():
            candidates = self._candidates(position)
            if len(candidates) == 1:
                self.settle(position, candidates[0])
        return bool(self._queue)

    def settle_unknowable(self, drafts: Sequence[Draft]) -> None:
        """Mark what hangs on something that has been reported already."""
        for number, draft in enumerate(drafts):
            bound = {variable.name for atom in (*draft.body, *draft.measured) for variable in atom.variables()}
            unbound = {variable.name for variable in draft.head.variables()} - bound
            for name in draft.doubtful | unbound:
                for position in self._positions[number, name]:
                    self.settle(position, None)
        for key in self._keys:
            if self._vocabulary.lost or key in self._vocabulary.spoilt or not self._vocabulary.knows(key):
                for index in range(key[1]):
                    self.settle((key, index), None)
        for position in self._open():
            unknown = [c for c in self._constants[position] if c not in self._vocabulary.homes]
            for constant in unknown:
                self._unknown_constant(constant, self._constants[position][constant])
            if unknown:
                self.settle(position, None)

    def _unknown_constant(self, constant: str, span: Span | None) -> None:
        vocabulary = self._vocabulary
        if not vocabulary.no_types(span):
            message = f"unknown constant {quoted(constant)}: it belongs to no type"
            hint = vocabulary.found.did_you_mean(constant, vocabulary.homes)
            vocabulary.found.error("unknown-constant", span, message, hint)

    def signatures(self) -> Signatures:
        result: Signatures = {}
        for key in self._keys:
            result[key] = tuple(self._type.get((key, index)) for index in range(key[1]))
        for key, index in self._open():
            self._report(key, index, result[key])
        if not self._vocabulary.found.failed:
            self._report_numbers()
        return result

    def _report_numbers(self) -> None:
        """Counts whose number has no type, though nothing else lacks one."""
        for key, count in self._vocabulary.counted.items():
            if not count.tests and (key, key[1] - 1) not in self._type:
                hint = "compare it with numbers or other counts, or make it an argument of a predicate"
                message = "cannot tell the type of the number that is counted here"
                self._vocabulary.found.error("untyped-argument", self._vocabulary.defined.get(key), message, hint)

    def _report(self, key: PredicateKey, index: int, types: Sequence[str | None]) -> None:
        if key in self._vocabulary.counted or self._vocabulary.no_types(self._vocabulary.defined.get(key)):
            return
        candidates = self._candidates((key, index))
        why = f": it could be {either(candidates)}" if candidates else ""
        known = ", ".join(quoted(name) if name else "..." for name in types)
        message = f"cannot tell the type of argument {index + 1} of {text(key)}{why}"
        hint = f"declare it: :- pred({quoted(key[0])}({known}))."
        self._vocabulary.found.error("untyped-argument", self._vocabulary.defined.get(key), message, hint)
