"""Reasoning and compile times of all eight programs, as ratios to the dense reference in the same run.

    python -m nsfrc.benchmarks.reasoning            everything, about 10 minutes on two cores
    python -m nsfrc.benchmarks.reasoning --quick    batches 1 and 50, one thread

Writes results/reasoning.csv, results/compile.csv and results/reasoning.png. The dense reference is
run where its gathered values fit in 1 GB; beyond that its columns are empty and `dense_gb` says why.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numba import njit

import nsfrc
from nsfrc.benchmarks.measure import RESULTS, Timing, in_child, timed, write_csv
from nsfrc.engines.cpu.maths import KERNEL, exp2, log2
from nsfrc.program import Program

PROGRAMS = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles",
            "clevr_hans3", "clevr_hans7")
BATCHES = (1, 5, *range(10, 51, 5), 200, 1000)
DENSE_LIMIT_GB = 1.0


@dataclass(frozen=True)
class Row:
    """One program, batch and thread count: V0 → V_T of all atoms, and of the targets alone."""

    program: str
    batch: int
    threads: int
    steps: int
    cpu_median: float
    cpu_p20: float
    cpu_p80: float
    targets_median: float
    dense_median: float | None
    dense_p20: float | None
    dense_p80: float | None
    dense_gb: float
    speedup: float | None
    bound: float
    over_bound: float
    over_exp: float


@dataclass(frozen=True)
class CompileRow:
    """Text to plan in a fresh process, grammar construction included, imports not."""

    case: str
    rows_live: int
    rows_plan: int
    products: int
    seconds: float
    peak_gb: float


@dataclass(frozen=True)
class Throughput:
    """Nanoseconds per lane of the engine's own exp2, log2 and a multiplication, on arrays in the first cache."""

    exp: float
    log: float
    mul: float


@njit(**KERNEL)
def _exps(x, y):
    for i in range(len(x)):
        y[i] = exp2(x[i])


@njit(**KERNEL)
def _logs(x, y):
    for i in range(len(x)):
        y[i] = log2(x[i])


@njit(**KERNEL)
def _muls(x, y):
    for i in range(len(x)):
        y[i] = x[i] * x[i]


@njit
def _repeat(which, x, y, times):
    for _ in range(times):
        if which == 0:
            _exps(x, y)
        elif which == 1:
            _logs(x, y)
        else:
            _muls(x, y)


def throughput() -> Throughput:
    x = np.random.default_rng(0).random(1024, dtype=np.float32) + np.float32(0.5)
    y = x.copy()
    _repeat(0, x, y, 1)  # compiles
    times = [timed(lambda which=which: _repeat(which, x, y, 100), 0.05).median for which in range(3)]
    return Throughput(*(seconds / 100 / len(x) * 1e9 for seconds in times))


def bounds(program: Program, batch: int, speed: Throughput) -> tuple[float, float]:
    """Seconds that all exponentials, logarithms and products alone would take in one thread; and the exps only."""
    plan = program.plan
    pairs, heads = len(plan.pair_clause), len(plan.heads)
    exps = (plan.rows + 2 * pairs + heads + plan.C + plan.active) * speed.exp
    logs = (pairs + heads + 1 + plan.active) * speed.log
    times = batch * program.steps * 1e-9
    return (exps + logs + plan.products * speed.mul) * times, exps * times


def valuations(program: Program, batch: int) -> torch.Tensor:
    generator = np.random.default_rng(batch)
    V0 = np.tile(program.initial_valuation(), (batch, 1))
    neural = program.ground.neural
    V0[:, neural] = generator.beta(0.3, 0.3, (batch, int(neural.sum())))
    return torch.from_numpy(V0)


def reason(program: Program, batch: int, threads: int) -> Row:
    torch.set_num_threads(threads)
    ground, V0 = program.ground, valuations(program, batch)
    dense_gb = batch * ground.G * ground.S * ground.L * 4 / 1e9
    with torch.no_grad():
        every, targets = program.reasoner(), program.reasoner(outputs="targets", inputs="neural")
        every(V0), targets(V0)  # the first call of all compiles the kernels
        cpu, only = timed(lambda: every(V0)), timed(lambda: targets(V0))
        speed = throughput()  # now, because the clock of a shared machine wanders
        dense: Timing | None = None
        if dense_gb <= DENSE_LIMIT_GB:
            reference = program.reasoner("reference")
            dense = timed(lambda: reference(V0), budget=1.0)
    least, exps = (seconds / threads for seconds in bounds(program, batch, speed))
    return Row(
        program.name, batch, threads, program.steps, cpu.median, cpu.p20, cpu.p80, only.median,
        dense and dense.median, dense and dense.p20, dense and dense.p80, dense_gb,
        dense and dense.median / cpu.median, least, only.median / least, only.median / exps,
    )


