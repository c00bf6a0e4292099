"""Pictures as files: PNG with nothing but its pixels, so that the same ones are the same bytes."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image


def png(pixels: np.ndarray) -> bytes:
    """uint8 [H, W, 3] → a file's content."""
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG", compress_level=3)
    return data.getvalue()
