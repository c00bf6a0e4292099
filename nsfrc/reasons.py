"""A reason and its text: a ground atom with its value, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nsfrc.compiler import spelling

HOLDS = 0.5


@dataclass(frozen=True)
class Solutions:
    """What a count found: how many solutions of its goal hold, of how many, and the likeliest with their values.

    A solution is named by what the goal's own variables stand for: obj1, or (obj1,red) of several.
    """

    goal: str
    held: int
    of: int
    which: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        names = ", ".join(f"{name} {value:.2f}" for name, value in self.which if name)
        more = f" and {self.held - len(self.which)} more" if self.held > len(self.which) else ""
        return f"{self.held} of {self.of}" + (f": {names}{more}" if names else "")


@dataclass(frozen=True)
class Reason:
    """A ground atom with its value, and the atoms it was derived from.

    A negation or count is called by its goal, and so is a solution of one: "in(obj2,img), larger(obj2,obj1)".
    clause: which clause of the program derived it, or None for an atom that perception, a fact, a negation or a count
    decides. body: for a negation that does not hold what breaks it, for a count the likeliest solutions that hold.
    objects: the objects that the atom names. solutions: what a count found, two where it compares.
    """

    atom: str
    value: float
    clause: int | None = None
    body: tuple[Reason, ...] = ()
    objects: tuple[str, ...] = ()
    solutions: tuple[Solutions, ...] = ()


def objects_of(reason: Reason) -> list[str]:
    """The objects that a reason names, in order of appearance."""
    found = dict.fromkeys(reason.objects)
    for part in reason.body:
        found.update(dict.fromkeys(objects_of(part)))
    return list(found)


def as_text(reason: Reason, depth: int = 3) -> str:
    """A line for each derived atom down to `depth`, indented below the one it explains; an atom is explained once.

    kp(img) 0.98 because in(obj1,img) 1.00, in(obj2,img) 1.00, same_shape_pair(obj1,obj2) 0.99
      same_shape_pair(obj1,obj2) 0.99 because shape(obj1,circle) 1.00, shape(obj2,circle) 0.99
    """
    return "\n".join(_lines(reason, depth, 0, set()))


def _lines(reason: Reason, depth: int, level: int, said: set[str]) -> Iterator[str]:
    said.add(reason.atom)
    yield "  " * level + _sentence(reason, depth > 0)
    if depth > 1 and not reason.solutions:
        for part in reason.body:
            if (part.body or part.solutions) and part.atom not in said:
                yield from _lines(part, depth - 1, level + 1, said)


def _sentence(reason: Reason, with_body: bool) -> str:
    """What an atom rests on if it holds, else what it lacks or what breaks it."""
    text = _valued(reason)
    if not (reason.body or reason.solutions) or not with_body:
        return text
    if reason.solutions:
        return f"{text}: {found(reason)}"
    if reason.clause is None:
        return f"{text}, broken by {', '.join(map(_valued, reason.body))}"
    if reason.value >= HOLDS:
        return f"{text} because {', '.join(map(_valued, reason.body))}"
    lacking = [part for part in reason.body if part.value < HOLDS]
    there = [part for part in reason.body if part.value >= HOLDS]
    if not lacking:
        return f"{text} from {', '.join(map(_valued, there))}"
    return f"{text}: missing {', '.join(map(_valued, lacking))}" + (
        f"; given {', '.join(map(_valued, there))}" if there else ""
    )


def found(reason: Reason) -> str:
    """What a count found: `3 of 5: obj1 0.99, obj2 0.97, obj4 0.55`, and of a comparison each side with its goal."""
    if len(reason.solutions) == 1:
        return str(reason.solutions[0])
    return "; ".join(f"{one.goal} — {one}" for one in reason.solutions)


def _valued(reason: Reason) -> str:
    """`shape(obj1,circle) 0.99`, `(y1(obj1) < 0.2) 0.97`."""
    bare = spelling.compares(reason.atom) and not reason.solutions and not reason.atom.startswith("\\+")
    atom = f"({reason.atom})" if bare else reason.atom
    return f"{atom} {reason.value:.2f}"
