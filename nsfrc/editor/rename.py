"""Another name for a predicate, a constant, a type or a variable, unless that would change what the program says."""

from __future__ import annotations

import re

from nsfrc.compiler.check.builtin import is_core
from nsfrc.compiler.ir import quoted
from nsfrc.editor.document import Document
from nsfrc.editor.occurrences import CONSTANT, DECLARED, PREDICATE, TYPE, USED, VARIABLE, Occurrence
from nsfrc.errors import NsfrcError
from nsfrc.vocabulary import ATTRIBUTES, NUMBERS, find

_VARIABLE = re.compile(r"[A-Z_À-ÖØ-Þ]\w*")
_OURS = {"image", "object", *ATTRIBUTES}  # types whose names mean something
_RESERVED = {"forall", "aggregate_all", "findall", "length", "between", "succ", "plus", "query"}


def renamed(document: Document, offset: int, new: str) -> list[tuple[int, int, str]]:
    """Edits as (start, end, text). Raises NsfrcError, with the reason, where the name cannot be changed."""
    name = document.at(offset)
    if name is None:
        raise NsfrcError("there is no name here that could be changed")
    if document.syntax_errors:
        raise NsfrcError("the program has syntax errors: names in them would be missed")
    new = new.strip()
    places = document.same(name, offset)
    if name.kind == VARIABLE:
        text = _variable(document, name, offset, new)
    else:
        text = _word(document, name, places, new)
    return [(*document.lines.offsets(place.span), text) for place in places]


def _variable(document: Document, name: Occurrence, offset: int, new: str) -> str:
    if name.name == "_":
        raise NsfrcError("each _ is a variable of its own: write a name in its place")
    if not _VARIABLE.fullmatch(new) or new == "_":
        raise NsfrcError(f"{new or 'nothing'} is not a variable: one begins with a capital letter or _")
    if new != name.name and document.same(Occurrence(VARIABLE, new, 0, USED, name.span), offset):
        raise NsfrcError(f"the sentence has a variable {new} already")
    return new


def _word(document: Document, name: Occurrence, places: list[Occurrence], new: str) -> str:
    bare = new[1:-1].replace("\\'", "'") if len(new) > 2 and new[0] == new[-1] == "'" else new
    if not bare or not bare.isprintable():
        raise NsfrcError("a name must have letters")
    if _VARIABLE.match(bare) and bare == new:
        raise NsfrcError(f"{new} is a variable: a {name.kind} begins with a lower-case letter")
    for place in places:
        if not document.is_own(place.span):
            raise NsfrcError(f"{name.name} is named in {place.span.source.name}, which other programs may include too: "
                             "change it there, and in all that include it")
    if bare != name.name:
        _may_be_changed(name, places)
        _is_free(document, name, bare)
    return quoted(bare)


def _may_be_changed(name: Occurrence, places: list[Occurrence]) -> None:
    spoken = f"{name.name}/{name.arity}"
    if name.kind == PREDICATE:
        if is_core((name.name, name.arity)) or name.name in _RESERVED:
            raise NsfrcError(f"{spoken} is built in")
        if find(name.name, name.arity) or (name.arity == 1 and name.name in NUMBERS):
            raise NsfrcError(f"{spoken} is what perception calls it")
    elif name.kind == TYPE and name.name in _OURS:
        raise NsfrcError(f"the type {name.name} means something to perception by its name")
    if name.kind != PREDICATE and not any(place.how == DECLARED for place in places):
        raise NsfrcError(f"the {name.kind} {name.name} is not declared in this file")
    if name.kind == PREDICATE and all(place.how == USED for place in places):
        raise NsfrcError(f"{spoken} is not declared or defined in this file")


def _is_free(document: Document, name: Occurrence, new: str) -> None:
    same_kind = [found for found in document.names if found.kind == name.kind and found.name == new]
    if any(found.arity == name.arity for found in same_kind):
        raise NsfrcError(f"there is a {name.kind} {new} already")
    if name.kind == PREDICATE and (is_core((new, name.arity)) or new in _RESERVED or find(new, name.arity)
                                   or (name.arity == 1 and new in NUMBERS)):
        raise NsfrcError(f"{new}/{name.arity} means something else")
    if name.kind == CONSTANT and re.fullmatch(r"obj\d+", new):
        raise NsfrcError(f"{new} is what an object is called")
