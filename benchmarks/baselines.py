"""The baselines of the paper's table 1, trained here on figures of each pattern and tested on those of accuracy.py.

    nsfrc bench --parts baselines --out FOLDER        both models, all patterns: over an hour on one core

YOLO+MLP: the shipped detector's object vectors through an MLP with five hidden layers of 256, as many training figures
as in the paper. ResNet50: from scratch on the pixels, but small, so that a CPU can train it: figures of 64 × 64 pixels,
fewer of them and few epochs; its name in the results says so. Settings are the same for all patterns. Nothing was
chosen on test figures: the MLP's decay was chosen of 0, 0.1 and 1 on other figures of twopairs and closeby, and
ResNet50's settings by what a CPU can do.

A row that FOLDER/baselines.csv has with the same settings is kept and not trained again, so a run that was stopped goes
on; delete the file to start again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import click
import numpy as np
import torch
from PIL import Image

from nsfrc.benchmarks import accuracy as ours
from nsfrc.benchmarks import baselines_models as models
from nsfrc.benchmarks.baselines_models import Examples, Training
from nsfrc.benchmarks.kandinsky import BASELINE_SEED, BATCH, TEST_SEED
from nsfrc.benchmarks.measure import read_csv
from nsfrc.benchmarks.parts import Judged, Part, Results, Table, markdown
from nsfrc.contexts import torch_threads
from nsfrc.data.kandinsky import PATTERNS, figure
from nsfrc.data.render import render
from nsfrc.inference.images import prepare, to_tensor
from nsfrc.pipelines import Pipeline, pipeline

MLP, RESNET50 = "mlp", "resnet50"
SIDE = 64  # of the figures that ResNet50 sees
FIGURES = {pattern: 1000 if pattern == "nine_circles" else 5000 for pattern in PATTERNS}  # trained on in the paper
RESNET50_FIGURES = 1000
SEED = 0
KEYS = ("pattern", "model")  # that name a row


@dataclass(frozen=True)
class BaselineRow:
    """One pattern and model; accuracies in per cent. nsfrc_accuracy: of nsfrc on the very same test figures.

    paper_accuracy: what table 1 has for this model, on figures of the paper's own. seconds: training and testing,
    without drawing and detecting.
    """

    pattern: str
    model: str
    input: str
    train_figures: int
    test_figures: int
    epochs: int
    training: str
    parameters: int
    train_accuracy: float
    test_accuracy: float
    nsfrc_accuracy: float
    paper_accuracy: float
    seconds: float
    seed: int

    def __str__(self) -> str:
        return f"{self.pattern:<14}{self.model:<36} test {self.test_accuracy:5.1f} %, train " \
            f"{self.train_accuracy:5.1f} %; nsfrc {self.nsfrc_accuracy:.1f}, paper {self.paper_accuracy}"


@dataclass(frozen=True)
class Task:
    """What one row is made from."""

    pattern: str
    model: str
    train_figures: int
    test_figures: int
    training: Training

    @property
    def name(self) -> str:
        """The model as results call it, with how far it is from the paper's."""
        return "YOLO+MLP" if self.model == MLP else f"ResNet50 at {SIDE} px, {self.train_figures:,} figures"

    @property
    def input(self) -> str:
        return described_objects(self.pattern) if self.model == MLP else f"{SIDE} × {SIDE} pixels"

    @property
    def settings(self) -> tuple[str | int, ...]:
        """All that a row follows from."""
        return (self.pattern, self.name, self.input, self.train_figures, self.test_figures, self.training.epochs,
                str(self.training), SEED)


def settings_of(row: BaselineRow) -> tuple[str | int, ...]:
    """As a task has them."""
    return (row.pattern, row.model, row.input, row.train_figures, row.test_figures, row.epochs, row.training, row.seed)


@cache
def described_objects(pattern: str) -> str:
    """What the MLP sees, with the identity of the detector."""
    perception = pipeline(pattern).perception
    return f"{perception.objects} × {len(perception.dimensions)} entries of {perception.identity}"


TRAININGS = {
    MLP: Training(epochs=60, batch=64, rate=1e-3, decay=1.0),
    RESNET50: Training(epochs=6, batch=16, rate=1e-3, decay=0.05),
}


def tasks(patterns: Sequence[str], chosen: Sequence[str], quick: bool) -> list[Task]:
    """Every model and pattern, the quick model first."""
    found = []
    for model in (one for one in (MLP, RESNET50) if one in chosen):
        for pattern in patterns:
            count = FIGURES[pattern] if model == MLP else min(RESNET50_FIGURES, FIGURES[pattern])
            task = Task(pattern, model, count, ours.FIGURES[pattern], TRAININGS[model])
            if quick:
                few = 200 if model == MLP else 32
                task = replace(task, train_figures=few, test_figures=50, training=replace(task.training, epochs=2))
            found.append(task)
    return found


