"""Where `yolo` stops being right: figures by palette, ground, size, contrast and more, and pictures of nothing.

    python -m nsfrc.benchmarks.eyes [--pictures 250] [--weights FILE] [--out benchmarks/results/eyes.csv]

A picture is entirely right if every object is found once, with its shape and colour, and nothing else is, among 16
objects with an objectness of 0.5 and more. Answers are the programs', with the thresholds that `nsfrc infer` uses.
`new` rows are of looks that training never draws (nsfrc/data/looks.py). Figures that others made are for
`benchmarks.published`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from nsfrc.benchmarks.eyes_pictures import Group, Picture, groups
from nsfrc.benchmarks.kandinsky import SURE
from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.parts import markdown
from nsfrc.contexts import torch_threads
from nsfrc.inference.calibration import threshold_for
from nsfrc.inference.images import prepare, to_tensor
from nsfrc.perception.attributes import KANDINSKY
from nsfrc.perception.yolo import Yolo
from nsfrc.pipelines import Pipeline, pipeline
from nsfrc.training.detector_score import classes_of, partners

OBJECTS = 16
BATCH = 32


@dataclass(frozen=True)
class EyesRow:
    """One group of pictures. right: entirely; asked, answered: answers, and the right ones; missed …: objects."""

    about: str
    value: str
    new: bool
    pictures: int
    right: int
    asked: int
    answered: int
    objects: int
    missed: int
    misnamed: int
    extra: int
    perception: str

    def __str__(self) -> str:
        answers = f", {self.answered} of {self.asked} answers" if self.asked else ""
        return f"{self.about:<13}{self.value:<15}{'new' if self.new else '':<4}{self.right:>5} of {self.pictures} " \
            f"right{answers}; of {self.objects} objects {self.missed} missed, {self.misnamed} misnamed, " \
            f"{self.extra} extra"


@dataclass(frozen=True)
class Seen:
    """What was made of one picture; answered: whether the answer is right, None where nothing was asked."""

    objects: int
    missed: int
    misnamed: int
    extra: int
    answered: bool | None

    @property
    def right(self) -> bool:
        return not (self.missed or self.misnamed or self.extra)


def compared(vectors: torch.Tensor, picture: Picture, answered: bool | None) -> Seen:
    """Object vectors [E, D] beside what is in a picture."""
    found = vectors[vectors[:, -1] >= SURE]
    truth = torch.tensor([shape.box for shape in picture.shapes], dtype=torch.float32).reshape(-1, 4)
    classes = np.array([KANDINSKY.index(shape.color, shape.shape) for shape in picture.shapes], dtype=np.int64)
    which = partners(found[:, :4], truth)
    named = classes_of(found[:, 4:-1], [len(group) for group in KANDINSKY.groups])
    hits = which >= 0
    wrong = int((named[hits] != classes[which[hits]]).sum())
    return Seen(len(classes), len(classes) - int(hits.sum()), wrong, int((~hits).sum()), answered)


class Eyes:
    """A detector, and the programs that are asked about what it sees."""

    def __init__(self, weights: Path | None) -> None:
        self.model, self.weights = Yolo.build(OBJECTS, weights), weights
        self.pipe = cache(self._pipe)

    def _pipe(self, pattern: str) -> tuple[Pipeline, float]:
        pipe = pipeline(pattern, weights=self.weights)
        return pipe, threshold_for(pipe.program, self.model.identity).value

    @torch.no_grad()
    def look(self, pictures: Sequence[Picture]) -> Iterator[Seen]:
        images = to_tensor([prepare(Image.fromarray(one.pixels), self.model.size) for one in pictures])
        for vectors, picture in zip(self.model(images), pictures, strict=True):
            yield compared(vectors, picture, self.answer(vectors, picture))

    def answer(self, vectors: torch.Tensor, picture: Picture) -> bool | None:
        """Whether the program of the picture's pattern answers right."""
        if picture.pattern is None:
            return None
        pipe, threshold = self.pipe(picture.pattern)
        score = float(pipe.judge(vectors[None, : pipe.spoken_of]).scores[0, 0])
        return (score >= threshold) == picture.label

    def row(self, group: Group, count: int) -> EyesRow:
        seen = [one for some in _some(group.pictures(count)) for one in self.look(some)]
        asked = [one.answered for one in seen if one.answered is not None]
        return EyesRow(
            group.about, group.value, group.new, len(seen), sum(one.right for one in seen), len(asked), sum(asked),
            objects=sum(one.objects for one in seen), missed=sum(one.missed for one in seen),
            misnamed=sum(one.misnamed for one in seen), extra=sum(one.extra for one in seen),
            perception=self.model.identity,
        )


def _some(pictures: Iterator[Picture]) -> Iterator[list[Picture]]:
    """A batch at a time."""
    while batch := list(islice(pictures, BATCH)):
        yield batch


def table(rows: Sequence[EyesRow]) -> str:
    """Markdown, shares in per cent."""
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f}" if whole else "–"

    lines = [[f"{row.about} {row.value}" + (" *" if row.new else ""), f"{row.pictures:,}",
              share(row.right, row.pictures), share(row.answered, row.asked), str(row.missed), str(row.misnamed),
              str(row.extra)] for row in rows]
    return markdown(["pictures", "number", "entirely right", "answers right", "missed", "misnamed", "extra"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=250, help="of each group")
    parser.add_argument("--weights", type=Path, help="another detector than the one that ships")
    parser.add_argument("--only", action="append", metavar="ABOUT", help="rows of this kind only, such as size; "
                        "repeatable; needs --out")
    parser.add_argument("--out", type=Path, help="instead of the results that are kept")
    options = parser.parse_args()
    if (options.weights or options.only) and options.out is None:
        parser.error("--weights and --only need --out: the results that are kept are of all rows of what ships")
    rows: list[EyesRow] = []
    with torch_threads(1):
        eyes = Eyes(options.weights)
        for group in groups():
            if options.only is None or group.about in options.only:
                rows.append(eyes.row(group, options.pictures))
                print(rows[-1], flush=True)
    out = options.out or RESULTS / "eyes.csv"
    write_csv(out, rows, first=("about", "value"))
    print(f"\n{table(rows)}\n\nwritten to {out}")


if __name__ == "__main__":
    main()
