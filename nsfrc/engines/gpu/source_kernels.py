"""The text of the kernels, made special: kernels/*.py with one layout's constants put in.

Only text is worked on, so comments stay and nothing has to be imported. Before → after, for a program whose
clauses are taken as given:

    if L.hard:                                              derive_hard(indices, work, stride, k, unit)
        derive_hard(indices, work, stride, k, unit, L)
    else:
        mix(weights, work, stride, k, L)
    put(work, L.row.derived + head, stride, ok, r, L)       put(work, WORK_DERIVED + head, stride, ok, r)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any

from nsfrc.engines.gpu import source_edit as edit

FORWARD, BACKWARD = "program_forward", "program_backward"
FILES = ("maths", "step", "derive", "gradients", "factors", "program")
# Prefixes of what a layout's parts become: L.n.active is N_ACTIVE.
PREFIXES = {"n": "N_", "at": "AT_", "of": "AT_", "row": "WORK_", "kind": "KIND_"}
BAND_PARAMETERS = "WIDTH: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr, ENTRIES: tl.constexpr"


@dataclass(frozen=True)
class Kernels:
    """What a file needs: constants and functions by the file they come from, and the fields of the layout in use.

    fields: constant → where it is in a layout, as "N_ACTIVE" → ("n", "active").
    """

    constants: tuple[str, ...]
    functions: dict[str, dict[str, str]]
    fields: dict[str, tuple[str, ...]]

    def parameters(self, name: str) -> list[str]:
        return next(edit.parameters(file[name]) for file in self.functions.values() if name in file)


def specialise(
    L: Any, gradients: bool, files: tuple[str, ...] = FILES, kernels: tuple[str, str] = (FORWARD, BACKWARD),
    known: Mapping[str, bool] = MappingProxyType({}),
) -> Kernels:
    """The functions that the whole-program kernels of some files need for a layout.

    gradients: whether the backward kernel is wanted. Then whether the forward one keeps what that needs is an
    argument, KEEP, and phases that both have are told whether they run for the BACKWARD one; otherwise neither.
    known: other names whose values are.
    """
    sources = {file: resources.files("nsfrc.kernels").joinpath(f"{file}.py").read_text("utf-8") for file in files}
    where, constants = {}, {}
    functions: dict[str, str] = {}
    for file, text in sources.items():
        found, named = edit.split(text)
        unknown, decided = ("gradient", {**known}) if gradients else (None, {**known, "KEEP": False})
        functions.update((name, edit.fold(part, L, unknown, decided)) for name, part in found.items())
        where.update(dict.fromkeys(found, file))
        constants.update(named)
    functions = reachable(functions, kernels if gradients else kernels[:1])
    functions = without_unused(functions)
    fields: dict[str, tuple[str, ...]] = {}
    told = _told(functions)
    functions = {name: edit.wrap(_named(text, L, told, fields)) for name, text in functions.items()}
    used = set().union(*(edit.names(text) for text in functions.values()))
    return Kernels(
        tuple(text for name, text in constants.items() if name in used),
        {file: {name: text for name, text in functions.items() if where[name] == file} for file in files},
        fields,
    )


def reachable(functions: dict[str, str], roots: tuple[str, ...]) -> dict[str, str]:
    """Only what the roots call, in the order given."""
    wanted, todo = set(roots), list(roots)
    while todo:
        fresh = (edit.names(functions[todo.pop()]) & functions.keys()) - wanted
        wanted |= fresh
        todo += fresh
    return {name: text for name, text in functions.items() if name in wanted}


def without_unused(functions: dict[str, str]) -> dict[str, str]:
    """Drop what is computed for nobody: first variables, then parameters, until all that is left is used."""
    while True:
        functions = {name: edit.without_dead(text) for name, text in functions.items()}
        unused = [(name, place) for name, text in functions.items() for place in edit.unused_parameters(text)]
        if not unused:
            return functions
        name, place = unused[0]
        functions = {
            caller: edit.without_argument(text, name, place, declared=caller == name)
            for caller, text in functions.items()
        }


def _told(functions: dict[str, str]) -> set[str]:
    """Functions that are to know for which kernel they run, themselves or for what they call."""
    found = {name for name, text in functions.items() if "L.gradient" in text}
    while True:
        more = {name for name, text in functions.items() if edit.names(text) & found} - found
        if not more:
            return found - {FORWARD, BACKWARD}
        found |= more


def _named(text: str, L: Any, told: set[str], fields: dict[str, tuple[str, ...]]) -> str:
    """Constants by name instead of L, which nothing is given any longer."""
    function = edit.parse(text)
    backward = {FORWARD: "False", BACKWARD: "True"}.get(function.name, "BACKWARD")
    edits: list[edit.Edit] = []
    arguments = function.args.args
    for before, argument in zip([None, *arguments], arguments, strict=False):
        if argument.arg == "L" and before is not None:
            edits.append(((before, argument), ", BACKWARD: tl.constexpr" if function.name in told else ""))
        elif argument.arg == "BAND":
            edits.append((argument, BAND_PARAMETERS))
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and node.args and edit.is_name(node.args[-1], "L"):
            assert isinstance(node.func, ast.Name)
            passed = f", BACKWARD={backward}" if node.func.id in told else ""
            edits.append(((node.args[-2], node.args[-1]), passed))
    edits += _constants(function, L, fields)
    return edit.apply(text, edits)


def _constants(node: ast.AST, L: Any, fields: dict[str, tuple[str, ...]]) -> list[edit.Edit]:
    """Names for what is read from L, and for bands their numbers."""
    match node:
        case ast.BinOp(left=ast.Attribute(value=ast.Subscript()), right=ast.Attribute(value=ast.Subscript())):
            return [(node, str(edit.value(node, L)))]
        case ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=ast.Name(id="L")))):
            return [(node, str(edit.value(node, L)))]
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="L"), attr=bands), slice=ast.Constant(value=i)):
            width, first, last, entries = getattr(L, bands)[i]
            return [(node, f"WIDTH={width}, FIRST={first}, LAST={last}, ENTRIES={entries}")]
        case ast.Attribute(value=ast.Name(id="BAND"), attr=name):
            return [(node, name.upper())]
        case ast.Attribute(value=ast.Name(id="L"), attr="gradient"):
            return [(node, "BACKWARD")]
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="L"), attr=group), attr=name):
            # Rows of a pair are not shared out here, so a part is a pair.
            name = "pair" if (group, name) == ("row", "part") else name
            fields[PREFIXES[group] + name.upper()] = (group, name)
            return [(node, PREFIXES[group] + name.upper())]
        case ast.Attribute(value=ast.Name(id="L"), attr=name):
            fields[name.upper()] = (name,)
            return [(node, name.upper())]
    return [found for child in ast.iter_child_nodes(node) for found in _constants(child, L, fields)]
