"""Learnt clauses as Prolog text that reads like a person's: variables A, B, …, and helpers for what repeats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nsfrc.compiler import ir
from nsfrc.learning.relations import NEGATED, Helper, Relation
from nsfrc.learning.search import Clause
from nsfrc.learning.tables import Literal

OBJECTS, IMAGE = "ABCDEFGHI", "X"
WIDTH = 100
_OWN = re.compile(r"\{([A-Z])\}")

# Literals about the same objects, by relation and the order of their arguments.
Said = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(eq=False)
class Words:
    """Writes clauses over some relations. taken: names that helpers may not have."""

    relations: list[Relation]
    has_in: bool
    taken: set[str]
    invented: dict[Said, Helper] = field(default_factory=dict)

    def invent(self, clauses: Iterable[Clause]) -> None:
        """Note what is said more than once of some objects, for a helper to say it."""
        counted: Counter[Said] = Counter()
        for clause in clauses:
            counted.update(said for said, _ in self._parted(clause.literals)[0])
        for said, times in counted.items():
            if times > 1 and len(said) > 1:
                self.invented[said] = self._helper(said)

    def _parted(self, literals: Sequence[Literal]) -> tuple[list[tuple[Said, tuple[int, ...]]], list[Literal]]:
        """Literals by the one or two objects that they are about, and all the others."""
        about: dict[tuple[int, ...], list[Literal]] = {}
        others: list[Literal] = []
        for relation, args in literals:
            if 1 <= len(args) <= 2 and not self.relations[relation].inner and self.relations[relation].kind != NEGATED:
                about.setdefault(tuple(sorted(args)), []).append((relation, args))
            else:
                others.append((relation, args))
        found = []
        for objects, some in about.items():
            if len(some) > 1:
                said = tuple(sorted((relation, tuple(objects.index(a) for a in args)) for relation, args in some))
                found.append((said, objects))
            else:
                others += some
        return found, others

    def _helper(self, said: Said) -> Helper:
        words = "_".join(_word(self.relations[relation]) for relation, _ in said)
        name = words if len(words) <= 40 and words.isidentifier() else "helper"
        free, number = name, 1
        while free in self.taken:
            number += 1
            free = f"{name}_{number}"
        self.taken.add(free)
        count = 1 + max(place for _, places in said for place in places)
        objects = list(OBJECTS[:count])
        goals = self._goals([(relation, places) for relation, places in said], _Names())
        return Helper(free, f"{ir.quoted(free)}({', '.join(objects)}) :- {', '.join(goals)}.")

    def clause(self, head: str, clause: Clause) -> str:
        """The text of a clause; head: the name of the target's predicate."""
        body = self.body(clause)
        one_line = f"{ir.quoted(head)}({IMAGE}) :- {', '.join(body)}."
        if len(one_line) <= WIDTH:
            return one_line
        lines, line = [], ""
        for i, goal in enumerate(body):
            goal += "." if i == len(body) - 1 else ","
            if line and len(line) + len(goal) + 5 > WIDTH:
                lines.append(line)
                line = ""
            line = f"{line} {goal}" if line else goal
        return f"{ir.quoted(head)}({IMAGE}) :-\n    " + "\n    ".join([*lines, line])

    def body(self, clause: Clause) -> list[str]:
        """The goals of a clause."""
        names = _Names()
        used = sorted({a for _, args in clause.literals for a in args})
        goals = [f"in({OBJECTS[a]}, {IMAGE})" for a in used] if self.has_in else []
        parted, others = self._parted(clause.literals)
        placed: list[tuple[tuple[int, ...], list[str]]] = []
        for said, objects in parted:
            helper = self.invented.get(said)
            if helper is not None:
                called = ", ".join(OBJECTS[objects[i]] for i in range(len(objects)))
                placed.append((objects, [f"{ir.quoted(helper.name)}({called})"]))
            else:
                placed.append((objects, self._goals([(r, tuple(objects[i] for i in places)) for r, places in said],
                                                    names)))
        for relation, args in others:
            placed.append((tuple(sorted(args)) or (99,), self._goals([(relation, args)], names)))
        return goals + [goal for _, some in sorted(placed, key=lambda one: (max(one[0]), len(one[0]))) for goal in some]

    def _goals(self, literals: Sequence[Literal], names: _Names) -> list[str]:
        """Goals with names for their own variables that no other goal has."""
        found = []
        for relation, args in literals:
            one = self.relations[relation]
            own = {letter: names.fresh(letter) for letter in dict.fromkeys(_OWN.findall(one.text)) if letter != IMAGE}
            found += goals_of(one.goals([OBJECTS[a] for a in args], IMAGE, own))
        return found

    def helpers(self, clauses: Iterable[Clause]) -> list[Helper]:
        """What some clauses need beside themselves, each once: helpers of their literals, and invented ones."""
        found: dict[str, Helper] = {}
        for clause in clauses:
            for said, _ in self._parted(clause.literals)[0]:
                if said in self.invented:
                    found.setdefault(self.invented[said].name, self.invented[said])
            for relation, _ in clause.literals:
                for helper in self.relations[relation].helpers:
                    found.setdefault(helper.name, helper)
        return list(found.values())


@dataclass
class _Names:
    """Names for variables of a clause that are not objects."""

    used: Counter[str] = field(default_factory=Counter)

    def fresh(self, letter: str) -> str:
        self.used[letter] += 1
        return letter if self.used[letter] == 1 else f"{letter}{self.used[letter]}"


def goals_of(text: str) -> list[str]:
    """The goals of a conjunction: its parts between commas that are in no bracket and in no quotes."""
    found, start, depth, quoted = [], 0, 0, False
    for i, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif not quoted and character in "([":
            depth += 1
        elif not quoted and character in ")]":
            depth -= 1
        elif not quoted and character == "," and not depth:
            found.append(text[start:i].strip())
            start = i + 1
    return [*found, text[start:].strip()]


def _word(relation: Relation) -> str:
    """What a literal is called in the name of a helper: red of color(A, red), else its predicate."""
    name, _, args = relation.text.partition("(")
    last = args.rstrip(")").rpartition(", ")[2]
    return last if relation.arity == 1 and last and "{" not in last and last.isidentifier() else name.strip("'")

