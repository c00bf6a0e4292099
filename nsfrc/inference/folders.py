"""Folders of images: which files there are, in a fixed order, and which class each of them is said to be of."""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nsfrc.compiler.herbrand import reading_order
from nsfrc.errors import NsfrcError
from nsfrc.inference.scene_files import HANS, IMAGES, SPLITS, classes_of, hans_files
from nsfrc.questions import FALSE, NONE, TRUE

SUFFIXES = frozenset(
    ".png .apng .jpg .jpeg .jpe .jfif .gif .bmp .dib .pbm .pgm .ppm .pnm .tif .tiff .webp .tga .ico .jp2 .j2k .jpx "
    ".pcx .qoi .avif".split()
)
# What lies beside images for good reasons: labels, programs, results. Nobody takes it for an image.
BESIDE = frozenset(
    ".json .jsonl .csv .tsv .txt .md .pl .nsfrc .html .xml .yaml .yml .py .log .part .safetensors".split()
)
# Pictures that Pillow does not read, or that nsfrc does not let it, as cameras and drawing programs write them.
UNREAD = frozenset(
    ".heic .heif .hif .jxl .raw .dng .cr2 .cr3 .crw .nef .nrw .arw .srf .sr2 .orf .raf .rw2 .pef .srw .x3f .psd .psb "
    ".xcf .svg .svgz .ai .eps .pdf .exr .hdr".split()
)
# Folders of CLEVR and CLEVR-Hans, which are not classes.
PARTS = frozenset((*SPLITS, IMAGES, "scenes", "questions"))
CLASS_ID = "class_id "  # before the number of a class in a layout of CLEVR-Hans
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that do not stand for a byte of a file's name
NAMED = 3  # this many of the files that were left out are named
WORDS = {
    "true": TRUE, "positive": TRUE, "pos": TRUE, "yes": TRUE, "1": TRUE,
    "false": FALSE, "negative": FALSE, "neg": FALSE, "no": FALSE, "0": FALSE,
}


@dataclass(frozen=True, slots=True)
class Item:
    """A file below the folder. name: relative to it, printable, with `/` between its parts.

    label: its class, such as the folder it lies in, as it is called. error: why there is nothing to be read.
    image: where it is in memory and not in a file, as it was given.
    """

    path: Path
    name: str
    label: str | None = None
    error: str | None = None
    image: Any = None


@dataclass(frozen=True, eq=False)
class Listing:
    """The images below `root`, as they were when it was listed; names are all that is kept of them.

    files: path below the root → why it cannot be opened, or None; in the order of reading. classes: the names of the
    folders that may be classes; in a layout of CLEVR-Hans "class_id 0" and so on, and `given` has the class of each
    file. source: where classes are from, in words. others: files that are no images by their names. unread: pictures in
    a format that is not read. memory: those of the files that are images in memory. pictures: False where there are
    only names, of files whose detections are given.
    """

    root: Path
    files: dict[str, str | None] = field(repr=False)
    classes: tuple[str, ...] = ()
    source: str = "class folders"
    given: dict[str, str] | None = field(default=None, repr=False)
    others: tuple[str, ...] = field(default=(), repr=False)
    unread: tuple[str, ...] = field(default=(), repr=False)
    memory: Mapping[str, Any] = field(default_factory=dict, repr=False)
    pictures: bool = True
    live = False  # whether images come as long as nobody stops them

    @property
    def called(self) -> str:
        """What it is a listing of, for people to read."""
        return printable(str(self.root))

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Item]:
        for below, error in self.files.items():
            yield Item(self.root / below, printable(below), self.class_of(below), error, self.memory.get(below))

    def class_of(self, below: str) -> str | None:
        """The class of a file, as it is called."""
        if self.given is not None:
            return self.given.get(below)
        return printable(below.partition("/")[0]) if self.classes and not self._is_loose(below) else None

    def _is_loose(self, below: str) -> bool:
        return "/" not in below and self.files[below] is None  # with an error it is a folder

    @property
    def loose(self) -> list[str]:
        """Images beside class folders."""
        return [below for below in self.files if self._is_loose(below)] if self.classes and self.given is None else []

    def without_class(self) -> str | None:
        """What to say of images that a layout of CLEVR-Hans gives no class."""
        if self.given is None or not (count := len(self.files) - len(self.given)):
            return None
        return f"{count} image{'s have' if count > 1 else ' has'} no class ({self.source}) and so no label"

    def left_out(self) -> list[str]:
        """What to say of files that are no images by their names, and of pictures that are not read."""
        found = []
        if count := len(self.others):
            are = "1 file does not have the name of an image and was" if count == 1 else \
                f"{count} files do not have the names of images and were"
            found.append(f"{are} left out: {first_of(self.others)}")
        if count := len(self.unread):
            are = "1 file is in an unsupported format and was" if count == 1 else \
                f"{count} files are in unsupported formats and were"
            found.append(f"{are} left out: {first_of(self.unread)}; convert {'it' if count == 1 else 'them'} to PNG "
                         f"or JPEG")
        return found


