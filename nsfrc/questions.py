"""What a program asks: each target whether it holds, `:- classes` which one it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nsfrc.compiler.ir import CLASSES, NO_CLASS

DIGITS = 4  # that are written of a score, and that answers go by
TRUE, FALSE, NONE = "true", "false", NO_CLASS
# Values that differ by less than this part of themselves are equal, and the first of them counts: what a value is in
# its last digits depends on the other images of a batch, and answers and reasons must not.
SAME = 1e-5
# Under `paper` atoms that nothing speaks for drift upwards, and further where something nearly does.
DRIFT = 0.001

Value = TypeVar("Value")


@dataclass(frozen=True)
class Question:
    """name: the target, or "classes". atoms: that target, or the classes. first: where they begin among the scores."""

    name: str
    atoms: tuple[str, ...]
    first: int = 0

    @property
    def of_classes(self) -> bool:
        return len(self.atoms) > 1

    @property
    def answers(self) -> tuple[str, ...]:
        """All possible answers."""
        return (*self.atoms, NONE) if self.of_classes else (TRUE, FALSE)

    def values(self, scores: Sequence[Value]) -> Sequence[Value]:
        """Those of the scores that it is about."""
        return scores[self.first : self.first + len(self.atoms)]

    def best(self, scores: Sequence[float]) -> str:
        """The target, or the class with the highest value, the first of equals."""
        return self.atoms[first_of_equals(self.values(scores))]

    def answer(self, scores: Sequence[float], threshold: float, empty: Sequence[float] | None = None) -> str:
        """What these scores, one for each that the program asks about, say.

        A target is true from its threshold on, as it is written. Of classes the highest is the answer, by all digits;
        "none" where it is below the threshold, or no higher than in an image without objects (`empty`, by default 0).
        """
        values = self.values(scores)
        best = first_of_equals(values)
        score = round(values[best], DIGITS)
        if not self.of_classes:
            return TRUE if score >= threshold else FALSE
        level = 0.0 if empty is None else self.values(empty)[best]
        at_level = score <= (round(level + DRIFT, DIGITS) if level else 0.0)
        return NONE if at_level or score < threshold else self.atoms[best]


def questions(targets: Sequence[str], classes: Sequence[str] = ()) -> tuple[Question, ...]:
    """The questions of a program; the classes are the last of its targets."""
    own = len(targets) - len(classes)
    found = [Question(name, (name,), place) for place, name in enumerate(targets[:own])]
    return (*found, Question(CLASSES, tuple(classes), own)) if classes else tuple(found)


def called(asked: Sequence[Question], name: str) -> Question | None:
    """The question that a user calls so: kp1 stands for kp1(img) where no other target begins so."""
    names = dict(zip(short([one.name for one in asked]), asked, strict=True)) | {one.name: one for one in asked}
    return names.get(name) or names.get("".join(name.split()))


def short(names: Sequence[str]) -> tuple[str, ...]:
    """Targets by their predicates, kp1 for kp1(img), where no two of them have the same: for the heads of tables."""
    found = tuple(name.partition("(")[0] for name in names)
    return found if len(set(found)) == len(found) and all(found) else tuple(names)


def first_of_equals(values: np.ndarray | Sequence[float]) -> int:
    """Where the greatest value stands, or the first that is as good as equal to it."""
    values = np.asarray(values)
    greatest = values.max()
    return int((values >= greatest - SAME * abs(greatest)).argmax())
