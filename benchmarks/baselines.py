"""The baselines of the paper's table 1, trained here on figures of each pattern and tested on those of accuracy.py.

    python -m nsfrc.benchmarks.baselines                            both models, all patterns: over an hour on one core
    python -m nsfrc.benchmarks.baselines --models mlp --patterns twopairs closeby
    python -m nsfrc.benchmarks.baselines --quick --out quick.csv    one pattern, few figures: half a minute, for a look

YOLO+MLP: the shipped detector's object vectors through an MLP with five hidden layers of 256, as many training figures
as in the paper. ResNet50: from scratch on the pixels, but small, so that a CPU can train it: figures of 64 × 64 pixels,
fewer of them and few epochs; its name in the results says so. Settings are the same for all patterns. Nothing is chosen
on test figures: the MLP's decay was chosen on another stream, BASELINE_CHOICE_SEED, with the true objects of twopairs
and closeby, and ResNet50's settings by what a CPU can do.

Writes results/baselines.csv after every pattern and model. A row that is there with the same settings is kept and not
trained again, so a run that was stopped goes on; delete the file to start anew.
"""

from __future__ import annotations

import argparse
import csv
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
from nsfrc.benchmarks.kandinsky import BASELINE_SEED, BATCH, TEST_SEED, answers
from nsfrc.benchmarks.measure import RESULTS, read_csv, write_csv
from nsfrc.benchmarks.parts import Judged, Part, Results, Table, markdown
from nsfrc.data.kandinsky import PATTERNS, chosen_name, figure
from nsfrc.data.render import render
from nsfrc.errors import NsfrcError
from nsfrc.inference.calibration import threshold_for
from nsfrc.inference.images import prepare, to_tensor
from nsfrc.pipelines import Pipeline, pipeline

MLP, RESNET50 = "mlp", "resnet50"
SIDE = 64  # of the figures that ResNet50 sees
FIGURES = {pattern: 1000 if pattern == "nine_circles" else 5000 for pattern in PATTERNS}  # trained on in the paper
RESNET50_FIGURES = 1000
SEED = 0
KEYS = ("pattern", "model")  # that name a row


@dataclass(frozen=True)
class Row:
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


def settings_of(row: Row) -> tuple[str | int, ...]:
    """As a task has them."""
    return (row.pattern, row.model, row.input, row.train_figures, row.test_figures, row.epochs, row.training, row.seed)


@cache
def described_objects(pattern: str) -> str:
    """What the MLP sees, with the identity of the detector."""
    perception = pipeline(pattern).perception
    return f"{perception.objects} × {len(perception.dimensions)} entries of {perception.identity}"


TRAININGS = {
    # Of decays 0, 0.1 and 1: on the figures to choose on 93, 93 and 99 % of twopairs, and 57 % of closeby with each.
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
    """What nsfrc gets on test figures: from results/accuracy.csv if it has just these, else measured."""
    pipe = pipeline(pattern)
    path = RESULTS / "accuracy.csv"
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if (row["pattern"], row["figures"], row["perception"]) == (
                    pattern, str(figures), pipe.perception.identity
                ):
                    return float(row["accuracy"])
    threshold = threshold_for(pipe.program, pipe.perception.identity).value
    found = answers(pipe, pattern, TEST_SEED, figures)
    return float(100 * ((found.scores >= threshold) == found.labels).mean())


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


def trained(task: Task) -> Row:
    """Draw, train and test."""
    train, test = examples(task)
    entries = train.inputs[0].numel()
    started = time.perf_counter()
    build = models.resnet50 if task.model == RESNET50 else lambda: models.mlp(entries)
    net = models.train(build, train, task.training, SEED, f"{task.pattern:<14} {task.model}")
    fitted, right = models.accuracy(net, train), models.accuracy(net, test)
    seconds = time.perf_counter() - started
    _, paper_resnet50, paper_mlp = ours.PAPER[task.pattern]
    return Row(
        task.pattern, task.name, task.input, task.train_figures, task.test_figures, task.training.epochs,
        str(task.training), models.parameters(net), fitted, right, nsfrc_accuracy(task.pattern, task.test_figures),
        paper_mlp if task.model == MLP else paper_resnet50, seconds, SEED,
    )


def complete(out: Path, wanted: Sequence[Task], work: Callable[[Task], Row] = trained) -> list[Row]:
    """The rows of all tasks, each written to `out` as soon as it is there; rows of other settings stay in the file."""
    rows: list[Row] = read_csv(out, Row) if out.exists() else []
    found = []
    for task in wanted:
        row = next((row for row in rows if settings_of(row) == task.settings), None)
        if row is not None:
            click.echo(f"{task.pattern}, {task.name}: kept from {out}", err=True)
        else:
            row = work(task)
            rows.append(row)
            out.parent.mkdir(parents=True, exist_ok=True)
            write_csv(out, rows, first=KEYS)
        found.append(row)
    return found


def run(out: Path, quick: bool) -> list[Row]:
    """All patterns and both models; one pattern and few figures if `quick`. Goes on where an earlier run stopped."""
    return complete(out, usual(quick))


def usual(quick: bool) -> list[Task]:
    return tasks(PATTERNS[:1] if quick else PATTERNS, (MLP, RESNET50), quick)


def measure(quick: bool) -> Iterator[Row]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for task in usual(quick):
            yield trained(task)
    finally:
        torch.set_num_threads(before)


def tell(results: Results) -> str:
    lines = [
        [row.pattern, row.model, f"{row.train_figures:,}",
         *(f"{one:.1f}" for one in (row.train_accuracy, row.test_accuracy, row.nsfrc_accuracy, row.paper_accuracy))]
        for row in results["baselines"]
    ]
    header = ["pattern", "model", "trained on", "right in training", "right in the test", "nsfrc, same test",
              "such a model, paper"]
    size = f"{SIDE} × {SIDE} pixels, {RESNET50_FIGURES:,} figures, {TRAININGS[RESNET50].epochs} epochs"
    return f"{markdown(header, lines)}\n\nIn per cent, but for the figures trained on. ResNet50 is trained at a size " \
        f"for a CPU ({size}) and not at the paper's, where there were up to {max(FIGURES.values()):,} figures; the " \
        f"paper's column is on its own figures."


PART = Part(
    "baselines", "what networks learn from figures of a pattern without rules, beside nsfrc on the same test figures",
    (Table("baselines", Row, KEYS, (Judged("test_accuracy", slack=3.0, absolute=True),)),), measure, tell,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one pattern, few figures; needs --out")
    parser.add_argument("--patterns", nargs="+", metavar="PATTERN", help=f"of {', '.join(PATTERNS)}; all by default")
    parser.add_argument("--models", nargs="+", choices=(MLP, RESNET50), default=[MLP, RESNET50])
    parser.add_argument("--out", type=Path, help="instead of results/baselines.csv")
    options = parser.parse_args()
    if options.quick and options.out is None:
        parser.error("--quick needs --out: the file of results is for whole runs")
    torch.set_num_threads(1)
    try:
        patterns = [chosen_name(one) for one in options.patterns or PATTERNS[:1 if options.quick else None]]
        if unknown := [one for one in patterns if one not in PATTERNS]:
            raise NsfrcError(f"{unknown[0]} figures have no label: take of {', '.join(PATTERNS)}")
        out = options.out or RESULTS / "baselines.csv"
        for row in complete(out, tasks(patterns, options.models, options.quick)):
            print(row)
    except NsfrcError as error:
        sys.exit(f"error: {error}")
    print(f"written to {out}")


if __name__ == "__main__":
    main()
