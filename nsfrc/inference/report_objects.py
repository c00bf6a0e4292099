"""The objects of a program as the report shows them: their numbers, what they look like, where they are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from nsfrc.inference.images import Picture
from nsfrc.ir import ATTRIBUTE, NEURAL, OBJECT, quoted
from nsfrc.program import Program

Box = tuple[float, float, float, float]
CORNERS = ("x1", "y1", "x2", "y2")
SURE = 0.5  # an attribute below this does not describe an object


class Objects:
    """Objects go by number: constant i of an object type is object i + 1 and row i of what perception sees.

    dimensions: the names of the D entries of an object vector; without x1, y1, x2, y2 there are no boxes.
    """

    def __init__(self, program: Program, dimensions: tuple[str, ...]) -> None:
        self.program = program
        self.herbrand = program.ground.herbrand
        self.corners = [dimensions.index(name) for name in CORNERS] if set(CORNERS) <= set(dimensions) else None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The constant of each object, of the largest object type if there are several."""
        types = [t.constants for t in self.herbrand.types if t.role == OBJECT]
        return max(types, key=len, default=())

    @cached_property
    def _numbers(self) -> dict[str, int]:
        types = [t.constants for t in self.herbrand.types if t.role == OBJECT]
        return {quoted(name): i for constants in types for i, name in enumerate(constants, 1)}

    def numbers(self, names: Iterable[str]) -> tuple[int, ...]:
        """The number of each object, by its name as Prolog text."""
        return tuple(self._numbers[name] for name in names)

    def _role(self, type_name: str) -> str:
        return self.herbrand.type_by_name[type_name].role

    @cached_property
    def _attributes(self) -> list[tuple[np.ndarray, tuple[str, ...]]]:
        """For each neural p(object, attribute): where its atoms stand [objects, constants], and the constants."""
        found = []
        for predicate in self.herbrand.predicates:
            if predicate.role == NEURAL and [self._role(t) for t in predicate.types] == [OBJECT, ATTRIBUTE]:
                constants = self.herbrand.type_by_name[predicate.types[1]].constants
                found.append((self.herbrand.tables[predicate.key], constants))
        return found

    def describe(self, valuation: np.ndarray) -> list[str]:
        """The likeliest attributes of each object, as in "red circle"; empty where nothing is likely.

        valuation: [G].
        """
        words: list[list[str]] = [[] for _ in self.names]
        for table, constants in self._attributes:
            values = valuation[table]
            for i, best in enumerate(values.argmax(axis=1)):
                if values[i, best] >= SURE:
                    words[i].append(constants[best])
        return [" ".join(w) for w in words]

    def boxes(self, vectors: np.ndarray | None, picture: Picture | None) -> list[Box | None]:
        """Boxes in fractions of the original image, cut off at its edges; None where an object was not seen.

        vectors: [E, D]. There is an entry for each of `names`.
        """
        if vectors is None or self.corners is None:
            return [None] * len(self.names)
        boxes = [_box(corners, picture) for corners in vectors[: len(self.names), self.corners]]
        return boxes + [None] * (len(self.names) - len(boxes))


def _box(corners: np.ndarray, picture: Picture | None) -> Box | None:
    if not np.isfinite(corners).all():
        return None
    x1, y1, x2, y2 = map(float, corners)
    if picture is not None:
        x1, y1, x2, y2 = picture.box(x1, y1, x2, y2)
    x1, y1, x2, y2 = (min(1.0, max(0.0, value)) for value in (x1, y1, x2, y2))
    return (x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None
