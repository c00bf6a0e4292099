"""From image files to answers on one CPU thread: images a second, and where the time goes.

    python -m nsfrc.benchmarks.end_to_end            all six patterns, batches 1 … 50, about 3 minutes
    python -m nsfrc.benchmarks.end_to_end --quick    batches 1 and 16

Writes results/end_to_end.csv, a row for each pattern and batch size, and results/end_to_end_by_batch.csv, mean and
standard deviation over the patterns; results/end_to_end.png is drawn from them.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.data import folder
from nsfrc.data.kandinsky import PATTERNS
from nsfrc.inference.images import read, to_tensor
from nsfrc.pipelines import Pipeline, pipeline

BATCHES = (1, 5, 10, 16, 20, 25, 30, 35, 40, 45, 50)
STAGES = ("decode", "perception", "facts", "reasoning")
SEED = 4_000_000


@dataclass(frozen=True)
class Row:
    """One pattern and batch size, one thread: seconds a batch, of each stage and together."""

    pattern: str
    batch: int
    runs: int
    decode: float
    perception: float
    facts: float
    reasoning: float
    total: float
    total_p20: float
    total_p80: float
    images_per_second: float
    facts_and_reasoning_share: float


@dataclass(frozen=True)
class BatchRow:
    """One batch size over all patterns: seconds a batch, mean and standard deviation, and mean seconds a stage."""

    batch: int
    patterns: int
    mean: float
    deviation: float
    decode: float
    perception: float
    facts: float
    reasoning: float


def by_batch(rows: Sequence[Row]) -> list[BatchRow]:
    """The rows of every batch size, as one."""
    found = []
    for batch in sorted({row.batch for row in rows}):
        same = [row for row in rows if row.batch == batch]
        totals = [row.total for row in same]
        parts = [statistics.mean(getattr(row, stage) for row in same) for stage in STAGES]
        found.append(BatchRow(batch, len(same), statistics.mean(totals), statistics.pstdev(totals), *parts))
    return found


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


def measure(pattern: str, pipe: Pipeline, paths: Sequence[Path], batch: int, budget: float) -> Row:
    stages(pipe, paths[:batch])
    runs: list[list[float]] = []
    start = time.perf_counter()
    while len(runs) < 5 or (time.perf_counter() - start < budget and len(runs) < 200):
        first = len(runs) * batch % (len(paths) - batch + 1)
        runs.append(stages(pipe, paths[first : first + batch]))
    totals = sorted(map(sum, runs))
    total = statistics.median(totals)
    parts = [statistics.median(run[i] for run in runs) for i in range(len(STAGES))]
    return Row(
        pattern, batch, len(runs), *parts, total, totals[len(totals) // 5], totals[len(totals) * 4 // 5],
        batch / total, (parts[2] + parts[3]) / sum(parts),
    )


def draw(rows: Sequence[BatchRow], path: Path) -> None:
    """Mean and standard deviation over the patterns by batch size, and the shares of the stages."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    batches = [row.batch for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.errorbar(batches, [1e3 * r.mean for r in rows], [1e3 * r.deviation for r in rows], marker="o", capsize=3)
    left.set(xlabel="images in a batch", ylabel="milliseconds a batch",
             title="Files to answers, six patterns, one thread")
    left.set_ylim(bottom=0)
    left.grid(alpha=0.3)
    bottom = [0.0] * len(batches)
    places = range(len(batches))
    for stage in STAGES:
        part = [1e3 * getattr(r, stage) / r.batch for r in rows]
        right.bar(places, part, bottom=bottom, label=stage)
        bottom = [low + more for low, more in zip(bottom, part, strict=True)]
    right.set_xticks(places, [str(b) for b in batches])
    right.set(xlabel="images in a batch", ylabel="milliseconds an image", title="Where the time goes")
    right.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="batches 1 and 16 only")
    parser.add_argument("--weights", type=Path, help="another detector than the one that ships")
    parser.add_argument("--out", type=Path, default=RESULTS / "end_to_end.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    batches = (1, 16) if options.quick else BATCHES
    rows = []
    print(f"{'pattern':<14}{'batch':>6}{'images/s':>10}   ms an image: " + "".join(f"{s:>12}" for s in STAGES)
          + "   facts + reasoning")
    with tempfile.TemporaryDirectory() as scratch:
        for pattern in PATTERNS:
            paths = list(folder.write(pattern, Path(scratch) / pattern, 100, SEED))
            pipe = pipeline(pattern, weights=options.weights)
            for batch in batches:
                row = measure(pattern, pipe, paths, batch, 0.4 if options.quick else 1.5)
                rows.append(row)
                print(f"{pattern:<14}{batch:>6}{row.images_per_second:>10.1f}                "
                      + "".join(f"{1e3 * getattr(row, s) / batch:>12.3f}" for s in STAGES)
                      + f"{row.facts_and_reasoning_share:>19.1%}", flush=True)
    together, plot = options.out.with_stem(f"{options.out.stem}_by_batch"), options.out.with_suffix(".png")
    write_csv(options.out, rows)
    write_csv(together, by_batch(rows))
    draw(by_batch(rows), plot)
    print(f"written to {options.out}, {together} and {plot}")


if __name__ == "__main__":
    main()
