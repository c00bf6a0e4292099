"""Registers, spills, shared memory and size of every kernel of all eight programs, compiled without a GPU.

    python -m nsfrc.benchmarks.aot            about twenty minutes on two cores
    python -m nsfrc.benchmarks.aot --quick    hard weights only
    python -m nsfrc.benchmarks.aot --all      also the tables for all inputs and outputs

Every kernel is compiled for sm_80 (A100) and sm_90 (H100), with hard weights and with soft ones (M = C), for
neural inputs and target outputs. Nothing comes from a cache. Writes results/aot.csv and ends with 1 if
any kernel spills registers. Nothing here has run on a GPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.program import compile as compile_program

os.environ.pop("TRITON_INTERPRET", None)  # before Triton is imported, here and in the workers

from nsfrc.engines.gpu.aot import ARCHS, Kernel, compile_kernel, kernels

PROGRAMS = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles",
            "clevr_hans3", "clevr_hans7")
WORKERS = 2


@dataclass(frozen=True)
class Task:
    """A kernel to compile. tables: "targets" (inputs="neural", outputs="targets") or "all" (both "all")."""

    program: str
    weights: str
    tables: str
    arch: str
    kernel: Kernel


@dataclass(frozen=True)
class KernelRow:
    """One kernel; seconds are those of one worker, with others at work."""

    program: str
    weights: str
    tables: str
    arch: str
    kernel: str
    variant: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    ptx_bytes: int
    cubin_bytes: int
    seconds: float
    triton: str


def tasks(name: str, archs: list[str], sets: int) -> Iterator[Task]:
    """sets: how many of the three to compile."""
    program = compile_program(name)
    for weights, tables in (("hard", "targets"), ("soft", "targets"), ("hard", "all"))[:sets]:
        inputs = "neural" if tables == "targets" else "all"
        for kernel in kernels(program, hard=weights == "hard", inputs=inputs, outputs=tables):
            for arch in archs:
                yield Task(name, weights, tables, arch, kernel)


def compiled(task: Task) -> KernelRow:
    start = time.perf_counter()
    done = compile_kernel(task.kernel, task.arch)
    return KernelRow(
        task.program, task.weights, task.tables, task.arch, done.name, done.variant, done.registers,
        done.spill_bytes, done.stack_bytes, done.shared, len(done.ptx), len(done.cubin),
        time.perf_counter() - start, version("triton"),
    )


HEADER = f"{'program':13} {'weights':7} {'tables':7} {'arch':5} {'kernel':32} {'registers':>9} {'spilled':>7} " \
    f"{'stack':>5} {'shared':>6} {'PTX':>9} {'cubin':>9} {'seconds':>7}"


def show(row: KernelRow) -> None:
    label = f"{row.kernel}.{row.variant}" if row.variant else row.kernel
    print(f"{row.program:13} {row.weights:7} {row.tables:7} {row.arch:5} {label:32} {row.registers:9} "
          f"{row.spill_bytes:7} {row.stack_bytes:5} {row.shared_bytes:6} {row.ptx_bytes:9,} {row.cubin_bytes:9,} "
          f"{row.seconds:7.2f}", flush=True)


def summarise(rows: list[KernelRow]) -> None:
    """The most that a kernel needs, over programs and variants."""
    print(f"\n{'kernel':18} {'arch':5} {'compiled':>8} {'registers':>9} {'spilled':>7} {'stack':>5} {'shared':>6} "
          f"{'PTX':>9} {'cubin':>9} {'seconds':>7}")
    for kernel, arch in dict.fromkeys((r.kernel, r.arch) for r in sorted(rows, key=lambda r: (r.kernel, r.arch))):
        mine = [r for r in rows if (r.kernel, r.arch) == (kernel, arch)]
        print(f"{kernel:18} {arch:5} {len(mine):8} {max(r.registers for r in mine):9} "
              f"{sum(r.spill_bytes for r in mine):7} {max(r.stack_bytes for r in mine):5} "
              f"{max(r.shared_bytes for r in mine):6} {max(r.ptx_bytes for r in mine):9,} "
              f"{max(r.cubin_bytes for r in mine):9,} {sum(r.seconds for r in mine):7.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="hard weights only")
    parser.add_argument("--all", action="store_true", help="also the tables for all inputs and outputs")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--arch", nargs="+", default=tuple(ARCHS), choices=tuple(ARCHS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    sets = 1 if options.quick else 3 if options.all else 2
    start, rows = time.perf_counter(), []
    print(HEADER)
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        for name in options.programs:
            for row in pool.map(compiled, tasks(name, list(options.arch), sets)):
                show(row)
                rows.append(row)
            write_csv(options.out / "aot.csv", rows)  # after every program, so that stopping early loses little
    summarise(rows)
    spilled = [r for r in rows if r.spill_bytes]
    print(f"\n{len(rows)} kernels in {time.perf_counter() - start:.0f} s, {len(spilled)} of them spill registers; "
          f"written: {options.out}/aot.csv")
    return 1 if spilled else 0


if __name__ == "__main__":
    sys.exit(main())
