"""Where things are seen in the picture: their outlines, boxes, and how much of them others leave visible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw
from scipy.spatial import ConvexHull

from nsfrc.data.clevr.scenes import Thing
from nsfrc.perception.camera import HEIGHT, WIDTH, Camera

TURN = np.linspace(0, 2 * np.pi, 48, endpoint=False)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)], axis=1)
CORNERS = np.array([(x, y) for x in (-1, 1) for y in (-1, 1)], dtype=float)


def edge(thing: Thing, camera: Camera) -> np.ndarray:
    """Points on the thing's surface, [N, 3] in the world, whose convex hull in the picture is the thing's outline."""
    middle, radius = np.array(thing.coords), thing.radius
    if thing.shape == "sphere":
        return _rim_of_sphere(middle, radius, np.array(camera.place))
    flat = CIRCLE if thing.shape == "cylinder" else CORNERS @ _turned(thing.rotation)
    return middle + radius * np.concatenate([np.insert(flat, 2, z, axis=1) for z in (-1.0, 1.0)])


def boxes(things: Sequence[Thing], camera: Camera) -> np.ndarray:
    """The whole outline's box of each thing, hidden or not: [M, 4] x1 y1 x2 y2 as fractions of the picture, cut off."""
    found = np.zeros((len(things), 4), dtype=np.float32)
    for row, thing in zip(found, things, strict=True):
        seen = camera.pixels(edge(thing, camera))[:, :2] / (WIDTH, HEIGHT)
        row[:] = np.clip([*seen.min(axis=0), *seen.max(axis=0)], 0, 1)
    return found


def visible(things: Sequence[Thing], camera: Camera) -> np.ndarray:
    """How many pixels of each thing are seen in a 480 × 320 picture: [M]."""
    picture = Image.new("L", (WIDTH, HEIGHT))
    draw = ImageDraw.Draw(picture)
    depth = camera.pixels(np.array([t.coords for t in things]).reshape(-1, 3))[:, 2]
    for i in np.argsort(-depth):
        seen = camera.pixels(edge(things[i], camera))[:, :2]
        around = seen[ConvexHull(seen).vertices]
        draw.polygon([(float(x), float(y)) for x, y in around], fill=int(i) + 1)
    return np.bincount(np.asarray(picture).ravel(), minlength=len(things) + 1)[1:]


def share_seen(things: Sequence[Thing], camera: Camera) -> np.ndarray:
    """How much of its outline others leave visible of each thing: [M], 0 … 1."""
    alone = [visible([thing], camera)[0] for thing in things]
    share: np.ndarray = visible(things, camera) / np.maximum(1, alone)
    return share


def _rim_of_sphere(middle: np.ndarray, radius: float, eye: np.ndarray) -> np.ndarray:
    """The circle on which lines of sight touch a sphere."""
    towards = eye - middle
    far = np.linalg.norm(towards)
    towards = towards / far
    across = np.cross(towards, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across)
    share = radius / far
    wide = radius * np.sqrt(1 - share**2)
    return middle + radius * share * towards + wide * (CIRCLE @ np.stack([across, np.cross(towards, across)]))


def _turned(degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
