"""What users hand in as images: files and folders by their paths, bytes, PIL images, arrays, and lists of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from nsfrc.compiler.herbrand import reading_order
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Listing, folder
from nsfrc.inference.images import ImageError, Picture, framed, read, read_bytes
from nsfrc.inference.live import is_live
from nsfrc.inference.videos import EVERY, Frame, frames, is_video
from nsfrc.pipelines import BRIGHTEST

if TYPE_CHECKING:
    from nsfrc.perception.base import Fit

BYTES = bytes | bytearray | memoryview
TAKEN = "the path of a file, the bytes of one, a PIL image, an array [H, W, 3], a tensor [3, H, W], or a list of these"


class Elsewhere(ABC):
    """An image whose file is fetched when it is wanted, such as one in a bucket."""

    @abstractmethod
    def content(self) -> bytes:
        """The bytes of the file. Raises NsfrcError with a one-line reason."""


def split(given: Any) -> list[Any]:
    """The single images of what was given: a list, an array [B, H, W, 3], a tensor [B, 3, H, W], or one image alone."""
    if isinstance(given, list | tuple):
        if not given:
            raise NsfrcError("there are no images: the list is empty")
        return list(given)
    if isinstance(given, np.ndarray | torch.Tensor) and given.ndim == 4:
        return list(given)
    return [given]


def picture_of(image: Any, name: str, size: tuple[int, int], fit: Fit = "letterbox", side: int = 0) -> Picture:
    """One image of any kind, brought to `size` (H, W); side: see `images.read`. Raises ImageError.

    name: what messages call an image that has no path.
    """
    if isinstance(image, str | Path):
        return read(image, size, fit, side)
    if isinstance(image, Frame | Elsewhere):
        try:
            image = image.pixels() if isinstance(image, Frame) else image.content()
        except NsfrcError as error:
            raise ImageError(name, str(error)) from None
    if isinstance(image, BYTES):
        return read_bytes(bytes(image), name, size, fit, side)
    if isinstance(image, torch.Tensor):
        image = (image.permute(1, 2, 0) if image.ndim == 3 else image).detach().cpu().numpy()
    if isinstance(image, np.ndarray):
        image = Image.fromarray(_eight_bits(image, name))
    if not isinstance(image, Image.Image):
        raise ImageError(name, f"a {type(image).__name__} is not an image: it must be {TAKEN}")
    try:
        return framed(image, size, fit, side)
    except ImageError as error:
        raise ImageError(name, error.reason) from None
    except (OSError, ValueError, SyntaxError) as error:  # a file that was opened, but is damaged
        raise ImageError(name, f"damaged or cut off ({error}); get a fresh copy") from None


def _eight_bits(array: np.ndarray, name: str) -> np.ndarray:
    """An array as PIL takes it: uint8 [H, W], [H, W, 3] or [H, W, 4]."""
    shape = list(array.shape)
    if array.ndim == 3 and shape[2] == 1:
        array = array[:, :, 0]
    if not array.size or not (array.ndim == 2 or (array.ndim == 3 and shape[2] in (3, 4))):
        hint = ": array.transpose(1, 2, 0) puts colours last" if array.ndim == 3 and shape[0] == 3 else ""
        raise ImageError(name, f"an array of shape {shape} is not an image; it must be [H, W, 3], [H, W, 4] or "
                               f"[H, W]{hint}")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise ImageError(name, f"an array of {array.dtype} is not an image; it must be uint8, or floating point with "
                               f"values 0 … 1")
    if not np.isfinite(array).all():
        raise ImageError(name, "the array has entries that are not numbers (NaN or infinite)")
    if (most := float(array.max())) > BRIGHTEST:
        raise ImageError(name, f"the array has values up to {most:g}; floating point must be 0 … 1, bytes uint8")
    return np.rint(255 * array.clip(0, 1)).astype(np.uint8)


def spread(given: Any) -> Any:
    """Paths with patterns such as photos/*.jpg, and text files of paths, as the paths that they stand for."""
    if isinstance(given, str | Path):
        return _spread_one(given)
    if isinstance(given, list | tuple):
        found: list[Any] = []
        for one in given:
            more = _spread_one(one) if isinstance(one, str | Path) else one
            found += more if isinstance(more, list) else [more]
        return found
    return given


def _spread_one(given: str | Path) -> str | Path | list[Path]:
    path = Path(given)
    if not path.exists() and any(sign in str(given) for sign in "*?["):
        found = sorted(map(Path, glob(str(given), recursive=True)), key=lambda one: (reading_order(str(one)), str(one)))
        if not found:
            raise NsfrcError(f"no file is called as {given} says")
        return found
    if path.suffix.lower() != ".txt" or not path.is_file():
        return given
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise NsfrcError(f"cannot read the list of images {path}: {error}") from None
    named = [Path(line) for line in lines if line and not line.startswith("#")]
    if not named:
        raise NsfrcError(f"{path} names no images: a list has the path of one on each line")
    return [one if one.is_absolute() or one.exists() else path.parent / one for one in named]


def gather(given: Any, every: int = EVERY) -> Listing:
    """The images of a folder, of one file, or of a list of such paths and of images in memory, in the order given.

    A path may be a pattern, a text file of paths, or a video, of which each `every`-th frame is an image. Of a single
    folder names are below it; of several, and of files among others, they begin with the path as it was given. Images
    in memory are called "image 1" and so on, by their places in the list.
    """
    for one in given if isinstance(given, list | tuple) else [given]:
        if is_live(one):
            raise NsfrcError("the frames of a camera or an address have no end, and so are answered for alone, by "
                             "nsfrc infer --images camera:0 on the command line")
    given = spread(given)
    if isinstance(given, list | tuple) and len(given) == 1:
        given = given[0]
    if isinstance(given, str | Path):
        return _video(Path(given), every) if is_video(Path(given)) else folder(given)
    files: dict[str, str | None] = {}
    memory: dict[str, Any] = {}
    listings: list[tuple[Path, Listing]] = []
    for number, one in enumerate(split(given), 1):
        if isinstance(one, str | Path) and is_video(Path(one)):
            several = frames(Path(one), every)
            files.update(dict.fromkeys(several))
            memory.update(several)
        elif isinstance(one, str | Path):
            listings.append((Path(one), folder(one)))
            files.update(_below(*listings[-1]))
        else:
            files[f"image {number}"], memory[f"image {number}"] = None, one
    found = [listing for _, listing in listings]
    return replace(
        _with_classes(Listing(Path(), files), listings), memory=memory,
        others=tuple(name for listing in found for name in listing.others),
        unread=tuple(name for listing in found for name in listing.unread),
    )


def _video(path: Path, every: int) -> Listing:
    several = frames(path, every)
    return Listing(path.parent, dict.fromkeys(several), memory=several)


def _below(path: Path, listing: Listing) -> Iterator[tuple[str, str | None]]:
    """The files of a listing, by names that begin with the path it was made for."""
    for below, error in listing.files.items():
        yield _named(path, below, listing), error


def _named(path: Path, below: str, listing: Listing) -> str:
    return str(path / below) if path == listing.root else str(path)


def _with_classes(merged: Listing, listings: Iterable[tuple[Path, Listing]]) -> Listing:
    """With the classes that any of the listings has."""
    classes: dict[str, None] = {}
    sources: dict[str, None] = {}
    given: dict[str, str] = {}
    for path, listing in listings:
        if not listing.classes:
            continue
        classes.update(dict.fromkeys(listing.classes))
        sources[listing.source] = None
        for below in listing.files:
            if (name := listing.class_of(below)) is not None:
                given[_named(path, below, listing)] = name
    if not given:
        return merged
    return replace(merged, classes=tuple(classes), source=", ".join(sources), given=given)
