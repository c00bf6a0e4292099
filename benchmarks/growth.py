"""How rows, compile time and reasoning time grow with the objects of a figure and with the clauses of a program.

Batches of 50 on one thread, the targets' values from neural atoms, beside the dense reference at the same batch where
its gathered values fit in 1 GB (0.1 GB if quick). Programs are compiled in one process, so the grammar is built once
and not counted.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.benchmarks.dense import gathered_gb
from nsfrc.benchmarks.generated import program_text
from nsfrc.benchmarks.measure import Compared, compared, timed_beside
from nsfrc.benchmarks.paper_figures_base import BLUE, GREY, RED
from nsfrc.benchmarks.parts import Part, Results, Table, markdown, seconds, times
from nsfrc.contexts import torch_threads
from nsfrc.program import compile as compile_program

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BATCH = 50
OBJECTS = {"twopairs": range(4, 13), "threepairs": range(6, 13)}
QUICK_OBJECTS = {"twopairs": (4, 6, 8, 12)}
CLAUSES = (10, 30, 100, 300, 1000)
QUICK_CLAUSES = (10, 100)
DENSE_LIMIT_GB = 1.0
QUICK_DENSE_LIMIT_GB = 0.1  # what is above takes the dense form from a few seconds to half a minute
BASELINE = "dense reference"


@dataclass(frozen=True)
class Grown(Compared):
    """Seconds of reasoning V0 → targets beside the dense reference; what both growth tables have.

    rows_live, rows_plan: rows before and after the passes; compile_seconds: text to plan, once; dense_gb: the gathered
    values of one clause.
    """

    batch: int
    rows_live: int
    rows_plan: int
    compile_seconds: float
    dense_gb: float

    def __str__(self) -> str:
        base = f"dense {seconds(self.baseline_median)}  {times(self.ratio)}" if self.ratio else f"dense {self.without}"
        return f"{self.rows_live:>8,} live rows → {self.rows_plan:>6,}  compiled in " \
            f"{seconds(self.compile_seconds):>7}  {seconds(self.median):>8}  {base}"

    @property
    def without(self) -> str:
        """Why there is no ratio."""
        return f"needs {self.dense_gb:,.1f} GB per clause" if self.dense_gb > DENSE_LIMIT_GB else "left out"


@dataclass(frozen=True)
class ObjectsRow(Grown):
    """A shipped program with this many objects."""

    program: str
    objects: int

    def __str__(self) -> str:
        return f"{self.program:10} objects={self.objects:<3} {Grown.__str__(self)}"


@dataclass(frozen=True)
class ClausesRow(Grown):
    """A generated program with this many clauses."""

    clauses: int

    def __str__(self) -> str:
        return f"generated  clauses={self.clauses:<5} {Grown.__str__(self)}"


def grown(name: str | Path, slots: Mapping[str, int] | None = None, limit_gb: float = 0.0) -> dict[str, Any]:
    """The fields of `Grown` for one program; the dense form is run up to `limit_gb`."""
    import torch

    from nsfrc.benchmarks.reasoning import valuations

    start = time.perf_counter()
    program = compile_program(name, slots=slots)
    took = time.perf_counter() - start
    V0, gathered = valuations(program, BATCH), gathered_gb(program, BATCH)
    with torch.no_grad():
        reasoner = partial(program.reasoner, outputs="targets", inputs="neural")
        # Built only where it is run: its index tensor alone may be too large.
        dense = partial(reasoner("reference"), V0) if gathered <= limit_gb else None
        ours, base = timed_beside(partial(reasoner("cpu"), V0), dense, 0.3)
    return {
        **compared(ours, BASELINE, base), "batch": BATCH, "rows_live": program.ground.rows,
        "rows_plan": program.plan.rows, "compile_seconds": took, "dense_gb": gathered,
    }


def measure(quick: bool, folder: Path) -> Iterator[Grown]:
    with torch_threads(1):
        yield from _measure(quick)


def _measure(quick: bool) -> Iterator[Grown]:
    limit = QUICK_DENSE_LIMIT_GB if quick else DENSE_LIMIT_GB
    grown("closeby")  # builds the grammar, loads or compiles the kernels
    for name, counts in (QUICK_OBJECTS if quick else OBJECTS).items():
        for objects in counts:
            yield ObjectsRow(**grown(name, {"object": objects}, limit), program=name, objects=objects)
    with tempfile.TemporaryDirectory() as scratch:
        for clauses in QUICK_CLAUSES if quick else CLAUSES:
            path = Path(scratch) / f"generated_{clauses}.pl"
            path.write_text(program_text(clauses))
            yield ClausesRow(**grown(path, limit_gb=limit), clauses=clauses)


def tell(results: Results) -> str:
    cases = [(row, f"{row.program}, {row.objects} objects") for row in results.get("growth_objects", [])]
    cases += [(row, f"{row.clauses:,} generated clauses") for row in results.get("growth_clauses", [])]
    lines = [
        [case, f"{row.rows_live:,}", f"{row.rows_plan:,}", seconds(row.compile_seconds), seconds(row.median),
         seconds(row.baseline_median) if row.ratio else row.without, times(row.ratio)]
        for row, case in cases
    ]
    header = ["program", "live rows", "rows in the plan", "compiled in", f"time for {BATCH}", BASELINE,
              "dense / nsfrc"]
    return markdown(header, lines) + (
        "\n\nTimes are for a batch on one thread. A program's rows grow with the objects to the power of its "
        "variables, and with its clauses in proportion; time follows the rows in the plan."
    )


OURS, DENSE, LIVE = BLUE, RED, GREY


def draw(results: Results, folder: Path) -> Sequence[Path]:
    """growth.png: time above, rows below; by objects on the left, by clauses on the right."""
    by_objects, by_clauses = results.get("growth_objects", []), results.get("growth_clauses", [])
    if not by_objects and not by_clauses:
        return []
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharex="col", sharey="row", layout="constrained")
    for name, marker in (("twopairs", "o"), ("threepairs", "s")):
        mine = [row for row in by_objects if row.program == name]
        if mine:
            _lines(axes[0, 0], axes[1, 0], mine, [row.objects for row in mine], f"{name}: ", marker)
    if by_clauses:
        _lines(axes[0, 1], axes[1, 1], by_clauses, [row.clauses for row in by_clauses], "", "o")
    _label(axes, sorted({row.objects for row in by_objects}), [row.clauses for row in by_clauses])
    figure.suptitle(f"Time for a batch of {BATCH} on one thread, and rows. The dense reference ends where it would "
                    "need too much", fontsize=11)
    path = folder / "growth.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return [path]


def _lines(above: Axes, below: Axes, rows: Sequence[Grown], x: Sequence[int], name: str, marker: str) -> None:
    style: dict[str, Any] = {"marker": marker, "ms": 4, "lw": 1.4, "ls": "-" if marker == "o" else "--"}
    known = [(at, row.baseline_median) for at, row in zip(x, rows, strict=True) if row.baseline_median is not None]
    if known:
        above.plot(*zip(*known, strict=True), color=DENSE, label=f"{name}dense reference", **style)
    above.plot(x, [row.median for row in rows], color=OURS, label=f"{name}nsfrc", **style)
    below.plot(x, [row.rows_live for row in rows], color=LIVE, label=f"{name}live rows", **style)
    below.plot(x, [row.rows_plan for row in rows], color=OURS, label=f"{name}rows in the plan", **style)


def _label(axes: Any, objects: Sequence[int], clauses: Sequence[int]) -> None:
    for axis in axes.flat:
        axis.set(xscale="log", yscale="log")
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=9)
    for column, ticks in ((0, objects), (1, clauses)):
        axes[1, column].set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes[1, column].set_xticks([], minor=True)
    axes[0, 0].set(title="by objects", ylabel="seconds per batch")
    axes[0, 1].set(title="by clauses, generated programs of four objects")
    axes[1, 0].set(xlabel="objects", ylabel="rows")
    axes[1, 1].set(xlabel="clauses")


PART = Part(
    "growth", "rows and times by number of objects and of clauses, beside the dense reference",
    (Table("growth_objects", ObjectsRow, ("program", "objects")), Table("growth_clauses", ClausesRow, ("clauses",))),
    measure, tell, draw,
)
