"""Reasoning V0 → V_T by batch size, engines side by side, each beside the dense reference in the same run.

The dense reference runs where its gathered values fit in memory (`DENSE_GB`); beyond that its columns are empty and
`dense_gb` says why.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

import nsfrc
from nsfrc.benchmarks.bound import bounds, throughput
from nsfrc.benchmarks.dense import gathered_gb
from nsfrc.benchmarks.measure import Compared, compared, timed, timed_beside
from nsfrc.benchmarks.paper_figures_base import BLUE, GREEN, RED
from nsfrc.benchmarks.parts import KANDINSKY, PROGRAMS, Part, Results, Table, markdown, seconds, times
from nsfrc.contexts import torch_threads
from nsfrc.program import Program

BATCHES = (1, 5, *range(10, 51, 5), 100, 200, 500, 1000)
QUICK_BATCHES = (1, 10, 50)
DENSE_GB, QUICK_DENSE_GB = 1.0, 0.1
DENSE = "dense reference"


@dataclass(frozen=True)
class ReasoningRow(Compared):
    """One program, engine, number of threads and batch: V0 → V_T of all atoms.

    targets_median: of the targets alone, from neural atoms. bound: the least seconds for that by `bound.py` (CPU only).
    """

    program: str
    engine: str
    threads: int
    batch: int
    steps: int
    dense_gb: float
    targets_median: float
    bound: float | None
    over_bound: float | None
    over_exp: float | None

    def __str__(self) -> str:
        where = "gpu      " if self.engine == "gpu" else f"{self.threads} thread{'s' if self.threads > 1 else ' '}"
        dense = f"dense {seconds(self.baseline_median):>8}  {times(self.ratio):>8}" if self.ratio else self.without
        return f"{self.program:<13} batch {self.batch:<5} {where}  {seconds(self.median):>8}  {dense}"

    @property
    def without(self) -> str:
        """Why there is no ratio."""
        return f"dense needs {self.dense_gb:,.1f} GB" if self.dense_gb > DENSE_GB else "dense left out"


@dataclass(frozen=True)
class BatchRow:
    """One engine and batch size over the Kandinsky sets: seconds per batch, mean and standard deviation over sets."""

    engine: str
    threads: int
    batch: int
    sets: int
    mean: float
    deviation: float


def valuations(program: Program, batch: int) -> torch.Tensor:
    """Random V0 [batch, G]: neural atoms mostly near 0 or 1, as a perception model would say."""
    generator = np.random.default_rng(batch)
    V0 = np.tile(program.initial_valuation(), (batch, 1))
    neural = program.ground.neural
    V0[:, neural] = generator.beta(0.3, 0.3, (batch, int(neural.sum())))
    return torch.from_numpy(V0)


def measure(quick: bool, folder: Path) -> Iterator[ReasoningRow]:
    for name in KANDINSKY if quick else PROGRAMS:
        program = nsfrc.compile(name)
        for batch in QUICK_BATCHES if quick else BATCHES:
            for threads in (1,) if quick else (1, 2):
                with torch_threads(threads):
                    row = _on_cpu(program, batch, threads, quick)
                yield row
            if torch.cuda.is_available():
                yield _on_gpu(program, batch)


@torch.no_grad()
def _on_cpu(program: Program, batch: int, threads: int, quick: bool) -> ReasoningRow:
    budget = 0.1 if quick else 0.3
    V0 = valuations(program, batch)
    every, targets = program.reasoner(), program.reasoner(outputs="targets", inputs="neural")
    every(V0), targets(V0)  # the first call of all compiles the kernels
    needed = gathered_gb(program, batch)
    fits = needed <= (QUICK_DENSE_GB if quick else DENSE_GB)
    mine, dense = timed_beside(
        partial(every, V0), partial(program.reasoner("reference"), V0) if fits else None, budget
    )
    only, speed = timed(lambda: targets(V0), budget), throughput()  # together, because clocks wander
    least, exps = (bound / threads for bound in bounds(program, batch, speed))
    return ReasoningRow(
        **compared(mine, DENSE, dense), program=program.name, engine="cpu", threads=threads, batch=batch,
        steps=program.steps, dense_gb=needed, targets_median=only.median, bound=least,
        over_bound=only.median / least, over_exp=only.median / exps,
    )


@torch.no_grad()
def _on_gpu(program: Program, batch: int) -> ReasoningRow:
    """Both on the card, waiting for it at the end of every run."""
    V0 = valuations(program, batch).cuda()
    every, targets = program.reasoner("gpu"), program.reasoner("gpu", outputs="targets", inputs="neural")
    needed = gathered_gb(program, batch)
    _waited(every, V0)(), _waited(targets, V0)()  # the first call of all compiles the kernels
    mine, dense = timed_beside(
        _waited(every, V0), _waited(program.reasoner("reference"), V0) if needed <= DENSE_GB else None
    )
    return ReasoningRow(
        **compared(mine, DENSE, dense), program=program.name, engine="gpu", threads=1, batch=batch,
        steps=program.steps, dense_gb=needed, targets_median=timed(_waited(targets, V0)).median, bound=None,
        over_bound=None, over_exp=None,
    )


def _waited(reasoner: torch.nn.Module, V0: torch.Tensor) -> Callable[[], None]:
    """A run that ends when the card has ended."""
    def run() -> None:
        reasoner(V0)
        torch.cuda.synchronize()

    return run


def by_batch(results: Results) -> Results:
    """The Kandinsky sets as one: a row for each engine, number of threads and batch, and for the dense reference."""
    found: dict[tuple[str, int, int], list[float]] = {}
    for row in results["reasoning"]:
        if row.program in KANDINSKY:
            found.setdefault((row.engine, row.threads, row.batch), []).append(row.median)
            if row.baseline_median is not None and row.engine == "cpu":
                found.setdefault(("dense", row.threads, row.batch), []).append(row.baseline_median)
    return {"reasoning_by_batch": [
        BatchRow(*key, len(values), statistics.mean(values), statistics.pstdev(values))
        for key, values in sorted(found.items())
    ]}


def tell(results: Results) -> str:
    rows = [r for r in results["reasoning"] if r.threads == 1 and r.engine == "cpu"]
    batches = sorted({r.batch for r in rows})
    shown = [b for b in (1, 10, 50, 1000) if b in batches]
    lines = []
    for name in dict.fromkeys(r.program for r in rows):
        mine = {r.batch: r for r in rows if r.program == name}
        lines.append([name, *(_cell(mine[b]) if b in mine else "–" for b in shown)])
    table = markdown(["program", *(f"batch {b}" for b in shown)], lines)
    return f"{table}\n\nSeconds per batch of the CPU engine on one thread, and how many times as fast as the dense " \
        "reference on one thread in the same run it is."


def _cell(row: ReasoningRow) -> str:
    return f"{seconds(row.median)} ({times(row.ratio) if row.ratio else row.without})"


STYLES = {1: "-o", 2: "--s"}
COLORS = {"dense": RED, "cpu": BLUE, "gpu": GREEN}


def draw(results: Results, folder: Path) -> list[Path]:
    """A panel a program: seconds by batch size. The programs together are drawn by `paper_figures_batch`."""
    from matplotlib import pyplot as plt

    rows, path = results["reasoning"], folder / "reasoning.png"
    programs = list(dict.fromkeys(r.program for r in rows))
    figure, grid = plt.subplots(2, -(-len(programs) // 2), figsize=(3.7 * -(-len(programs) // 2), 7.3), sharex=True,
                                squeeze=False, layout="constrained")
    for axis in grid.flat[len(programs):]:
        axis.set_visible(False)
    for name, axis in zip(programs, grid.flat, strict=False):
        mine = [r for r in rows if r.program == name]
        for engine, threads in sorted({(r.engine, r.threads) for r in mine}):
            part = [r for r in mine if (r.engine, r.threads) == (engine, threads)]
            label = engine if engine == "gpu" else f"cpu engine, {threads} thread{'s' * (threads > 1)}"
            axis.plot([r.batch for r in part], [r.median for r in part], STYLES[threads], color=COLORS[engine], ms=3,
                      label=label)
            dense = [r for r in part if r.baseline_median]
            axis.plot([r.batch for r in dense], [r.baseline_median for r in dense], STYLES[threads], ms=3,
                      color=COLORS["dense"], label=f"dense reference, {label.partition(', ')[2] or label}")
        known = [r for r in mine if r.ratio and r.threads == 1 and r.engine == "cpu" and r.batch <= 50]
        best = f"\n{times(known[-1].ratio)} at batch {known[-1].batch}, one thread" if known else ""
        axis.set(title=f"{name}{best}", xscale="log", yscale="log", xlabel="batch size", ylabel="seconds per batch")
        axis.grid(alpha=0.3)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return [path]


PART = Part(
    "reasoning", "V0 to V_T by batch size, engines side by side",
    (Table("reasoning", ReasoningRow, ("program", "engine", "threads", "batch")),
     Table("reasoning_by_batch", BatchRow, ("engine", "threads", "batch"), judged=())),
    measure, tell, draw, by_batch,
)
