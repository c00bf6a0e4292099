"""Accuracy of the six patterns on fresh figures, beside the figures of the paper.

    python -m nsfrc.benchmarks.accuracy                         2,000 figures each, 500 of nine_circles
    python -m nsfrc.benchmarks.accuracy --figures 100           fewer
    python -m nsfrc.benchmarks.accuracy --published DIR         also on DIR/PATTERN/{true,false}, naming every miss

Writes results/accuracy.csv. Thresholds are those that `nsfrc infer` uses: chosen on other figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from nsfrc.benchmarks.kandinsky import SURE, TEST_SEED, answers
from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.data.figures import COLORS, SHAPES, Shape
from nsfrc.data.kandinsky import PATTERNS
from nsfrc.data.rules import RULES, doubtful
from nsfrc.inference.calibration import threshold_for
from nsfrc.inference.folders import folder, match_labels
from nsfrc.inference.results import Row as Answered
from nsfrc.inference.stream import Asked, infer
from nsfrc.pipelines import Pipeline, pipeline

FIGURES = {pattern: 500 if pattern == "nine_circles" else 2000 for pattern in PATTERNS}

# Table 1 of the paper, in per cent, on its own figures.
PAPER = {
    "twopairs": (100.0, 50.8, 98.1), "threepairs": (100.0, 51.7, 91.3), "closeby": (100.0, 54.5, 91.4),
    "red_triangle": (95.6, 57.2, 78.4), "online_pair": (100.0, 51.9, 66.2), "nine_circles": (95.2, 50.8, 50.8),
}


@dataclass(frozen=True)
class Row:
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


def measure(pattern: str, pipe: Pipeline, threshold: float, figures: int) -> Row:
    found = answers(pipe, pattern, TEST_SEED, figures)
    right = (found.scores >= threshold) == found.labels
    return Row(
        pattern, figures, 100 * right.mean(), 100 * found.right_objects.mean(), int((~right).sum()),
        int((~right & found.right_objects).sum()), threshold, *PAPER[pattern], pipe.perception.identity,
    )


def published(pattern: str, pipe: Pipeline, threshold: float, images: Path) -> None:
    """Figures that somebody else made."""
    if not images.is_dir():
        print(f"{pattern:<14} no published figures: there is no folder {images}")
        return
    listing = folder(images)
    labels = match_labels(listing.classes, pipe.program.targets)
    rows = [row for rows in infer(pipe, listing, Asked(threshold, labels)) for row in rows]
    wrong = [row for row in rows if not row.right]
    by_rule = [row for row in wrong if row.objects is not None and follows(pattern, row.objects, row.answer == "true")]
    print(f"{pattern:<14} {len(rows)} published figures, {share(rows, wrong):.1f} % right; "
          f"{share(rows, [row for row in wrong if row not in by_rule]):.1f} % by the rule on the objects seen")
    for row in wrong:
        remark = "; the rule on the objects seen agrees with the answer, look at the figure" if row in by_rule else ""
        print(f"    {row.file}: {row.error or f'{row.scores[0]:.4f}, labelled {row.label}'}{remark}")


def share(rows: Sequence[Answered], wrong: Sequence[Answered]) -> float:
    return 100 * (1 - len(wrong) / len(rows))


def follows(pattern: str, vectors: np.ndarray, answer: bool) -> bool:
    """Whether the rule in plain Python, on objects [E, D] as perception saw them, gives the same answer."""
    shapes = [
        Shape(SHAPES[v[7:10].argmax()], COLORS[v[4:7].argmax()], (v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0])
        for v in vectors if v[-1] >= SURE
    ]
    return not doubtful(pattern, shapes) and RULES[pattern](shapes) == answer


def show(rows: list[Row]) -> None:
    print(f"\n{'pattern':<14}{'figures':>8}{'nsfrc':>8}{'objects':>9}   "
          f"paper: {'NSFR':>6}{'ResNet50':>10}{'YOLO+MLP':>10}")
    for row in rows:
        print(f"{row.pattern:<14}{row.figures:>8}{row.accuracy:>8.2f}{row.objects_right:>9.2f}          "
              f"{row.paper_nsfr:>6.1f}{row.paper_resnet50:>10.1f}{row.paper_yolo_mlp:>10.1f}")
    print("\nin per cent; objects: figures in which perception found exactly what is there")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=int, help="of each pattern, instead of the paper's numbers")
    parser.add_argument("--weights", type=Path, help="another detector than the one that ships")
    parser.add_argument("--published", type=Path, help="folder of other people's figures")
    parser.add_argument("--out", type=Path, default=RESULTS / "accuracy.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for pattern in PATTERNS:
        pipe = pipeline(pattern, weights=options.weights)
        threshold = threshold_for(pipe.program, pipe.perception.identity).value
        if options.published is not None:
            published(pattern, pipe, threshold, options.published / pattern.replace("_", "-"))
        rows.append(measure(pattern, pipe, threshold, options.figures or FIGURES[pattern]))
    show(rows)
    write_csv(options.out, rows)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