def first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(printable, names[:NAMED])) + more


def refuse_missing(path: Path) -> None:
    """Raise where there is nothing of this name, as `folder` would."""
    try:
        path.stat()
    except OSError as error:
        raise _not_opened(path, error) from None


def _not_opened(path: Path, error: OSError) -> NsfrcError:
    return NsfrcError(f"cannot open the folder of images {path}: {error.strerror}")


def folder(path: str | Path) -> Listing:
    """The images below a folder (or the one image that `path` is), sorted; hidden files are left out.

    Names that differ in a number come in its order: 2.png before 10.png. Links are followed, but no folder is entered
    twice, and it goes by its own name rather than that of a link. A folder that cannot be opened is an item with an
    error.
    """
    path = Path(path)
    if path.is_file():
        beside = [file.name for file in hans_files(path.parent)]
        return _with_class_ids(Listing(path.parent, {path.name: None}), {"": beside} if beside else {})
    tree = _Tree(path)
    try:
        tree.open("")
    except OSError as error:
        raise _not_opened(path, error) from None
    tree.grow()
    listing = Listing(
        path, dict(tree.files()), tuple(map(printable, tree.classes)), others=tuple(tree.others),
        unread=tuple(tree.unread),
    )
    return _with_class_ids(listing, tree.scenes)


def from_names(root: Path, names: Iterable[str], memory: Mapping[str, Any]) -> Listing:
    """A listing of what is not in a folder of a disk, from the paths below a root alone, in their order.

    Hidden files are left out, and what does not have the name of an image is told of, as `folder` does.
    """
    seen = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    files = {name: None for name in seen if _suffix(name) in SUFFIXES}
    tops = {name.partition("/")[0] for name in seen if "/" in name}
    classes = sorted(tops, key=reading_key) if _told_apart(tops) else []
    others = tuple(name for name in seen if _suffix(name) not in SUFFIXES | BESIDE | UNREAD)
    unread = tuple(name for name in seen if _suffix(name) in UNREAD)
    listing = Listing(root, dict(files), tuple(map(printable, classes)), others=others, unread=unread, memory=memory)
    return _with_class_ids(listing, {})


def reading_key(name: str) -> list[tuple[Any, str]]:
    """What paths are sorted by, so that they come as `folder` has them: 2.png before 10.png."""
    return [(reading_order(part), part) for part in name.split("/")]


def _with_class_ids(listing: Listing, scenes: dict[str, list[str]]) -> Listing:
    """With the classes of a layout of CLEVR-Hans, if it is one; class folders say more than names of files do."""
    if listing.classes and not listing.loose and not scenes:
        return listing
    found = classes_of(listing.root, listing.files, scenes)
    if found is None:
        return listing
    numbers, source = found
    classes = tuple(f"{CLASS_ID}{number}" for number in sorted(set(numbers.values())))
    given = {below: f"{CLASS_ID}{number}" for below, number in numbers.items()}
    return replace(listing, classes=classes, source=source, given=given)


