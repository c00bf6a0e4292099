"""Whose Python may run. Programs and images are data; a module that they name is code.

What ships runs, and what an installed package has registered under a name. Anything else, a file given as a plug-in or
the module of "module:Class", runs only where the user named it, or the program that names it, and said --trust
(in Python trust=True). For a program that was found and not named nothing runs, whatever was said.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from nsfrc.errors import NsfrcError

ALLOW = "if you trust that code, allow it with --trust (in Python trust=True)"


def refuse(asks: str, runs: str) -> NsfrcError:
    """The error for code that was named, but not allowed. asks: who names it; runs: see `would_run`."""
    return NsfrcError(f"{asks} would run {runs}: {ALLOW}")


def refuse_found(program: Path, asks: str, runs: str) -> NsfrcError:
    """The error for code that a program asks for which was found and not named."""
    return NsfrcError(
        f"{program} was found there, not named, and {asks} would run {runs}; no code is run for a program that was "
        f"only found: look at both files and, if you trust them, use --program {program} --trust; or choose "
        f"another perception with --perception"
    )


def search_path(beside: Path | None = None) -> list[str]:
    """The folders besides those of what is installed in which a user's module is looked for. beside: the program's."""
    return list(dict.fromkeys([os.getcwd(), *([] if beside is None else [str(beside)])]))


def would_run(module: str, beside: Path | None = None) -> str:
    """What importing a module would run, in words: its file, or that there is none."""
    folders = search_path(beside)
    found = _file(module, folders)
    if found is None:
        return f"the module {module} (there is none in {' or '.join(folders)}, nor among installed packages)"
    return found


def _file(module: str, folders: Sequence[str]) -> str | None:
    """Where importing a module would find it; nothing is imported, not even the packages that it is in."""
    places: list[str] | None = [*sys.path, *folders]
    name, origin = "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        try:
            spec = PathFinder.find_spec(name, places)
        except (ImportError, ValueError, TypeError):  # names that no module can have
            return None
        if spec is None:
            return None
        places, origin = list(spec.submodule_search_locations or ()), spec.origin or name
    return origin
