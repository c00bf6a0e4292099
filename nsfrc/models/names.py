"""Class names of a detector as constants of a program: `traffic light` is traffic_light, or 'traffic light'."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.records import dataclass

MOST = 100_000  # classes of a detector
LONGEST = 4_000_000  # characters of a list of names
YAML = ("data.yaml", "data.yml")
LISTS = ("classes.txt", "obj.names", "labels.txt")
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class ClassNames:
    """The classes of a detector by number, as it calls them. source: where they are from, in words.

    atoms: the same as constants that need no quotes, `traffic_light` for "traffic light"; where two would be the same,
    all are as they are. spelt: such a constant, and how a program that lists its classes writes it.
    """

    names: tuple[str, ...]
    source: str
    spelt: tuple[tuple[str, str], ...] = ()

    @cached_property
    def atoms(self) -> tuple[str, ...]:
        found, spelt = tuple(map(atom, self.names)), dict(self.spelt)
        return tuple(spelt.get(one, one) for one in (found if len(set(found)) == len(found) else self.names))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What a class is called elsewhere → its atom, where these differ."""
        return {name: atom for name, atom in zip(self.names, self.atoms, strict=True) if name != atom}

    def __len__(self) -> int:
        return len(self.names)


def atom(name: str) -> str:
    """A name as a constant that needs no quotes: lower case, with _ between its words; a number stays as it is."""
    words = WORD.findall(name.lower())
    joined = "_".join(words)
    if not joined or joined.isdecimal():
        return joined or name
    return joined if joined[0].isalpha() else f"c{joined}"


def class_names(given: Any, source: str) -> ClassNames:
    """Names from whatever holds them: a list, or a dict from numbers to names. Raises NsfrcError."""
    if isinstance(given, Mapping):
        numbers = [int(k) if isinstance(k, int) or (isinstance(k, str) and k.isdecimal()) else -1 for k in given]
        if sorted(numbers) != list(range(len(given))):
            raise NsfrcError(f"{source}: class names must have the numbers 0, 1, 2 …, not "
                             f"{', '.join(map(str, list(given)[:5]))}")
        given = [name for _, name in sorted(zip(numbers, given.values(), strict=True))]
    if not isinstance(given, list | tuple) or not given or len(given) > MOST:
        raise NsfrcError(f"{source}: class names must be a list of 1 to {MOST} names")
    names = tuple(" ".join(str(name).split()) for name in given)
    if not all(isinstance(name, str | int) for name in given) or not all(names):
        raise NsfrcError(f"{source}: a class has no name")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NsfrcError(f"{source}: two classes are called {twice!r}")
    return ClassNames(names, source)


def from_text(text: str, source: str) -> ClassNames | None:
    """Names as metadata has them: "{0: 'person', 1: 'car'}", a JSON list, or one name a line; None without any."""
    if not text.strip() or len(text) > LONGEST:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(found, Mapping | list | tuple):
            return class_names(found if isinstance(found, Mapping) else list(found), source)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return class_names(lines, source) if len(lines) > 1 else None


def beside(path: Path) -> ClassNames | None:
    """Names from a data.yaml, or a list of names, in the folder of a file, or that it is, or in the one above."""
    folder = path if path.is_dir() else path.parent
    for place in (folder, folder.parent):
        for name in (*YAML, *LISTS):
            if (file := place / name).is_file():
                return read_names(file)
    return None


def read_names(file: Path) -> ClassNames:
    """Names from a data.yaml, a COCO file with categories, or a file with one name a line."""
    try:
        if file.stat().st_size > LONGEST:
            raise NsfrcError(f"{file} is too large for a list of class names")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise NsfrcError(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{file} is not text") from None
    if file.suffix not in (".yaml", ".yml"):
        return class_names([line.strip() for line in text.splitlines() if line.strip()], str(file))
    return class_names(_yaml_names(text, file), str(file))


def _yaml_names(text: str, file: Path) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise NsfrcError(f"{file} needs the package pyyaml, which is not installed: pip install pyyaml") from None
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NsfrcError(f"{file} is not YAML ({' '.join(str(error).split())[:200]})") from None
    if not isinstance(found, dict) or "names" not in found:
        raise NsfrcError(f"{file} has no `names`, the classes of the detector")
    return found["names"]


def split_values(
    names: Sequence[str], attributes: Sequence[tuple[str, Sequence[str]]], every: bool = True
) -> list[dict[str, str]]:
    """Which value of every attribute each class has: "red square" has {"color": "red", "shape": "square"}.

    Values are looked for in the words of a name. Raises NsfrcError where a class has two values of one attribute, where
    a class has none at all and, unless `every` is False, where no class has a value.
    """
    found, met = [], set()
    for name in names:
        words = f"_{'_'.join(WORD.findall(name.lower()))}_"
        values: dict[str, str] = {}
        for attribute, choices in attributes:
            fitting = [value for value in choices if f"_{atom(value)}_" in words]
            longest = [v for v in fitting if not any(v != o and f"_{atom(v)}_" in f"_{atom(o)}_" for o in fitting)]
            if len(longest) > 1:
                raise NsfrcError(f"the class {name!r} has two values of {attribute}: {longest[0]} and {longest[1]}")
            if longest:
                values[attribute] = longest[0]
                met.add((attribute, longest[0]))
        if not values:
            raise NsfrcError(f"the class {name!r} has no value of {' or '.join(a for a, _ in attributes)}: a class of "
                             f"`attributes` is called by its values, such as 'red square'")
        found.append(values)
    for attribute, choices in attributes if every else ():
        for value in choices:
            if (attribute, value) not in met:
                raise NsfrcError(f"no class of the detector has the {attribute} {value}; its classes are "
                                 f"{', '.join(names[:8])}{' …' if len(names) > 8 else ''}")
    return found
