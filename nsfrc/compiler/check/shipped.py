"""Hints for programs that use a neural predicate of `nsfrc/vocabulary.py`, or a type, without declaring it."""

from __future__ import annotations

from collections.abc import Container

from nsfrc.compiler.ir import PredicateKey, quoted
from nsfrc.vocabulary import find

# Files that declare predicates, and types that they declare with them.
_FILES = (
    ("kandinsky.pl", ("in", "color", "shape"), ("image", "color", "shape")),
    ("clevr.pl", ("in", "color", "shape", "size", "material"),
     ("image", "object", "color", "shape", "size", "material")),
)
_EXAMPLES = {"object": "slots(10)", "image": "[img]"}

def types(key: PredicateKey) -> tuple[str, ...] | None:
    """The types of a predicate that comes with nsfrc; None of any other."""
    name, arity = key
    known = find(name, arity)
    return known.types_for(arity) if known else None


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
