"""What a Kandinsky figure is: coloured shapes on a plain square, and when two shapes overlap.

Positions and sizes are fractions of the figure's side, y pointing down. A shape is placed by its box: a
square, a circle, or an equilateral triangle with its apex up, whose box is √3/2 as high as wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

Point = tuple[float, float]
RGB = tuple[int, int, int]
Palette = tuple[RGB, RGB, RGB]  # what is drawn for COLORS

SHAPES = ("square", "circle", "triangle")
COLORS = ("red", "yellow", "blue")
HEIGHT = {"square": 1.0, "circle": 1.0, "triangle": math.sqrt(3) / 2}  # of a box, per width


@dataclass(frozen=True, slots=True)
class Style:
    """How a figure is drawn: its side in pixels and its colours.

    outline: the colour of a rim inside every shape, `rim` of the figure's side wide. smooth: whether pixels that a
    shape covers in part are blended.
    """

    side: int
    background: RGB
    colors: Palette
    outline: RGB | None = None
    rim: float = 0.0
    smooth: bool = True


PLAIN = Style(640, (215, 215, 215), ((173, 35, 35), (255, 238, 51), (42, 75, 215)))
NINE = Style(600, (215, 215, 215), ((201, 17, 30), (255, 255, 0), (27, 98, 164)))


@dataclass(frozen=True)
class Shape:
    """One object: x, y is the centre of its box, `size` the width of it, before it is turned by `angle` (radians)."""

    shape: str
    color: str
    x: float
    y: float
    size: float
    angle: float = 0.0

    @property
    def box(self) -> tuple[float, float, float, float]:
        """x1, y1, x2, y2."""
        if self.angle and self.shape != "circle":
            across, down = zip(*self.corners, strict=True)
            return min(across), min(down), max(across), max(down)
        return self._upright

    @property
    def _upright(self) -> tuple[float, float, float, float]:
        half, tall = self.size / 2, self.size * HEIGHT[self.shape] / 2
        return self.x - half, self.y - tall, self.x + half, self.y + tall

    @cached_property
    def corners(self) -> tuple[Point, ...]:
        """Of a square or a triangle, in one direction around it; none of a circle."""
        x1, y1, x2, y2 = self._upright
        if self.shape == "circle":
            return ()
        upright = ((x1, y1), (x2, y1), (x2, y2), (x1, y2)) if self.shape == "square" else \
            ((self.x, y1), (x2, y2), (x1, y2))
        return tuple(self._turned(corner) for corner in upright) if self.angle else upright

    def _turned(self, point: Point) -> Point:
        dx, dy, cos, sin = point[0] - self.x, point[1] - self.y, math.cos(self.angle), math.sin(self.angle)
        return self.x + dx * cos - dy * sin, self.y + dx * sin + dy * cos

    def inside(self, edge: float) -> bool:
        """Whether the whole shape is at least `edge` away from the border."""
        x1, y1, x2, y2 = self.box
        return min(x1, y1) >= edge and max(x2, y2) <= 1 - edge


@dataclass(frozen=True)
class Figure:
    """Shapes that do not overlap, and how to draw them."""

    shapes: tuple[Shape, ...]
    style: Style = PLAIN


def distance(a: Shape, b: Shape) -> float:
    """Between the centres of two boxes."""
    return math.hypot(a.x - b.x, a.y - b.y)


def gap(a: Shape, b: Shape) -> float:
    """Room between two shapes: negative when they overlap, never more than their distance.

    Boxes say nothing here: the box of a circle may well overlap that of its diagonal neighbour.
    """
    if a.shape == b.shape == "circle":
        return distance(a, b) - (a.size + b.size) / 2
    if a.shape == "circle":
        return _from_polygon((a.x, a.y), b.corners) - a.size / 2
    if b.shape == "circle":
        return _from_polygon((b.x, b.y), a.corners) - b.size / 2
    return max(_widest(a.corners, b.corners), _widest(b.corners, a.corners))


def _from_polygon(point: Point, corners: tuple[Point, ...]) -> float:
    """Distance of a point from a convex polygon; negative inside it."""
    x, y = point
    nearest, inside = math.inf, True
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        ex, ey = bx - ax, by - ay
        along = min(1.0, max(0.0, ((x - ax) * ex + (y - ay) * ey) / (ex * ex + ey * ey)))
        nearest = min(nearest, math.hypot(x - ax - along * ex, y - ay - along * ey))
        inside = inside and ex * (y - ay) - ey * (x - ax) >= 0
    return -nearest if inside else nearest


def _widest(one: tuple[Point, ...], other: tuple[Point, ...]) -> float:
    """The widest strip along an edge of `one` that keeps all of `other` on its outer side."""
    widest = -math.inf
    for (ax, ay), (bx, by) in zip(one, one[1:] + one[:1], strict=True):
        length = math.hypot(bx - ax, by - ay)
        nx, ny = (by - ay) / length, (ax - bx) / length  # outwards, since y points down
        widest = max(widest, min((x - ax) * nx + (y - ay) * ny for x, y in other))
    return widest
