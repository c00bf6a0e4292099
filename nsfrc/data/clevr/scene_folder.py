"""A folder of scenes, laid out as CLEVR and CLEVR-Hans are: pictures, and scenes files with what is truly in them.

    DIR/images/train/CLEVR_train_000000.png, DIR/scenes/CLEVR_train_scenes.json   of no class
    DIR/train/images/CLEVR_Hans_classid_0_000000.png, DIR/train/CLEVR_HANS_scenes_train.json   of classes
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count as count_up
from itertools import islice
from pathlib import Path
from typing import Any

from nsfrc import __version__
from nsfrc.data.clevr import agreement
from nsfrc.data.clevr.blender import Job, Quality, check_blender, rendered
from nsfrc.data.clevr.making import SPLITS, WITHOUT_CLASSES, label_of, scene, seed_of, split_of
from nsfrc.data.clevr.scenes import to_json
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.inference.scene_files import IMAGES, scenes_and_info, scenes_in

BATCH = 32  # scenes that are checked together
SAVED = 60  # seconds after which the scenes files are written again, should the process end without a word


@dataclass(frozen=True)
class Order:
    """What to make: `count` scenes of a set in all, or of one split; quality: of their pictures, None for none."""

    name: str
    count: int
    seed: int = 0
    split: str | None = None
    quality: Quality | None = None

    @cached_property
    def numbers(self) -> list[int]:
        """Which scenes these are."""
        fitting = (i for i in count_up() if self.split in (None, split_of(self.name, i)))
        return list(islice(fitting, self.count))

    @cached_property
    def splits(self) -> Counter[str]:
        """How many scenes of each split these are."""
        return Counter(split_of(self.name, i) for i in self.numbers)


def write(order: Order, out: Path, workers: int = 1) -> Generator[int, None, None]:
    """Make scenes, and yield the number of each when it and its picture are there; the same order, the same scenes.

    What the folder has already is not made again. What is done stays when the caller stops: the scenes files then
    tell of it, and the same order goes on.
    """
    if order.quality is not None:
        check_blender()
    folder = _Folder(out, order)
    missing = [i for i in order.numbers if i not in folder.entries]
    yield from (i for i in order.numbers if i in folder.entries)
    folder.save()  # from now on the folder says whose it is
    jobs = _jobs(order, out, missing)
    made = jobs if order.quality is None else rendered(jobs, order.quality, workers)
    saved = time.monotonic()
    try:
        with contextlib.closing(made):
            for index, job in zip(missing, made, strict=True):
                folder.entries[index] = to_json(job.scene, split_of(order.name, index), index, job.path.name)
                yield index
                if time.monotonic() > saved + SAVED:
                    folder.save()
                    saved = time.monotonic()
    finally:
        folder.save()


def held(order: Order, out: Path) -> int:
    """How many scenes a folder tells of, those that were made before included."""
    files = [scenes_file(out, order.name, split) for split in SPLITS[order.name]]
    return sum(len(scenes_in(file)) for file in files if file.exists())


def scenes_file(out: Path, name: str, split: str) -> Path:
    if name in WITHOUT_CLASSES:
        return out / "scenes" / f"CLEVR_{split}_scenes.json"
    return out / split / f"CLEVR_HANS_scenes_{split}.json"


def image_file(out: Path, name: str, index: int) -> Path:
    split, label = split_of(name, index), label_of(name, index)
    if label is None:
        return out / IMAGES / split / f"CLEVR_{split}_{index:06d}.png"
    return out / split / IMAGES / f"CLEVR_Hans_classid_{label}_{index:06d}.png"


def _jobs(order: Order, out: Path, numbers: Sequence[int]) -> Generator[Job, None, None]:
    """Scenes whose labels are checked, with what their pictures need."""
    for start in range(0, len(numbers), BATCH):
        some = numbers[start : start + BATCH]
        scenes = [scene(order.name, order.seed, i) for i in some]
        if order.name not in WITHOUT_CLASSES:
            agreement.check(order.name, scenes, some)
        for i, made in zip(some, scenes, strict=True):
            yield Job(made, image_file(out, order.name, i), (*seed_of(order.name, order.seed, i), 1))


class _Folder:
    """What the scenes files of a folder say. entries: of each scene, by its number; with pictures, only of scenes that
    have theirs."""

    def __init__(self, out: Path, order: Order) -> None:
        self.out, self.order = out, order
        self.entries: dict[int, dict[str, Any]] = {}
        files = {split: scenes_file(out, order.name, split) for split in SPLITS[order.name]}
        self.there = [split for split, file in files.items() if file.exists()]
        if not self.there and _occupied(out):
            raise NsfrcError(f"{out} holds other files: name an empty or new folder for the scenes")
        for split in self.there:
            self._read(files[split], split)
        self.written: dict[str, int] = {}  # how many scenes the file of each split tells of

    def save(self) -> None:
        """Write the scenes files that have changed, each whole, scenes in the order of their numbers."""
        order = self.order
        told: dict[str, list[str]] = {split: [] for split in (*self.there, *order.splits)}
        for index in sorted(self.entries):
            told[split_of(order.name, index)].append(json.dumps(self.entries[index]))
        for split, lines in told.items():
            if self.written.get(split) != len(lines):
                info = json.dumps({"split": split, **_info(order)})
                text = f'{{"info": {info}, "scenes": [\n' + ",\n".join(lines) + "\n]}\n"
                write_whole(scenes_file(self.out, order.name, split), text.encode())
                self.written[split] = len(lines)

    def _read(self, file: Path, split: str) -> None:
        """Take over what a scenes file tells of; scenes of two kinds must not mix in one folder."""
        entries, info = scenes_and_info(file)
        ours = {key: value for key, value in _info(self.order).items() if key in _KEYS}
        try:
            theirs = {key: info[key] for key in _KEYS}
            by_number = {int(entry["image_index"]): entry for entry in entries}
        except (LookupError, TypeError, ValueError, OverflowError):
            raise NsfrcError(f"{file} was not made by nsfrc data: name an empty or new folder for the scenes") from None
        if theirs["width"] is None:  # scenes without pictures may still get them
            theirs |= {key: ours[key] for key in ("width", "height", "samples")}
        if theirs != ours:
            raise NsfrcError(f"{self.out} holds {_told(theirs)}, and these would be {_told(ours)}: "
                             f"name another folder for them")
        for index, entry in by_number.items():
            drawn = self.order.quality is None or image_file(self.out, self.order.name, index).exists()
            if drawn and split_of(self.order.name, index) == split:
                self.entries[index] = entry


_KEYS = ("set", "seed", "width", "height", "samples")


def _info(order: Order) -> dict[str, Any]:
    """What a scenes file says of all its scenes: what they were made of."""
    width, height, samples = (None,) * 3
    if order.quality is not None:
        width, height, samples = order.quality.width, order.quality.height, order.quality.samples
    return {"set": order.name, "seed": order.seed, "width": width, "height": height, "samples": samples,
            "nsfrc": __version__}


def _told(info: dict[str, Any]) -> str:
    pictures = "without pictures"
    if info["width"] is not None:
        pictures = f"with pictures of {info['width']}x{info['height']} and {info['samples']} samples"
    return f"scenes of {info['set']} with seed {info['seed']}, {pictures}"


def _occupied(out: Path) -> bool:
    try:
        return out.exists() and any(out.iterdir())
    except NotADirectoryError:
        raise NsfrcError(f"{out} is a file: name a folder for the scenes") from None
    except OSError as error:
        raise NsfrcError(f"cannot read {out}: {error.strerror}") from None
