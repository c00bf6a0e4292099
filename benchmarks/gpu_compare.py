"""A card beside engine "ptx": the same examples on both, bit by bit, and instructions where a profiler is there.

    python -m nsfrc.benchmarks.gpu_compare [--program twopairs] [--out DIR]

`make gpu-check` starts it. What is compared are values and gradients of 32 examples, which may differ in their last
digits where a card's approximate functions do: further apart than the tests allow is an error. With NVIDIA's `ncu` on
the PATH each program is run once more under it, and instructions of warps and sectors of global memory are set beside
those that engine "ptx" counts, of PTX and not of what ptxas makes of it. Writes bits.csv and counts.csv. It was written
without a card and has never run on one; only what reads the profiler's answer is tested.
"""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.parts import PROGRAMS
from nsfrc.benchmarks.ptx import counted_program
from nsfrc.benchmarks.reasoning import valuations
from nsfrc.program import Program

BATCH = 32
VALUES, GRADIENTS = 2e-6, 1e-4
# Of `ncu`, by the name of what engine "ptx" counts; several are added.
METRICS = {
    "instructions": ("smsp__inst_executed.sum",),
    "sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
}
LONGEST = 1800  # seconds of a program under the profiler


@dataclass(frozen=True)
class BitsRow:
    """what: "values" or "gradients". different: numbers whose bits differ; most_units: by how many units in the last
    place at most; largest: difference, relative to the largest gradient for these."""

    card: str
    program: str
    what: str
    numbers: int
    different: int
    most_units: int
    largest: float


@dataclass(frozen=True)
class CountsRow:
    """what: a name of METRICS, for all launches of a kernel, forwards, forwards to keep, and backwards."""

    card: str
    program: str
    kernel: str
    what: str
    on_card: int
    in_ptx: int
    ratio: float


def answers(program: Program, engine: str, device: torch.device | str, **options: Any) -> dict[str, torch.Tensor]:
    """Values without gradients wanted, then gradients."""
    reasoner = program.reasoner(engine, inputs="neural", outputs="targets", **options)
    V0 = valuations(program, BATCH).float().to(device)
    with torch.no_grad():
        values = reasoner(V0)
    (gradients,) = torch.autograd.grad(reasoner(V0.requires_grad_()).sum(), V0)
    return {"values": values.cpu(), "gradients": gradients.cpu()}


def units(mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """How many float32 lie between numbers, and one more: 0 where bits are equal, except that 0 equals -0."""
    ordered = []
    for numbers in (mine, theirs):
        bits = numbers.contiguous().view(torch.int32).long()
        ordered.append(torch.where(bits < 0, -(bits & 0x7FFFFFFF), bits))
    return (ordered[0] - ordered[1]).abs()


def compared(card: str, program: str, mine: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> list[BitsRow]:
    rows = []
    for what, numbers in mine.items():
        apart, difference = units(numbers, theirs[what]), (numbers.double() - theirs[what].double()).abs().max()
        scale = 1.0 if what == "values" else float(theirs[what].abs().max().clamp(min=1e-3))
        rows.append(BitsRow(card, program, what, numbers.numel(), int((apart > 0).sum()), int(apart.max()),
                            float(difference) / scale))
    return rows


def too_far(row: BitsRow) -> bool:
    return not row.largest <= (VALUES if row.what == "values" else GRADIENTS)  # NaN is too far as well


def profiled(text: str) -> dict[str, Counter[str]]:
    """What `ncu --csv` says: the sum of every metric over all launches of a kernel."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found: dict[str, Counter[str]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))):
        kernel = row["Kernel Name"].partition("(")[0]
        found.setdefault(kernel, Counter())[row["Metric Name"]] += int(float(row["Metric Value"].replace(",", "")))
    return found


def under_profiler(ncu: str, program: str) -> str:
    """Its answer, or "" if it has none, with why on the terminal."""
    metrics = ",".join(name for names in METRICS.values() for name in names)
    run = [sys.executable, "-m", "nsfrc.benchmarks.gpu_compare", "--run", program]
    command = [ncu, "--csv", "--metrics", metrics, *run]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{program}: ncu did not run: {error}")
        return ""
    if done.returncode or '"ID"' not in done.stdout:
        why = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("==ERROR==")]
        print(f"{program}: ncu gave no counts: {why[0] if why else f'exit code {done.returncode}'}")
        return ""
    return done.stdout


def beside(card: str, program: Program, arch: str, text: str) -> Iterator[CountsRow]:
    """Counts of the profiler and of engine "ptx", for kernels that both have."""
    from nsfrc.engines.ptx.tally import tally

    here: dict[str, Counter[str]] = {}
    for one in tally(program, arch, BATCH):
        mine = here.setdefault(one.kernel.partition(".")[0], Counter())
        mine.update({"instructions": one.instructions, "sectors": one.sectors})
    there = profiled(text)
    for kernel in here.keys() & there.keys():
        for what, names in METRICS.items():
            seen, counted = sum(there[kernel][name] for name in names), here[kernel][what]
            yield CountsRow(card, program.name, kernel, what, seen, counted, seen / max(1, counted))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="may be repeated [all]")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu")
    parser.add_argument("--run", choices=PROGRAMS, help=argparse.SUPPRESS)  # on the card alone, for the profiler
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("torch finds no CUDA device, so there is nothing to compare")
        return 0
    if options.run:
        answers(counted_program(options.run), "gpu", "cuda")
        return 0
    card, ncu = torch.cuda.get_device_name(), shutil.which("ncu")
    arch = "sm_90" if torch.cuda.get_device_capability()[0] >= 9 else "sm_80"
    bits: list[BitsRow] = []
    counts: list[CountsRow] = []
    for name in options.program or PROGRAMS:
        program = counted_program(name)
        rows = compared(card, name, answers(program, "gpu", "cuda"), answers(program, "ptx", "cpu", arch=arch))
        bits += rows
        for row in rows:
            print(f"{name}: {row.different} of {row.numbers} {row.what} differ, by {row.most_units} units in the last "
                  f"place at most, {row.largest:.1e}", flush=True)
        write_csv(options.out / "bits.csv", bits)
        if ncu and (text := under_profiler(ncu, name)):
            counts += beside(card, program, arch, text)
            write_csv(options.out / "counts.csv", counts)
    if not ncu:
        print("ncu is not on the PATH, so instructions and sectors are not compared")
    for count in counts:
        print(f"{count.program} {count.kernel}: {count.on_card:,} {count.what} on the card, {count.in_ptx:,} in PTX")
    return int(any(map(too_far, bits)))


if __name__ == "__main__":
    sys.exit(main())
