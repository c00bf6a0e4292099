"""What is answered for: images in folders, buckets, Parquet files and tars, or detections, cut into blocks.

A block is what a worker answers at a time and writes whole. Which images are in which follows from their order and
the size of a block alone, so that a run that goes on cuts as the one before it did.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import SUFFIXES, Item, Listing, from_names, reading_key
from nsfrc.inference.given import gather
from nsfrc.inference.known import Known, Memory
from nsfrc.inference.live import is_live
from nsfrc.inference.results import no_images
from nsfrc.inference.videos import EVERY, Frame, Video
from nsfrc.ray.places import Place, Stored, is_url

PATTERN = set("*?[")
BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")  # as WebDataset names shards: shard-{000..099}.tar
MOST_SHARDS = 1_000_000
TABLE, TAR = ".parquet", ".tar"


class Cells(Protocol):
    """Pictures that are read one after the other and not one by one, such as those of a Parquet file."""

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(frozen=True, eq=False)
class Block:
    """Images that are answered at a time. known: their objects, where perception need not look. cells: where their
    pictures are, if they are read in their order.
    """

    number: int
    items: tuple[Item, ...] = field(repr=False)
    known: Mapping[str, Known] | None = field(default=None, repr=False)
    cells: Cells | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        if self.cells is None:
            yield from self.items
        else:
            for item, cell in zip(self.items, self.cells, strict=True):
                yield replace(item, error=str(cell)) if isinstance(cell, NsfrcError) else replace(item, image=cell)


@dataclass(frozen=True, eq=False)
class Source:
    """All images. called: what the user named. remote: whether reading is mostly waiting, so that threads help."""

    called: str
    listing: Listing
    remote: bool = False

    def __len__(self) -> int:
        return len(self.listing)

    def blocks(self, size: int, known: Memory | None = None) -> Iterator[Block]:
        """All blocks, in order. known: the objects of images by name."""
        items = map(anywhere, self.listing)
        number = 0
        while several := tuple(islice(items, size)):
            own = None if known is None else {one.name: known[one.name] for one in several}
            yield Block(number, several, own)
            number += 1

    def count(self, size: int) -> int:
        """How many blocks there are."""
        return -(-len(self) // size)

    def digest(self) -> str:
        """A digest of the names of all images, in their order."""
        return digest_of(item.name for item in self.listing)


def digest_of(names: Iterable[str]) -> str:
    told = hashlib.sha256()
    for name in names:
        told.update(name.encode("utf-8", "surrogatepass") + b"\0")
    return told.hexdigest()


def anywhere(item: Item) -> Item:
    """An image by a path that does not depend on the folder in which a process works."""
    image = item.image
    if isinstance(image, Stored) or (image is None and item.path.is_absolute()):
        return item
    if isinstance(image, Frame):
        image = Frame(Video(image.video.path.absolute()), image.number)
    return replace(item, path=item.path.absolute(), image=image)


def open_source(given: Sequence[str | Path], every: int = EVERY, column: str | None = None) -> Source:
    """What a user named: paths, patterns or addresses; of several, all of one kind. Raises NsfrcError.

    column: the column of images in Parquet files, where it is not found by its name.
    """
    from nsfrc.ray.parquet_source import parquet_source
    from nsfrc.ray.tar_source import tar_source

    called = ", ".join(map(str, given))
    if live := [one for one in given if is_live(one)]:
        raise NsfrcError(f"--ray answers for images that are there already, and the frames of {live[0]} come as long "
                         f"as nobody stops them: leave out --ray")
    shards = [shard for one in given for shard in _shards(one)]
    for ending, opened in ((TABLE, lambda: parquet_source(called, shards, column)),
                           (TAR, lambda: tar_source(called, shards))):
        if shards and all(shard.path.lower().endswith(ending) for shard in shards):
            return opened()
    if shards:
        raise NsfrcError(f"{called}: Parquet files, tars and pictures are not answered for together: run a command for "
                         f"each of them")
    if any(map(is_url, given)):
        if len(given) > 1:
            raise NsfrcError(f"{called}: give one address; a pattern such as s3://bucket/*/*.png names several files")
        return _of_address(str(given[0]))
    listing = gather([Path(one) for one in given], every)
    if not len(listing):
        raise NsfrcError(no_images(list(given), listing))
    return Source(called, listing)


def _shards(given: str | Path) -> list[Place]:
    """The Parquet files or tars that something stands for; none where it stands for pictures."""
    text = str(given)
    if text.lower().endswith((TABLE, TAR)):
        return [one for name in _braces(text) for one in _matching(name)]
    place = Place.of(given)
    if PATTERN & set(text) or not place.is_folder:
        return []
    below = sorted((name for name, _ in place.files() if not name.startswith((".", "_"))), key=reading_key)
    found = [place.below(name) for name in below if name.lower().endswith((TABLE, TAR))]
    if found and any(PurePosixPath(name).suffix.lower() in SUFFIXES for name, _ in place.files(recursive=True)):
        return []  # a folder of pictures, beside which such files lie
    return found


def _braces(text: str) -> list[str]:
    """shard-{00..02}.tar → shard-00.tar, shard-01.tar, shard-02.tar."""
    if (found := BRACES.search(text)) is None:
        return [text]
    first, last = int(found[1]), int(found[2])
    if last < first or last - first >= MOST_SHARDS:
        raise NsfrcError(f"{text}: {found[0]} names no files: the first number is the smaller one, as in {{000..099}}")
    return [text[: found.start()] + f"{number:0{len(found[1])}}" + text[found.end() :]
            for number in range(first, last + 1)]


def _matching(text: str) -> list[Place]:
    """The files that a pattern stands for, or the one that has the name."""
    if not PATTERN & set(text):
        place = Place.of(text)
        if not place.is_file:
            raise NsfrcError(f"there is no file {place.called}")
        return [place]
    base, pattern = _split(text)
    found = [name for name, _ in base.files(recursive="/" in pattern) if _fits(name, pattern)]
    if not found:
        raise NsfrcError(f"no file is called as {text} says")
    return [base.below(name) for name in sorted(found, key=reading_key)]


def _split(text: str) -> tuple[Place, str]:
    """The folder before the first part with a pattern, and the pattern below it."""
    parts = text.split("/")
    first = next(i for i, part in enumerate(parts) if PATTERN & set(part))
    return Place.of("/".join(parts[:first]) or ("/" if text.startswith("/") else ".")), "/".join(parts[first:])


def _fits(name: str, pattern: str) -> bool:
    """Whether a path fits a pattern; ** is any number of folders."""
    if "**" in pattern:
        return fnmatchcase(name, pattern.replace("**/", "*"))
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


class _Files(Mapping[str, Stored]):
    """The pictures below an address: only their sizes are kept."""

    def __init__(self, root: Place, sizes: dict[str, int]) -> None:
        self.root, self.sizes = root, sizes

    def __getitem__(self, name: str) -> Stored:
        return Stored(self.root.below(name), self.sizes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)


def _of_address(text: str) -> Source:
    """The pictures below an address, those that fit a pattern, or the one that it names."""
    if PATTERN & set(text.partition("://")[2]):
        root, pattern = _split(text)
        sizes = {name: size for name, size in root.files(recursive=True) if _fits(name, pattern)}
        if not sizes:
            raise NsfrcError(f"no file is called as {text} says")
    else:
        root = Place.of(text)
        if root.is_file:
            sizes = {root.name: root.info().size}
            root = Place(root.root, root.path.rpartition("/")[0])
        else:
            sizes = dict(root.files(recursive=True))
    listing = from_names(Path(root.path), sorted(sizes, key=reading_key), _Files(root, sizes))
    if not len(listing):
        others = "".join(f"; {told}" for told in listing.left_out())
        raise NsfrcError(f"there are no images in {text}, no .parquet files and no .tar files{others}; see that the "
                         f"address is right and that this machine may list it")
    return Source(text, listing, remote=root.local is None)


def refuse_auto(program: str | Path | None, perception: str | None, detections: Any, images: Sequence[Path]) -> None:
    """Raise where the number of objects follows the images: perception would look at all of them on this machine."""
    from nsfrc.inference.candidates import find_candidate
    from nsfrc.inference.preparing import is_auto
    from nsfrc.models.outside import Outside
    from nsfrc.program import open_program

    if detections is not None:
        return
    path = find_candidate([Path(), *images]).path if program is None else program
    if is_auto(open_program(path, Outside(perception))):
        raise NsfrcError(f"{path} says slots(auto), for which all images are looked at before the first is answered, "
                         f"on one machine: with --ray give it a number, as in nsfrc compile {path} --slots object=10")
