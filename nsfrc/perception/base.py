"""What a perception model is: images in, object vectors out, with a name for every entry of a vector."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import torch

from nsfrc.errors import NsfrcError


class Perception(torch.nn.Module):
    """Images [B, 3, H, W] with values 0 … 1 → object vectors [B, E, D]; a missing object is a row of zeros.

    dimensions: the D names, such as ("x1", …, "red", …, "objectness"). Neural predicates find their entries by name:
    `color(obj1, red)` reads "red". size: (H, W) that images are brought to. objects: E.
    identity: what calibration goes by; it changes whenever the weights do. piece: where set, a folder of images goes
    through a CPU in pieces of exactly so many, as the last digits of convolutions depend on how many there are.
    """

    dimensions: tuple[str, ...]
    size: tuple[int, int]
    objects: int
    identity: str = "unknown"
    piece: int | None = None

    @classmethod
    def build(cls, objects: int, weights: Path | None) -> Self:
        """A model that finds `objects` objects, with weights from a safetensors file where one is given."""
        from nsfrc.perception.weights import load_into

        model = cls(objects=objects)
        if weights is not None:
            load_into(model, weights)
        return model.eval()

    def column(self, name: str) -> int:
        """Where a named entry stands in a vector."""
        try:
            return self.dimensions.index(name)
        except ValueError:
            raise NsfrcError(f"no dimension {name!r}; there are {', '.join(self.dimensions)}") from None
