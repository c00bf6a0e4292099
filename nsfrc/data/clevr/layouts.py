"""Folders of CLEVR scenes as they are published, or as `nsfrc data` makes them; no image is opened.

    CLEVR v1.0   DIR/images/{train,val,test}/CLEVR_train_000000.png, DIR/scenes/CLEVR_{train,val}_scenes.json
    CLEVR-Hans   DIR/{train,val,test}/images/CLEVR_Hans_classid_0_000000.png and, beside that images folder,
                 CLEVR_HANS_scenes_{train,val,test}.json, whose scenes have a class_id
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nsfrc.data.clevr.fitting import cameras
from nsfrc.data.clevr.scenes import Scene, Thing, thing_of
from nsfrc.errors import NsfrcError
from nsfrc.inference.scene_files import CLEVR, HANS, IMAGES, SPLITS, class_of, scenes_in

NO_CAMERA = "no camera near CLEVR's sees its 3d_coords at its pixel_coords"


@dataclass(frozen=True)
class Entry:
    """A scene and the file of its image."""

    image: Path
    scene: Scene
    split: str


@dataclass(frozen=True)
class Source:
    """A scenes file, the folder of its images, and the split that it is of."""

    scenes: Path
    images: Path
    split: str


def read(path: str | Path, *splits: str, images: bool = True) -> list[Entry]:
    """The scenes of a folder: a root, one split of CLEVR-Hans, or a scenes file itself. Raises NsfrcError.

    splits: only these. images: whether the images must be there. Splits come in the order train, val, test, scenes in
    that of file names.
    """
    path = Path(path)
    sources = _sources(path)
    there = [source.split for source in sources]
    for split in splits:
        if split not in there:
            raise NsfrcError(f"{path} has no split {split!r}; there are {', '.join(there)}")
    chosen = [source for source in sources if not splits or source.split in splits]
    return [entry for source in chosen for entry in _read(source, images)]


def splits_of(path: str | Path) -> list[str]:
    """The splits that `read` would find, in its order. Raises NsfrcError."""
    return [source.split for source in _sources(Path(path))]


def _sources(path: Path) -> list[Source]:
    """The scenes files of a folder, or the one that `path` is, in the order of SPLITS."""
    if path.is_file():
        return [_of_file(path)]
    try:
        folders = [path, *sorted(one for one in path.iterdir() if one.is_dir())]
        files = [file for folder in folders for file in sorted(folder.glob("*.json")) if _named(file)]
    except OSError as error:
        raise NsfrcError(f"cannot open the folder of scenes {path}: {error.strerror}") from None
    if not files:
        raise NsfrcError(
            f"{path} has no scenes: there is neither scenes/CLEVR_train_scenes.json as in CLEVR, nor "
            f"CLEVR_HANS_scenes_train.json, in it or in its folder train, as in CLEVR-Hans"
        )
    order = {name: place for place, name in enumerate(SPLITS)}
    return sorted(map(_of_file, files), key=lambda source: (order.get(source.split, len(SPLITS)), source.split))


def _named(file: Path) -> bool:
    """Whether a file is where its layout has it."""
    if HANS.fullmatch(file.name):
        return True
    return CLEVR.fullmatch(file.name) is not None and file.parent.name == "scenes"


def _of_file(path: Path) -> Source:
    known = HANS.fullmatch(path.name) or CLEVR.fullmatch(path.name)
    split = known[1] if known else "all"
    beside, above = path.parent / IMAGES, path.absolute().parent.parent / IMAGES / split
    return Source(path, above if above.is_dir() and not HANS.fullmatch(path.name) else beside, split)


def _read(source: Source, images: bool) -> list[Entry]:
    """The entries of a scenes file."""
    numbered = sorted(enumerate(scenes_in(source.scenes)), key=lambda one: one[1]["image_filename"])
    if images:
        _check_images(source, numbered)
    scenes = _scenes(source.scenes, numbered)
    files = [source.images / entry["image_filename"] for _, entry in numbered]
    return [Entry(image, scene, source.split) for image, scene in zip(files, scenes, strict=True)]


def _check_images(source: Source, numbered: Iterable[tuple[int, dict[str, Any]]]) -> None:
    """That every image is there."""
    there = _files(source.images)
    gone = [(number, entry["image_filename"]) for number, entry in numbered if entry["image_filename"] not in there]
    if gone:
        number, name = gone[0]
        more = "" if len(gone) == 1 else ", nor is another" if len(gone) == 2 else f", nor are {len(gone) - 1} others"
        raise NsfrcError(f"{source.scenes}: scene {number}: its image {source.images / name} is not there{more}: put "
                         f"pictures there; nsfrc data makes those of its scenes if --no-render is left out")


def _files(folder: Path) -> set[str]:
    """The names in a folder, which is faster than looking for each file; none if there is no folder."""
    try:
        return {file.name for file in folder.iterdir()}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise NsfrcError(f"cannot open the folder of images {folder}: {error.strerror}") from None


def _scenes(path: Path, numbered: Iterable[tuple[int, dict[str, Any]]]) -> list[Scene]:
    """Scenes of entries; cameras are found for all of them at once, which is a hundred times quicker."""
    numbers, things, labels, seen = [], [], [], []
    for number, entry in numbered:
        parts, label = _parts(f"{path}: scene {number}", entry)
        numbers.append(number)
        things.append(tuple(thing for thing, _ in parts))
        labels.append(label)
        seen.append(np.array([place for _, place in parts]).reshape(-1, 3))
    found = cameras([np.array([t.coords for t in some]).reshape(-1, 3) for some in things], seen)
    scenes = []
    for number, some, camera, label in zip(numbers, things, found, labels, strict=True):
        if camera is None:
            raise NsfrcError(f"{path}: scene {number}: {NO_CAMERA}; are they of an image of 480 × 320 pixels?")
        scenes.append(Scene(some, camera, label))
    return scenes


def _parts(
    place: str, entry: dict[str, Any]
) -> tuple[list[tuple[Thing, tuple[float, float, float]]], int | None]:
    """What stands in a scene, where it is seen, and the scene's class."""
    objects = entry.get("objects")
    if not isinstance(objects, list):
        raise NsfrcError(f"{place}: it has no list of objects")
    parts = []
    for number, one in enumerate(objects):
        if not isinstance(one, dict):
            raise NsfrcError(f"{place}, object {number}: it must be {{…}}")
        try:
            parts.append(thing_of(one))
        except KeyError as error:
            raise NsfrcError(f"{place}, object {number}: it has no {error.args[0]}") from None
        except ValueError as error:
            raise NsfrcError(f"{place}, object {number}: {error}") from None
    try:
        return parts, class_of(entry)
    except ValueError as error:
        raise NsfrcError(f"{place}: {error}") from None
