"""Two values for "at least k of them", on what the shipped detector says of figures that are hard to see.

    python -m nsfrc.benchmarks.count_values [--figures 400] [--out FILE]

The recurrence takes the objects' values for independent coin flips: how likely it is that k of them or more show heads.
The product of the k largest is what k different variables in one body are worth as γ goes to 0. Asked is whether at
least k objects are red, yellow, blue, squares, circles or triangles, of figures with 4 to 10 objects from a seed of
their own: drawn plainly, blurred, with noise, in other colours, faint, and all of these at once. Writes
results/count_values.csv: accuracy at 0.5, area under the curve, expected calibration error (10 bins), and of the
gradient with respect to the objects' values its size, and over how many objects it is spread, in all questions and in
those answered wrongly, which are the ones to learn from.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.contexts import torch_threads
from nsfrc.data.figures import COLORS, RGB, SHAPES, Figure
from nsfrc.data.kandinsky import DIMENSIONS, FREE, figure
from nsfrc.data.render import render
from nsfrc.inference.images import prepare, to_tensor
from nsfrc.perception import create

SEED = 8_000_000
SIDE = 320
OBJECTS = 10
LEAST_OBJECTS = 4
NUMBERS = (1, 2, 3, 4, 5)
SEEN = ("plain", "blur", "noise", "palette", "faint", "all")
BINS = 10
BATCH = 50
Rng = np.random.Generator


@dataclass(frozen=True)
class CountRow:
    """One way to see figures, one k (0: all of them), one value. Shares of 1; spread: in objects."""

    seen: str
    k: int
    value: str
    questions: int
    positive: float
    undecided: float
    accuracy: float
    auc: float
    calibration_error: float
    gradient: float
    spread: float
    gradient_wrong: float
    spread_wrong: float


def at_least(x: torch.Tensor, k: int) -> torch.Tensor:
    """P(N ≥ k) by the recurrence: x [B, E] → [B]."""
    d = [torch.ones_like(x[:, 0]), *(torch.zeros_like(x[:, 0]) for _ in range(k))]
    for i in range(x.shape[1]):
        one = x[:, i]
        d = [d[j] * (1 - one if j < k else 1) + (d[j - 1] * one if j else 0) for j in range(k + 1)]
    return d[k]


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    """The product of the k largest: x [B, E] → [B]."""
    return x.topk(k, dim=1).values.prod(dim=1)


VALUES: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {"recurrence": at_least, "k largest": largest}


def _hard_to_see(drawn: Figure, seen: str, rng: Rng) -> Image.Image:
    """A figure as pixels, spoilt."""
    every = seen == "all"
    style = replace(drawn.style, side=SIDE)
    if seen == "palette" or every:
        red, yellow, blue = (_near(color, rng) for color in style.colors)
        style = replace(style, colors=(red, yellow, blue))
    if seen == "faint" or every:
        red, yellow, blue = (_faded(color, style.background, rng) for color in style.colors)
        style = replace(style, colors=(red, yellow, blue))
    picture = Image.fromarray(render(replace(drawn, style=style)))
    if seen == "blur" or every:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(1, 4 if every else 7)))
    if seen == "noise" or every:
        noise = rng.normal(0, rng.uniform(10, 40 if every else 90), (SIDE, SIDE, 3))
        picture = Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))
    return picture


def _near(color: RGB, rng: Rng) -> RGB:
    red, green, blue = np.clip(np.array(color) + rng.uniform(-80, 80, 3), 0, 255).astype(int).tolist()
    return red, green, blue


def _faded(color: RGB, ground: RGB, rng: Rng) -> RGB:
    share = rng.uniform(0.15, 0.7)
    red, green, blue = (share * np.array(color) + (1 - share) * np.array(ground)).astype(int).tolist()
    return red, green, blue


def _figures(count: int) -> list[Figure]:
    found: list[Figure] = []
    index = 0
    while len(found) < count:
        drawn = figure(FREE, SEED, index).figure
        found += [drawn] if len(drawn.shapes) >= LEAST_OBJECTS else []
        index += 1
    return found


def observed(seen: str, figures: list[Figure]) -> dict[str, tuple[torch.Tensor, np.ndarray]]:
    """By colour and shape: the value of each object, float64 [figures, OBJECTS], and how many there truly are."""
    detector = create("yolo", OBJECTS).eval()
    rng = np.random.default_rng([SEED, SEEN.index(seen)])
    vectors = []
    for start in range(0, len(figures), BATCH):
        pixels = [prepare(_hard_to_see(one, seen, rng), detector.size) for one in figures[start : start + BATCH]]
        with torch.no_grad():
            vectors.append(detector(to_tensor(pixels)))
    found = torch.cat(vectors).double()
    there = found[:, :, DIMENSIONS.index("objectness")]
    return {
        name: (there * found[:, :, DIMENSIONS.index(name)],
               np.array([sum(name in (s.color, s.shape) for s in one.shapes) for one in figures]))
        for name in (*COLORS, *SHAPES)
    }


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions: labels and values [n], and gradients [n, OBJECTS]."""

    labels: np.ndarray
    values: np.ndarray
    gradients: np.ndarray


