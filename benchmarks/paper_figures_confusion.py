"""What the shipped detector takes for what, on pattern-free figures that it was not trained on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import click
import numpy as np
import torch

from nsfrc.benchmarks.kandinsky import BATCH, CONFUSION_SEED, SURE
from nsfrc.benchmarks.paper_figures_base import Drawn, Wanted, canvas
from nsfrc.inference.images import to_tensor
from nsfrc.perception import Perception, create
from nsfrc.perception.attributes import KANDINSKY
from nsfrc.training.detector_data import SOURCES, Example
from nsfrc.training.detector_score import classes_of, partners

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNT = 500
SLOTS = 16  # the fullest figure has 10 objects: room for some that are not there
NOTHING = len(KANDINSKY.classes)  # the last row: nothing there; the last column: missed
TRUE_NAMES = (*KANDINSKY.classes, "nothing there")
SEEN_NAMES = (*KANDINSKY.classes, "missed")


@dataclass(frozen=True)
class ConfusionCell:
    """How many objects of one class were seen as another, and what share of that class they are."""

    true: str
    seen: str
    count: int
    share: float | None


@dataclass(frozen=True, eq=False)
class Confusion:
    """table: counts [true + 1, seen + 1]. right: of the figures, those in which all objects, and nothing else, are."""

    table: np.ndarray
    figures: int
    right: int


def counts(vectors: torch.Tensor, example: Example) -> np.ndarray:
    """What was seen in one figure, object vectors [E, D], as counts [true + 1, seen + 1]."""
    table = np.zeros((len(TRUE_NAMES), len(SEEN_NAMES)), dtype=int)
    found = vectors[vectors[:, -1] >= SURE]
    seen = classes_of(found[:, 4:-1], [len(group) for group in KANDINSKY.groups])
    partner = partners(found[:, :4], torch.from_numpy(example.boxes))
    for place, said in zip(partner, seen, strict=True):
        table[NOTHING if place < 0 else example.classes[place], said] += 1
    for missed in np.setdiff1d(np.arange(len(example.classes)), partner):
        table[example.classes[missed], NOTHING] += 1
    return table


def shares(table: np.ndarray) -> np.ndarray:
    """Of every true class, the share that was seen as each: [9, seen + 1]; rows without objects are 0."""
    classes = table[:NOTHING]
    return classes / np.maximum(1, classes.sum(1, keepdims=True))


def rows(table: np.ndarray) -> list[ConfusionCell]:
    part = shares(table)
    return [ConfusionCell(TRUE_NAMES[i], SEEN_NAMES[j], int(n), float(part[i, j]) if i < NOTHING else None)
            for (i, j), n in np.ndenumerate(table) if (i, j) != (NOTHING, NOTHING)]


@torch.no_grad()
def measure(model: Perception, wanted: Wanted) -> Confusion:
    """Compare what a detector sees with what is there, on the figures that are asked for."""
    total, right = np.zeros((len(TRUE_NAMES), len(SEEN_NAMES)), dtype=int), 0
    count = wanted.count or COUNT
    with click.progressbar(length=count, label="figures to look at", file=sys.stderr, hidden=wanted.quiet) as bar:
        for batch in _batches(model, count, wanted.seed):
            vectors = model(to_tensor([example.pixels for example in batch]))
            for found, example in zip(vectors, batch, strict=True):
                table = counts(found, example)
                total += table
                right += int(np.trace(table) == table.sum())
            bar.update(len(batch))
    return Confusion(total, count, right)


def _batches(model: Perception, count: int, seed: int) -> Iterator[list[Example]]:
    makers = islice(SOURCES["kandinsky"].examples(False, CONFUSION_SEED + seed, model.size), count)
    while chosen := list(islice(makers, BATCH)):
        yield [make() for make in chosen]


def draw(wanted: Wanted) -> Drawn:
    model = create("yolo", SLOTS)
    found = measure(model, wanted)
    table = found.table
    objects, right = table[:NOTHING].sum(), np.trace(table)
    figure = canvas(10.5, 8.8)
    figure.suptitle(f"What the detector {model.identity} takes for what", fontweight="bold")
    axis = figure.subplots()
    axis.set_title(f"{found.figures:,} fresh pattern-free figures, {found.right:,} of them entirely right\n"
                   f"{right:,} of {objects:,} objects right, {table[:NOTHING, NOTHING].sum():,} missed, "
                   f"{table[NOTHING].sum():,} seen that are not there")
    _cells(axis, table)
    axis.set_xticks(range(len(SEEN_NAMES)), SEEN_NAMES, rotation=40, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(TRUE_NAMES)), TRUE_NAMES)
    axis.set(xlabel=f"seen as (objectness from {SURE:g} on)", ylabel="what is there")
    return Drawn(figure, rows(table))


def _cells(axis: Axes, table: np.ndarray) -> None:
    """Counts, with the share of the class below; what is not there has no shares."""
    part = np.vstack([shares(table), np.zeros(len(SEEN_NAMES))])
    shown = axis.imshow(part, cmap="Blues", vmin=0, vmax=1)
    axis.figure.colorbar(shown, ax=axis, label="share of the class", shrink=0.8)
    for (i, j), number in np.ndenumerate(table):
        text = f"{number:,}" + f"\n{part[i, j]:.1%}" * (i < NOTHING) if number else "·"
        if (i, j) != (NOTHING, NOTHING):
            colour = "white" if part[i, j] > 0.5 else "black"
            axis.text(j, i, text, ha="center", va="center", fontsize=9.5, color=colour)
    axis.axhline(NOTHING - 0.5, color="black", lw=1)
    axis.axvline(NOTHING - 0.5, color="black", lw=1)