def match_labels(folders: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    """Classes of files, such as folders → the answer that is right for them; one that means none of them is left out.

    One target: {"true": "true", "neg": "false"}. Several, which are classes: {"warm": "warm(img)"} by the name of the
    atom or of its predicate, {"class_id 0": "warm(img)"} by the number of a class of CLEVR-Hans, which is from 0
    always. If that is none of them: {"class0": "warm(img)"} by number, see `_by_number`. Beside them {"none": "none"}.
    """
    if len(targets) > 1 and NONE in folders:
        found = match_labels([name for name in folders if name != NONE], targets)
        return found | {NONE: NONE} if found else {}
    if len(targets) == 1:
        return {name: WORDS[name.lower()] for name in folders if name.lower() in WORDS}
    short = Counter(target.partition("(")[0] for target in targets)
    names = {target.partition("(")[0]: target for target in targets if short[target.partition("(")[0]] == 1}
    names |= {target: target for target in targets}
    names |= {f"{CLASS_ID}{number}": target for number, target in enumerate(targets)}
    return {name: names[name] for name in folders if name in names} or _by_number(folders, targets)


def _by_number(folders: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    """class0, class1 … in the order of the targets, or class1 … class N for all N of them.

    Nothing where that is not the only way to read them: names that differ in more than the number, two with the same
    number, numbers that begin at 1 and end elsewhere.
    """
    found = [re.fullmatch(r"(.*?)([0-9]{1,9})", name, re.DOTALL) for name in folders]
    numbers = [int(match[2]) for match in found if match]
    stems = {match[1] for match in found if match}
    if not numbers or len(set(numbers)) < len(folders) or len(stems) > 1:
        return {}
    if sorted(numbers) == list(range(1, len(targets) + 1)):
        first = 1
    elif min(numbers) == 0 and max(numbers) < len(targets):
        first = 0
    else:
        return {}
    return {name: targets[number - first] for name, number in zip(folders, numbers, strict=True)}


def printable(name: str) -> str:
    """A file name as one line of UTF-8 text, different for different names.

    Backslashes, control characters, bytes that are no UTF-8 and halves of characters are escaped.
    """
    whole = _HALVES.sub(lambda half: _escaped(half[0]), name.replace("\\", "\\\\"))
    text = os.fsencode(whole).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    # U+0085 is \u0085, as \x85 is the byte.
    code = ord(character)
    return f"\\u{code:04x}" if 0x80 <= code <= 0xFF else character.encode("unicode_escape").decode()


class _Tree:
    """Folders below a root. inside: path below the root → names of the images and folders in it, sorted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inside: dict[str, list[str]] = {}
        self.closed: dict[str, str] = {}  # folders that cannot be opened, and why
        self.classes: list[str] = []
        self.scenes: dict[str, list[str]] = {}  # folder → its scenes files, as CLEVR-Hans calls them
        self.others: list[str] = []
        self.unread: list[str] = []
        self._seen: set[tuple[int, int]] = set()
        self._waiting: deque[str] = deque()
        self._links: deque[str] = deque()

    def open(self, below: str) -> None:
        """List one folder, unless it has been listed under another name. Raises OSError."""
        path = self.root / below
        status = path.stat()
        if (status.st_dev, status.st_ino) in self._seen:
            self.inside[below] = []
            return
        with os.scandir(path) as found:
            entries = [entry for entry in found if not entry.name.startswith(".")]
        self._seen.add((status.st_dev, status.st_ino))
        entries.sort(key=lambda entry: (reading_order(entry.name), entry.name))
        prefix = f"{below}/" if below else ""
        folders = [entry for entry in entries if _is_folder(entry)]
        for entry in folders:
            (self._links if entry.is_symlink() else self._waiting).append(prefix + entry.name)
        names = {entry.name for entry in folders}
        plain = [entry.name for entry in entries if entry.name not in names]
        images = {name for name in plain if _suffix(name) in SUFFIXES}
        if not below and _told_apart(names):
            self.classes = [entry.name for entry in folders]
        if scenes := [name for name in plain if HANS.fullmatch(name)]:
            self.scenes[below] = scenes
        self.unread += (prefix + name for name in plain if _suffix(name) in UNREAD)
        self.others += (prefix + name for name in plain if _suffix(name) not in SUFFIXES | BESIDE | UNREAD)
        self.inside[below] = [entry.name for entry in entries if entry.name in names or entry.name in images]

    def grow(self) -> None:
        """List all that is below; links last, so that what they lead to keeps its own name."""
        while self._waiting or self._links:
            below = (self._waiting or self._links).popleft()
            try:
                self.open(below)
            except OSError as error:
                self.closed[below] = f"cannot open the folder: {error.strerror}"

    def files(self) -> Iterator[tuple[str, str | None]]:
        """Images and folders that cannot be opened, with the reason: depth first, without recursion."""
        stack = [("", iter(self.inside[""]))]
        while stack:
            prefix, names = stack[-1]
            name = next(names, None)
            if name is None:
                stack.pop()
                continue
            below = prefix + name
            if below in self.inside:
                stack.append((f"{below}/", iter(self.inside[below])))
            elif below in self.closed:
                yield below, self.closed[below]
            elif _suffix(name) in SUFFIXES:
                yield below, None


def _told_apart(names: set[str]) -> bool:
    return not names <= PARTS and (len(names) > 1 or any(name.lower() in WORDS for name in names))


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link that leads in circles; reading it says so
        return False
