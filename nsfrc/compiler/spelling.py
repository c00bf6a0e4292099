"""Names of predicates that nobody wrote as such: comparisons of numbers, and probabilities, as they are written.

    area(A) > 1.5 * area(B)     a comparison; A, B, ... are its arguments in order of appearance
    0.7::win(X)                 the probability 0.7 of a clause for win(X), without arguments
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMPARES = re.compile(r" (?:<|>|=<|>=|=:=|=\\=) ")
_WORDS = re.compile(r"'(?:[^'\\]|\\.)*'|(?<!\w)[A-Z]\w*")  # quoted names, and variables
_ANNOTATION = re.compile(r"(?:t\([^()]*\)|[0-9][0-9.e+-]*)::")


def variable(place: int) -> str:
    """How the argument at a place is called in the name of a comparison: A, B, ..., Z, A1, B1, ..."""
    return chr(ord("A") + place % 26) + (str(place // 26) if place >= 26 else "")


def spelt(name: str, args: Sequence[str]) -> str | None:
    """The text of a comparison with its arguments put in, or of a probability; None for any other name."""
    if not args and annotation(name) is not None:
        return name
    if not compares(name):
        return None
    used = {word for word in _WORDS.findall(name) if not word.startswith("'")}
    return put_in(name, args) if used == {variable(place) for place in range(len(args))} else None


def put_in(text: str, args: Sequence[str]) -> str:
    """A text about A, B, ... with arguments in their place."""
    places = {variable(place): arg for place, arg in enumerate(args)}
    return _WORDS.sub(lambda word: places.get(word[0], word[0]), text)


def compares(text: str) -> bool:
    """Whether the text of an atom, or a name, is a comparison."""
    return _COMPARES.search(text) is not None


def annotation(name: str) -> str | None:
    """`0.7::` of a probability's name; None for any other name."""
    found = _ANNOTATION.match(name)
    return found and found[0]
