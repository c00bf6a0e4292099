"""The objects of a program as the report shows them: their numbers, what they look like, where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

from nsfrc.compiler.ir import ATTRIBUTE, NEURAL, OBJECT, quoted
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import Placed
from nsfrc.program import Program
from nsfrc.vocabulary import ATTRIBUTES

Box = tuple[float, float, float, float]
Spot = tuple[float, float]
Places = Callable[[np.ndarray], np.ndarray | None]
CORNERS = ("x1", "y1", "x2", "y2")
SURE = 0.5  # an attribute below this does not describe an object, and an object below this was not seen
CERTAIN, FAINT = 0.9, 0.1  # below the first an object is listed with its objectness, below the other it is not there


class Objects:
    """Objects go by number: constant i of an object type is object i + 1 and row i of what perception sees.

    dimensions: the names of the D entries of an object vector; without x1, y1, x2, y2 there are no boxes.
    places: object vectors [E, D] → where they are, [E, 2] as fractions of what perception was given, or None.
    """

    def __init__(self, program: Program, dimensions: tuple[str, ...], places: Places | None = None) -> None:
        self.program, self.places = program, places
        self.herbrand = program.ground.herbrand
        self.objectness = dimensions.index("objectness") if "objectness" in dimensions else None
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

    @cached_property
    def named(self) -> bool:
        """Whether objects have classes, which are then written on their boxes."""
        return any(p.role == NEURAL and p.name == "class" for p in self.herbrand.predicates)

    def _role(self, type_name: str) -> str:
        return self.herbrand.type_by_name[type_name].role

    @cached_property
    def _attributes(self) -> list[tuple[np.ndarray, tuple[str, ...]]]:
        """For each neural p(object, attribute): where its atoms stand [objects, constants], and the constants.

        In the order in which they are said of an object.
        """
        found = []
        for predicate in self.herbrand.predicates:
            if predicate.role == NEURAL and [self._role(t) for t in predicate.types] == [OBJECT, ATTRIBUTE]:
                constants = self.herbrand.type_by_name[predicate.types[1]].constants
                rank = ATTRIBUTES.index(predicate.name) if predicate.name in ATTRIBUTES else -1
                found.append((rank, self.herbrand.tables[predicate.key], constants))
        return [(table, constants) for _, table, constants in sorted(found, key=lambda one: one[0])]

    def describe(self, valuation: np.ndarray) -> list[str]:
        """The likeliest attributes of each object, as in "small red circle"; empty where nothing is likely.

        valuation: [G].
        """
        words: list[list[str]] = [[] for _ in self.names]
        for table, constants in self._attributes:
            values = valuation[table]
            for i, best in enumerate(values.argmax(axis=1)):
                if values[i, best] >= SURE:
                    words[i].append(constants[best])
        return [" ".join(w) for w in words]

    def boxes(self, vectors: np.ndarray | None, picture: Placed | None) -> list[Box | None]:
        """Boxes in fractions of the original image, cut off at its edges; None where an object was not seen.

        vectors: [E, D]. There is an entry for each of `names`.
        """
        if vectors is None or self.corners is None:
            return [None] * len(self.names)
        boxes = [_box(corners, picture) for corners in vectors[: len(self.names), self.corners]]
        return boxes + [None] * (len(self.names) - len(boxes))

    def spots(self, vectors: np.ndarray | None, picture: Placed | None, part: tuple[int, ...]) -> list[Spot | None]:
        """Where objects without boxes are, in fractions of the original image; None where one was not seen.

        part: numbers of objects that a reason names, which are shown however faintly they were seen.
        """
        found: list[Spot | None] = [None] * len(self.names)
        if vectors is None or self.corners is not None or (places := self._places(vectors)) is None:
            return found
        seen = self.seen(vectors, [])
        for i, (x, y) in enumerate(places[: len(self.names)].tolist()):
            if not seen[i] and i + 1 not in part:
                continue
            if picture is not None:
                x, y, _, _ = picture.box(x, y, x, y)
            if 0 <= x <= 1 and 0 <= y <= 1:
                found[i] = x, y
        return found

    def seen(self, vectors: np.ndarray | None, boxes: list[Box | None]) -> list[bool]:
        """Whether each object was seen: whether it has a box, or without boxes by its objectness."""
        if vectors is None or self.corners is not None:
            return [box is not None for box in boxes]
        if self.objectness is None:
            return [True] * len(self.names)
        there = (vectors[: len(self.names), self.objectness] >= SURE).tolist()
        return there + [False] * (len(self.names) - len(there))

    def listed(
        self, vectors: np.ndarray | None, boxes: list[Box | None], looks: list[str], part: tuple[int, ...]
    ) -> list[str | None]:
        """What to say of each object, with its objectness unless that is high; None of one that is not there.

        looks: see `describe`. part: numbers of objects that a reason names, of which something is said always.
        """
        said: list[str | None] = []
        for i, (there, look) in enumerate(zip(self.seen(vectors, boxes), looks, strict=True)):
            sure = self._objectness(vectors, i)
            unsure = f" ({sure:.2f})" if sure is not None and sure < CERTAIN else ""
            if there or (sure is not None and sure >= FAINT):
                said.append((look or "unclear") + unsure)
            else:
                said.append(f"not seen{unsure}" if i + 1 in part else None)
        return said

    def _objectness(self, vectors: np.ndarray | None, i: int) -> float | None:
        if vectors is None or self.objectness is None or i >= len(vectors):
            return None
        return float(vectors[i, self.objectness])

    def _places(self, vectors: np.ndarray) -> np.ndarray | None:
        if self.places is None:
            return None
        try:
            with np.errstate(all="ignore"):  # a place that is not a number is not shown
                found = self.places(vectors)
            return None if found is None else np.asarray(found, dtype=np.float64).reshape(len(vectors), 2)
        except Exception as error:  # whatever a user's model raises
            raise NsfrcError(f"the perception's places() fails on object vectors {list(vectors.shape)}: "
                             f"{type(error).__name__}: {error}") from error


def _box(corners: np.ndarray, picture: Placed | None) -> Box | None:
    if not np.isfinite(corners).all():
        return None
    x1, y1, x2, y2 = map(float, corners)
    if picture is not None:
        x1, y1, x2, y2 = picture.box(x1, y1, x2, y2)
    x1, y1, x2, y2 = (min(1.0, max(0.0, value)) for value in (x1, y1, x2, y2))
    return (x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None
