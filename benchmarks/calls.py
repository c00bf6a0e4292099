"""Calls of the CPU engine: from Python at B = 1, beside the exp/log/mul bound, on two threads, and backwards.

    python -m nsfrc.benchmarks.calls [--against FOLDER] [--rounds 7] [--only TEXT]

One row for each of CASES. What a case is compared with runs in turns with it, in the same process; so does another
version's sources, FOLDER, in a process of its own (columns `earlier`). The bound is what the plan's exponentials,
logarithms and products take at full throughput (`bound.py`), measured in the same turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.parts import markdown, seconds, times
from nsfrc.benchmarks.versions import ROOT, Version

SMALL = ("twopairs", "closeby", "red_triangle", "online_pair", "clevr_hans3")
BUDGET = 0.08  # seconds for one turn of one way


@dataclass(frozen=True)
class Way:
    """How a program is called: forward, without gradients; kept, with what they need; backward, only the way back."""

    direction: str = "forward"
    threads: int = 1
    normalise: str = "example"


@dataclass(frozen=True)
class Case:
    """A way to call a program, and another (or "bound") that it is compared with."""

    what: str
    program: str
    semantics: str
    batch: int
    way: Way
    beside: Way | str | None = None


BOTH = ("paper", "anchored")
# To add a row, add a line.
CASES = (
    *(Case("one example", name, semantics, 1, Way()) for semantics in BOTH for name in SMALL),
    *(Case("bound", "clevr_hans7", semantics, batch, Way(), "bound")
      for semantics in BOTH for batch in (50, 200, 1000)),
    *(Case("two threads", name, semantics, batch, Way(threads=2), Way())
      for semantics in BOTH for name in ("twopairs", "clevr_hans7") for batch in (200, 1000)),
    *(Case("over the batch", "clevr_hans7", "paper", batch, Way(normalise="batch"), Way()) for batch in (200, 1000)),
    *(Case("over the batch, two threads", name, "paper", batch, Way("forward", 2, "batch"), Way("forward", 1, "batch"))
      for name in ("twopairs", "clevr_hans7") for batch in (200, 1000)),
    *(Case("backward", name, semantics, batch, Way("backward"), Way("kept"))
      for semantics in BOTH for name in ("twopairs", "clevr_hans7") for batch in (50, 200)),
)


@dataclass(frozen=True)
class CallRow:
    """Seconds of a call: median of medians, and the least tenth. ratio: seconds / those of `beside`."""

    what: str
    program: str
    semantics: str
    batch: int
    median: float
    least: float
    beside_median: float | None
    ratio: float | None
    least_ratio: float | None
    earlier_median: float | None
    earlier_least: float | None
    earlier_ratio: float | None
    rounds: int


@cache
def _reasoner(program: str, batch: int, normalise: str) -> Any:
    import torch

    import nsfrc

    compiled = nsfrc.compile(program)
    neural = torch.from_numpy(compiled.ground.neural)
    V0 = torch.from_numpy(compiled.initial_valuation())[None].repeat(batch, 1)
    V0[:, neural] = torch.rand(batch, int(neural.sum()), generator=torch.Generator().manual_seed(0))
    scope: dict[str, Any] = {} if compiled.anchored else {"normalise": normalise}
    return compiled, compiled.reasoner("cpu", outputs="targets", inputs="neural", **scope), V0


def _times(program: str, batch: int, direction: str, threads: int, normalise: str) -> list[float]:
    """Seconds of the calls of one turn."""
    import torch

    torch.set_num_threads(threads)
    _, reasoner, V0 = _reasoner(program, batch, normalise)
    start, end = V0.clone().requires_grad_(), time.perf_counter() + BUDGET
    found: list[float] = []
    call: Callable[[], object]
    with torch.set_grad_enabled(direction != "forward"):
        while len(found) < 3 or time.perf_counter() < end:
            if direction == "backward":
                call = reasoner(start).sum().backward
            else:
                call = lambda: reasoner(V0 if direction == "forward" else start)  # noqa: E731
            before = time.perf_counter()
            call()
            found.append(time.perf_counter() - before)
    return found


def _bound(program: str, batch: int) -> list[float]:
    from nsfrc.benchmarks.bound import bounds, throughput

    return [bounds(_reasoner(program, batch, "example")[0], batch, throughput())[0]]


def answer(program: str, batch: int, way: Any) -> list[float]:
    """How long calls take: the least tenth and the median."""
    found = sorted(_bound(program, batch) if way == "bound" else _times(program, batch, *way))
    return [found[len(found) // 10], statistics.median(found)]


def measured(cases: tuple[Case, ...], rounds: int, against: Path | None) -> Iterator[CallRow]:
    with tempfile.TemporaryDirectory() as folder:
        versions = [Version(sources, __file__) for sources in (ROOT, against) if sources is not None]
        try:
            for case in cases:
                yield _measure(case, rounds, versions, Path(folder))
        finally:
            for version in versions:
                version.end()


def _measure(case: Case, rounds: int, versions: list[Version], folder: Path) -> CallRow:
    program = case.program
    if case.semantics == "anchored":
        (source,) = (ROOT / "programs").glob(f"*/{program}.pl")
        text = source.read_text().replace(":- semantics(paper).", "")
        (folder / f"{program}.pl").write_text(text)
        program = str(folder / f"{program}.pl")
    asked: list[tuple[Version, Way | str]] = [(version, case.way) for version in versions]
    if case.beside is not None:
        asked.append((versions[0], case.beside))
    found: list[list[tuple[float, float]]] = [[] for _ in asked]
    for turn in range(rounds + 1):  # the first warms up
        for (version, way), mine in zip(asked, found, strict=True):
            answered = version.ask(program, case.batch, way if isinstance(way, str) else astuple(way))
            if turn:
                mine.append(answered)
    least = [min(one[0] for one in turns) for turns in found]
    median = [statistics.median(one[1] for one in turns) for turns in found]
    base, earlier = case.beside is not None, len(versions) > 1
    return CallRow(
        case.what, case.program, case.semantics, case.batch, median[0], least[0], median[-1] if base else None,
        median[0] / median[-1] if base else None, least[0] / least[-1] if base else None,
        median[1] if earlier else None, least[1] if earlier else None, median[1] / median[0] if earlier else None,
        rounds)


def tell(rows: list[CallRow]) -> str:
    lines = [[row.what, f"{row.program}, {row.semantics}", str(row.batch), seconds(row.median), seconds(row.least),
              times(row.ratio), times(row.least_ratio), seconds(row.earlier_median), times(row.earlier_ratio)]
             for row in rows]
    return markdown(["what", "program", "B", "median", "least", "of what it is compared with", "by the least",
                     "earlier version", "earlier / now"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose `what` has this in it")
    parser.add_argument("--against", type=Path, help="sources of another version")
    parser.add_argument("--out", type=Path, default=RESULTS / "calls.csv")
    arguments = parser.parse_args()
    rows = []
    cases = tuple(case for case in CASES if arguments.only in case.what)
    for row in measured(cases, arguments.rounds, arguments.against):
        rows.append(row)
        print(tell([row]).splitlines()[-1], flush=True)
        write_csv(arguments.out, rows)


if __name__ == "__main__":
    main()
