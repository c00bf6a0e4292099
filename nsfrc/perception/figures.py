"""Quick signs that an image is not a figure as `yolo` knows them: no colour in it, or a dark background."""

from __future__ import annotations

import numpy as np

DARK = 150  # below such a grey of the ground a `yolo` that learnt from plain figures sees objects that are not there
COLOURED = 40  # from which difference between channels on a pixel has a colour; a grey JPEG has less
FEW = 0.0005  # of all pixels; the smallest object that is seen has five times as many
ROWS = 4  # of so many rows one is looked at first
PLAIN = 40  # an image whose greys differ by less is empty, and empty figures are figures


def doubts(pixels: np.ndarray, any_ground: bool) -> tuple[str, ...]:
    """What is unlike a figure in pixels, uint8 [H, W, 3]. any_ground: whether dark grounds are known too."""
    found = []
    if _without_colour(pixels):
        found.append("without colour")
    if not any_ground and _border(pixels) < DARK:
        found.append("on a dark background")
    return tuple(found)


def _without_colour(pixels: np.ndarray) -> bool:
    few = FEW * pixels.shape[0] * pixels.shape[1]
    if _coloured(pixels[::ROWS])[0] >= few:  # as in most figures: there are no fewer in all rows
        return False
    coloured, most = _coloured(pixels)
    return coloured < few and int(most.max()) - int(most.min()) >= PLAIN


def _coloured(pixels: np.ndarray) -> tuple[int, np.ndarray]:
    """How many pixels have a colour, and the brightest channel of each."""
    red, green, blue = (pixels[..., i] for i in range(3))
    most = np.maximum(np.maximum(red, green), blue)
    least = np.minimum(np.minimum(red, green), blue)
    return int(np.count_nonzero(most - least >= COLOURED)), most


def _border(pixels: np.ndarray) -> float:
    """The grey that most of the border has, whatever touches it elsewhere."""
    edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    return float(np.median(edges @ np.array([0.299, 0.587, 0.114])))
