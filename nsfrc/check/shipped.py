"""The vocabulary that comes with nsfrc, for hints: its neural predicates and the types that they speak of.

The functions of these predicates are in `nsfrc/valuation`, which needs torch; a test compares the names.
"""

from __future__ import annotations

from collections.abc import Container

from nsfrc.ir import PredicateKey, quoted

_TYPES = {
    "in": ("object", "image"), "class": ("object", "class"), "color": ("object", "color"),
    "shape": ("object", "shape"), "size": ("object", "size"), "material": ("object", "material"),
    "closeby": ("object", "object"), "leftside": ("object",), "rightside": ("object",), "front": ("object", "object"),
}
_ON_A_LINE = "online"  # takes any number of objects from this on
_FEWEST_ON_A_LINE = 3
# Files that declare predicates, and types that they declare with them.
_FILES = (
    ("kandinsky.pl", ("in", "color", "shape"), ("image", "color", "shape")),
    ("clevr.pl", ("in", "color", "shape", "size", "material"),
     ("image", "object", "color", "shape", "size", "material")),
)
_EXAMPLES = {"object": "slots(10)", "image": "[img]"}

NAMES = frozenset((*_TYPES, _ON_A_LINE))


def types(key: PredicateKey) -> tuple[str, ...] | None:
    """The types of a predicate that comes with nsfrc; None of any other."""
    name, arity = key
    if name == _ON_A_LINE and arity >= _FEWEST_ON_A_LINE:
        return ("object",) * arity
    found = _TYPES.get(name, ())
    return found if found and len(found) == arity else None


def hint(key: PredicateKey, known: Container[str]) -> str | None:
    """How to declare a predicate that comes with nsfrc; `known` has the types that are declared."""
    found = types(key)
    if found is None:
        return None
    for file, names, declared in _FILES:
        if key[0] in names and not any(name in known for name in declared):
            return f"it comes with nsfrc: :- include('{file}')."
    first = "".join(f"{example(name)}  " for name in found if name not in known)
    return f"it comes with nsfrc, but must be declared: {first}:- neural({key[0]}({', '.join(found)}))."


def example(name: str) -> str:
    """A declaration of a type, for someone who forgot it."""
    return f":- type({quoted(name)}, {_EXAMPLES.get(name, '[...]')})."
