"""Time by batch size over the six Kandinsky sets, from the files that `nsfrc bench` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.benchmarks.end_to_end import STAGES
from nsfrc.benchmarks.end_to_end import BatchRow as Whole
from nsfrc.benchmarks.measure import RESULTS, read_csv
from nsfrc.benchmarks.paper_figures_base import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    Drawn,
    Missing,
    Wanted,
    canvas,
    thousands,
)
from nsfrc.benchmarks.reasoning import BatchRow as Reasoning
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REASONING, WHOLE = "reasoning_by_batch.csv", "end_to_end_by_batch.csv"
ENGINES = {"dense": ("dense form of the paper", RED, "s"), "cpu": ("CPU engine", BLUE, "o"),
           "gpu": ("GPU engine", GREEN, "^")}
LINES = ("-", "--", ":", "-.")  # by how many numbers of threads an engine was measured with
COLOURS = dict(zip(STAGES, (SKY, ORANGE, PINK, BLUE), strict=True))
MILLI = 1e3


@dataclass(frozen=True)
class TimeByBatch:
    """A point of a line, or the height of a band: milliseconds per batch. sets: over how many it is the mean."""

    panel: str
    of: str
    threads: int
    batch: int
    sets: int
    mean: float
    deviation: float | None


def draw(wanted: Wanted) -> Drawn:
    folder = wanted.results or RESULTS
    reasoning, whole = _read(folder, REASONING, Reasoning), _read(folder, WHOLE, Whole)
    points = [*reasoning_rows(reasoning), *whole_rows(whole)]
    figure = canvas(12.5, 5.4)
    figure.suptitle("Time by batch size: mean and standard deviation over Kandinsky sets", fontweight="bold")
    left, right = figure.subplots(1, 2)
    _reasoning(left, [p for p in points if p.panel == "reasoning"])
    _whole(right, [p for p in points if p.panel == "end to end"])
    return Drawn(figure, points)


def _read(folder: Path, name: str, kind: type) -> list[Any]:
    """The rows of a file of results; `Missing` where there is no such file."""
    path = folder / name
    if not path.is_file():
        raise Missing(f"the figure batch is drawn from {name}, which is not in {folder}: "
                      f"nsfrc bench --quick --out FOLDER makes it, then pass --results FOLDER")
    if not (found := read_csv(path, kind)):
        raise NsfrcError(f"{path} has no rows: nsfrc bench --quick --out {folder} makes it again")
    return found


def reasoning_rows(rows: Sequence[Reasoning]) -> list[TimeByBatch]:
    """Rows over all sets: a mean over those that fit into memory would be one over the smaller programs."""
    sets = max(row.sets for row in rows)
    return [TimeByBatch("reasoning", r.engine, r.threads, r.batch, r.sets, MILLI * r.mean, MILLI * r.deviation)
            for r in sorted(rows, key=lambda r: (r.engine, r.threads, r.batch)) if r.sets == sets]


def whole_rows(rows: Sequence[Whole]) -> list[TimeByBatch]:
    """The whole and its stages, of which only the whole has a deviation."""
    ordered = sorted(rows, key=lambda r: r.batch)
    found = [TimeByBatch("end to end", "all", 1, r.batch, r.patterns, MILLI * r.mean, MILLI * r.deviation)
             for r in ordered]
    return found + [TimeByBatch("end to end", stage, 1, r.batch, r.patterns, MILLI * getattr(r, stage), None)
                    for stage in STAGES for r in ordered]


def _reasoning(axis: Axes, points: Sequence[TimeByBatch]) -> None:
    """One line per engine and number of threads, both axes logarithmic."""
    for engine in (*ENGINES, *sorted({p.of for p in points} - ENGINES.keys())):
        name, colour, marker = ENGINES.get(engine, (engine, "black", "x"))
        for style, threads in zip(LINES, sorted({p.threads for p in points if p.of == engine}), strict=False):
            line = [p for p in points if (p.of, p.threads) == (engine, threads)]
            suffix = "" if engine == "gpu" else f", {threads} thread{'s' * (threads > 1)}"
            batches, means = [p.batch for p in line], [p.mean for p in line]
            axis.plot(batches, means, style, marker=marker, ms=4.5, color=colour, label=name + suffix)
            if style == LINES[0]:
                axis.errorbar(batches, means, _bars(line), fmt="none", color=colour, capsize=2.5, lw=1, alpha=0.7)
    axis.set(xscale="log", yscale="log", xlabel="images in a batch", ylabel="milliseconds per batch",
             title=f"Reasoning alone, {points[0].sets} sets")
    _, top = axis.get_ylim()
    axis.set_ylim(top=5 * top)  # room for the legend
    axis.xaxis.set_major_formatter(thousands)
    axis.yaxis.set_major_formatter(thousands)
    axis.grid()
    note = "bars: standard deviation; its upper half where it exceeds the mean"
    axis.legend(frameon=False, loc="upper left", title=note, title_fontsize=9, alignment="left")


def _bars(line: Sequence[TimeByBatch]) -> list[list[float]]:
    """Deviations below and above; none below where it is more than the mean, which a logarithmic axis cannot show."""
    deviations = [p.deviation or 0.0 for p in line]
    return [[d if d < p.mean else 0.0 for p, d in zip(line, deviations, strict=True)], deviations]


def _whole(axis: Axes, points: Sequence[TimeByBatch]) -> None:
    """Bands of the stages, and the whole with its deviation above them."""
    whole = [p for p in points if p.of == "all"]
    batches = [p.batch for p in whole]
    axis.stackplot(batches, [[p.mean for p in points if p.of == stage] for stage in STAGES],
                   labels=[f"{stage}, {_percent(_share(points, stage))}" for stage in STAGES],
                   colors=list(COLOURS.values()), alpha=0.75)
    axis.errorbar(batches, [p.mean for p in whole], [p.deviation or 0 for p in whole], color="black", marker="o", ms=4,
                  capsize=3, lw=1.2, label="all, and standard deviation")
    axis.set(xlabel="images in a batch", ylabel="milliseconds per batch",
             title=f"From image file to answer, one thread, {whole[0].sets} sets",
             ylim=(0, None), xlim=(min(batches), None))
    axis.grid()
    handles, names = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], names[::-1], frameon=False, loc="upper left", alignment="left",
                title=f"shares at batch {batches[-1]}", title_fontsize=9)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "< 0.1%"


def _share(points: Sequence[TimeByBatch], stage: str) -> float:
    """Of the time of all stages, at the largest batch."""
    largest = max(p.batch for p in points)
    parts = {p.of: p.mean for p in points if p.batch == largest and p.of != "all"}
    return parts[stage] / sum(parts.values())