def ask(seen: dict[str, tuple[torch.Tensor, np.ndarray]], k: int, value: str) -> Asked:
    labels, values, gradients = [], [], []
    for x, number in seen.values():
        x = x.clone().requires_grad_()
        found = VALUES[value](x, k)
        gradients.append(torch.autograd.grad(found.sum(), x)[0].numpy())
        values.append(found.detach().numpy())
        labels.append(number >= k)
    return Asked(*map(np.concatenate, (labels, values, gradients)))


def auc(labels: np.ndarray, values: np.ndarray) -> float:
    """How often a question that is true has a greater value than one that is not; of equal ones half."""
    order = values.argsort(kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(1, len(values) + 1)
    _, same = np.unique(values, return_inverse=True)
    ranks = (np.bincount(same, ranks) / np.bincount(same))[same]
    true = int(labels.sum())
    return float((ranks[labels].sum() - true * (true + 1) / 2) / max(1, true * (len(labels) - true)))


def calibration_error(labels: np.ndarray, values: np.ndarray) -> float:
    """How far values and shares of true ones lie apart, on average over questions."""
    bins = np.minimum((values * BINS).astype(int), BINS - 1)
    apart = np.bincount(bins, values - labels, minlength=BINS)
    return float(np.abs(apart).sum() / len(values))


def row(seen: str, k: int, value: str, asked: Asked) -> CountRow:
    size = np.abs(asked.gradients).sum(axis=1)
    spread = size**2 / np.maximum((asked.gradients**2).sum(axis=1), 1e-300)
    answers = asked.values >= 0.5
    wrong = answers != asked.labels
    moved = size > 1e-6
    return CountRow(
        seen, k, value, len(answers), float(asked.labels.mean()),
        float(((asked.values > 0.05) & (asked.values < 0.95)).mean()), float((~wrong).mean()),
        auc(asked.labels, asked.values), calibration_error(asked.labels, asked.values), float(size.mean()),
        float(spread[moved].mean()), float(size[wrong].mean()) if wrong.any() else 0.0,
        float(spread[moved & wrong].mean()) if (moved & wrong).any() else 0.0,
    )


def rows(count: int) -> Iterator[CountRow]:
    figures = _figures(count)
    for seen in SEEN:
        found = observed(seen, figures)
        for value in VALUES:
            asked = [ask(found, k, value) for k in NUMBERS]
            for k, one in zip(NUMBERS, asked, strict=True):
                yield row(seen, k, value, one)
            parts = zip(*((one.labels, one.values, one.gradients) for one in asked), strict=True)
            yield row(seen, 0, value, Asked(*map(np.concatenate, parts)))


def tell(found: list[CountRow]) -> str:
    """A line for each way to see and value, over all k."""
    lines = [f"{'seen':<8} {'value':<10} {'undecided':>9} {'accuracy':>8} {'AUC':>6} {'calibr.':>7} {'gradient':>8} "
             f"{'spread':>6} {'wrong: gradient':>15} {'spread':>6}"]
    for one in found:
        if one.k == 0:
            lines.append(f"{one.seen:<8} {one.value:<10} {one.undecided:>9.3f} {one.accuracy:>8.4f} {one.auc:>6.4f} "
                         f"{one.calibration_error:>7.4f} {one.gradient:>8.3f} {one.spread:>6.2f} "
                         f"{one.gradient_wrong:>15.3f} {one.spread_wrong:>6.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=int, default=400)
    parser.add_argument("--out", type=Path, default=RESULTS / "count_values.csv")
    arguments = parser.parse_args()
    with torch_threads(1):
        found = list(rows(arguments.figures))
    write_csv(arguments.out, found)
    print(tell(found))


if __name__ == "__main__":
    main()
