"""What a detector learns from: pictures with boxes, kept in memory as bytes, varied a little every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from nsfrc.perception.attributes import CLEVR, KANDINSKY, Attributes
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr
from nsfrc.perception.yolo_network import COARSEST
from nsfrc.training.pictures import FLAT, SOLID, Looks, as_images, room, vary_looks
from nsfrc.training.run import Bar, no_bar
from nsfrc.training.scenes import scenes

if TYPE_CHECKING:
    from nsfrc.data.clevr.layouts import Entry
    from nsfrc.data.figures import Shape

SHIFT = 4  # pixels
# How much larger some batches of varied figures are shown: the network then knows objects that are larger, in pixels,
# than any of these figures has. Small objects must be drawn: from pictures that are made smaller it learns that what
# looks made smaller is small, and gives all else boxes of the least size that is drawn.
LARGER = (7 / 6, 4 / 3)
ENLARGED = 0.25  # the share of batches
LOOKS_STREAM = 100  # figures of varied looks share none with those of the patterns, whatever the seed
VALIDATION_SEED = 1_000_000  # plus the seed: figures that no run trains on


@dataclass(frozen=True)
class Example:
    """pixels: uint8 [H, W, 3]; classes: [M] numbers; boxes: [M, 4] x1 y1 x2 y2 as fractions."""

    pixels: np.ndarray
    classes: np.ndarray
    boxes: np.ndarray


@dataclass(frozen=True)
class Source:
    """Where examples come from, and what kind of model learns from them.

    examples(held_out, seed, size (H, W)): each example to be made when it is called, the same ones every time;
    held_out: those to validate with. high: height / width of its pictures. looks: how far those vary; shown: how much
    larger they are shown at times. available: how many there are to train on, if there is an end.
    """

    model: type[Yolo]
    examples: Callable[[bool, int, tuple[int, int]], Iterator[Callable[[], Example]]]
    attributes: Attributes
    high: float = 1.0
    looks: Looks = FLAT
    available: int | None = None
    shown: tuple[float, ...] = ()

    def size(self, width: int) -> tuple[int, int]:
        return round(width * self.high), width


def drawn(
    attributes: Attributes, example: Callable[[int, int, tuple[int, int]], Example], shown: tuple[float, ...] = ()
) -> Source:
    """A source without end; example(seed, index, size) draws one."""

    def examples(held_out: bool, seed: int, size: tuple[int, int]) -> Iterator[Callable[[], Example]]:
        return (partial(example, seed + held_out * VALIDATION_SEED, i, size) for i in count())

    return Source(Yolo, examples, attributes, shown=shown)


def open_source(data: str) -> Source:
    """The source of that name, or the folders of CLEVR scenes with pictures, see `scenes`."""
    return SOURCES[data] if data in SOURCES else _clevr(data)


def _plain(seed: int, index: int, size: tuple[int, int]) -> Example:
    from nsfrc.data import kandinsky
    from nsfrc.data.render import render

    figure = kandinsky.figure(kandinsky.FREE, seed, index).figure
    return _shown(render(figure), figure.shapes, size)


def _varied(seed: int, index: int, size: tuple[int, int]) -> Example:
    from nsfrc.data.looks import varied

    picture = varied(np.random.default_rng([seed, LOOKS_STREAM, index]))
    return _shown(picture.pixels, picture.shapes, size)


def _shown(pixels: np.ndarray, shapes: Sequence[Shape], size: tuple[int, int]) -> Example:
    from PIL import Image

    from nsfrc.inference.images import prepare

    classes = [KANDINSKY.index(shape.color, shape.shape) for shape in shapes]
    boxes = np.array([shape.box for shape in shapes], dtype=np.float32).reshape(-1, 4)
    return Example(prepare(Image.fromarray(pixels), size), np.array(classes, dtype=np.int64), boxes)


SOURCES = {"kandinsky": drawn(KANDINSKY, _plain), "varied": drawn(KANDINSKY, _varied, LARGER)}


def _clevr(data: str) -> Source:
    """The scenes of a folder, or of several."""
    chosen = scenes(data)

    def examples(held_out: bool, seed: int, size: tuple[int, int]) -> Iterator[Callable[[], Example]]:
        return (partial(_seen, entry, size) for entry in chosen[held_out])

    return Source(YoloClevr, examples, CLEVR, 2 / 3, SOLID, len(chosen[False]))


def _seen(entry: Entry, size: tuple[int, int]) -> Example:
    from nsfrc.data.clevr.outlines import boxes
    from nsfrc.inference.images import read

    things = entry.scene.things
    classes = [CLEVR.index(t.shape, t.size, t.material, t.color) for t in things]
    return Example(read(entry.image, size).pixels, np.array(classes, dtype=np.int64), boxes(things, entry.scene.camera))


@dataclass(frozen=True)
class Examples:
    """N examples. pixels: uint8 [N, H, W, 3]; classes, boxes: one array per example, as in `Example`.

    looks, shown: how far pictures vary, as in `Source`.
    """

    pixels: torch.Tensor
    classes: list[np.ndarray]
    boxes: list[np.ndarray]
    looks: Looks = FLAT
    shown: tuple[float, ...] = ()

    @property
    def answers(self) -> list[np.ndarray]:
        return [*self.classes, *self.boxes]

    def __len__(self) -> int:
        return len(self.classes)


def collect(
    source: Source, held_out: bool, seed: int, size: tuple[int, int], at_most: int, bar: Bar = no_bar
) -> Examples:
    """Make up to `at_most` examples and keep them: H × W × 3 bytes each."""
    makers = list(islice(source.examples(held_out, seed, size), at_most))
    pixels = room(len(makers), size)
    made = []
    with bar(makers, "validation pictures" if held_out else "pictures", len(makers)) as shown:
        for place, make in enumerate(shown):
            example = make()
            pixels[place] = torch.from_numpy(example.pixels)
            made.append(example)
    return Examples(pixels, [e.classes for e in made], [e.boxes for e in made], source.looks, source.shown)


@dataclass(frozen=True)
class Batch:
    """images: [B, 3, H, W]; owner, classes: [M] example and class of every box; boxes: [M, 4] centre, width, height."""

    images: torch.Tensor
    owner: torch.Tensor
    classes: torch.Tensor
    boxes: torch.Tensor


def batches(examples: Examples, batch_size: int, seed: int, epoch: int, device: str) -> Iterator[Batch]:
    """One epoch in an order, and with variations, that follow from the seed and the epoch alone."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(examples))
    for start in range(0, len(order), batch_size):
        batch = vary(examples, order[start : start + batch_size], rng, device)
        if examples.shown and rng.random() < ENLARGED:
            batch = replace(batch, images=_shown_at(batch.images, float(rng.choice(examples.shown))))
        yield batch


