"""Folders of images: which files there are, in a fixed order, and what the folders they lie in say of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsfrc.errors import NsfrcError
from nsfrc.herbrand import reading_order

SUFFIXES = frozenset(
    ".png .apng .jpg .jpeg .jpe .jfif .gif .bmp .dib .pbm .pgm .ppm .pnm .tif .tiff .webp .tga .ico .jp2 .j2k .jpx "
    ".pcx .qoi .avif".split()
)
TRUE, FALSE = "true", "false"
WORDS = {
    "true": TRUE, "positive": TRUE, "pos": TRUE, "yes": TRUE, "1": TRUE,
    "false": FALSE, "negative": FALSE, "neg": FALSE, "no": FALSE, "0": FALSE,
}


@dataclass(frozen=True, slots=True)
class Item:
    """A file below the folder. name: relative to it, printable, with `/` between its parts.

    label: the class folder it lies in, as it is called. error: why there is nothing to be read.
    """

    path: Path
    name: str
    label: str | None = None
    error: str | None = None


def folder(path: str | Path) -> Iterator[Item]:
    """The images below a folder (or the one image that `path` is), sorted; hidden files are left out.

    Names that differ in a number come in its order: 2.png before 10.png. A folder that cannot be opened is an item
    with an error.
    """
    path = Path(path)
    if path.is_file():
        return iter([Item(path, printable(path.name))])
    try:
        entries = _entries(path)
    except OSError as error:
        raise NsfrcError(f"cannot open the folder of images {path}: {error.strerror}") from None
    return _walk(entries, "", bool(_classes(entries)), None, (_identity(path),))


def class_folders(path: str | Path) -> list[str]:
    """The names of the class folders in a folder that has nothing but these; otherwise nothing."""
    path = Path(path)
    try:
        return [printable(name) for name in _classes(_entries(path))] if path.is_dir() else []
    except OSError as error:
        raise NsfrcError(f"cannot open the folder of images {path}: {error.strerror}") from None


def match_labels(folders: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    """Class folders → the answer that is right for them; a folder that means none of them is left out.

    One target: {"true": "true", "neg": "false"}. Several: {"class0": "kp1(img)"} by number when all end in one (from
    0, or from 1 up to the number of targets), else by the name of the target or of its predicate.
    """
    if len(targets) == 1:
        return {name: WORDS[name.lower()] for name in folders if name.lower() in WORDS}
    numbers = {name: int(found[0]) for name in folders if (found := re.search(r"[0-9]{1,9}$", name))}
    if folders and len(numbers) == len(folders):
        first = 1 if 0 not in numbers.values() and max(numbers.values()) == len(targets) else 0
        return {name: targets[n - first] for name, n in numbers.items() if 0 <= n - first < len(targets)}
    by_name = {target.partition("(")[0]: target for target in targets} | {target: target for target in targets}
    return {name: by_name[name] for name in folders if name in by_name}


def printable(name: str) -> str:
    """A file name as one line of UTF-8 text; bytes and control characters that are none are escaped."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _entries(path: Path) -> list[os.DirEntry[str]]:
    with os.scandir(path) as found:
        entries = [entry for entry in found if not entry.name.startswith(".")]
    return sorted(entries, key=lambda entry: (reading_order(entry.name), entry.name))


def _classes(entries: Sequence[os.DirEntry[str]]) -> list[str]:
    names = [entry.name for entry in entries if _is_folder(entry)]
    loose = any(_is_image(entry) for entry in entries)
    told_apart = len(names) > 1 or any(name.lower() in WORDS for name in names)
    return names if told_apart and not loose else []


def _walk(
    entries: Sequence[os.DirEntry[str]], prefix: str, classes: bool, label: str | None,
    above: tuple[tuple[int, int], ...],
) -> Iterator[Item]:
    """above: the folders that lead here; a link back to one of them is not followed."""
    for entry in entries:
        name = prefix + printable(entry.name)
        if not _is_folder(entry):
            if _is_image(entry):
                yield Item(Path(entry.path), name, label)
            continue
        below = printable(entry.name) if classes else label
        try:
            identity = _identity(Path(entry.path))
            inside = _entries(Path(entry.path)) if identity not in above else []
        except OSError as error:
            yield Item(Path(entry.path), name, below, f"cannot open the folder: {error.strerror}")
            continue
        yield from _walk(inside, f"{name}/", False, below, (*above, identity))


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link that leads in circles; reading it says so
        return False


def _is_image(entry: os.DirEntry[str]) -> bool:
    return not _is_folder(entry) and os.path.splitext(entry.name)[1].lower() in SUFFIXES
