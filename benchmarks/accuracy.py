"""Accuracy of the six patterns on fresh figures, beside the figures of the paper.

Thresholds are those that `nsfrc infer` uses: chosen on other figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nsfrc.benchmarks.kandinsky import TEST_SEED, answers
from nsfrc.benchmarks.parts import Judged, Part, Results, Table, markdown
from nsfrc.contexts import torch_threads
from nsfrc.data.kandinsky import PATTERNS
from nsfrc.inference.calibration import threshold_for
from nsfrc.pipelines import pipeline

FIGURES = {pattern: 500 if pattern == "nine_circles" else 2000 for pattern in PATTERNS}
QUICK_FIGURES = 50

# Table 1 of the paper, in per cent, on its own figures.
PAPER = {
    "twopairs": (100.0, 50.8, 98.1), "threepairs": (100.0, 51.7, 91.3), "closeby": (100.0, 54.5, 91.4),
    "red_triangle": (95.6, 57.2, 78.4), "online_pair": (100.0, 51.9, 66.2), "nine_circles": (95.2, 50.8, 50.8),
}


@dataclass(frozen=True)
class AccuracyRow:
    """One pattern: shares in per cent. objects_right: figures in which perception found exactly what is there."""

    pattern: str
    figures: int
    accuracy: float
    objects_right: float
    wrong: int
    wrong_with_right_objects: int
    threshold: float
    paper_nsfr: float
    paper_resnet50: float
    paper_yolo_mlp: float
    perception: str

    def __str__(self) -> str:
        return f"{self.pattern:<14}{self.figures:>6} figures  {self.accuracy:6.2f} % right, all objects right in " \
            f"{self.objects_right:.2f} %; paper {self.paper_nsfr}"


def measured(pattern: str, figures: int) -> AccuracyRow:
    pipe = pipeline(pattern)
    threshold = threshold_for(pipe.program, pipe.perception.identity).value
    found = answers(pipe, pattern, TEST_SEED, figures)
    right = (found.scores >= threshold) == found.labels
    return AccuracyRow(
        pattern, figures, 100 * right.mean(), 100 * found.right_objects.mean(), int((~right).sum()),
        int((~right & found.right_objects).sum()), threshold, *PAPER[pattern], pipe.perception.identity,
    )


def measure(quick: bool, folder: Path) -> Iterator[AccuracyRow]:
    with torch_threads(1):
        for pattern in PATTERNS:
            yield measured(pattern, QUICK_FIGURES if quick else FIGURES[pattern])


def tell(results: Results) -> str:
    lines = [
        [row.pattern, f"{row.figures:,}", f"{row.accuracy:.1f}", f"{row.objects_right:.1f}",
         *(f"{paper:.1f}" for paper in (row.paper_nsfr, row.paper_resnet50, row.paper_yolo_mlp))]
        for row in results["accuracy"]
    ]
    header = ["pattern", "figures", "nsfrc", "all objects right", "NSFR, paper", "ResNet50, paper", "YOLO+MLP, paper"]
    return f"{markdown(header, lines)}\n\nIn per cent, on fresh figures; the paper's columns are on its own figures."


PART = Part(
    "accuracy", "answers on fresh figures of the six patterns, beside the paper's",
    (Table("accuracy", AccuracyRow, ("pattern", "figures"), (Judged("accuracy", slack=0.2, absolute=True),
                                                     Judged("objects_right", slack=0.2, absolute=True))),),
    measure, tell,
)
