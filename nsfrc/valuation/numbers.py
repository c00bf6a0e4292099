"""What measures a number: a function of the user's, an entry of the object vector, or the object's box."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.valuation.arguments import Objects
from nsfrc.valuation.registry import NUMBER, Registered, find_number, numbers
from nsfrc.valuation.valued import OBJECTNESS
from nsfrc.vocabulary import NUMBERS


def _width(obj: Objects) -> torch.Tensor:
    return obj["x2"] - obj["x1"]


def _height(obj: Objects) -> torch.Tensor:
    return obj["y2"] - obj["y1"]


# By name: which entries it takes, and how.
_OF_BOX: dict[str, tuple[tuple[str, ...], Callable[[Objects], torch.Tensor]]] = {
    "x": (("x1", "x2"), lambda obj: (obj["x1"] + obj["x2"]) * 0.5),
    "y": (("y1", "y2"), lambda obj: (obj["y1"] + obj["y2"]) * 0.5),
    "width": (("x1", "x2"), _width),
    "height": (("y1", "y2"), _height),
    "area": (("x1", "y1", "x2", "y2"), lambda obj: _width(obj) * _height(obj)),
    "confidence": ((OBJECTNESS,), lambda obj: obj[OBJECTNESS]),
}


def measure(number: ir.Number, of_object: bool, dimensions: Collection[str], source: str | None) -> Registered:
    """The function of a number. of_object: it is of one object; dimensions: entries of its vector; source: whose."""
    name = number.name
    if (found := find_number(name)) is not None:
        return found
    if of_object and name in dimensions:
        return Registered(name, lambda obj: obj[name], False, "an entry of the object vector", NUMBER)
    needs, function = _OF_BOX.get(name, ((), None))
    if of_object and function is not None and all(entry in dimensions for entry in needs):
        return Registered(name, function, False, "of the object's box", NUMBER)
    raise NsfrcError(f"{_lacking(number, of_object, dimensions, source)}. Write @nsfrc.number(\"{name}\") above a "
                     f"Python function that returns numbers [B, N], and load its file with --plugin FILE.py")


def _lacking(number: ir.Number, of_object: bool, dimensions: Collection[str], source: str | None) -> str:
    """What to say of a number that nothing measures."""
    who = "perception" if source is None else f"perception {source}"
    if not of_object:
        there = f"there are functions of {', '.join(numbers())}" if numbers() else "there is none"
        return f"the number {number} has no function; {there}"
    offered = [*dimensions, *(name for name, (needs, _) in _OF_BOX.items()
                              if name not in dimensions and all(entry in dimensions for entry in needs))]
    hint = did_you_mean(number.name, [*offered, *numbers()])
    why = " without boxes" if number.name in NUMBERS else ""
    return f"{who}{why} has no number {number.name}; it has {', '.join(offered)}" + (f": {hint}" if hint else "")
