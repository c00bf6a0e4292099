r"""Programs of `random_inner` as text, with the freedom that a writer has.

A count is spelt with aggregate_all/3 or with findall/3 and length/2, a range as between/3, a number that is wanted as
itself, two counts that are equal as one variable.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

from nsfrc.compiler import ir
from tests.random_inner import Compared, Either, Forall, Goal, Not, Numbered, Rule, Surface, Tested, random_inner
from tests.random_text import declarations

_MIRRORED = {"<": ">", ">": "<", "=<": ">=", ">=": "=<", "=:=": "=:=", "=\\=": "=\\="}


def surface_text(surface: Surface, rng: random.Random) -> str:
    base = surface.base
    lines = [*declarations(base, rng, declare_all=True), ":- style_check(-singleton).",
             *(f":- target({target})." for target in base.targets), *(f"{fact}." for fact in base.facts)]
    lines += [f"{rule.head} :- {_Writer(rng).conjunction(rule.goals)}." for rule in surface.rules]
    return "\n".join((*lines, ""))


def rule_text(rule: Rule) -> str:
    return f"{rule.head} :- {_Writer(random.Random(0)).conjunction(rule.goals)}."


class _Writer:
    """Writes one rule; numbers and lists that only the text has are called after how many there are."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.made = rng, 0

    def _fresh(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    def conjunction(self, goals: tuple[Goal, ...]) -> str:
        parts = [part for goal in goals for part in self._goal(goal)]
        if self.rng.random() < 0.3:
            self.rng.shuffle(parts)
        return ", ".join(parts) or "true"

    def _goal(self, goal: Goal) -> Iterator[str]:
        if isinstance(goal, ir.Atom | ir.Filter):
            yield str(goal)
        elif isinstance(goal, Not):
            yield f"\\+ ({self.conjunction(goal.goals)})" if self._grouped(goal.goals) else f"\\+ {goal.goals[0]}"
        elif isinstance(goal, Forall):
            yield f"forall(({self.conjunction(goal.given)}), ({self.conjunction(goal.then)}))"
        elif isinstance(goal, Either):
            yield "( " + " ; ".join(", ".join(map(str, way)) for way in goal.ways) + " )"
        elif isinstance(goal, Numbered):
            yield from self._count(goal.goals, goal.name)
        elif isinstance(goal, Tested):
            yield from self._tested(goal)
        else:
            yield from self._compared(goal)

    def _grouped(self, goals: tuple[Goal, ...]) -> bool:
        return len(goals) > 1 or not isinstance(goals[0], ir.Atom) or self.rng.random() < 0.3

    def _count(self, goals: tuple[Goal, ...], number: str) -> Iterator[str]:
        if self.rng.random() < 0.7:
            yield f"aggregate_all(count, ({self.conjunction(goals)}), {number})"
        else:
            name = self._fresh("List")
            yield f"findall(x, ({self.conjunction(goals)}), {name})"
            yield f"length({name}, {number})"

    def _tested(self, goal: Tested) -> Iterator[str]:
        tests = goal.tests
        if len(tests) == 1 and tests[0][0] == "=:=" and self.rng.random() < 0.5:
            yield from self._count(goal.goals, str(tests[0][1]))
            return
        number = self._fresh("Count")
        yield from self._count(goal.goals, number)
        if [op for op, _ in tests] == [">=", "=<"] and self.rng.random() < 0.7:
            yield f"between({tests[0][1]}, {tests[1][1]}, {number})"
            return
        for op, constant in tests:
            mirrored = self.rng.random() < 0.3
            yield f"{constant} {_MIRRORED[op]} {number}" if mirrored else f"{number} {op} {constant}"

    def _compared(self, goal: Compared) -> Iterator[str]:
        left, right = self._fresh("Count"), self._fresh("Count")
        if goal.op == "=:=" and not goal.more and self.rng.random() < 0.5:
            right = left
        yield from self._count(goal.left, left)
        yield from self._count(goal.right, right)
        if right != left:
            more = f" + {goal.more}" if goal.more > 0 else f" - {-goal.more}" if goal.more else ""
            yield f"{left} {goal.op} {right}{more}"


if __name__ == "__main__":
    chosen = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    print(surface_text(random_inner(chosen), chosen), end="")
