"""Peak memory of reasoning V0 → V_T: what the CPU engine adds, beside what the dense reference adds.

Counted from where a process stands that has imported everything, loaded the kernels and built V0, to the peak while
the reasoner is built and run once. One process per program; before each count freed memory is given back to the system
and the peak set back, so that nothing that came before hides what is counted.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsfrc.benchmarks import dense
from nsfrc.benchmarks.measure import in_child, memory_mb
from nsfrc.benchmarks.parts import PROGRAMS, Judged, Part, Results, Table, markdown, times
from nsfrc.program import Program, open_program

if TYPE_CHECKING:
    import torch

QUICK = ("twopairs", "red_triangle")
BATCHES = (50, 1000)
DENSE_LIMIT_MB = 1000.0
# The kernel counts pages in lots, and libraries allocate a little at first use: below this nothing is known.
RESOLUTION_MB = 1.0


@dataclass(frozen=True)
class MemoryRow:
    """One program and batch: MB that reasoning adds to a process, all atoms computed, without gradients.

    ratio: of the baseline's MB to ours; at_least says that ours is below the resolution, which then stands in its
    place. Empty where the baseline was not run or is below the resolution too. baseline_computed_mb: what the
    baseline needs at least by its tensors' shapes.
    """

    program: str
    batch: int
    mb: float
    baseline: str
    baseline_mb: float | None
    baseline_computed_mb: float
    ratio: float | None
    at_least: bool
    note: str

    def __str__(self) -> str:
        base = f"dense {shown(self.baseline_mb)}  {compare(self)}" if self.baseline_mb is not None else self.note
        return f"{self.program:13} B={self.batch:<5} {shown(self.mb):>9}  {base}"


# What the child reports has plain names: cpu_50 is the CPU engine's MB at batch 50.
CHILD = """
from nsfrc.benchmarks.memory import reasoning_mb
result.update(reasoning_mb({program!r}, {batches!r}))
"""


def reasoning_mb(name: str, batches: tuple[int, ...]) -> dict[str, float]:
    """MB that each engine adds at each batch, and what the dense one needs by its shapes; in a process of its own."""
    import torch

    from nsfrc.benchmarks.reasoning import valuations

    torch.set_num_threads(1)
    small, program = open_program("closeby"), open_program(name)
    result: dict[str, float] = {}
    with torch.no_grad():
        for engine in ("cpu", "reference"):  # the first call of all loads or compiles kernels
            small.reasoner(engine)(valuations(small, BATCHES[0]))
        for batch in batches:
            result |= {f"{what}_{batch}": mb for what, mb in _batch_mb(program, valuations(program, batch)).items()}
    return result


def _batch_mb(program: Program, V0: torch.Tensor) -> dict[str, float]:
    batch = len(V0)
    found = {
        "cpu": added_mb(lambda: fresh(program).reasoner("cpu")(V0)),
        "gathered": 1e3 * dense.gathered_gb(program, batch),
        "computed": dense.peak(program.plan, program.steps, batch, False) / 1e6,
    }
    if found["gathered"] <= DENSE_LIMIT_MB:
        found["reference"] = added_mb(lambda: fresh(program).reasoner("reference")(V0))
    return found


def fresh(program: Program) -> Program:
    """The same program without what it has cached."""
    return replace(program)


def added_mb(work: Callable[[], object]) -> float:
    """How far the memory of this process rises above where it stands while `work` runs."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")  # sets the peak back to what is held now
    before = memory_mb("VmRSS")
    work()
    return max(memory_mb("VmHWM") - before, 0.0)


def memory_row(program: str, batch: int, mb: float, base: float | None, computed: float, gathered: float) -> MemoryRow:
    """The row of one measurement; see `MemoryRow` for where the ratio is empty."""
    known = base is not None and base >= RESOLUTION_MB
    note = "" if base is not None else f"dense not run: {gathered / 1e3:,.1f} GB for the values of one clause"
    return MemoryRow(
        program, batch, mb, "dense reference", base, computed,
        base / max(mb, RESOLUTION_MB) if known and base is not None else None, mb < RESOLUTION_MB, note,
    )


def measure(quick: bool, folder: Path) -> Iterator[MemoryRow]:
    batches = BATCHES[:1] if quick else BATCHES
    for name in QUICK if quick else PROGRAMS:
        found = in_child(CHILD.format(program=name, batches=batches))
        for batch in batches:
            mb, computed, gathered = (found[f"{what}_{batch}"] for what in ("cpu", "computed", "gathered"))
            yield memory_row(name, batch, mb, found.get(f"reference_{batch}"), computed, gathered)


def shown(mb: float | None) -> str:
    """12.34 → 12 MB; below the resolution: < 1 MB."""
    if mb is None:
        return "–"
    return f"< {RESOLUTION_MB:g} MB" if mb < RESOLUTION_MB else f"{mb:,.1f} MB" if mb < 10 else f"{mb:,.0f} MB"


def compare(row: MemoryRow) -> str:
    return "–" if row.ratio is None else f"over {times(row.ratio)}" if row.at_least else times(row.ratio)


def tell(results: Results) -> str:
    lines = [
        [row.program, str(row.batch), shown(row.mb),
         shown(row.baseline_mb) if row.baseline_mb is not None else f"{row.baseline_computed_mb:,.0f} MB (computed)",
         compare(row)]
        for row in results.get("memory", [])
    ]
    return markdown(["program", "batch", "nsfrc", "dense reference", "dense / nsfrc"], lines) + (
        "\n\nMemory that building the reasoner and running it once adds to a process that has loaded everything. Below "
        f"{RESOLUTION_MB:g} MB it cannot be told apart from the process itself. Where the dense form was not run, what "
        "its tensors need is computed from their shapes."
    )


PART = Part(
    "memory", "peak memory of reasoning, beside the dense reference",
    (Table("memory", MemoryRow, ("program", "batch"), (Judged("mb", False, RESOLUTION_MB, True),)),), measure, tell,
)
