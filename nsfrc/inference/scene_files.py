"""Scenes files of CLEVR and CLEVR-Hans: how they are called, and what they say of whole images."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nsfrc.errors import NsfrcError

HANS = re.compile(r"CLEVR_HANS_scenes_([a-z0-9]+)\.json", re.IGNORECASE)  # CLEVR_HANS_scenes_train.json
CLEVR = re.compile(r"CLEVR_([a-z0-9]+)_scenes\.json", re.IGNORECASE)  # CLEVR_val_scenes.json
NUMBERED = re.compile(r"CLEVR_Hans_classid_([0-9]{1,9})_[0-9]+\.\w+", re.IGNORECASE)
SPLITS = ("train", "val", "test")
IMAGES = "images"  # the folder of a split's images


def scenes_in(path: Path) -> list[dict[str, Any]]:
    """The entries of a scenes file, each with the name of its image. Raises NsfrcError.

    Scenes count from 0, as CLEVR's images do.
    """
    return scenes_and_info(path)[0]


def scenes_and_info(path: Path) -> tuple[list[dict[str, Any]], Any]:
    """`scenes_in`, and what the file says of all its scenes, whatever that is; None where it says nothing."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{path}: not JSON: it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise NsfrcError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of thousands of digits
        raise NsfrcError(f"{path}: not a scenes file: {error}") from None
    found = data.get("scenes") if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise NsfrcError(f'{path}: not a scenes file: it must be {{"info": …, "scenes": […]}}')
    _check_images(path, found)
    return found, data.get("info")


def _check_images(path: Path, entries: list[Any]) -> None:
    """That every entry names an image, a plain file name, which no other has."""
    first: dict[str, int] = {}
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise NsfrcError(f"{path}: scene {number}: it must be {{…}}")
        name = entry.get("image_filename")
        if not isinstance(name, str) or not name or "/" in name or "\0" in name or name in (".", ".."):
            raise NsfrcError(f"{path}: scene {number}: image_filename is {name!r}; it must be the name of a file")
        if name in first:
            raise NsfrcError(f"{path}: scene {number}: {name} is the image of scene {first[name]} already")
        first[name] = number


def class_of(entry: dict[str, Any]) -> int | None:
    """The number of an entry's class from 0, None where it is of no class; raises ValueError."""
    found = entry.get("class_id")
    if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < 0):
        raise ValueError(f"class_id is {found!r}; it must be a number from 0")
    return found


def classes_in(path: Path) -> dict[str, int]:
    """The class of every image of a scenes file that has one, by the image's name. Raises NsfrcError."""
    found = {}
    for number, entry in enumerate(scenes_in(path)):
        try:
            label = class_of(entry)
        except ValueError as error:
            raise NsfrcError(f"{path}: scene {number}: {error}") from None
        if label is not None:
            found[entry["image_filename"]] = label
    return found


def classes_of(root: Path, images: Iterable[str], scenes: Mapping[str, list[str]]) -> tuple[dict[str, int], str] | None:
    """The classes of images in a layout of CLEVR-Hans, by their paths below the root, and where they are from in words.

    scenes: folder below the root → the scenes files in it. An image's is beside it, or beside its folder `images`.
    Where there are none, names such as CLEVR_Hans_classid_2_000017.png say it; None where they do not.
    """
    known: dict[str, dict[str, int]] = {}  # by folder
    read: list[Path] = []
    found: dict[str, int] = {}
    images = list(images)
    for image in images:
        folder, _, name = image.rpartition("/")
        if folder not in known:
            files = _scenes_for(root, folder, scenes)
            read += files
            known[folder] = {name: label for file in files for name, label in classes_in(file).items()}
        if name in known[folder]:
            found[image] = known[folder][name]
    if read:
        return found, f"from {', '.join(sorted({file.name for file in read}))}"
    named = {image: label for image in images if (label := _class_in_name(image.rpartition("/")[2])) is not None}
    return (named, "from the file names") if named else None


def hans_files(folder: Path) -> list[Path]:
    """The scenes files of CLEVR-Hans in a folder; none where it may not be listed."""
    try:
        return sorted(file for file in folder.iterdir() if HANS.fullmatch(file.name))
    except OSError:
        return []


def _scenes_for(root: Path, folder: str, scenes: Mapping[str, list[str]]) -> list[Path]:
    if folder in scenes:
        return [root / folder / name for name in scenes[folder]]
    place = (root / folder).absolute()
    if place.name != IMAGES:
        return []
    if folder:
        above = folder.rpartition("/")[0]
        return [root / above / name for name in scenes.get(above, ())]
    return hans_files(place.parent)


def _class_in_name(name: str) -> int | None:
    found = NUMBERED.fullmatch(name)
    return int(found[1]) if found else None
