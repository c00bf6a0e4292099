"""Loads users' Python files, whose decorators register neural predicates (and anything else that is registered)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from nsfrc.errors import NsfrcError

PREFIX = "nsfrc_plugin:"  # before the path of a file, in the name of its module


def load_plugin(text: str) -> ModuleType:
    """Import a file `FILE.py`, or a module by name; the current folder and the file's own are searched as well."""
    if not text.endswith(".py") and "/" not in text and not Path(text).is_file():
        return _module(text)
    path = Path(text).resolve()
    if not path.is_file():
        raise NsfrcError(f"there is no plug-in {text}: a plug-in is a Python file or the name of a module")
    return _file(path, text)


def files_of(modules: Iterable[str]) -> list[str]:
    """The files of those modules that are plug-ins, by the modules' names."""
    names = sorted(name.removeprefix(PREFIX) for name in modules if name.startswith(PREFIX))
    return [name.replace("%2E", ".").replace("%25", "%") for name in names]


def _file(path: Path, text: str) -> ModuleType:
    # A dot would make it a module in a package, which pickle could not find.
    name = PREFIX + str(path).replace("%", "%25").replace(".", "%2E")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NsfrcError(f"the plug-in {text} is not a Python file: its name must end in .py")
    _search(path.parent)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise NsfrcError(_reason(error, text, str(path))) from error
    return module


def _module(name: str) -> ModuleType:
    _search(Path.cwd())
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    except (Exception, SystemExit) as error:  # from the package that the module is in
        raise NsfrcError(_reason(error, name, name)) from error
    if found is None:
        raise NsfrcError(f"there is no plug-in {name}: a plug-in is a Python file (FILE.py) or the name of a module")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise NsfrcError(_reason(error, name, found.origin or name)) from error


def _search(folder: Path) -> None:
    # Last, so that a user's file never hides a library.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _reason(error: BaseException, text: str, origin: str) -> str:
    """One line: where in the plug-in it failed, and how."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == origin]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == origin else lines[-1] if lines else None
    message = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
    return f"the plug-in {text}{f':{line}' if line else ''} failed: {type(error).__name__}: {message}"
