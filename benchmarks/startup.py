"""What a person waits for at first use and at every start: user seconds of fresh processes, in turns with a baseline.

    python -m nsfrc.benchmarks.startup [--runs 3] [--only infer] [--against FOLDER]

One row for each of STARTS. FOLDER holds another version's sources; it is then measured in turns with this one, and
its seconds are in the columns `earlier`. Times are of the processor, so that others on the machine count for less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsfrc.benchmarks.measure import RESULTS, read_csv, write_csv
from nsfrc.benchmarks.parts import markdown, seconds, times
from nsfrc.errors import NsfrcError

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "examples" / "figures" / "twopairs" / "true" / "000000.png"
ANCHORED = "anchored twopairs.pl"  # stands in a command for the shipped program with the other semantics

LIBRARIES = "import numpy and click"
SEEING = "import torch and perception of one picture"
NSFRC = "import sys; from nsfrc.cli import main; sys.argv[0] = 'nsfrc'; main()"
INFER, INFER_ANCHORED = (
    ("infer", "--program", program, "--images", str(PICTURE)) for program in ("twopairs", ANCHORED))
PERCEPTION = """
import torch
from nsfrc.perception import create
model = create("yolo", objects=4)
with torch.no_grad():
    model(torch.rand(1, 3, *model.size))
"""
TRAINING = """
import sys, torch, nsfrc
program = nsfrc.compile(sys.argv[1])
reasoner = program.reasoner(clause_weights="trainable")
V0 = torch.from_numpy(program.initial_valuation())[None].repeat(8, 1)
reasoner(V0).sum().backward()
"""


@dataclass(frozen=True)
class Start:
    """Something that a fresh process does.

    code: Python, with `arguments` as its command line. first: with nothing compiled or kept before. beside: the
    `what` of another start, run in turns, that this one is compared with.
    """

    what: str
    code: str
    arguments: tuple[str, ...] = ()
    first: bool = False
    beside: str = ""


# To add a row, add a line: what, command, and what it is measured against.
STARTS = (
    Start(LIBRARIES, "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import click, numpy"),
    Start("check twopairs", NSFRC, ("check", "twopairs"), beside=LIBRARIES),
    Start("check likely_warm, with operators", NSFRC, ("check", "likely_warm"), beside=LIBRARIES),
    Start("compile clevr_hans7", NSFRC, ("compile", "clevr_hans7"), beside=LIBRARIES),
    Start("import torch", "import torch"),
    Start(SEEING, PERCEPTION),
    Start("infer, paper", NSFRC, INFER, beside=SEEING),
    Start("infer, anchored", NSFRC, INFER_ANCHORED, beside=SEEING),
    Start("first infer, paper", NSFRC, INFER, True, "infer, paper"),
    Start("first infer, anchored", NSFRC, INFER_ANCHORED, True, "infer, anchored"),
    Start("training step, paper", TRAINING, ("twopairs",), beside="import torch"),
    Start("training step, anchored", TRAINING, (ANCHORED,), beside="import torch"),
    Start("first training step, paper", TRAINING, ("twopairs",), True, "training step, paper"),
    Start("first training step, anchored", TRAINING, (ANCHORED,), True, "training step, anchored"),
)


@dataclass(frozen=True)
class StartRow:
    """User seconds of fresh processes: median, least and most. over: `median` less the baseline's.

    earlier: of another version's, measured in turns; empty where there was none.
    """

    what: str
    median: float
    least: float
    most: float
    runs: int
    beside: str
    beside_median: float | None
    over: float | None
    ratio: float | None
    earlier_median: float | None
    earlier_least: float | None
    earlier_most: float | None
    earlier_ratio: float | None


def user_seconds(start: Start, sources: Path, scratch: Path, kept: Path) -> float:
    """What one process takes; kept: where kernels of earlier ones are."""
    with tempfile.TemporaryDirectory(dir=scratch) as nothing:
        environment = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1",
                       "NUMBA_CACHE_DIR": nothing if start.first else str(kept)}
        arguments = [str(scratch / ANCHORED) if one == ANCHORED else one for one in start.arguments]
        process = subprocess.Popen([sys.executable, "-c", start.code, *arguments], env=environment, cwd=scratch,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stderr is not None
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        last = (told.decode(errors="replace").strip().splitlines() or ["nothing was said"])[-1]
        raise NsfrcError(f"{start.what!r} failed in {sources}: {last}")
    return usage.ru_utime


def measured(starts: Sequence[Start], runs: int, against: Path | None) -> Iterator[StartRow]:
    """Every start and what it is compared with, of both versions, in turns."""
    by_name = {start.what: start for start in STARTS}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        text = (ROOT / "programs" / "kandinsky" / "twopairs.pl").read_text()
        (scratch / ANCHORED).write_text(text.replace(":- semantics(paper).", ""))
        versions = [ROOT] if against is None else [ROOT, against]
        kept = [scratch / f"kept {number}" for number in range(len(versions))]
        for start in starts:
            base = by_name.get(start.beside)
            todo = [(start, number) for number in range(len(versions))] + ([(base, 0)] if base else [])
            for one, number in todo:
                if not one.first:  # the processes that are measured find what this one keeps
                    user_seconds(one, versions[number], scratch, kept[number])
            found = [[user_seconds(one, versions[number], scratch, kept[number]) for one, number in todo]
                     for _ in range(runs)]
            mine, *others = zip(*found, strict=True)
            yield _row(start, mine, others.pop() if base else None, others[0] if others else None)


def _row(
    start: Start, mine: Sequence[float], base: Sequence[float] | None, earlier: Sequence[float] | None
) -> StartRow:
    own = statistics.median(mine)
    beside = None if base is None else statistics.median(base)
    before = None if earlier is None else statistics.median(earlier)
    return StartRow(
        start.what, own, min(mine), max(mine), len(mine), start.beside, beside,
        None if beside is None else own - beside, None if beside is None else own / beside, before,
        None if earlier is None else min(earlier), None if earlier is None else max(earlier),
        None if before is None else before / own,
    )


def tell(rows: Sequence[StartRow]) -> str:
    lines = [[row.what, seconds(row.median), seconds(row.beside_median), times(row.ratio),
              seconds(row.earlier_median), times(row.earlier_ratio)] for row in rows]
    return markdown(["what", "user time", "baseline", "of it", "earlier version", "earlier / now"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="starts whose name has this in it")
    parser.add_argument("--against", type=Path, help="sources of another version")
    parser.add_argument("--out", type=Path, default=RESULTS / "startup.csv")
    arguments = parser.parse_args()
    starts = [start for start in STARTS if arguments.only in start.what]
    known = {row.what: row for row in read_csv(arguments.out, StartRow)} if arguments.out.exists() else {}
    for row in measured(starts, arguments.runs, arguments.against):
        known[row.what] = row
        print(tell([row]).splitlines()[-1], flush=True)
        write_csv(arguments.out, [known[start.what] for start in STARTS if start.what in known])
    print(tell(list(known.values())))


if __name__ == "__main__":
    main()
