"""What the kernels of every program do for 32 examples: counted while engine "ptx" executes them.

Nothing here is a time: a card may hide or add to any of it. Counts of one version do not change from run to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from nsfrc.benchmarks.parts import PROGRAMS, Judged, Part, Results, Table, markdown
from nsfrc.engines.ptx.tally import KernelCounts, tally
from nsfrc.program import Program
from nsfrc.program import compile as compile_program

ARCHS = ("sm_80", "sm_90")
QUICK = ("closeby", "twopairs")


@dataclass(frozen=True)
class PtxRow(KernelCounts):
    """What a kernel of a program does."""

    program: str


def counted_program(name: str) -> Program:
    """A shipped program, clevr_hans7 with fewer objects: executing it takes long."""
    return compile_program(name, slots={"object": 4} if name == "clevr_hans7" else None)


def measure(quick: bool, folder: Path) -> Iterator[PtxRow]:
    for name in QUICK if quick else PROGRAMS:
        program = counted_program(name)
        for arch in ARCHS[:1] if quick else ARCHS:
            for one in tally(program, arch):
                yield PtxRow(program=name, **asdict(one))


def tell(results: Results) -> str:
    rows: list[PtxRow] = [row for row in results["ptx"] if row.arch == ARCHS[0]]
    lines = [
        [row.program, row.kernel, f"{row.instructions:,}", f"{row.barriers:,}", f"{row.sectors_per_load:.2f}",
         f"{row.loaded_used:.0%}", f"{row.bank_passes:.2f}", f"{row.missed_bytes / 1024:,.0f} kB"]
        for row in rows
    ]
    header = ["program", "kernel", "instructions of warps", "barriers", "sectors a load", "of them used", "bank passes",
              "missed by 40 MB"]
    return "Machine code for sm_80, executed on the CPU for 32 examples (clevr_hans7 with 4 objects).\n\n" \
        + markdown(header, lines)


JUDGED = (
    Judged("instructions", higher_is_better=False, slack=0.01), Judged("barriers", higher_is_better=False, slack=0.0),
)
PART = Part(
    "ptx", "what the GPU kernels do, counted without a GPU",
    (Table("ptx", PtxRow, ("program", "kernel", "arch"), JUDGED),),
    measure, tell,
)
