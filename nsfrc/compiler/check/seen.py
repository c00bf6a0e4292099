"""Directives about what perception gives: model, presence, attributes, and types that take its class names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nsfrc.compiler.check.vocabulary import Vocabulary, where
from nsfrc.compiler.ir import ATTRIBUTE, CRISP, SOFT, DataType, Settings, quoted
from nsfrc.compiler.syntax import Compound, ListTerm, Name, Number, Sentence, Term, calls
from nsfrc.errors import Diagnostics, NsfrcError
from nsfrc.models.outside import Outside

FROM = "from_perception"
SIDES = 16, 8192  # pixels of a model's images
MODEL = ":- model([names([person, car]), size(640)])."
PRESENCE = ":- presence(crisp(0.25)).  or  :- presence(soft)."
ATTRIBUTES = ":- attributes([color-[red, blue], shape-[square, circle]])."


def read_model(goal: Compound, settings: Settings, found: Diagnostics) -> Settings:
    """`model([names([...]), size(640)])`: what the file of a model does not say itself."""
    for item in _items(goal.args[0]):
        if calls(item, "names", 1) and (names := _names(item.args[0])):
            if len(set(names)) < len(names):
                found.error("bad-setting", item.span, "two classes have the same name", MODEL)
            settings = replace(settings, names=tuple(names))
        elif isinstance(item, Compound) and item.name == "size" and (size := _size(item)) is not None:
            settings = replace(settings, size=size)
        else:
            message = f"model needs a list of names([...]), and size(N) or size(H, W) from {SIDES[0]} to {SIDES[1]}"
            found.error("bad-setting", item.span, message, MODEL)
    return settings


def _items(term: Term) -> Sequence[Term]:
    return term.items if isinstance(term, ListTerm) and term.tail is None else (term,)


def _names(term: Term) -> list[str]:
    items = _items(term) if isinstance(term, ListTerm) else ()
    names = [item.name if isinstance(item, Name) else str(item) for item in items if isinstance(item, Name | Number)]
    return names if len(names) == len(items) else []


def _size(item: Compound) -> tuple[int, int] | None:
    sides = [arg.value for arg in item.args if isinstance(arg, Number) and isinstance(arg.value, int)]
    if len(sides) != len(item.args) or len(sides) not in (1, 2) or not all(SIDES[0] <= s <= SIDES[1] for s in sides):
        return None
    return int(sides[0]), int(sides[-1])


def read_presence(goal: Compound, settings: Settings, found: Diagnostics) -> Settings:
    """`presence(crisp(0.25))`, `presence(crisp)`, `presence(soft)`, `presence(soft(0.1))`."""
    value = goal.args[0]
    name = value.name if isinstance(value, Name | Compound) else ""
    least = value.args[0] if isinstance(value, Compound) and len(value.args) == 1 else None
    plain = isinstance(value, Name)
    if name not in (CRISP, SOFT) or not (plain or (isinstance(least, Number) and 0 <= least.value <= 1)):
        message = "presence is crisp or soft, with the least confidence from 0 to 1"
        found.error("bad-setting", value.span, message, PRESENCE)
        return settings
    return replace(settings, presence=name, conf=float(least.value) if isinstance(least, Number) else None)


def read_attributes(goal: Compound, settings: Settings, vocabulary: Vocabulary) -> Settings:
    """`attributes([color-[red, blue], ...])`: types, and the values in which the names of classes fall apart."""
    found, attributes = vocabulary.found, []
    for item in _items(goal.args[0]):
        pair = item.args if calls(item, "-", 2) else (item, item)
        values = _names(pair[1])
        if not isinstance(pair[0], Name) or not values or len(set(values)) < len(values):
            found.error("bad-setting", item.span, "attributes needs a list of types, each with its values", ATTRIBUTES)
            continue
        name = pair[0].name
        if (first := vocabulary.types.get(name)) is not None and first.span is not None:
            found.error("declared-twice", item.span, f"type {quoted(name)} is already declared "
                                                     f"{where(first.span, item.span)}")
            continue
        vocabulary.types[name] = DataType(name, tuple(values), ATTRIBUTE, False, item.span)
        attributes.append((name, tuple(values)))
    return replace(settings, attributes=tuple(attributes))


def fill(
    waiting: Sequence[DataType], settings: Settings, vocabulary: Vocabulary, outside: Outside, folder: Path
) -> None:
    """Give the types that are declared with `from_perception` their constants."""
    if not waiting:
        return
    try:
        names = outside.class_names(settings.perception, settings.names, folder)
    except NsfrcError as error:
        vocabulary.found.error("from-perception", waiting[0].span, str(error))
        return
    for datatype in waiting:
        vocabulary.types[datatype.name] = replace(datatype, constants=names.atoms)
    others = {name for t in vocabulary.types.values() if t not in waiting for name in t.constants}
    vocabulary.aliases = {name: atom for name, atom in names.aliases.items() if name not in others}


def with_atoms(sentences: Sequence[Sentence], aliases: Mapping[str, str]) -> Sequence[Sentence]:
    """Sentences in which classes go by their atoms: 'traffic light' is traffic_light."""
    if not aliases:
        return sentences
    return [replace(one, term=_renamed(one.term, aliases)) if one.term is not None else one for one in sentences]


def _renamed(term: Term, aliases: Mapping[str, str]) -> Term:
    if isinstance(term, Name):
        return replace(term, name=aliases[term.name]) if term.name in aliases else term
    if isinstance(term, Compound):
        args = tuple(_renamed(arg, aliases) for arg in term.args)
        return term if all(a is b for a, b in zip(args, term.args, strict=True)) else replace(term, args=args)
    if isinstance(term, ListTerm):
        return replace(term, items=tuple(_renamed(item, aliases) for item in term.items))
    return term
