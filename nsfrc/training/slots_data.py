"""What slots learn from: pictures of CLEVR scenes in memory, with a vector for every thing in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nsfrc.data.clevr.layouts import Entry
from nsfrc.data.clevr.scenes import truth
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import read
from nsfrc.perception.slot_attention import SlotAttention
from nsfrc.training.pictures import SOLID, as_images, room, vary_looks
from nsfrc.training.run import Bar, no_bar


@dataclass(frozen=True)
class Examples:
    """N scenes. pixels: uint8 [N, H, W, 3]; truth: [N, S, 19] object vectors, rows of zeros where there is nothing."""

    pixels: torch.Tensor
    truth: torch.Tensor

    @property
    def answers(self) -> list[np.ndarray]:
        return [self.truth.numpy()]

    def __len__(self) -> int:
        return len(self.truth)


def collect(entries: Sequence[Entry], size: int, slots: int, label: str = "pictures", bar: Bar = no_bar) -> Examples:
    """Read the pictures of scenes and keep them: size × size × 3 bytes each."""
    crowd = max(entries, key=lambda entry: len(entry.scene.things))
    if (most := len(crowd.scene.things)) > slots:
        raise NsfrcError(f"{crowd.image} shows {most} things, more than {slots} slots can hold: use --slots {most}")
    pixels = room(len(entries), (size, size))
    with bar(entries, label, len(entries)) as shown:
        for place, entry in enumerate(shown):
            pixels[place] = torch.from_numpy(read(entry.image, (size, size), SlotAttention.fit).pixels)
    return Examples(pixels, torch.from_numpy(np.stack([truth(entry.scene, slots) for entry in entries])))


@dataclass(frozen=True)
class Batch:
    """images: [B, 3, H, W]; truth: [B, S, 19]; noise: [B, S, width], where the slots of each image start from."""

    images: torch.Tensor
    truth: torch.Tensor
    noise: torch.Tensor


def batches(
    examples: Examples, batch_size: int, width: int, seed: int, epoch: int, device: str
) -> Iterator[Batch]:
    """One epoch in an order, and with tints and noise, that follow from the seed and the epoch alone."""
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(examples))
    slots = examples.truth.shape[1]
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        images = as_images(examples.pixels, chosen, device)
        vary_looks(images, rng, SOLID)  # not moved or mirrored: that changes where in the world things are
        noise = rng.standard_normal((len(chosen), slots, width), dtype=np.float32)
        yield Batch(images, examples.truth[chosen].to(device), torch.from_numpy(noise).to(device))
