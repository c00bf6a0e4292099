"""Words, lists and notes as they stand in an emitted file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from importlib import resources
from typing import Any

from nsfrc.engines.gpu.source_edit import WIDTH, fill


def noted(line: str, note: str | None) -> str:
    return f"{line}  # {note}" if note else line


def list_of(name: str, items: Iterable[str]) -> str:
    """An assignment of a list, on one line where it fits."""
    items = list(items)
    if len(items) > 8 and len(set(items)) == 1:
        return f"{name} = [{items[0]}] * {len(items)}"
    line = f"{name} = [{', '.join(items)}]"
    return line if len(line) <= WIDTH else f"{name} = [\n{fill(items)}\n]"


def clauses_of(clauses: Iterable[str]) -> str:
    """Clauses as comments."""
    return "".join(
        textwrap.fill(one_line(clause), WIDTH, initial_indent="#   ", subsequent_indent="#       ",
                      break_long_words=False, break_on_hyphens=False) + "\n"
        for clause in clauses
    )


def quoted(text: str) -> str:
    return f'"{text}"' if harmless(text) == text else repr(text)


def harmless(text: str) -> str:
    """A name as it may stand between quotes."""
    return "".join(c if c.isprintable() and c not in '"\\' else "?" for c in text)


def one_line(text: str) -> str:
    """A clause as it may stand in a comment."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def notes_of(file: str) -> dict[str, dict[str, str]]:
    """What a file of kernels/ says of a field, by class and field."""
    notes: dict[str, dict[str, str]] = {}
    for line in resources.files("nsfrc.kernels").joinpath(f"{file}.py").read_text("utf-8").splitlines():
        if found := re.match(r"class (\w+)", line):
            latest = notes.setdefault(found[1], {})
        elif found := re.match(r"    (\w+): \w+  # (.*)", line):
            latest[found[1]] = found[2]
    return notes


def constants_of(
    fields: dict[str, tuple[str, ...]], L: Any, groups: Iterable[tuple[str, str]], notes: dict[str, dict[str, str]],
    more: dict[str, str],
) -> list[str]:
    """Numbers of a layout that kernels read, with what is said of each. more: notes on fields of L itself."""
    lines = []
    for group, title in groups:
        found = [(name, path) for name, path in fields.items() if "".join(path[:-1]) == group]
        holder = getattr(L, group) if group else L
        lines += ["", f"# {title}"]
        for name, (*_, field) in sorted(found, key=lambda item: holder._fields.index(item[1][-1])):
            note = (more if not group else {}).get(field, notes[type(holder).__name__].get(field))
            lines.append(noted(f"{name} = static({getattr(holder, field)!r})", note))
    return lines


def tables_of(
    title: str, what: str, where: Any, values: Any, fields: Iterable[str], notes: dict[str, dict[str, str]]
) -> str:
    """A list for every table that the kernels read, and where it begins when they lie end to end."""
    names = where._fields
    used = [name for name in names if f"AT_{name.upper()}" in set(fields)]
    ends = dict(zip(names, [*where[1:], len(values)], strict=True))
    lines, begin = [f"# Tables of {what}: AT_X is where X begins in {title}."], 0
    for name in used:
        table = values[getattr(where, name): ends[name]]
        lines.append(noted(f"AT_{name.upper()} = static({begin})", notes[type(where).__name__].get(name)))
        lines.append(list_of(name.upper(), map(str, table)))
        begin += len(table)
    return "\n".join([*lines, list_of(title, (f"*{name.upper()}" for name in used)) + "\n"])


def tuple_of(items: list[str]) -> str:
    """As it stands in an expression."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def comment(text: str) -> list[str]:
    """A comment in a function, on as many lines as it takes."""
    return wrapped("    # " + one_line(text), more="    #     ")


def wrapped(line: str, note: str = "", more: str = "        ") -> list[str]:
    """A line and a note, cut at blanks within brackets if it is too long; a note that does not fit stands above."""
    if len(line + note) <= WIDTH:
        return [line + note]
    lines, rest, depth = [], line, int("#" in more)
    while len(rest) > WIDTH:
        inside = [depth + sum((c in "([") - (c in ")]") for c in rest[:i]) for i in range(WIDTH + 1)]
        cuts = [i for i in range(len(more), WIDTH + 1) if rest[i] == " " and inside[i] > 0]
        if not cuts:
            break
        lines.append(rest[: cuts[-1]])
        depth = inside[cuts[-1]]
        rest = more + rest[cuts[-1] + 1:]
    above = ["    " + note.strip()] if note else []
    return [*above, *lines, rest]


def assignments(names: list[str], values: list[str]) -> list[str]:
    """Several assignments on a line, as many as fit."""
    lines, some = [], 0
    while names:
        for some in range(len(names), 0, -1):
            line = f"    {', '.join(names[:some])} = {', '.join(values[:some])}"
            if len(line) <= WIDTH:
                break
        else:
            line = f"    {names[0]} = ({values[0]})"
        lines += wrapped(line)
        names, values = names[some:], values[some:]
    return lines
