"""DEST, a folder of parts: a file of rows for each block, and _manifest.json, which says what they were made with.

A part is written under another name and renamed, and the rows of a block are the same whoever answers for it: a block
that is answered twice, because a worker died or a run goes on, leaves one part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.inference.lock import Lock
from nsfrc.questions import Question
from nsfrc.ray.places import Place
from nsfrc.ray.tables import KINDS, Form

MANIFEST, FORMAT = "_manifest.json", 1  # readers of Parquet folders pass by what begins with _
PART = re.compile(r"part-(\d{6,})\.(parquet|csv|jsonl)")
LEFT = re.compile(r"\.(part-\d+|_manifest)\.\w+\..*")  # what a process that was killed has not renamed


@dataclass(frozen=True)
class Manifest:
    """What rows depend on, in words (made_with), how images are cut into blocks, and whether all of them are there.

    source: the digest of the names of all images. expected: blocks. version: of nsfrc.
    """

    kind: str
    made_with: Mapping[str, str]
    questions: tuple[Question, ...]
    dimensions: tuple[str, ...]
    images: int
    source: str
    block_size: int
    expected: int
    version: str
    complete: bool = False
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def as_json(self) -> bytes:
        told = {
            "nsfrc": FORMAT, "version": self.version, "kind": self.kind, "complete": self.complete,
            "made_with": dict(self.made_with), "images": self.images, "names": self.source,
            "block_size": self.block_size, "blocks": self.expected, "dimensions": list(self.dimensions),
            "questions": [{"name": one.name, "atoms": list(one.atoms), "first": one.first} for one in self.questions],
            "parts": self.parts,
        }
        return (json.dumps(told, indent=1) + "\n").encode()

    def form(self) -> Form:
        return Form(self.kind, self.questions, self.made_with["program"], self.made_with["perception"],
                    self.dimensions)


def read_manifest(dest: Place) -> Manifest:
    """The manifest of a folder of results. Raises NsfrcError where there is none."""
    place = dest.below(MANIFEST)
    if not place.is_file:
        raise NsfrcError(f"{dest.called} is not a folder of results: it has no {MANIFEST}; name the DEST of an nsfrc "
                         f"infer --ray ... --out DEST")
    try:
        told = json.loads(place.read())
        if told["nsfrc"] != FORMAT:
            raise NsfrcError(f"{place.called} is of another version of nsfrc ({told['version']}): read it with "
                             f"that one")
        asked = tuple(Question(one["name"], tuple(one["atoms"]), int(one["first"])) for one in told["questions"])
        if not asked or told["kind"] not in KINDS:
            raise ValueError
        made = {str(name): str(value) for name, value in told["made_with"].items()}
        _ = made["program"], made["perception"]
        return Manifest(told["kind"], made, asked, tuple(told["dimensions"]), int(told["images"]), str(told["names"]),
                        int(told["block_size"]), int(told["blocks"]), str(told["version"]), bool(told["complete"]),
                        told["parts"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NsfrcError(f"{place.called} is damaged: answer into another folder") from None


@dataclass(eq=False)
class Dest:
    """A folder of results that is being written. earlier: whether it goes on with what another run has left."""

    place: Place
    manifest: Manifest
    earlier: bool
    _lock: Lock | None = None

    def part(self, number: int) -> Place:
        return self.place.below(part_name(number, self.manifest.kind))

    def there(self) -> dict[int, int]:
        """The parts that are there, by the number of their block, and their bytes."""
        return parts_in(self.place, self.manifest.kind)

    def finish(self, parts: Mapping[str, Mapping[str, Any]]) -> None:
        """All parts are there: say so, and remove what processes that were killed have left."""
        self.manifest = replace(self.manifest, complete=True, parts=dict(sorted(parts.items())))
        self.place.below(MANIFEST).write(self.manifest.as_json())
        for name, _ in self.place.files():
            if LEFT.fullmatch(name):
                self.place.below(name).remove()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()


def part_name(number: int, kind: str) -> str:
    return f"part-{number:06}{KINDS[kind]}"


def parts_in(dest: Place, kind: str) -> dict[int, int]:
    """The parts of a folder: the number of a block → bytes."""
    found = {}
    for name, size in dest.files():
        if (match := PART.fullmatch(name)) and match[2] == kind:
            found[int(match[1])] = size
    return dict(sorted(found.items()))


def open_dest(place: Place, manifest: Manifest, resume: bool) -> Dest:
    """A folder to write to. Raises NsfrcError where it is not ours, has other rows, or cannot be written.

    Going on, blocks are cut as the earlier run did, whatever `manifest` says of their size.
    """
    lock = _locked(place)
    try:
        if (earlier := earlier_in(place, resume)) is not None:
            _refuse_other(place, earlier, manifest)
            return Dest(place, earlier, True, lock)
        place.make_folder()
        place.below(MANIFEST).write(manifest.as_json())
        return Dest(place, manifest, False, lock)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def earlier_in(place: Place, resume: bool) -> Manifest | None:
    """What an earlier run has left in a folder, if anything. Raises NsfrcError where rows cannot go there."""
    if (path := place.local) is not None and path.exists() and not path.is_dir():
        raise NsfrcError(f"--out {path} is a file: with --ray, rows go to a folder")
    names = [name for name, _ in place.files()]
    if MANIFEST in names:
        if not resume:
            raise NsfrcError(f"{place.called} has the rows of an earlier run: --resume goes on with it, or name "
                             f"another folder")
        return read_manifest(place)
    names = names or [name for name, _ in place.files(recursive=True)]
    if foreign := [name for name in names if not LEFT.fullmatch(name)]:
        raise NsfrcError(f"{place.called} is not empty and has no {MANIFEST} of nsfrc ({foreign[0]} is there): name a "
                         f"new or an empty folder")
    return None


def _locked(place: Place) -> Lock | None:
    """One run at a time, where the folder is on a disk."""
    path = place.local
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Lock(path)
    except OSError as error:
        raise NsfrcError(f"cannot write {path}: {error.strerror}; name a folder that you can write to with --out") \
            from None


def _refuse_other(place: Place, was: Manifest, now: Manifest) -> None:
    """Raise where the rows of a folder were made with something else."""
    pairs = [(name, was.made_with.get(name), now.made_with.get(name)) for name in {**was.made_with, **now.made_with}]
    pairs += [("--format", was.kind, now.kind), ("images", str(was.images), str(now.images))]
    for name, before, after in pairs:
        if before != after:
            raise NsfrcError(f"{place.called} was made with {name} {before}, and now it is {after}: name another "
                             f"folder with --out")
    if was.source != now.source:
        raise NsfrcError(f"{place.called} was begun with images of other names, or in another order: answer for what "
                         f"is new into another folder")

