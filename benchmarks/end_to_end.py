"""From image files to answers on one CPU thread: images per second, and where the time goes; and whole folders.

The baseline is the perception model alone, from the same runs: the ratio says which share of the time is its own.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from nsfrc.benchmarks import end_to_end_folder
from nsfrc.benchmarks.measure import Compared, compared, timing
from nsfrc.benchmarks.paper_figures_base import BLUE, ORANGE, PINK, SKY
from nsfrc.benchmarks.parts import Judged, Part, Results, Table, markdown
from nsfrc.contexts import torch_threads
from nsfrc.data import figure_folder as figures
from nsfrc.data.kandinsky import PATTERNS
from nsfrc.inference.images import read, to_tensor
from nsfrc.pipelines import Pipeline, pipeline

BATCHES, QUICK_BATCHES = (1, 5, 10, 16, 20, 25, 30, 35, 40, 45, 50), (1, 16)
STAGES = ("decode", "perception", "facts", "reasoning")
COLORS = (SKY, ORANGE, PINK, BLUE)
SEED = 4_000_000


@dataclass(frozen=True)
class EndToEndRow(Compared):
    """One program, model and batch size, one thread: seconds per batch, together and of each stage (medians).

    The ratio is below 1: the share of the time that the baseline, perception alone, takes.
    """

    program: str
    model: str
    batch: int
    decode: float
    perception: float
    facts: float
    reasoning: float
    images_per_second: float
    facts_and_reasoning_share: float

    def __str__(self) -> str:
        parts = "  ".join(f"{stage} {1e3 * getattr(self, stage) / self.batch:.3f}" for stage in STAGES)
        return f"{self.program:<13} batch {self.batch:<4} {self.images_per_second:6.1f} images/s  ms per image: {parts}"


@dataclass(frozen=True)
class BatchRow:
    """One batch size over all patterns: seconds per batch, mean and standard deviation, and mean seconds per stage."""

    batch: int
    patterns: int
    mean: float
    deviation: float
    decode: float
    perception: float
    facts: float
    reasoning: float


def by_batch(results: Results) -> Results:
    """The patterns of every batch size, as one row."""
    rows, found = results["end_to_end"], []
    for batch in sorted({row.batch for row in rows}):
        same = [row for row in rows if row.batch == batch]
        totals = [row.median for row in same]
        parts = [statistics.mean(getattr(row, stage) for row in same) for stage in STAGES]
        found.append(BatchRow(batch, len(same), statistics.mean(totals), statistics.pstdev(totals), *parts))
    return {"end_to_end_by_batch": found}


def stages(pipe: Pipeline, paths: Sequence[Path]) -> list[float]:
    """Seconds of each stage for one batch of files."""
    marks = [time.perf_counter()]
    images = to_tensor([read(path, pipe.perception.size, pipe.perception.fit).pixels for path in paths])
    marks.append(time.perf_counter())
    with torch.no_grad():
        objects = pipe.perception(images)
        marks.append(time.perf_counter())
        V0 = pipe.facts(objects)
        marks.append(time.perf_counter())
        pipe.reasoner(V0)
        marks.append(time.perf_counter())
    return [later - earlier for earlier, later in itertools.pairwise(marks)]


def measured(pipe: Pipeline, paths: Sequence[Path], batch: int, budget: float) -> EndToEndRow:
    """Batches of files, one after another, for some seconds."""
    stages(pipe, paths[:batch])
    runs: list[list[float]] = []
    start = time.perf_counter()
    while len(runs) < 3 or (time.perf_counter() - start < budget and len(runs) < 200):
        first = len(runs) * batch % (len(paths) - batch + 1)
        runs.append(stages(pipe, paths[first : first + batch]))
    total = timing(map(sum, runs))
    by_stage = [timing(run[i] for run in runs) for i in range(len(STAGES))]
    parts = [one.median for one in by_stage]
    return EndToEndRow(**compared(total, "perception alone", by_stage[1]), program=pipe.program.name,
               model=pipe.perception.identity, batch=batch, decode=parts[0], perception=parts[1], facts=parts[2],
               reasoning=parts[3], images_per_second=batch / total.median,
               facts_and_reasoning_share=(parts[2] + parts[3]) / sum(parts))


def measure(quick: bool, folder: Path) -> Iterator[EndToEndRow | end_to_end_folder.FolderRow]:
    yield from end_to_end_folder.measure(quick)
    with torch_threads(1), tempfile.TemporaryDirectory() as scratch:
        for pattern in ("twopairs", "nine_circles") if quick else PATTERNS:
            paths = list(figures.write(pattern, Path(scratch) / pattern, 32 if quick else 100, SEED))
            pipe = pipeline(pattern)
            for batch in QUICK_BATCHES if quick else BATCHES:
                yield measured(pipe, paths, batch, 0.5 if quick else 1.5)


def tell(results: Results) -> str:
    lines = [
        [str(row.batch), f"{row.batch / row.mean:.0f}", *(f"{1e3 * getattr(row, s) / row.batch:.3g}" for s in STAGES)]
        for row in results["end_to_end_by_batch"] if row.batch in (1, 5, 10, 16, 50)
    ]
    table = markdown(["batch", "images per second", *(f"{stage}, ms per image" for stage in STAGES)], lines)
    told = f"{table}\n\nFrom image file to answer on one thread, mean over the patterns. In the CSV the baseline is " \
        "the detector alone, so the ratio is its share of the time."
    return f"{told}\n\n{end_to_end_folder.tell(results)}" if results["end_to_end_folder"] else told


def draw(results: Results, folder: Path) -> list[Path]:
    """Mean and standard deviation over the patterns by batch size, and the shares of the stages."""
    from matplotlib import pyplot as plt

    rows, path = results["end_to_end_by_batch"], folder / "end_to_end.png"
    batches = [row.batch for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.errorbar(batches, [1e3 * r.mean for r in rows], [1e3 * r.deviation for r in rows], marker="o", capsize=3)
    left.set(xlabel="images in a batch", ylabel="milliseconds per batch",
             title=f"Files to answers, {rows[0].patterns} patterns, one thread")
    left.set_ylim(bottom=0)
    left.grid(alpha=0.3)
    bottom = [0.0] * len(batches)
    places = range(len(batches))
    for stage, color in zip(STAGES, COLORS, strict=True):
        part = [1e3 * getattr(r, stage) / r.batch for r in rows]
        right.bar(places, part, bottom=bottom, label=stage, color=color)
        bottom = [low + more for low, more in zip(bottom, part, strict=True)]
    right.set_xticks(places, [str(b) for b in batches])
    right.set(xlabel="images in a batch", ylabel="milliseconds per image", title="Where the time goes")
    right.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return [path]


# What is not the perception model's own doing; the detector's time is the baseline and judged by nobody.
OURS = Judged("facts_and_reasoning_share", higher_is_better=False, slack=0.5)
PART = Part(
    "end_to_end", "image files to answers, images per second",
    (Table("end_to_end", EndToEndRow, ("program", "batch"), (OURS,)),
     Table("end_to_end_by_batch", BatchRow, ("batch",), judged=()),
     Table("end_to_end_folder", end_to_end_folder.FolderRow, ("threads",))),
    measure, tell, draw, by_batch,
)
