"""Accuracy of the six patterns on figures that others made, every miss named.

    python -m nsfrc.benchmarks.published DIR         DIR/PATTERN/{true,false}, as in DIR/red-triangle/true

Prints only: other people's figures are not part of the results that are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from nsfrc.benchmarks.kandinsky import SURE
from nsfrc.data.figures import COLORS, SHAPES, Shape
from nsfrc.data.patterns import PATTERNS
from nsfrc.data.rules import RULES, doubtful
from nsfrc.inference.calibration import threshold_for
from nsfrc.inference.folders import folder
from nsfrc.inference.labels import from_folders
from nsfrc.inference.predictor import Asked, Predictor
from nsfrc.inference.rows import Row as Answered
from nsfrc.inference.stream import stream
from nsfrc.pipelines import Pipeline, pipeline


def published(pattern: str, pipe: Pipeline, threshold: float, images: Path) -> None:
    """Figures that somebody else made."""
    if not images.is_dir():
        print(f"{pattern:<14} no published figures: there is no folder {images}")
        return
    listing = folder(images)
    asked = Asked(dict.fromkeys(pipe.program.targets, threshold), from_folders(listing.classes, pipe.program.questions))
    rows = [row for rows in stream(Predictor(pipe, asked), listing) for row in rows]
    wrong = [row for row in rows if not row.right]
    by_rule = [row for row in wrong if row.objects is not None and follows(pattern, row.objects, row.answer == "true")]
    counts = [found(row) - PATTERNS[pattern].objects for row in rows]
    too_many, too_few = [count > 0 for count in counts], [count < 0 for count in counts]
    print(f"{pattern:<14} {len(rows)} published figures, {share(rows, wrong):.1f} % right; "
          f"{share(rows, [row for row in wrong if row not in by_rule]):.1f} % by the rule on the objects seen; "
          f"{sum(too_many)} with more objects than a figure of it has, {sum(too_few)} with fewer")
    for row in wrong:
        remark = "; the rule on the objects seen agrees with the answer, look at the figure" if row in by_rule else ""
        print(f"    {row.file}: {row.error or f'{row.scores[0]:.4f}, labelled {row.label}'}{remark}")


def found(row: Answered) -> int:
    """How many sure objects perception saw in an image."""
    return row.further + (0 if row.objects is None else int((row.objects[:, -1] >= SURE).sum()))


def share(rows: Sequence[Answered], wrong: Sequence[Answered]) -> float:
    return 100 * (1 - len(wrong) / len(rows))


def follows(pattern: str, vectors: np.ndarray, answer: bool) -> bool:
    """Whether the rule in plain Python, on objects [E, D] as perception saw them, gives the same answer."""
    shapes = [
        Shape(SHAPES[v[7:10].argmax()], COLORS[v[4:7].argmax()], (v[0] + v[2]) / 2, (v[1] + v[3]) / 2, v[2] - v[0])
        for v in vectors if v[-1] >= SURE
    ]
    return not doubtful(pattern, shapes) and RULES[pattern](shapes) == answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the patterns' folders")
    parser.add_argument("--weights", type=Path, help="another detector than the one that ships")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for pattern in PATTERNS:
        pipe = pipeline(pattern, weights=options.weights)
        threshold = threshold_for(pipe.program, pipe.perception.identity).value
        published(pattern, pipe, threshold, options.folder / pattern.replace("_", "-"))


if __name__ == "__main__":
    main()
