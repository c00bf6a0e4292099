"""WebDataset's tars: pictures by their names, read where they lie. Nothing is ever unpacked.

A member `0007.cls` beside `0007.png` holds its class, as a number or a word.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import from_names
from nsfrc.inference.results import no_images
from nsfrc.ray.places import Place, Stored, told
from nsfrc.ray.sources import Source

READERS = 8  # tars whose headers are read at once
CLASS, LONGEST = ".cls", 200  # bytes of a class
COMPRESSED = {b"\x1f\x8b": "gunzip", b"BZ": "bunzip2", b"\xfd7": "unxz", b"\x28\xb5": "unzstd"}


@dataclass(frozen=True, eq=False)
class Shard:
    """The files of a tar: name → (offset, size), and the classes that stand beside them by what precedes a `.`"""

    place: Place
    members: dict[str, tuple[int, int]] = field(repr=False)
    classes: dict[str, str] = field(repr=False)


class _Members(Mapping[str, Stored]):
    """The pictures of tars by name."""

    def __init__(self, places: list[Place], found: dict[str, tuple[int, int, int]]) -> None:
        self.places, self.found = places, found

    def __getitem__(self, name: str) -> Stored:
        shard, offset, size = self.found[name]
        return Stored(self.places[shard], size, offset)

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


def tar_source(called: str, places: Sequence[Place]) -> Source:
    """The pictures of tars, which are called by their names in them; by shard and name where two are called alike."""
    with ThreadPoolExecutor(min(READERS, len(places))) as pool:
        shards = list(pool.map(read_headers, places))
    counted = Counter(name for shard in shards for name in shard.members)
    alike = bool(counted) and max(counted.values()) > 1
    found: dict[str, tuple[int, int, int]] = {}
    given: dict[str, str] = {}
    for number, shard in enumerate(shards):
        for name, (offset, size) in shard.members.items():
            whole = f"{shard.place.name}/{name}" if alike else name
            if whole in found:
                raise NsfrcError(f"there are two tars called {shard.place.name} with the same names in them: "
                                 f"rename one")
            found[whole] = number, offset, size
            if (label := shard.classes.get(_key(name))) is not None:
                given[whole] = label
    listing = from_names(Path(), found, _Members(list(places), found))
    if alike and not given:
        listing = replace(listing, classes=())
    if given:
        listing = replace(listing, classes=tuple(sorted(set(given.values()))), source="from .cls files", given=given)
    if not len(listing):
        raise NsfrcError(no_images([called], listing))
    return Source(called, listing, remote=places[0].local is None)


def read_headers(place: Place) -> Shard:
    """What a tar holds. Raises NsfrcError where it is cut short or is none."""
    members: dict[str, tuple[int, int]] = {}
    classes: dict[str, str] = {}
    with told(f"cannot read {place.called}"), place.open() as file:
        start = bytes(file.read(2))
        if start in COMPRESSED:
            raise NsfrcError(f"{place.called} is compressed, so that its pictures cannot be read one by one: "
                             f"{COMPRESSED[start]} it first; pictures are compressed already")
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                for one in archive:
                    if one.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                        continue
                    name = one.name.removeprefix("./")
                    if name in members:
                        raise NsfrcError(f"{place.called} has two files called {name}: pack it anew")
                    members[name] = one.offset_data, one.size
                    if name.endswith(CLASS) and one.size <= LONGEST:
                        classes[_key(name)] = file.read_at(one.size, one.offset_data).decode("utf-8", "replace").strip()
        except (tarfile.TarError, EOFError, ValueError) as error:
            where = f" after {list(members)[-1]}" if members else ""
            raise NsfrcError(f"{place.called} is cut short or not a tar{where} ({error}): get a fresh copy, or leave "
                             f"it out") from None
        if members and sum(list(members.values())[-1]) > file.size():
            raise NsfrcError(f"{place.called} is cut short in {list(members)[-1]}: get a fresh copy, or leave it out")
    return Shard(place, {name: at for name, at in members.items() if not name.endswith(CLASS)}, classes)


def _key(name: str) -> str:
    """What the files of one sample share: all up to the first `.` of the file name."""
    path = PurePosixPath(name)
    return str(path.parent / path.name.partition(".")[0])
