"""The camera of a CLEVR scene: it looks at the middle of the floor from a place that differs a little each time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

WIDTH, HEIGHT = 480, 320
LENS, SENSOR = 35.0, 32.0  # millimetres
PLACE = (7.48, -6.51, 5.34)
JITTER = 0.5  # of each coordinate of the place, either way
REACH = 3.0  # things stand at x, y from −REACH to REACH
RADII = {"large": 0.7, "small": 0.35}  # of things by their size; their middles are that high above the floor
SPAN = 8.0  # entries x, y, z of an object vector go from 0 to 1 over this many units of the world, 0.5 being its middle


def scaled(places: np.ndarray) -> np.ndarray:
    """How far to the right, to the front and upwards [..., 3] → entries x, y, z of object vectors [..., 3]."""
    return places / SPAN + 0.5


@dataclass(frozen=True)
class Camera:
    """A pinhole camera at a place in the world, upright, that looks at the origin."""

    place: tuple[float, float, float] = PLACE

    @cached_property
    def axes(self) -> np.ndarray:
        """Unit vectors [3, 3] of the camera in the world: to its right, upwards, and backwards to the camera."""
        back = np.array(self.place) / np.linalg.norm(self.place)
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(back, right), back])

    @cached_property
    def directions(self) -> dict[str, np.ndarray]:
        """CLEVR's directions as unit vectors: left, right, front and behind lie on the floor."""
        right, _, back = self.axes
        flat = np.array([back[0], back[1], 0.0])
        front = flat / np.linalg.norm(flat)
        above = np.array([0.0, 0.0, 1.0])
        return {"right": right, "left": -right, "front": front, "behind": -front, "above": above, "below": -above}

    @cached_property
    def ways(self) -> np.ndarray:
        """What the entries x, y, z of an object vector grow with, as unit vectors [3, 3]: right, front and above."""
        return np.stack([self.directions[name] for name in ("right", "front", "above")])

    def entries(self, points: np.ndarray) -> np.ndarray:
        """Points [N, 3] of the world → entries x, y, z of object vectors [N, 3]."""
        return scaled(points @ self.ways.T)

    def points(self, entries: np.ndarray) -> np.ndarray:
        """Entries x, y, z of object vectors [N, 3] → points [N, 3] of the world."""
        return (entries - 0.5) * SPAN @ self.ways

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Points [N, 3] of the world → [N, 3] x, y in pixels of a 480 × 320 image, and depth."""
        x, y, back = ((points - np.array(self.place)) @ self.axes.T).T
        scale = WIDTH * LENS / SENSOR / -back
        return np.stack([WIDTH / 2 + x * scale, HEIGHT / 2 - y * scale, -back], axis=1)
