"""`slot_attention`: slots that compete for the parts of a picture, each describing one thing of a CLEVR scene."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception import weights as files
from nsfrc.perception.attributes import CLEVR
from nsfrc.perception.base import Perception
from nsfrc.perception.camera import HEIGHT, WIDTH, Camera
from nsfrc.perception.slot_network import SlotNetwork
from nsfrc.perception.weights_folder import kept_weights

NAME = "slot_attention"
# What a header says of the network, and from where to where that makes sense.
SETTINGS = {"size": (16, 1024), "iterations": (1, 100), "width": (1, 4096), "hidden": (1, 4096)}

NO_WEIGHTS = """slot_attention has no weights yet ({place} does not exist). There are three ways:
  1. import the published checkpoint, once:
       nsfrc weights import FILE
  2. train on your own scenes, and then name the file:
       nsfrc train perception --model slot_attention --data DIR --out slots.safetensors
       nsfrc infer … --perception slot_attention --weights slots.safetensors
  3. use the detector for such scenes that comes with nsfrc:
       nsfrc infer … --perception yolo_clevr, as clevr_hans3 and clevr_hans7 do by themselves"""


class SlotAttention(Perception):
    """Object vectors objectness | x y z | shape | size | material | colour, a slot each and in no order.

    x, y, z: how far to the right of the middle of the ground, towards the camera, and up, from −4 to 4 as 0 … 1.
    An empty slot is not set to zeros: its objectness says so already, and its gradient is the way to fill it.
    seed: of the noise that slots start from, which is the same for every image.
    """

    dimensions = ("objectness", "x", "y", "z", *CLEVR.values)
    fit = "stretch"
    proportions = WIDTH / HEIGHT
    piece = 16  # as fast an image as 8 or 32 at a time, and whole vectors for every loop over them
    side_by_side = True

    def __init__(
        self, objects: int = 10, size: int = 128, iterations: int = 3, width: int = 64, hidden: int = 128,
        scattered: bool = False, seed: int = 0,
    ) -> None:
        super().__init__()
        self.objects, self.size, self.seed = objects, (size, size), seed
        self.iterations, self.width, self.hidden, self.scattered = iterations, width, hidden, scattered
        self.identity = f"{NAME}:untrained"
        self.network = SlotNetwork(len(self.dimensions), size, width, hidden, iterations, scattered)
        self.register_buffer("noise", start_noise(objects, width, seed), persistent=False)

    @classmethod
    def build(cls, objects: int, weights: Path | None = None) -> Self:
        """The trained model, frozen, with this many slots; without `weights`, those that were imported."""
        path = weights or cls.usual_weights()
        if weights is None and not path.exists():
            raise NsfrcError(NO_WEIGHTS.format(place=path))
        header, tensors = files.load(path)
        model = cls(objects, **_settings(header, path))
        files.fill(model, tensors, path)
        model.identity = f"{NAME}:{header['crc32']}"
        # About a quarter faster on a CPU.
        model.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return model.eval().requires_grad_(False)

    @classmethod
    def usual_weights(cls) -> Path:
        return kept_weights(NAME)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """[B, 3, H, W] → [B, E, 19], differentiable in images and weights; a row never depends on the batch."""
        if images.ndim != 4 or images.shape[1] != 3 or tuple(images.shape[2:]) != self.size:
            height, width = self.size
            raise NsfrcError(f"images are {list(images.shape)}; this {NAME} needs [B, 3, {height}, {width}]")
        if not images.is_floating_point():
            raise NsfrcError(f"images are {images.dtype}; {NAME} needs floating point from 0 to 1")
        if not len(images):
            return images.new_zeros(0, self.objects, len(self.dimensions))
        said: torch.Tensor = self.network(images, self.noise)
        return said

    def places(self, vectors: np.ndarray) -> np.ndarray:
        """Where CLEVR's usual camera sees the middles of objects; each image's own stood a little elsewhere."""
        camera, first = Camera(), self.column("x")
        points = camera.points(vectors[:, first : first + 3].astype(np.float64))
        return camera.pixels(points)[:, :2] / (WIDTH, HEIGHT)

    def header(self) -> dict[str, Any]:
        """What a file of weights says about the model in it."""
        return {
            "kind": "perception", "model": NAME, "size": self.size[0], "iterations": self.iterations,
            "width": self.width, "hidden": self.hidden, "scattered": self.scattered, "dimensions": self.dimensions,
        }


def start_noise(slots: int, width: int, seed: int) -> torch.Tensor:
    """Normal noise [slots, width]; fewer slots have the first rows of more."""
    source = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randn(width, generator=source) for _ in range(slots)])


def _settings(header: dict[str, Any], path: Path) -> dict[str, Any]:
    """The arguments of SlotAttention from a header, checked."""
    if header.get("kind") != "perception" or header.get("model") != NAME:
        what = f"{header.get('kind', 'nothing')} {header.get('model', '')}".strip()
        raise NsfrcError(f"{path} does not hold a {NAME} perception (its header says {what}): import a published "
                         f"checkpoint with nsfrc weights import, or train with nsfrc train perception --model {NAME}")
    found: dict[str, Any] = {name: header.get(name) for name in (*SETTINGS, "scattered")}
    sound = all(type(found[name]) is int and least <= found[name] <= most for name, (least, most) in SETTINGS.items())
    if not sound or type(found["scattered"]) is not bool or header.get("dimensions") != list(SlotAttention.dimensions):
        raise NsfrcError(f"{path} is damaged (its header is not valid): get or train the weights again")
    return found
