"""Small copies of images as data: addresses, so that a report needs no file but itself."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from PIL import Image

from nsfrc.inference.images import ImageError, Picture, read

SIDE = 240  # pixels of the longer side at most
COLOURS = 48  # enough for flat shapes with soft edges
QUALITY = 78


def thumbnail(path: Path, picture: Picture) -> tuple[str, int, int]:
    """A data: address and the width and height of what it holds.

    It is made from the file, or from what perception was given when the file cannot be read any more.
    """
    scale = min(1.0, SIDE / max(picture.width, picture.height))
    width, height = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    try:
        image = Image.fromarray(read(path, (height, width)).pixels)
    except ImageError:
        rows, columns = picture.pixels.shape[:2]
        x1, y1, x2, y2 = picture.inner
        inner = tuple(round(v) for v in (x1 * columns, y1 * rows, x2 * columns, y2 * rows))
        image = Image.fromarray(picture.pixels).crop(inner).resize((width, height), Image.Resampling.BILINEAR)
    kind, data = min((_png(image), _jpeg(image)), key=lambda encoded: len(encoded[1]))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}", width, height


def _png(image: Image.Image) -> tuple[str, bytes]:
    few = image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    return "png", _encoded(few, "PNG")


def _jpeg(image: Image.Image) -> tuple[str, bytes]:
    return "jpeg", _encoded(image, "JPEG", quality=QUALITY)


def _encoded(image: Image.Image, kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
