"""Counts beside ProbLog: "at least k" of independent facts, the same probability, and the time that either takes.

    NSFRC_PROBLOG=/path/to/python python -m nsfrc.benchmarks.problog

ProbLog runs in an interpreter that has it (`pip install problog`): the one that NSFRC_PROBLOG names, else this one. It
is no dependency; where it is absent this says so and measures nothing. The rows go to results/problog.csv.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

import nsfrc
from nsfrc.benchmarks.measure import RESULTS, timed, write_csv
from nsfrc.benchmarks.parts import seconds, times

# Objects, and how many of them at least.
ASKED = ((2, 1), (2, 2), (3, 2), (4, 1), (4, 3), (5, 2), (5, 5), (6, 3), (7, 2), (7, 6), (8, 4), (8, 8), (9, 1), (9, 5),
         (10, 3))
# The same with two facts about every object, which ProbLog has to combine as well.
PAIRS = ((2, 1), (3, 2), (4, 2), (4, 4), (5, 3))
LARGE = ((12, 4), (14, 4))
NEAR = 1e-6

CHILD = """
import json, sys, time
from problog import get_evaluatable
from problog.program import PrologString
for text in json.load(sys.stdin):
    start = time.perf_counter()
    (value,) = get_evaluatable().create_from(PrologString(text)).evaluate().values()
    print(json.dumps([value, time.perf_counter() - start]), flush=True)
"""


@dataclass(frozen=True)
class Question:
    """At least so many of these objects: facts [objects][1 or 2] and their probabilities."""

    least: int
    facts: tuple[tuple[float, ...], ...]

    @classmethod
    def drawn(cls, objects: int, least: int, facts: int, rng: random.Random) -> Question:
        return cls(least, tuple(tuple(round(rng.uniform(0.02, 0.98), 3) for _ in range(facts)) for _ in range(objects)))

    @property
    def goal(self) -> str:
        return ", ".join(f"f{i}(O)" for i in range(len(self.facts[0])))

    def problog(self) -> str:
        facts = "".join(f"{p}::f{i}(o{o}).\n" for o, of in enumerate(self.facts, 1) for i, p in enumerate(of))
        return f"{facts}p :- findall(O, ({self.goal}), L), length(L, N), N >= {self.least}.\nquery(p).\n"

    def ours(self) -> str:
        neural = " ".join(f":- neural(f{i}(object))." for i in range(len(self.facts[0])))
        return (f":- type(object, slots({len(self.facts)})). {neural} :- target(p).\n"
                f"p :- findall(O, ({self.goal}), L), length(L, N), N >= {self.least}.\n")

    def values(self) -> dict[str, float]:
        return {f"f{i}(obj{o})": p for o, of in enumerate(self.facts, 1) for i, p in enumerate(of)}


@dataclass(frozen=True)
class ProbLogRow:
    """One question: both values, seconds from text to value; run: of it what asking again takes, here."""

    objects: int
    at_least: int
    facts: int
    value: float
    problog_value: float
    seconds: float
    run: float
    problog_seconds: float
    ratio: float

    def __str__(self) -> str:
        return (f"at least {self.at_least} of {self.objects:<3} facts {self.facts}  {self.value:.7f}  "
                f"{seconds(self.seconds):>8}, again {seconds(self.run):>8}  "
                f"ProbLog {seconds(self.problog_seconds):>8}  {times(self.ratio)}")


def questions(large: bool = False, seed: int = 0) -> list[Question]:
    rng = random.Random(seed)
    asked = [Question.drawn(n, k, 1, rng) for n, k in ASKED] + [Question.drawn(n, k, 2, rng) for n, k in PAIRS]
    return asked + [Question.drawn(n, k, 1, rng) for n, k in LARGE] if large else asked


def interpreter() -> str | None:
    """A Python that has ProbLog, or None."""
    python = os.environ.get("NSFRC_PROBLOG", sys.executable)
    done = subprocess.run([python, "-c", "import problog"], capture_output=True, check=False)
    return python if done.returncode == 0 else None


def ask_problog(python: str, asked: Sequence[Question]) -> list[tuple[float, float]]:
    """Value and seconds of every question."""
    done = subprocess.run([python, "-c", CHILD], input=json.dumps([one.problog() for one in asked]), text=True,
                          capture_output=True, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def measure(python: str, asked: Sequence[Question]) -> Iterator[ProbLogRow]:
    answer(asked[0])  # loads the kernels
    for one, (value, taken) in zip(asked, ask_problog(python, asked), strict=True):
        mine, run, whole = answer(one)
        yield ProbLogRow(len(one.facts), one.least, len(one.facts[0]), mine, value, whole, run, taken, taken / whole)


def answer(one: Question) -> tuple[float, float, float]:
    """Our value, the seconds that asking takes, and those from the text on."""
    program = nsfrc.compile(source=one.ours())
    V0, reasoner = program.valuation(one.values()), program.reasoner("cpu", outputs="targets")
    with torch.no_grad():
        run = timed(lambda: reasoner(V0), budget=0.1).median
        compiling = timed(lambda: nsfrc.compile(source=one.ours()), budget=0.2).median
        return float(reasoner(V0)), run, compiling + run


def main() -> int:
    python = interpreter()
    if python is None:
        print("ProbLog is not there: pip install problog, or name a Python that has it in NSFRC_PROBLOG")
        return 0
    rows = []
    for row in measure(python, questions(large="--large" in sys.argv[1:])):
        print(row, flush=True)
        rows.append(row)
    write_csv(RESULTS / "problog.csv", rows, first=("objects", "at_least", "facts"))
    far = max(abs(row.value - row.problog_value) for row in rows)
    print(f"{len(rows)} questions; the values differ by {far:.1g} at most")
    return int(far > NEAR)


if __name__ == "__main__":
    sys.exit(main())
