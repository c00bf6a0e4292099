"""Soft-or of two values beside what it stands for: the larger of them, and the probabilistic sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nsfrc.benchmarks.paper_figures_base import BLUE, GREEN, GREY, ORANGE, RED, Drawn, Wanted, canvas
from nsfrc.engines import Run
from nsfrc.engines.reference import softor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 101  # values along x and along y, 0.01 apart
SECTION = 0.5  # the y of the lines
SOFTER = 10  # times γ: what a softer soft-or does


@dataclass(frozen=True)
class SoftorPoint:
    """One point. softor is with γ, softer with ten times that, both divided by Z of an image with this atom alone."""

    x: float
    y: float
    softor: float
    softer: float
    larger: float
    probabilistic_sum: float

    @property
    def over_larger(self) -> float:
        return self.softor - self.larger

    @property
    def over_sum(self) -> float:
        return self.softor - self.probabilistic_sum


def rows(gamma: float, side: int) -> list[SoftorPoint]:
    """Points of [0, 1]², x changing fastest; the soft-or is the reference engine's."""
    line = torch.linspace(0, 1, side, dtype=torch.float64)
    y, x = (part.reshape(-1, 1) for part in torch.meshgrid(line, line, indexing="ij"))
    pair = torch.stack([x, y])  # [2, B, G]: every point is an image of its own with one atom
    soft, softer = (softor(pair, 0, Run(steps=1, gamma=g)) for g in (gamma, SOFTER * gamma))
    columns = (x, y, soft, softer, pair.amax(0), x + y - x * y)
    return [SoftorPoint(*values) for values in torch.cat(columns, 1).tolist()]


def draw(wanted: Wanted) -> Drawn:
    points = rows(wanted.gamma, SIDE)
    figure = canvas(11.2, 7.2)
    figure.suptitle(f"Soft-or with γ = {wanted.gamma:g}, beside the maximum and the probabilistic sum",
                    fontweight="bold")
    highest = max(p.over_larger for p in points)
    lowest, most = (extreme(p.over_sum for p in points) for extreme in (min, max))
    for place, (name, title) in enumerate((
        ("softor", "soft-or\nγ·log(exp(x/γ) + exp(y/γ)) / Z"),
        ("larger", "maximum\nmax(x, y)"),
        ("probabilistic_sum", "probabilistic sum\nx + y − x·y"),
        ("over_larger", f"soft-or − maximum\nup to {highest:.2g} (at most γ·ln 2)"),
        ("over_sum", f"soft-or − probabilistic sum\nfrom {_signed(lowest)} to {_signed(most)}"),
    ), 1):
        _surface(figure.add_subplot(2, 3, place, projection="3d"), points, name, title)
    _section(figure.add_subplot(2, 3, 6), points, wanted.gamma)
    figure.supxlabel("Z = max(1, soft-or): every point is an image of its own with this atom alone, "
                     "so that Z matters only where soft-or would pass 1", fontsize=10, color=GREY)
    return Drawn(figure, points)


def _signed(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")


def _surface(axis: Any, points: list[SoftorPoint], name: str, title: str) -> None:
    """A column over the unit square; steps of colour are lines of equal height."""
    import matplotlib

    side = round(len(points) ** 0.5)
    x, y, z = (np.array([getattr(p, n) for p in points]).reshape(side, side) for n in ("x", "y", name))
    low, high = (0.0, 1.0) if name in ("softor", "larger", "probabilistic_sum") else (float(z.min()), float(z.max()))
    colours = matplotlib.colormaps["viridis"].resampled(20)
    axis.plot_surface(x, y, z, cmap=colours, vmin=low, vmax=high, rcount=side, ccount=side, linewidth=0,
                      antialiased=False)
    axis.set(xlabel="x", ylabel="y", zlim=(low, high), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axis.set_title(title, pad=-4)
    axis.locator_params(axis="z", nbins=5)
    axis.tick_params(labelsize=9)
    axis.view_init(elev=24, azim=-125)
    axis.set_box_aspect((1, 1, 0.75), zoom=1.0)


def _section(axis: Axes, points: list[SoftorPoint], gamma: float) -> None:
    """All of them as lines, where y is SECTION."""
    nearest = min({p.y for p in points}, key=lambda y: abs(y - SECTION))
    line = [p for p in points if p.y == nearest]
    for name, colour, style, label in (
        ("probabilistic_sum", ORANGE, "-", "probabilistic sum"),
        ("softer", GREEN, "--", f"soft-or, γ = {SOFTER * gamma:g}"),
        ("softor", BLUE, "-", f"soft-or, γ = {gamma:g}"), ("larger", RED, ":", "maximum"),
    ):
        axis.plot([p.x for p in line], [getattr(p, name) for p in line], style, color=colour, lw=2, label=label)
    axis.set(xlabel="x", ylabel="value", xlim=(0, 1), title=f"cut along y = {nearest:g}")
    axis.grid()
    axis.legend(loc="upper left", frameon=False)
