"""Values of arguments and options: how they are read, and what a shell offers for them on TAB.

What a shell asks for is answered while somebody waits, so nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

SUFFIXES = (".pl", ".nsfrc")


def parse_slots(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """`object=9` → {"object": 9}."""
    slots = {}
    for value in values:
        name, _, number = value.partition("=")
        if not name or not re.fullmatch("[0-9]{1,9}", number) or int(number) < 1:
            raise click.BadParameter(f"{value!r} is not TYPE=NUMBER, as in object=9")
        slots[name] = int(number)
    return slots


def programs(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Programs here and in the folders here, and those that ship; folders alone where there are none."""
    from nsfrc.compiler.parse import shipped_programs

    # Folders come first: the shell's function then completes them where nothing follows.
    found = [CompletionItem(typed, type="dir")]
    found += [CompletionItem(name) for name in _files(typed)]
    return found + [CompletionItem(name, help="comes with nsfrc") for name in shipped_programs()
                    if name.startswith(typed)]


def concepts(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Concepts that ship."""
    from nsfrc.vocabulary import CONCEPTS

    return [CompletionItem(concept.name) for concept in CONCEPTS if concept.name.startswith(typed)]


def _files(typed: str) -> list[str]:
    """Program files whose path starts with what is typed, and those in folders whose path does."""
    parent, _, start = typed.rpartition("/")
    lead = f"{parent}/" if "/" in typed else ""
    found = []
    for entry in _entries(Path(lead or ".")):
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.suffix in SUFFIXES:
            found.append(f"{lead}{entry.name}")
        elif entry.is_dir():
            found += [f"{lead}{entry.name}/{deep.name}" for deep in _entries(entry) if deep.suffix in SUFFIXES]
    return [name for name in found if not re.search(r"[\s'\"\\$&;|<>()]", name)]  # which bash would put down unquoted


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # a folder that is not there, or not ours to read
        return []


def perceptions(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Names that `--perception` takes; `nsfrc.perception` knows them too, and imports torch."""
    from importlib.metadata import entry_points

    from nsfrc.training.options import MODELS

    return _starting(typed, {*MODELS, *(found.name for found in entry_points(group="nsfrc.perception"))})


def patterns(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Patterns of Kandinsky figures."""
    from nsfrc.data.kandinsky import NAMES

    return _starting(typed, NAMES)


def passes(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Passes that `--skip` takes."""
    from nsfrc.compiler.passes import NAMES

    return [name for name in NAMES if name.startswith(typed)]


def _starting(typed: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(typed))
