"""Figures in looks of all kinds, to train on: palettes, grounds, outlines, turned shapes, edges and artefacts of JPEG.

Reds, yellows and blues go from pure to muted and from light to dark; grounds from black to white, plain or tinted, even
or not. Some pictures show nothing at all. A few palettes, grounds and sizes are reserved: no figure drawn here comes
near them, so that they show what a detector makes of looks that it was not trained on.
"""

from __future__ import annotations

import colorsys
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from nsfrc.data import placing
from nsfrc.data.figures import COLORS, NINE, PLAIN, RGB, SHAPES, Figure, Palette, Shape, Style

Rng = np.random.Generator

HUES = {"red": (-18.0, 14.0), "yellow": (43.0, 66.0), "blue": (203.0, 250.0)}  # degrees
LEAST = 0.35  # saturation and lightness of a colour,
VIVID = 0.28  # and their product
CONTRAST = 55.0  # how far colours are from the ground, as points of the RGB cube
MOST = 12  # objects
SMALL = (0.024, 0.052)
SIZES = (SMALL, (0.04, 0.06), (0.04, 0.09), (0.055, 0.27), (0.13, 0.27), (0.043, 0.225), (0.04, 0.3), (0.18, 0.3))
CRAMPED = 0.3  # the share of figures with small shapes alone, most of which touch: the hardest to tell apart
TURN = math.radians(12)
SIDES = (160, 720)  # of pictures, in pixels

EMPTY, USUAL = 0.12, 0.3  # shares of pictures of nothing, and of figures in the usual colours
OUTLINED, TURNED, ROUGH, UNEVEN, PACKED = 0.35, 0.35, 0.3, 0.2, 0.35  # shares of the other figures

# What training never draws: colours nearer than APART to these, grounds nearer than CLEAR, and sizes outside SIZES.
PALETTES: dict[str, Palette] = {
    "brick": ((178, 74, 60), (214, 180, 60), (62, 96, 150)),
    "pastel": ((244, 150, 150), (250, 240, 150), (150, 180, 245)),
    "deep": ((110, 10, 25), (150, 140, 10), (15, 25, 110)),
    "poster": ((230, 60, 40), (245, 200, 20), (20, 120, 220)),
    "wine": ((150, 20, 48), (200, 200, 70), (70, 60, 190)),
}
GROUNDS: dict[str, RGB] = {
    "night": (22, 24, 30), "slate": (80, 84, 92), "sage": (140, 155, 135), "sand": (205, 185, 150),
    "paper": (246, 243, 230),
}
APART, CLEAR = 30.0, 16.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """A picture, uint8 [side, side, 3], and the shapes in it."""

    pixels: np.ndarray
    shapes: tuple[Shape, ...]


def varied(rng: Rng) -> Drawn:
    """A picture of nothing, a figure as the patterns have them, or one in a look of its own."""
    kind = rng.random()
    if kind < EMPTY:
        return Drawn(nothing(rng), ())
    if kind < EMPTY + USUAL:
        style = NINE if rng.random() < 0.3 else PLAIN
        return drawn(Figure(shapes(rng), style), rng, plain=True)
    turn = TURN if rng.random() < TURNED else 0.0
    return drawn(Figure(shapes(rng, turn), look(rng)), rng)


def look(rng: Rng) -> Style:
    """Colours, ground, outlines and edges at random, with nothing of what is reserved."""
    while True:
        ground, palette = any_ground(rng), any_palette(rng)
        if near(ground, GROUNDS.values(), CLEAR) or min(contrast(color, ground) for color in palette) < CONTRAST:
            continue
        if not any(near(color, [p[i] for p in PALETTES.values()], APART) for i, color in enumerate(palette)):
            break
    side = int(rng.integers(SIDES[0], SIDES[1] + 1))
    style = Style(side, ground, palette, smooth=rng.random() >= 0.25)
    return replace(style, outline=_outline(rng), rim=rng.uniform(0.002, 0.008)) if rng.random() < OUTLINED else style


def any_palette(rng: Rng) -> Palette:
    """A red, a yellow and a blue, each as pure and as light as it comes."""
    red, yellow, blue = (_any_color(name, rng) for name in COLORS)
    return red, yellow, blue


def any_ground(rng: Rng) -> RGB:
    """From black to white, half of them tinted."""
    tint = rng.uniform(0, 0.35) if rng.random() < 0.5 else 0.0
    return _rgb(rng.uniform(0, 360), tint, rng.uniform(0.03, 1.0) if rng.random() < 0.9 else 1.0)


def _any_color(name: str, rng: Rng) -> RGB:
    while True:
        saturation, light = 1 - (1 - LEAST) * rng.random(2) ** 1.2
        if saturation * light >= VIVID:
            return _rgb(rng.uniform(*HUES[name]), saturation, light)


def _rgb(hue: float, saturation: float, light: float) -> RGB:
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue % 360 / 360, saturation, light))
    return red, green, blue


def _outline(rng: Rng) -> RGB:
    grey = int(rng.choice([rng.integers(0, 50), rng.integers(50, 200), rng.integers(200, 256)], p=[0.6, 0.2, 0.2]))
    return grey, grey, grey