COMPILE = """
import time
from nsfrc.compiler import compile_file
start = time.perf_counter()
done = compile_file({name!r}, slots={slots!r})
result.update(seconds=time.perf_counter() - start, rows_live=done.ground.rows, rows_plan=done.plan.rows,
              products=done.plan.products)
"""

MEMORY = """
import torch
from nsfrc.program import open_program
from nsfrc.benchmarks.reasoning import valuations
program = open_program("clevr_hans7")
V0 = valuations(program, 1000)
program.reasoner()(V0)
"""


def compiled(name: str, slots: dict[str, int] | None = None) -> CompileRow:
    result = in_child(COMPILE.format(name=name, slots=slots))
    case = name + "".join(f" {k}={v}" for k, v in (slots or {}).items())
    return CompileRow(
        case, int(result["rows_live"]), int(result["rows_plan"]), int(result["products"]),
        result["seconds"], result["peak_gb"],
    )


def plot(rows: list[Row], path: Path) -> None:
    """Time by batch size, a panel a program, with the speed-up at batch 50 (else at the largest dense batch)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(15, 7), sharex=True)
    for name, axis in zip(PROGRAMS, axes.flat, strict=True):
        mine = [r for r in rows if r.program == name]
        for threads, style in ((1, "-o"), (2, "--s")):
            part = [r for r in mine if r.threads == threads]
            if not part:
                continue
            dense = [r for r in part if r.dense_median]
            axis.plot([r.batch for r in dense], [r.dense_median for r in dense], style, color="#b03030", ms=3,
                      label=f"dense reference, {threads} thread{'s' * (threads > 1)}")
            axis.plot([r.batch for r in part], [r.cpu_median for r in part], style, color="#2a4bd7", ms=3,
                      label=f"cpu engine, {threads} thread{'s' * (threads > 1)}")
        known = [r for r in mine if r.speedup and r.threads == 1 and r.batch <= 50]
        best = f"\n{known[-1].speedup:,.0f}× at batch {known[-1].batch}, one thread" if known else ""
        axis.set(title=f"{name}{best}", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("batch size")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds a batch")
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def show(row: Row) -> None:
    dense = f"dense {row.dense_median * 1e3:10.2f} ms  {row.speedup:9,.0f}×" if row.dense_median and row.speedup \
        else f"dense needs {row.dense_gb:,.1f} GB"
    print(f"{row.program:13} B={row.batch:<5} threads={row.threads}  cpu {row.cpu_median * 1e3:9.3f} ms  "
          f"targets {row.targets_median * 1e3:9.3f} ms ({row.over_bound:.2f}× bound, {row.over_exp:.2f}× exp)  {dense}",
          flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="batches 1 and 50 with one thread")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    speed = throughput()
    print(f"now, one lane: exp2 {speed.exp:.3f} ns, log2 {speed.log:.3f} ns, product {speed.mul:.3f} ns")
    rows = []
    for name in options.programs:
        program = nsfrc.compile(name)
        for batch in (1, 50) if options.quick else BATCHES:
            for threads in (1,) if options.quick else (1, 2):
                rows.append(reason(program, batch, threads))
                show(rows[-1])
        write_csv(options.out / "reasoning.csv", rows)  # after every program, so that stopping early loses little
    compiles = [compiled(name) for name in options.programs]
    compiles.append(compiled("threepairs", {"object": 12}))
    write_csv(options.out / "compile.csv", compiles)
    for row in compiles:
        print(f"compile {row.case:22} {row.seconds:6.2f} s  {row.peak_gb:5.2f} GB  {row.rows_live:>9,} live rows"
              f" → {row.rows_plan:>7,}")
    print(f"peak memory of clevr_hans7 at batch 1000, torch included: {in_child(MEMORY)['peak_gb']:.2f} GB")
    if set(options.programs) == set(PROGRAMS):
        plot(rows, options.out / "reasoning.png")
        print(f"written: {options.out}/reasoning.csv, compile.csv, reasoning.png")


if __name__ == "__main__":
    main()
