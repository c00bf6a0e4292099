"""What pattern-free figures are made of: classes, objects per figure, where they are, how large."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import numpy as np

from nsfrc.benchmarks.kandinsky import CONFUSION_SEED
from nsfrc.benchmarks.paper_figures_base import BLUE, GREY, Drawn, Wanted, canvas, thousands
from nsfrc.data.figures import PLAIN, Figure
from nsfrc.data.kandinsky import FREE, figure
from nsfrc.perception.attributes import KANDINSKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNT = 2000
CELLS = 21  # of the map of centres, along each side; the 3 × 3 layout is in the middle of cells
SIZES = np.linspace(0, 0.3, 31)  # edges of the histogram of widths; the widest object is 0.27


@dataclass(frozen=True, eq=False)
class Statistics:
    """Counts. classes: [9]; objects: {objects in a figure: figures}; centres: [CELLS, CELLS], y first; sizes: [30]."""

    figures: int
    classes: np.ndarray
    objects: dict[int, int]
    centres: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True)
class StatisticsRow:
    """quantity: class, objects, centre or size. value: the class, the number, or where a cell of the histogram starts;
    of a centre, x is `value` and y is `y`."""

    quantity: str
    value: str | int | float
    y: float | str
    count: int


def statistics(figures: Iterable[Figure]) -> Statistics:
    """Count what is in figures."""
    made = list(figures)
    shapes = [shape for one in made for shape in one.shapes]
    classes = np.bincount([KANDINSKY.index(s.color, s.shape) for s in shapes], minlength=len(KANDINSKY.classes))
    edges = np.linspace(0, 1, CELLS + 1)
    centres, _, _ = np.histogram2d([s.y for s in shapes], [s.x for s in shapes], bins=(edges, edges))
    sizes, _ = np.histogram([s.size for s in shapes], bins=SIZES)
    objects = dict(sorted(Counter(len(one.shapes) for one in made).items()))
    return Statistics(len(made), classes, objects, centres.astype(int), sizes)


def rows(found: Statistics) -> list[StatisticsRow]:
    """The counts as lines of one table."""
    made = [StatisticsRow("class", name, "", int(n)) for name, n in zip(KANDINSKY.classes, found.classes, strict=True)]
    made += [StatisticsRow("objects", objects, "", n) for objects, n in found.objects.items()]
    made += [StatisticsRow("centre", x / CELLS, y / CELLS, int(n)) for (y, x), n in np.ndenumerate(found.centres)]
    return made + [StatisticsRow("size", float(low), "", int(n)) for low, n in zip(SIZES, found.sizes, strict=False)]


def draw(wanted: Wanted) -> Drawn:
    found = statistics(_figures(wanted))
    picture = canvas(12, 9)
    total = int(found.classes.sum())
    picture.suptitle(f"{found.figures:,} pattern-free figures with {total:,} objects", fontweight="bold")
    (classes, objects), (centres, sizes) = picture.subplots(2, 2)
    _classes(classes, found)
    _objects(objects, found)
    _centres(centres, found)
    _sizes(sizes, found)
    return Drawn(picture, rows(found))


def _figures(wanted: Wanted) -> Iterator[Figure]:
    """Figures 0 … count − 1 of the stream, with a progress bar."""
    count = wanted.count or COUNT
    with click.progressbar(range(count), label="figures to count", file=sys.stderr, hidden=wanted.quiet) as numbers:
        for number in numbers:
            yield figure(FREE, CONFUSION_SEED + wanted.seed, number).figure


def _classes(axis: Axes, found: Statistics) -> None:
    """In the colours of the objects; names beside the bars say the same."""
    names, total = KANDINSKY.classes, max(1, found.classes.sum())
    colours = ["#{:02x}{:02x}{:02x}".format(*PLAIN.colors[i // 3]) for i in range(len(names))]
    axis.barh(names, found.classes, color=colours, edgecolor=GREY, linewidth=0.6)
    for place, number in enumerate(found.classes):
        axis.text(number, place, f" {number:,} ({number / total:.1%})", va="center", fontsize=9)
    axis.invert_yaxis()
    axis.set(xlabel="objects", title="Classes", xlim=(0, 1.25 * max(1, found.classes.max())))
    axis.xaxis.set_major_formatter(thousands)
    axis.grid(axis="x")


def _objects(axis: Axes, found: Statistics) -> None:
    numbers = list(found.objects)
    axis.bar(numbers, list(found.objects.values()), color=BLUE, width=0.8)
    axis.set(xlabel="objects in a figure", ylabel="figures", title="Objects per figure", xticks=numbers)
    axis.grid(axis="y")


def _centres(axis: Axes, found: Statistics) -> None:
    """The share of centres in a cell, as a multiple of what it would be if they were spread evenly."""
    density = found.centres / max(1, found.centres.sum()) * CELLS**2
    usual = max(1.0, 1.2 * float(np.percentile(density, 95)))  # the few cells of the 3 × 3 layout would hide the rest
    shown = axis.imshow(density, extent=(0, 1, 1, 0), cmap="cividis", vmin=0, vmax=usual)
    axis.figure.colorbar(shown, ax=axis, label="density (1 = spread evenly)", extend="max")
    axis.set(xlabel="x / side of the figure", ylabel="y / side of the figure (down)",
             title=f"Centres of objects (3 × 3 grid: up to {density.max():.1f})")
    axis.spines[:].set_visible(True)


def _sizes(axis: Axes, found: Statistics) -> None:
    axis.stairs(found.sizes, SIZES, fill=True, color=BLUE)
    axis.set(xlabel="width of an object / side of the figure", ylabel="objects", title="Sizes")
    axis.yaxis.set_major_formatter(thousands)
    axis.grid(axis="y")