def contrast(one: RGB, other: RGB) -> float:
    """How far two colours are from each other in the RGB cube, whose sides are 255."""
    return math.dist(one, other)


def near(color: RGB, others: Iterable[RGB], within: float) -> bool:
    """Whether a colour is nearer than that to one of some others."""
    return any(contrast(color, other) < within for other in others)


def shapes(rng: Rng, turn: float = 0.0, sizes: tuple[float, float] | None = None) -> tuple[Shape, ...]:
    """1 to 12 shapes of any kind, laid out in one of several ways, squares and triangles turned by up to `turn`."""
    cramped = sizes is None and rng.random() < CRAMPED
    count = int(rng.integers(1, MOST + 1))
    while True:
        low, high = sizes or (SMALL if cramped else SIZES[rng.integers(len(SIZES))])
        some = [Shape(SHAPES[rng.integers(3)], COLORS[rng.integers(3)], 0.5, 0.5, size, rng.uniform(-turn, turn))
                for size in rng.uniform(low, high, count)]
        if sum(shape.size**2 for shape in some) > PACKED:
            continue
        layouts = (placing.scattered, placing.clustered, placing.clustered, placing.aligned, placing.on_grid)
        layout = placing.clustered if cramped else layouts[rng.integers(len(layouts) - (count > 9))]
        placed = layout(some, rng)
        if placed is not None and lie_well(placed):
            return placed


def lie_well(placed: Sequence[Shape]) -> bool:
    """Whether shapes lie inside the figure and none overlaps another."""
    return all(placing.fits(shape, placed[:i]) for i, shape in enumerate(placed))


def drawn(figure: Figure, rng: Rng, plain: bool = False) -> Drawn:
    """A figure as pixels; unless `plain`, some with uneven light, noise or artefacts of JPEG."""
    from nsfrc.data.render import render

    pixels = render(figure)
    if not plain and rng.random() < UNEVEN:
        pixels = _uneven(pixels, rng)
    if not plain and rng.random() < ROUGH:
        pixels = jpeg(pixels, int(rng.integers(25, 96)))
    return Drawn(pixels, figure.shapes)


def _uneven(pixels: np.ndarray, rng: Rng) -> np.ndarray:
    """Light that falls off to one side, or fine noise."""
    if rng.random() < 0.5:
        return _bytes(pixels * (1 + rng.uniform(0.02, 0.12) * _slope(len(pixels), rng)[..., None]))
    return _bytes(pixels + rng.normal(0, rng.uniform(1, 10), pixels.shape))


def jpeg(pixels: np.ndarray, quality: int) -> np.ndarray:
    """Pixels after they went through a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))


def nothing(rng: Rng, kind: str | None = None) -> np.ndarray:
    """A picture without any object: plain, black, noise of some grain, or a gradient; uint8 [side, side, 3]."""
    side = int(rng.integers(*SIDES))
    kind = kind or str(rng.choice(NOTHINGS, p=NOTHING_SHARES))
    if kind == "black":
        return np.full((side, side, 3), rng.integers(0, 8), dtype=np.uint8)
    if kind == "blank":
        ground = any_ground(rng) if rng.random() < 0.8 else _rgb(rng.uniform(0, 360), rng.random(), rng.random())
        return np.full((side, side, 3), ground, dtype=np.uint8)
    if kind == "gradient":
        one, other = (np.array(_rgb(rng.uniform(0, 360), rng.random() ** 2, rng.random())) for _ in range(2))
        share = (_slope(side, rng)[..., None] + 1) / 2
        return _bytes(one + (other - one) * share)
    return _noise(side, rng)


NOTHINGS = ("blank", "black", "noise", "gradient")
NOTHING_SHARES = (0.15, 0.1, 0.6, 0.15)  # noise is what is most often taken for objects


def _noise(side: int, rng: Rng) -> np.ndarray:
    """Grey or coloured, of single pixels or of spots of some pixels, around any ground."""
    grain = int(rng.choice([1, 1, 2, 4, 8]))
    across = -(-side // grain)
    strength = rng.uniform(5, 90)
    raw = rng.normal(0, strength, (across, across, 1 if rng.random() < 0.4 else 3))
    large = np.repeat(np.repeat(raw, grain, 0), grain, 1)[:side, :side]
    return _bytes(np.array(any_ground(rng)) + large)


def _slope(side: int, rng: Rng) -> np.ndarray:
    """From −1 to 1 along some direction, or away from some place: [side, side]."""
    y, x = np.mgrid[0:side, 0:side] / side - 0.5
    if rng.random() < 0.7:
        angle = rng.uniform(0, 2 * math.pi)
        along = x * math.cos(angle) + y * math.sin(angle)
    else:
        along = np.hypot(x - rng.uniform(-0.5, 0.5), y - rng.uniform(-0.5, 0.5)) * rng.choice([-1, 1])
    low, high = along.min(), along.max()
    slope: np.ndarray = 2 * (along - low) / (high - low) - 1
    return slope


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
