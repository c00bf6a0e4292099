"""Where a picture lies in the frame that perception is given, and the bars beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nsfrc.perception.base import Fit

Part = tuple[float, float, float, float]  # x1, y1, x2, y2 as fractions


def inner_size(width: int, height: int, size: tuple[int, int], fit: Fit) -> tuple[int, int]:
    """The width and height that a picture of width and height has in a frame of `size` (H, W)."""
    rows, columns = size
    if fit != "letterbox":
        return columns, rows
    scale = min(columns / width, rows / height)
    return max(1, min(columns, round(width * scale))), max(1, min(rows, round(height * scale)))


def in_frame(pixels: np.ndarray, size: tuple[int, int]) -> tuple[Part, np.ndarray]:
    """Pixels [h, w, 3] in the middle of a frame of `size` (H, W): where they are in it, and the frame [H, W, 3].

    Each bar beside them has the colour that most of the edge next to it has: any other would be an edge where there is
    none, which detectors take for objects.
    """
    (height, width), (rows, columns) = pixels.shape[:2], size
    left, top = (columns - width) // 2, (rows - height) // 2
    place = left / columns, top / rows, (left + width) / columns, (top + height) / rows
    if (height, width) == size:
        return place, pixels
    frame = np.empty((*size, 3), np.uint8)
    frame[:top], frame[top + height :] = _middle(pixels[0]), _middle(pixels[-1])
    # Bars are above and below or left and right, save for what rounding leaves over.
    frame[top : top + height, :left] = _middle(pixels[:, 0])
    frame[top : top + height, left + width :] = _middle(pixels[:, -1])
    frame[top : top + height, left : left + width] = pixels
    return place, frame


def _middle(line: np.ndarray) -> np.ndarray:
    """The median colour of a line of pixels [n, 3]; of an even number the lower of the two in the middle."""
    return np.sort(line, axis=0)[(len(line) - 1) // 2]
