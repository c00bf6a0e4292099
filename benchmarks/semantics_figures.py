"""The six patterns under both semantics: perception looks at a figure once, then each answers.

    nsfrc bench --parts semantics_figures

Figures are a stream of their own. `paper` has the thresholds that ship; those of `anchored` are chosen in the same way,
on the same calibration figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from nsfrc.benchmarks.kandinsky import CALIBRATION_SEED, SEMANTICS_SEED, batches
from nsfrc.benchmarks.parts import Judged, Part, Results, Table, markdown
from nsfrc.benchmarks.semantics import as_semantics
from nsfrc.compiler import ir
from nsfrc.contexts import torch_threads
from nsfrc.data.figures import PLAIN, Figure
from nsfrc.data.kandinsky import PATTERNS
from nsfrc.data.render import render
from nsfrc.inference.calibration import choose_threshold, threshold_for
from nsfrc.inference.images import prepare, to_tensor
from nsfrc.pipelines import Pipeline, pipeline

FIGURES, QUICK_FIGURES = 500, 50
SEMANTICS = (ir.ANCHORED, ir.PAPER)


@dataclass(frozen=True)
class FiguresRow:
    """One pattern. differing: numbers of the figures that are answered differently; empty: score of an empty picture.

    lowest_true: the lowest score of a figure that has the pattern; the scores of those that do not: mean, p95, highest.
    """

    pattern: str
    figures: int
    seed: int
    differ: int
    differing: str
    anchored_wrong: int
    paper_wrong: int
    anchored_threshold: float
    paper_threshold: float
    anchored_lowest_true: float
    paper_lowest_true: float
    anchored_false_mean: float
    paper_false_mean: float
    anchored_false_p95: float
    paper_false_p95: float
    anchored_false_most: float
    paper_false_most: float
    anchored_empty: float
    paper_empty: float
    perception: str

    def __str__(self) -> str:
        return (f"{self.pattern:<14}{self.figures:>6} figures, {self.differ} answered differently; anchored and paper: "
                f"{self.anchored_wrong} and {self.paper_wrong} wrong, false ones score "
                f"{self.anchored_false_mean:.4f} and {self.paper_false_mean:.4f}")


class BothWays:
    """A pattern's program under either semantics, behind one perception."""

    def __init__(self, pattern: str) -> None:
        programs = [as_semantics(pattern, semantics) for semantics in SEMANTICS]
        first = pipeline(programs[0])
        self.pattern = pattern
        self.pipes: list[Pipeline] = [first, pipeline(programs[1], first.perception)]

    @torch.no_grad()
    def scores(self, pictures: list[np.ndarray]) -> np.ndarray:
        """[2, figures]."""
        perception = self.pipes[0].perception
        objects = perception(to_tensor([prepare(Image.fromarray(one), perception.size) for one in pictures]))
        return np.stack([pipe.reasoner(pipe.facts(objects))[:, 0].numpy() for pipe in self.pipes])

    def figures(self, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels [figures] and scores [2, figures]."""
        labels, scores = [], []
        for batch in batches(self.pattern, seed, count):
            labels += [bool(one.label) for one in batch]
            scores.append(self.scores([render(one.figure) for one in batch]))
        return np.array(labels), np.concatenate(scores, axis=1)

    def thresholds(self, count: int) -> list[float]:
        labels, scores = self.figures(CALIBRATION_SEED, count)
        paper = self.pipes[1]
        return [choose_threshold(scores[0].tolist(), labels.tolist())[0],
                threshold_for(paper.program, paper.perception.identity).value]


def measured(pattern: str, count: int) -> FiguresRow:
    both = BothWays(pattern)
    thresholds = both.thresholds(count)
    labels, scores = both.figures(SEMANTICS_SEED, count)
    answers = scores >= np.array(thresholds)[:, None]
    differing = np.flatnonzero(answers[0] != answers[1])
    found = {
        "wrong": (answers != labels).sum(axis=1), "threshold": thresholds, "lowest_true": scores[:, labels].min(axis=1),
        "false_mean": scores[:, ~labels].mean(axis=1), "false_p95": np.percentile(scores[:, ~labels], 95, axis=1),
        "false_most": scores[:, ~labels].max(axis=1), "empty": both.scores([render(Figure((), PLAIN))])[:, 0],
    }
    columns = {f"{semantics}_{name}": values[i].item() if isinstance(values, np.ndarray) else values[i]
               for name, values in found.items() for i, semantics in enumerate(SEMANTICS)}
    return FiguresRow(pattern=pattern, figures=count, seed=SEMANTICS_SEED, differ=len(differing),
                      differing=" ".join(map(str, differing)), perception=both.pipes[0].perception.identity, **columns)


def measure(quick: bool, folder: Path) -> Iterator[FiguresRow]:
    with torch_threads(1):
        for pattern in PATTERNS:
            yield measured(pattern, QUICK_FIGURES if quick else FIGURES)


def tell(results: Results) -> str:
    rows: list[FiguresRow] = results["semantics_figures"]
    lines = [[
        row.pattern, f"{row.figures:,}", str(row.differ), f"{row.anchored_wrong} / {row.paper_wrong}",
        *(f"{getattr(row, f'anchored_{name}'):.4f} / {getattr(row, f'paper_{name}'):.4f}"
          for name in ("false_mean", "false_p95", "false_most", "lowest_true", "empty")),
    ] for row in rows]
    header = ["pattern", "figures", "answered differently", "wrong", "false: mean", "false: p95", "false: highest",
              "true: lowest", "empty picture"]
    named = [f"{row.pattern} {row.differing.replace(' ', ', ')}" for row in rows if row.differ]
    which = f" Answered differently: {'; '.join(named)} of seed {rows[0].seed}." if named else ""
    return f"{markdown(header, lines)}\n\n`anchored` / `paper`: scores of the same figures.{which}"


PART = Part(
    "semantics_figures", "answers and scores of anchored and paper on the same fresh figures",
    (Table("semantics_figures", FiguresRow, ("pattern", "figures"), (
        Judged("differ", False, slack=1, absolute=True), Judged("anchored_wrong", False, slack=1, absolute=True))),),
    measure, tell,
)
