"""Pictures that a training keeps in memory as bytes, and varies a little every time it looks at them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from nsfrc.errors import NsfrcError


@dataclass(frozen=True)
class Looks:
    """How far pictures vary: the colours of each channel and the brightness, and how sharp edges are."""

    tint: float
    edges: float = 0.0


FLAT = Looks(tint=0.04)  # more would turn one flat colour into another
SOLID = Looks(tint=0.08, edges=0.5)  # lights differ from picture to picture, and so do the filters that made them


def room(count: int, size: tuple[int, int]) -> torch.Tensor:
    """Memory for `count` pictures of `size` (H, W): uint8 [N, H, W, 3]."""
    height, width = size
    try:
        return torch.empty(count, height, width, 3, dtype=torch.uint8)
    except RuntimeError:
        needed = count * height * width * 3 / 1e9
        raise NsfrcError(
            f"{count:,} pictures of {width} × {height} px need {needed:.1f} GB of memory: use fewer, or a smaller size"
        ) from None


def as_images(pixels: torch.Tensor, chosen: np.ndarray, device: str) -> torch.Tensor:
    """The chosen of uint8 [N, H, W, 3] as float [B, 3, H, W] with values 0 … 1, channels last in memory."""
    return pixels[torch.from_numpy(chosen)].to(device).permute(0, 3, 1, 2).float().div_(255)


def vary_looks(images: torch.Tensor, rng: np.random.Generator, looks: Looks) -> None:
    """Change colours, brightness and sharpness of images [B, 3, H, W] in place, at random."""
    shape, device = (len(images), 1, 1, 1), images.device
    if looks.edges:
        # From a little softer to as much sharper as `edges` says.
        more = rng.uniform(-looks.edges / 2, looks.edges, shape).astype(np.float32)
        soft = torch.nn.functional.avg_pool2d(images, 3, 1, 1, count_include_pad=False)
        images.add_((images - soft).mul_(torch.from_numpy(more).to(device)))
    tints = 1 + rng.uniform(-looks.tint, looks.tint, (len(images), 3, 1, 1)).astype(np.float32)
    light = rng.uniform(-looks.tint, looks.tint, shape).astype(np.float32)
    images.mul_(torch.from_numpy(tints).to(device)).add_(torch.from_numpy(light).to(device)).clamp_(0, 1)
