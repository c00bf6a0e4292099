"""Generated figures through the whole pipeline, as the accuracy and the calibration need them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import click
import numpy as np
import torch
from PIL import Image

from nsfrc.data.figures import Figure
from nsfrc.data.kandinsky import Labelled, figure
from nsfrc.data.render import render
from nsfrc.inference.images import prepare, to_tensor
from nsfrc.perception.attributes import KANDINSKY
from nsfrc.pipelines import Pipeline
from nsfrc.training.detector_score import classes_of, match

# Streams of figures that share none with each other, nor with those the detector was trained on (0, 1,000,000), times
# are taken on (4,000,000) or tests draw (5,000,000).
CALIBRATION_SEED = 2_000_000
TEST_SEED = 3_000_000
BASELINE_SEED = 6_000_000  # what the baselines train on
CONFUSION_SEED = 7_000_000  # pattern-free, for `nsfrc figures`
SEMANTICS_SEED = 8_000_000  # what both semantics are asked about
EYES_SEED = 9_000_000  # looks that no training drew, and fresh figures beside them
BATCH = 50
SURE = 0.5  # objectness from which on an object counts as found


@dataclass(frozen=True, eq=False)
class Answers:
    """Of N figures: labels and scores [N], and whether perception found exactly the true objects [N]."""

    labels: np.ndarray
    scores: np.ndarray
    right_objects: np.ndarray


def answers(pipe: Pipeline, pattern: str, seed: int, count: int) -> Answers:
    """Draw figures 0 … count − 1 of a pattern and run them through a pipeline."""
    labels, scores, right = [], [], []
    made = batches(pattern, seed, count)
    with click.progressbar(made, length=-(-count // BATCH), label=f"{pattern:<14}", file=sys.stderr) as shown:
        for batch in shown:
            pixels = [prepare(Image.fromarray(render(one.figure)), pipe.perception.size) for one in batch]
            found = pipe.predict(to_tensor(pixels))
            labels += [bool(one.label) for one in batch]
            scores += found.scores[:, 0].tolist()
            right += [all_right(vectors, one.figure) for vectors, one in zip(found.objects, batch, strict=True)]
    return Answers(np.array(labels), np.array(scores), np.array(right))


def batches(pattern: str, seed: int, count: int) -> Iterator[list[Labelled]]:
    """Figures 0 … count − 1 of a pattern, some at a time."""
    for start in range(0, count, BATCH):
        yield [figure(pattern, seed, i) for i in range(start, min(start + BATCH, count))]


def all_right(vectors: torch.Tensor, drawn: Figure) -> bool:
    """Whether object vectors [E, D] are the objects of a figure, each once, with its shape and colour."""
    found = vectors[vectors[:, -1] >= SURE]
    truth = torch.tensor([shape.box for shape in drawn.shapes], dtype=torch.float32)
    classes = np.array([KANDINSKY.index(shape.color, shape.shape) for shape in drawn.shapes])
    groups = [len(group) for group in KANDINSKY.groups]
    hits = match(found[:, :4], classes_of(found[:, 4:-1], groups), truth, classes)
    return len(found) == int(hits.sum()) == len(truth)
