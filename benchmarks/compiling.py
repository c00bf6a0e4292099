"""Compile times: text to plan in fresh processes, beside grounding in plain Python in the same process.

Imports are not counted, building the grammar is. The baseline (`naive.py`) does one stage of ours, the rows, and
starts from the checked program; `ground` is what that stage takes here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nsfrc.benchmarks import naive
from nsfrc.benchmarks.measure import Compared, compared, in_child, memory_mb, timed, timing
from nsfrc.benchmarks.parts import PROGRAMS, Judged, Part, Results, Table, markdown, seconds, times
from nsfrc.compiler import ir
from nsfrc.compiler.ground import sizes
from nsfrc.compiler.herbrand import Herbrand
from nsfrc.compiler.stages import Options, compile_file

LARGE = ("threepairs", 12)
RUNS = 3
BASELINE = "naive grounding"
# Body atoms of all rows that the baseline grounds in about 20 seconds.
MOST_ATOMS = 16_000_000
# Of a fresh process a part is spent waiting for files and memory, which varies more than computing does.
FRESH_SLACK = 0.3


@dataclass(frozen=True)
class CompileRow(Compared):
    """Text to plan, beside the baseline's rows; `slots` objects, as declared or overridden.

    ground: seconds of our own grounding; rows_live, rows_plan, products: before and after the passes; peak_gb: of the
    process, imports included.
    """

    program: str
    slots: int
    rows_live: int
    rows_plan: int
    products: int
    ground: float
    ground_ratio: float | None
    peak_gb: float
    note: str

    def __str__(self) -> str:
        base = f"naive grounding {seconds(self.baseline_median)}  {times(self.ratio)}" if self.ratio else self.note
        return f"{self.program:13} slots={self.slots:<3} {seconds(self.median):>8}  {self.rows_live:>9,} live rows → " \
            f"{self.rows_plan:>7,}  {base}"


# The peak is read before the baseline runs; what `in_child` reads at the end would be the baseline's.
CHILD = """
from nsfrc.benchmarks.compiling import compile_once
result.update(compile_once({program!r}, {slots!r}, {baseline!r}))
"""


def compile_once(name: str, slots: int | None, baseline: bool) -> dict[str, float]:
    """What one compilation took and made; to be run in a process of its own. slots: objects, or as declared."""
    start = time.perf_counter()
    done = compile_file(name, Options({} if slots is None else {"object": slots}))
    result: dict[str, float] = {
        "seconds": time.perf_counter() - start, "ground": done.seconds["ground"],
        "compile_gb": memory_mb("VmHWM") / 1e3,
        "slots": next(len(t.constants) for t in done.program.types if t.role == ir.OBJECT),
        "rows_live": done.ground.rows, "rows_plan": done.plan.rows, "products": done.plan.products,
        "atoms": _body_atoms(done.program),
    }
    if baseline and result["atoms"] <= MOST_ATOMS:
        result["naive"] = timed(lambda: naive.rows(done.program), budget=0.1).median
    return result


def _body_atoms(program: ir.Program) -> int:
    """How many body atoms the rows of a program have."""
    counted = sizes(program, Herbrand.of(program.types, program.predicates))
    return sum(size.rows * len(clause.body) for size, clause in zip(counted, program.clauses, strict=True))


def compiled(name: str, slots: int | None = None, runs: int = RUNS, baseline_runs: int | None = None) -> CompileRow:
    """A row from `runs` fresh processes, of which the first `baseline_runs` (all) run the baseline too."""
    most = runs if baseline_runs is None else baseline_runs
    found = [in_child(CHILD.format(program=name, slots=slots, baseline=run < most)) for run in range(runs)]
    base = [one["naive"] for one in found if "naive" in one]
    mine, ground, first = timing(one["seconds"] for one in found), timing(one["ground"] for one in found), found[0]
    note = "" if base else f"{first['atoms']:,.0f} body atoms would take the baseline over 20 s"
    return CompileRow(
        **compared(mine, BASELINE, timing(base) if base else None), program=name, slots=int(first["slots"]),
        rows_live=int(first["rows_live"]), rows_plan=int(first["rows_plan"]), products=int(first["products"]),
        ground=ground.median, ground_ratio=timing(base).median / ground.median if base else None,
        peak_gb=max(one["compile_gb"] for one in found), note=note,
    )


def measure(quick: bool, folder: Path) -> Iterator[CompileRow]:
    for name in PROGRAMS:
        yield compiled(name, runs=1 if quick else RUNS)
    if not quick:
        yield compiled(*LARGE, baseline_runs=1)


def tell(results: Results) -> str:
    lines = [
        [f"{row.program}, {row.slots} objects", f"{row.rows_live:,}", f"{row.rows_plan:,}", seconds(row.median),
         seconds(row.ground), seconds(row.baseline_median) if row.ratio else row.note, times(row.ground_ratio),
         times(row.ratio), f"{row.peak_gb * 1e3:,.0f} MB"]
        for row in results.get("compile", [])
    ]
    header = ["program", "live rows", "rows in the plan", "text to plan", "of it grounding", BASELINE,
              "naive / grounding", "naive / all of it", "peak memory"]
    return markdown(header, lines) + (
        "\n\nText to plan in a fresh process, beside the time that loops in plain Python take for the rows alone: on "
        "small programs most of our time is the grammar, which every compilation builds, and the passes."
    )


PART = Part(
    "compile", "text to plan in fresh processes, beside grounding by loops in plain Python",
    (Table("compile", CompileRow, ("program", "slots"), (Judged("ratio", slack=FRESH_SLACK),)),), measure, tell,
)
