"""Figures as pixels: every shape is blended by how much of each pixel it covers."""

from __future__ import annotations

import math

import numpy as np

from nsfrc.data.figures import COLORS, RGB, Figure, Point, Shape


def render(figure: Figure) -> np.ndarray:
    """uint8 [side, side, 3]."""
    style = figure.style
    picture = np.empty((style.side, style.side, 3), dtype=np.uint8)
    picture[:] = style.background
    for shape in figure.shapes:
        x1, y1, x2, y2 = (value * style.side for value in shape.box)
        rows = slice(max(0, math.floor(y1)), min(style.side, math.ceil(y2)))
        columns = slice(max(0, math.floor(x1)), min(style.side, math.ceil(x2)))
        color = style.colors[COLORS.index(shape.color)]
        part = picture[rows, columns]
        if style.outline is not None and style.rim > 0:
            _blend(part, _coverage(shape, style.side, rows, columns), style.outline, style.smooth)
            inner = _depth(shape, style.side, rows, columns) - style.rim * style.side
            _blend(part, np.clip(inner + 0.5, 0, 1), color, style.smooth)
        else:
            _blend(part, _coverage(shape, style.side, rows, columns), color, style.smooth)
    return picture


def _blend(part: np.ndarray, cover: np.ndarray, color: RGB, smooth: bool) -> None:
    """Paint pixels uint8 [h, w, 3] by how much of each is covered, [h, w]; without blending, where that is half."""
    if not smooth:
        part[cover >= 0.5] = color
        return
    part[cover == 1] = color
    rim = (cover > 0) & (cover < 1)
    share, under = cover[rim][:, None], part[rim]
    part[rim] = (under + share * (np.array(color, dtype=np.float32) - under) + 0.5).astype(np.uint8)


def _coverage(shape: Shape, side: int, rows: slice, columns: slice) -> np.ndarray:
    """The share of each pixel that a shape covers: [rows, columns]."""
    if shape.shape == "square" and not shape.angle:
        y = np.arange(rows.start, rows.stop, dtype=np.float32)[:, None]
        x = np.arange(columns.start, columns.stop, dtype=np.float32)[None, :]
        x1, y1, x2, y2 = (value * side for value in shape.box)
        return _overlap(y, y1, y2) * _overlap(x, x1, x2)
    return np.clip(_depth(shape, side, rows, columns) + 0.5, 0, 1)


def _depth(shape: Shape, side: int, rows: slice, columns: slice) -> np.ndarray:
    """How many pixels the middle of each pixel lies inside a shape, negative outside: [rows, columns]."""
    y = np.arange(rows.start, rows.stop, dtype=np.float32)[:, None] + 0.5
    x = np.arange(columns.start, columns.stop, dtype=np.float32)[None, :] + 0.5
    if shape.shape == "circle":
        away: np.ndarray = np.sqrt((x - shape.x * side) ** 2 + (y - shape.y * side) ** 2)
        return shape.size * side / 2 - away
    corners = [(px * side, py * side) for px, py in shape.corners]
    edges = zip(corners, corners[1:] + corners[:1], strict=True)
    deep: np.ndarray = np.minimum.reduce([_inwards(x, y, a, b) for a, b in edges])
    return deep


def _overlap(start: np.ndarray, low: float, high: float) -> np.ndarray:
    """How much of [start, start + 1] lies in [low, high]."""
    return np.clip(np.minimum(start + 1, high) - np.maximum(start, low), 0, 1)


def _inwards(x: np.ndarray, y: np.ndarray, a: Point, b: Point) -> np.ndarray:
    """How far pixels lie on the inner side of the edge from a to b."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    return ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / length