def _shown_at(images: torch.Tensor, scale: float) -> torch.Tensor:
    """Images that much larger, in whole cells of the network."""
    size = [max(1, round(side * scale / COARSEST)) * COARSEST for side in images.shape[2:]]
    return torch.nn.functional.interpolate(images, size, mode="bilinear", antialias=True)


def vary(examples: Examples, chosen: np.ndarray, rng: np.random.Generator, device: str) -> Batch:
    """Pictures mirrored, moved by some pixels (with all objects in sight) and tinted at random, boxes with them."""
    pictures = as_images(examples.pixels, chosen, device)
    down, across = pictures.shape[2:]
    padded = torch.nn.functional.pad(pictures, (SHIFT,) * 4, mode="replicate")
    boxes = []
    for place, index in enumerate(chosen):
        moved = examples.boxes[index].copy()
        mirrored = rng.random() < 0.5
        if mirrored:
            moved[:, [0, 2]] = 1 - moved[:, [2, 0]]
        dx, dy = (_shift(moved[:, axis], moved[:, axis + 2], side, rng) for axis, side in ((0, across), (1, down)))
        moved += np.array([dx, dy, dx, dy], dtype=np.float32) / np.array([across, down] * 2, dtype=np.float32)
        # Mirrored after it is cut out: the picture then moves the other way.
        left = SHIFT + (dx if mirrored else -dx)
        window = padded[place, :, SHIFT - dy : SHIFT - dy + down, left : left + across]
        pictures[place] = window.flip(-1) if mirrored else window
        if not len(moved):
            pictures[place] = another_nothing(pictures[place], rng)
        boxes.append(moved)
    vary_looks(pictures, rng, examples.looks)
    return _batch(pictures, [examples.classes[i] for i in chosen], boxes)


def another_nothing(picture: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """A picture [3, H, W] without objects with its colours exchanged, upside down, inverted or with a part enlarged.

    None of that makes objects of what is none, and few pictures of noise become many.
    """
    picture = picture[torch.from_numpy(rng.permutation(3))]
    picture = picture.flip(1) if rng.random() < 0.5 else picture
    picture = 1 - picture if rng.random() < 0.5 else picture
    if rng.random() < 0.5:
        return picture
    high, wide = picture.shape[1:]
    part = rng.uniform(0.5, 1)
    down, across = round(high * part), round(wide * part)
    top, left = int(rng.integers(0, high - down + 1)), int(rng.integers(0, wide - across + 1))
    cut = picture[None, :, top : top + down, left : left + across]
    return torch.nn.functional.interpolate(cut, [high, wide], mode=str(rng.choice(["nearest", "bilinear"])))[0]


def _shift(low: np.ndarray, high: np.ndarray, side: int, rng: np.random.Generator) -> int:
    """Pixels to move by, such that objects between `low` and `high` stay in the picture."""
    if not len(low):
        return int(rng.integers(-SHIFT, SHIFT + 1))
    back = min(SHIFT, max(0, int(low.min() * side)))
    ahead = min(SHIFT, max(0, int((1 - high.max()) * side)))
    return int(rng.integers(-back, ahead + 1))


def _batch(pictures: torch.Tensor, classes: list[np.ndarray], corners: list[np.ndarray]) -> Batch:
    device = pictures.device
    boxes = torch.from_numpy(np.concatenate(corners)).to(device)
    return Batch(
        images=pictures,
        owner=torch.from_numpy(np.repeat(np.arange(len(classes)), [len(c) for c in classes])).to(device).float(),
        classes=torch.from_numpy(np.concatenate(classes)).to(device).float(),
        boxes=torch.cat([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1),
    )
