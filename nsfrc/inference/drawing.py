"""A prediction as a picture: the image, a box or a dot for every object, its number, and the scores below."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nsfrc.explain import as_text, objects_of
from nsfrc.inference.images import Picture
from nsfrc.inference.report_objects import Objects
from nsfrc.inference.report_thumbnail import small_copy

if TYPE_CHECKING:
    from nsfrc.explain import Reason
    from nsfrc.prediction import Prediction

SIDE = 480  # pixels of the longer side of an image, at most
LEAST = 240  # to which smaller ones are enlarged, so that numbers can be read
MOST = 12  # images that are drawn of a prediction; the others are counted
ACROSS = 4  # of them in a row
GAP = 8
TAKES_PART, ASIDE, PAPER, INK = (214, 39, 40), (120, 120, 120), (255, 255, 255), (0, 0, 0)
STYLE = "display:inline-block;vertical-align:top;margin:4px;font-family:sans-serif;font-size:13px"


def sheet(found: Prediction) -> Image.Image:
    """The images of a prediction side by side, with scores below each."""
    tiles = [_tile(found[i]) for i in range(min(len(found), MOST))]
    across = min(len(tiles), ACROSS) or 1
    width, height = (max(sizes) for sizes in zip(*(tile.size for tile in tiles), strict=True))
    rows = -(-len(tiles) // across)
    whole = Image.new("RGB", (across * (width + GAP) - GAP, rows * (height + GAP) - GAP), PAPER)
    for i, tile in enumerate(tiles):
        whole.paste(tile, (i % across * (width + GAP), i // across * (height + GAP)))
    return whole


def cards(found: Prediction) -> str:
    """The same as HTML, with the reason as text below each image."""
    shown = [_card(found[i]) for i in range(min(len(found), MOST))]
    if (more := len(found) - MOST) > 0:
        shown.append(f"<p>… and {more} more</p>")
    return f"<div>{''.join(shown)}</div>"


def _card(one: Prediction) -> str:
    buffer = io.BytesIO()
    _drawn(one).save(buffer, "PNG")
    address = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    reasons = "\n".join(map(as_text, _reasons(one)))
    why = f"<pre>{escape(reasons)}</pre>" if reasons else ""
    lines = "<br>".join(map(escape, _scores(one)))
    return f'<figure style="{STYLE}"><img src="{address}"><figcaption>{lines}{why}</figcaption></figure>'


def _tile(one: Prediction) -> Image.Image:
    """One image with its scores below."""
    picture, lines = _drawn(one), _scores(one)
    font = ImageFont.load_default(13)
    height = 16
    tile = Image.new("RGB", (picture.width, picture.height + height * len(lines) + 4), PAPER)
    tile.paste(picture, (0, 0))
    pen = ImageDraw.Draw(tile)
    for i, line in enumerate(lines):
        pen.text((2, picture.height + 2 + height * i), line, fill=INK, font=font)
    return tile


def _scores(one: Prediction) -> list[str]:
    assert one.pipe is not None
    return [f"{target} {score:.2f}" for target, score in zip(one.pipe.program.targets, one.scores[0].tolist(),
                                                             strict=True)]


def _reasons(one: Prediction) -> list[Reason]:
    """Why, for each question; none where perception gave no number."""
    assert one.pipe is not None
    names = [asked.name for asked in one.pipe.program.questions]
    return [one.reasons(name)[0] for name in names] if bool(one.scores.isfinite().all()) else []


def _drawn(one: Prediction) -> Image.Image:
    """One image with its objects; those that a reason names are drawn in full lines."""
    assert one.pipe is not None
    picture = _picture(one)
    image = _enlarged(small_copy(picture, SIDE))
    perception = one.pipe.perception
    objects = Objects(one.pipe.program, tuple(perception.dimensions), perception.places)
    vectors = one.cpu().objects[0].numpy()
    part = objects.numbers([name for reason in _reasons(one) for name in objects_of(reason)])
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(14)
    boxes, spots = objects.boxes(vectors, picture), objects.spots(vectors, picture, part)
    for number, (box, spot) in enumerate(zip(boxes, spots, strict=True), 1):
        colour, line = (TAKES_PART, 3) if number in part else (ASIDE, 1)
        if box is not None:
            x1, y1, x2, y2 = (v * side for v, side in zip(box, (*image.size, *image.size), strict=True))
            pen.rectangle((x1 - 1, y1 - 1, x2 + 1, y2 + 1), outline=PAPER, width=line + 2)
            pen.rectangle((x1, y1, x2, y2), outline=colour, width=line)
        elif spot is not None:
            x1, y1 = spot[0] * image.width, spot[1] * image.height
            pen.circle((x1, y1), 3 + line, outline=colour, width=line)
        else:
            continue
        # A light rim, so that the number can be read on any colour.
        pen.text((x1 + 5, y1 + 3), str(number), fill=INK, font=font, stroke_width=2, stroke_fill=PAPER)
    return image


def _picture(one: Prediction) -> Picture:
    """What was read; for a tensor, the tensor as it is."""
    if one.pictures and (given := one.pictures[0]) is not None:
        return given
    assert one.pixels is not None
    values = one.pixels[0].detach().float().cpu().clamp(0, 1).permute(1, 2, 0).numpy()
    pixels = np.rint(255 * np.nan_to_num(values)).astype(np.uint8)
    return Picture(pixels.shape[1], pixels.shape[0], (0.0, 0.0, 1.0, 1.0), pixels)


def _enlarged(image: Image.Image) -> Image.Image:
    scale = max(1.0, LEAST / max(image.size))
    return image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
