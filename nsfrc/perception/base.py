"""What a perception model is: images in, object vectors out, with a name for every entry of a vector."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch

from nsfrc.errors import NsfrcError

Fit = Literal["letterbox", "stretch", "grey_bars", "filled"]
NEAR = 0.05  # the logarithm of how far proportions may be from those wanted; 4:3 and 3:2 are more than twice as far


class _Latest(threading.local):
    """What perceptions said beside the result of the latest call, in each thread."""

    def __init__(self) -> None:
        self.further: WeakKeyDictionary[Perception, torch.Tensor | None] = WeakKeyDictionary()


_latest = _Latest()


class Perception(torch.nn.Module):
    """Images [B, 3, H, W] with values 0 … 1 → object vectors [B, E, D]; a missing object is a row of zeros.

    dimensions: the D names, such as ("x1", …, "red", …, "objectness"). Neural predicates find their entries by name:
    `color(obj1, red)` reads "red". size: (H, W) that images are brought to. objects: E. fit: how they are brought to
    it, "letterbox" with their proportions kept and bars beside them, or "stretch" to fill it; "grey_bars" and "filled"
    are the same as ultralytics does it, and boxes are then fractions of the picture, not of the frame.
    identity: what calibration goes by; it changes whenever the weights do. piece: where set, a folder of images goes
    through a CPU in pieces of exactly this many, as the last digits of convolutions depend on how many there are.
    side_by_side: whether several threads may call it at once, each with a piece.
    """

    dimensions: tuple[str, ...]
    size: tuple[int, int]
    objects: int
    identity: str = "unknown"
    piece: int | None = None
    fit: Fit = "letterbox"
    proportions: float | None = None  # width / height of the images it was made for, where others mislead it
    side_by_side: bool = False

    @property
    def further(self) -> torch.Tensor | None:
        """After a call by this thread: how many more objects, as sure as not, each of its images has than E, [B].

        None if it does not say.
        """
        return _latest.further.get(self)

    @further.setter
    def further(self, count: torch.Tensor | None) -> None:
        _latest.further[self] = count

    def see(self, images: torch.Tensor, frames: Sequence[tuple[float, ...]] | None) -> torch.Tensor:
        """As a call. frames: where in each image the picture lies, (x1, y1, x2, y2) as fractions; None: everywhere."""
        found: torch.Tensor = self(images)
        return found

    @classmethod
    def build(cls, objects: int, weights: Path | None) -> Self:
        """A model that finds `objects` objects, with weights from a safetensors file where one is given."""
        from nsfrc.perception.weights import load_into

        model = cls(objects=objects)
        if weights is not None:
            load_into(model, weights)
        return model.eval()

    @classmethod
    def usual_weights(cls) -> Path | None:
        """The file of weights that `build` takes where it is given none; it may be missing. None if it takes none."""
        return getattr(cls, "shipped", None)

    def doubts(self, pixels: np.ndarray, shape: tuple[int, int]) -> tuple[str, ...]:
        """What is unlike the images it was made for, a few words each, such as "not 3:2"; answers may then be wrong.

        pixels: uint8 [H, W, 3], as the model is given them. shape: (width, height) of the original.
        """
        if self.proportions is None or abs(math.log(shape[0] / shape[1] / self.proportions)) <= NEAR:
            return ()
        width, height = Fraction(self.proportions).limit_denominator(100).as_integer_ratio()
        return (f"not {width}:{height}",)

    def places(self, vectors: np.ndarray) -> np.ndarray | None:
        """Where the objects of vectors [E, D] are, for reports: [E, 2] x, y as fractions of what the model was given.

        These are the middles of boxes; None where there are no boxes, and the model knows of no other way.
        """
        if not {"x1", "y1", "x2", "y2"} <= set(self.dimensions):
            return None
        x1, y1, x2, y2 = (vectors[:, self.column(name)] for name in ("x1", "y1", "x2", "y2"))
        return np.stack([(x1 + x2) / 2, (y1 + y2) / 2], axis=1)

    def column(self, name: str) -> int:
        """Where a named entry stands in a vector."""
        try:
            return self.dimensions.index(name)
        except ValueError:
            raise NsfrcError(f"no dimension {name!r}; there are {', '.join(self.dimensions)}") from None
