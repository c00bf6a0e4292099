"""What a detector learns from: pictures with boxes, kept in memory as bytes, varied a little every time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception.attributes import KANDINSKY, Attributes

SHIFT = 4  # pixels
TINT = 0.04  # of each channel, and of the brightness; more would turn one colour into another


@dataclass(frozen=True)
class Example:
    """pixels: uint8 [H, W, 3]; classes: [M] numbers; boxes: [M, 4] x1 y1 x2 y2 as fractions."""

    pixels: np.ndarray
    classes: np.ndarray
    boxes: np.ndarray


@dataclass(frozen=True)
class Source:
    """Where examples come from: example(seed, index, size) is the same whenever it is called."""

    attributes: Attributes
    example: Callable[[int, int, int], Example]


def _kandinsky(seed: int, index: int, size: int) -> Example:
    from PIL import Image

    from nsfrc.data import kandinsky
    from nsfrc.data.render import render
    from nsfrc.inference.images import prepare

    figure = kandinsky.figure(kandinsky.FREE, seed, index).figure
    classes = [KANDINSKY.index(shape.color, shape.shape) for shape in figure.shapes]
    boxes = np.array([shape.box for shape in figure.shapes], dtype=np.float32).reshape(-1, 4)
    return Example(prepare(Image.fromarray(render(figure)), (size, size)), np.array(classes, dtype=np.int64), boxes)


SOURCES = {"kandinsky": Source(KANDINSKY, _kandinsky)}


@dataclass(frozen=True)
class Examples:
    """N examples. pixels: uint8 [N, H, W, 3]; classes, boxes: one array an example, as in `Example`."""

    pixels: torch.Tensor
    classes: list[np.ndarray]
    boxes: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.classes)


def collect(source: Source, seed: int, numbers: Iterable[int], size: int, count: int) -> Examples:
    """Make `count` examples and keep them: size × size × 3 bytes each."""
    try:
        pixels = torch.empty(count, size, size, 3, dtype=torch.uint8)
    except RuntimeError:
        needed = count * size * size * 3 / 1e9
        raise NsfrcError(
            f"{count:,} figures of {size} px need {needed:.1f} GB of memory: use fewer, or a smaller size"
        ) from None
    made = []
    for place, number in enumerate(numbers):
        example = source.example(seed, number, size)
        pixels[place] = torch.from_numpy(example.pixels)
        made.append(example)
    return Examples(pixels, [e.classes for e in made], [e.boxes for e in made])


def images(examples: Examples, chosen: np.ndarray, device: str) -> torch.Tensor:
    """The chosen pictures as float [B, 3, H, W] with values 0 … 1, channels last in memory."""
    return examples.pixels[torch.from_numpy(chosen)].to(device).permute(0, 3, 1, 2).float().div_(255)


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
        yield vary(examples, order[start : start + batch_size], rng, device)


def vary(examples: Examples, chosen: np.ndarray, rng: np.random.Generator, device: str) -> Batch:
    """Pictures mirrored, moved by some pixels (with all objects in sight) and tinted at random, boxes with them."""
    pictures = images(examples, chosen, device)
    side = pictures.shape[-1]
    padded = torch.nn.functional.pad(pictures, (SHIFT,) * 4, mode="replicate")
    boxes = []
    for place, index in enumerate(chosen):
        moved = examples.boxes[index].copy()
        mirrored = rng.random() < 0.5
        if mirrored:
            moved[:, [0, 2]] = 1 - moved[:, [2, 0]]
        dx, dy = (_shift(moved[:, axis], moved[:, axis + 2], side, rng) for axis in (0, 1))
        moved += np.array([dx, dy, dx, dy], dtype=np.float32) / side
        # Mirrored after it is cut out: the picture then moves the other way.
        left = SHIFT + (dx if mirrored else -dx)
        window = padded[place, :, SHIFT - dy : SHIFT - dy + side, left : left + side]
        pictures[place] = window.flip(-1) if mirrored else window
        boxes.append(moved)
    tint = 1 + rng.uniform(-TINT, TINT, (len(chosen), 3, 1, 1)).astype(np.float32)
    light = rng.uniform(-TINT, TINT, (len(chosen), 1, 1, 1)).astype(np.float32)
    pictures.mul_(torch.from_numpy(tint).to(device)).add_(torch.from_numpy(light).to(device)).clamp_(0, 1)
    return _batch(pictures, [examples.classes[i] for i in chosen], boxes)


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
