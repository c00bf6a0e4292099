"""The two semantics side by side: every program as `anchored` and as `paper`, forwards and with gradients.

    nsfrc bench --parts semantics

Targets from neural atoms, one thread, `anchored` timed in turns with `paper`; and, forwards where it fits in memory, in
turns with the dense `anchored` reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import nsfrc
from nsfrc.benchmarks.dense import gathered_gb
from nsfrc.benchmarks.measure import Compared, compared, timed_beside
from nsfrc.benchmarks.parts import PROGRAMS, Judged, Part, Results, Table, markdown, seconds, times
from nsfrc.benchmarks.reasoning import valuations
from nsfrc.compiler import ir
from nsfrc.contexts import torch_threads
from nsfrc.program import Program

BATCHES, QUICK_BATCHES = (1, 50, 1000), (1, 50)
QUICK_PROGRAMS = ("twopairs", "closeby", "clevr_hans7")
DENSE_GB = 0.3


@dataclass(frozen=True)
class SemanticsRow(Compared):
    """One program, batch and way: `anchored`, with `paper` as its baseline; dense_ratio: to the dense reference."""

    program: str
    batch: int
    way: str
    dense_median: float | None
    dense_ratio: float | None

    def __str__(self) -> str:
        return (f"{self.program:<13} batch {self.batch:<5} {self.way:<8} {seconds(self.median):>8}  "
                f"paper {seconds(self.baseline_median):>8}  {times(self.ratio):>6}  dense {times(self.dense_ratio):>8}")


def as_semantics(name: str, semantics: str) -> Program:
    """A shipped program under either semantics."""
    source = nsfrc.compile(name).source
    return nsfrc.compile(replace(source, settings=replace(source.settings, semantics=semantics)))


def measure(quick: bool, folder: Path) -> Iterator[SemanticsRow]:
    for name in QUICK_PROGRAMS if quick else PROGRAMS:
        anchored, paper = as_semantics(name, ir.ANCHORED), as_semantics(name, ir.PAPER)
        for batch in QUICK_BATCHES if quick else BATCHES:
            for way in ("forward", "gradient"):
                with torch_threads(1):
                    row = _row(anchored, paper, batch, way, 0.1 if quick else 0.4)
                yield row


def _row(anchored: Program, paper: Program, batch: int, way: str, budget: float) -> SemanticsRow:
    mine, theirs = timed_beside(_work(anchored, batch, way), _work(paper, batch, way), budget)
    dense = None
    if way == "forward" and gathered_gb(anchored, batch) <= DENSE_GB:
        again, dense = timed_beside(_work(anchored, batch, way), _work(anchored, batch, way, "reference"), budget)
    return SemanticsRow(
        **compared(mine, "paper", theirs), program=anchored.name, batch=batch, way=way,
        dense_median=None if dense is None else dense.median,
        dense_ratio=None if dense is None else dense.median / again.median,
    )


def _work(program: Program, batch: int, way: str, engine: str = "cpu") -> Callable[[], object]:
    reasoner = program.reasoner(engine, outputs="targets", inputs="neural")
    V0 = valuations(program, batch)

    def forward() -> None:
        with torch.no_grad():
            reasoner(V0)

    def gradient() -> None:
        values = V0.detach().requires_grad_()
        reasoner(values).sum().backward()

    work = forward if way == "forward" else gradient
    work()  # the first call of all compiles the kernels
    return work


def tell(results: Results) -> str:
    rows: list[SemanticsRow] = results["semantics"]
    cells = {(r.program, r.batch, r.way): f"{seconds(r.median)} ({times(r.ratio)})" for r in rows}
    columns = list(dict.fromkeys((r.batch, r.way) for r in rows))
    lines = [[name, *(cells.get((name, *column), "–") for column in columns)]
             for name in dict.fromkeys(r.program for r in rows)]
    table = markdown(["program", *(f"{way}, batch {batch}" for batch, way in columns)], lines)
    known = [r.dense_ratio for r in rows if r.dense_ratio]
    dense = f" Its dense reference takes {times(min(known))} to {times(max(known))} as long." if known else ""
    return f"{table}\n\nSeconds per batch of `anchored` on one thread, and how many times as fast as `paper` in the " \
        f"same run it is.{dense}"


PART = Part(
    "semantics", "anchored beside paper, forwards and with gradients",
    (Table("semantics", SemanticsRow, ("program", "batch", "way"),
           judged=(Judged("ratio"), Judged("dense_ratio", slack=0.3))),),
    measure, tell,
)
