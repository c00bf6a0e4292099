"""The neural predicates that come with nsfrc, once: what they take, how people say them, and what learns them.

`check` hints from this table, `describe` and the report take their words from it, `nsfrc train concept` its names, and
the facts converter whether the order of arguments matters. The functions themselves are in `nsfrc/valuation`.
"""

from __future__ import annotations

from dataclasses import dataclass

IS, HAS, LIE = ("is", "are"), ("has", "have"), ("lies", "lie")


@dataclass(frozen=True)
class Known:
    """A neural predicate.

    types: of its arguments; more: any number of further arguments of the last type may follow. verb, complement: what
    it says of its first argument, "{1}" being the second; together: of all its arguments at once. symmetric: the order
    of the arguments does not matter. learns: for a concept with learnt parameters, what these decide.
    """

    name: str
    types: tuple[str, ...]
    verb: tuple[str, str]
    complement: str
    more: bool = False
    together: bool = False
    symmetric: bool = False
    learns: str | None = None

    @property
    def is_attribute(self) -> bool:
        return self.types[1:] == (self.name,)

    def types_for(self, arity: int) -> tuple[str, ...] | None:
        """The types of its arguments if it may have this many."""
        if self.more and arity > len(self.types):
            return self.types + self.types[-1:] * (arity - len(self.types))
        return self.types if arity == len(self.types) else None


def _attribute(name: str) -> Known:
    return Known(name, ("object", name), HAS, name + " {1}")


# Attributes stand in the order in which people say them: a large metal red cube.
KNOWN: tuple[Known, ...] = (
    Known("in", ("object", "image"), IS, "in {1}"),
    *map(_attribute, ("size", "material", "color", "shape", "class")),
    Known("closeby", ("object", "object"), IS, "close by {1}", symmetric=True,
          learns="how near the centres of two objects must be"),
    Known("online", ("object", "object", "object"), LIE, "on one line", more=True, together=True, symmetric=True,
          learns="how straight the line must be on which their centres lie"),
    Known("leftside", ("object",), IS, "on the left side",
          learns="which objects of a 3D scene lie in the left half of the image"),
    Known("rightside", ("object",), IS, "on the right side",
          learns="which objects of a 3D scene lie in the right half of the image"),
    Known("front", ("object", "object"), IS, "in front of {1}",
          learns="which of two objects is nearer to the camera, along the ground"),
)
BY_NAME: dict[str, Known] = {known.name: known for known in KNOWN}
ATTRIBUTES: tuple[str, ...] = tuple(known.name for known in KNOWN if known.is_attribute)
CONCEPTS: tuple[Known, ...] = tuple(known for known in KNOWN if known.learns is not None)


# Numbers of an object that are known wherever perception has boxes, as fractions of the image, and what they are.
NUMBERS: dict[str, str] = {
    "x": "the centre, from left to right", "y": "the centre, from top to bottom",
    "x1": "the left edge", "y1": "the upper edge", "x2": "the right edge", "y2": "the lower edge",
    "width": "x2 - x1", "height": "y2 - y1", "area": "width * height",
    "confidence": "how sure perception is that the object is there",
}


def find(name: str, arity: int) -> Known | None:
    """The predicate of this name, if it may have this many arguments."""
    known = BY_NAME.get(name)
    return known if known is not None and known.types_for(arity) is not None else None