def drawn(pattern: str, seed: int, count: int, turn: Callable[[list[np.ndarray]], torch.Tensor]) -> Examples:
    """Figures 0 … count − 1 of a stream; `turn` makes inputs of a batch of pictures [side, side, 3]."""
    inputs, labels = [], []
    starts = range(0, count, BATCH)
    with click.progressbar(starts, label=f"{pattern:<14} figures", file=sys.stderr) as shown:
        for start in shown:
            batch = [figure(pattern, seed, i) for i in range(start, min(start + BATCH, count))]
            inputs.append(turn([render(one.figure) for one in batch]))
            labels += [float(bool(one.label)) for one in batch]
    return Examples(torch.cat(inputs), torch.tensor(labels))


def small(pictures: list[np.ndarray]) -> torch.Tensor:
    """Pictures → what ResNet50 sees: uint8 [B, 3, SIDE, SIDE]."""
    pixels = np.stack([prepare(Image.fromarray(one), (SIDE, SIDE)) for one in pictures])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def seen(pipe: Pipeline, pictures: list[np.ndarray]) -> torch.Tensor:
    """Pictures → object vectors as the pipeline's perception gives them, flattened [B, E · D]."""
    size = pipe.perception.size
    with torch.no_grad():
        return pipe.perception(to_tensor([prepare(Image.fromarray(one), size) for one in pictures])).flatten(1)


@cache
def nsfrc_accuracy(pattern: str, figures: int) -> float:
    """What nsfrc gets on the same test figures, in the same run."""
    return ours.measured(pattern, figures).accuracy


def examples(task: Task) -> tuple[Examples, Examples]:
    """What a task trains on, and what it is tested on."""
    if task.model == MLP:
        pipe = pipeline(task.pattern)

        def turn(pictures: list[np.ndarray]) -> torch.Tensor:
            return seen(pipe, pictures)
    else:
        turn = small
    return (drawn(task.pattern, BASELINE_SEED, task.train_figures, turn),
            drawn(task.pattern, TEST_SEED, task.test_figures, turn))


def trained(task: Task) -> BaselineRow:
    """Draw, train and test."""
    train, test = examples(task)
    entries = train.inputs[0].numel()
    started = time.perf_counter()
    build = models.resnet50 if task.model == RESNET50 else lambda: models.mlp(entries)
    net = models.train(build, train, task.training, SEED, f"{task.pattern:<14} {task.model}")
    fitted, right = models.accuracy(net, train), models.accuracy(net, test)
    seconds = time.perf_counter() - started
    _, paper_resnet50, paper_mlp = ours.PAPER[task.pattern]
    return BaselineRow(
        task.pattern, task.name, task.input, task.train_figures, task.test_figures, task.training.epochs,
        str(task.training), models.parameters(net), fitted, right, nsfrc_accuracy(task.pattern, task.test_figures),
        paper_mlp if task.model == MLP else paper_resnet50, seconds, SEED,
    )


def complete(out: Path, wanted: Sequence[Task], work: Callable[[Task], BaselineRow] = trained) -> Iterator[BaselineRow]:
    """The row of every task: kept where `out` has it with the same settings, else trained."""
    rows: list[BaselineRow] = read_csv(out, BaselineRow) if out.exists() else []
    for task in wanted:
        row = next((row for row in rows if settings_of(row) == task.settings), None)
        if row is not None:
            click.echo(f"{task.pattern}, {task.name}: kept from {out}", err=True)
        yield row or work(task)


def measure(quick: bool, folder: Path) -> Iterator[BaselineRow]:
    """All patterns and both models; one pattern and few figures if `quick`."""
    with torch_threads(1):
        wanted = tasks(PATTERNS[:1] if quick else PATTERNS, (MLP, RESNET50), quick)
        yield from complete(folder / "baselines.csv", wanted)


def tell(results: Results) -> str:
    lines = [
        [row.pattern, row.model, f"{row.train_figures:,}",
         *(f"{one:.1f}" for one in (row.train_accuracy, row.test_accuracy, row.nsfrc_accuracy, row.paper_accuracy))]
        for row in results["baselines"]
    ]
    header = ["pattern", "model", "trained on", "right in training", "right in the test", "nsfrc, same test",
              "such a model, paper"]
    size = f"{SIDE} × {SIDE} pixels, {RESNET50_FIGURES:,} figures, {TRAININGS[RESNET50].epochs} epochs"
    return f"{markdown(header, lines)}\n\nIn per cent, except for the figures trained on. ResNet50 is trained at a " \
        f"size for a CPU ({size}) and not at the paper's, where there were up to {max(FIGURES.values()):,} figures; " \
        f"the paper's column is on its own figures."


PART = Part(
    "baselines", "what networks learn from figures of a pattern without rules, beside nsfrc on the same test figures",
    (Table("baselines", BaselineRow, KEYS, (Judged("test_accuracy", slack=3.0, absolute=True),)),), measure, tell,
)
