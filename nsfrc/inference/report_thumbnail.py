"""Small copies of images as data: addresses, so that a report needs no file but itself."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from functools import cached_property

from PIL import Image

from nsfrc.inference.images import SMALL, Picture, Placed

COLOURS = 48  # enough for flat shapes with soft edges
QUALITY = 78


@dataclass(frozen=True, eq=False)
class Thumbnail(Placed):
    """A small copy of an image, encoded. width, height: its own. kind: png or jpeg."""

    kind: str
    data: bytes = field(repr=False)

    @cached_property
    def address(self) -> str:
        """The copy as a data: address."""
        return f"data:image/{self.kind};base64,{base64.b64encode(self.data).decode()}"


def thumbnail(picture: Picture) -> Thumbnail:
    """The small copy that a picture has, or one of what perception was given, in whatever encoding is the smaller."""
    image = small_copy(picture, SMALL)
    kind, data = min((_png(image), _jpeg(image)), key=lambda encoded: len(encoded[1]))
    return Thumbnail(image.width, image.height, picture.inner, kind, data)


def small_copy(picture: Picture, side: int) -> Image.Image:
    """The copy that was made when the file was read; without one, the same from what perception was given."""
    if picture.small is not None:
        return Image.fromarray(picture.small)
    rows, columns = picture.pixels.shape[:2]
    x1, y1, x2, y2 = picture.frame or picture.inner
    inner = round(x1 * columns), round(y1 * rows), round(x2 * columns), round(y2 * rows)
    scale = min(1.0, side / max(picture.width, picture.height))
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return Image.fromarray(picture.pixels).crop(inner).resize(size, Image.Resampling.BILINEAR)


def _png(image: Image.Image) -> tuple[str, bytes]:
    few = image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    return "png", _encoded(few, "PNG")


def _jpeg(image: Image.Image) -> tuple[str, bytes]:
    return "jpeg", _encoded(image, "JPEG", quality=QUALITY)


def _encoded(image: Image.Image, kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
