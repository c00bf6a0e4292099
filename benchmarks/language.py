r"""What negations and counts cost: to compile, to keep and to run, beside the dense reference in the same run.

    nsfrc bench --parts language

A rule without them first; `\+` over an atom and over a goal with a variable of its own; counts by the number of
solutions and by the constant that they are compared with; two counts compared.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import nsfrc
from nsfrc.benchmarks.measure import Compared, compared, timed, timed_beside
from nsfrc.benchmarks.parts import Judged, Part, Results, Table, markdown, seconds, times
from nsfrc.benchmarks.reasoning import valuations
from nsfrc.compiler.levels import LevelPlan
from nsfrc.contexts import torch_threads
from nsfrc.program import Program

BATCH = 50
OBJECTS, QUICK_OBJECTS = (10, 30), (10,)
CONSTANTS, QUICK_CONSTANTS = (1, 2, 4, 8), (1, 8)
RULES = {
    "no inner goal": "kp(X) :- in(O, X), color(O, red).",
    r"\+ atom": r"kp(X) :- in(O, X), \+ color(O, red).",
    r"\+ (goal)": r"kp(X) :- in(O, X), color(O, red), \+ (in(P, X), near(P, O)).",
    "forall": "kp(X) :- in(O, X), forall(near(O, P), color(P, red)).",
    "more than": "kp(X) :- aggregate_all(count, (in(O, X), color(O, red)), N), "
                 "aggregate_all(count, (in(O, X), color(O, blue)), M), N > M.",
}
COUNT = "kp(X) :- aggregate_all(count, (in(O, X), color(O, red)), N), N >= {}."


@dataclass(frozen=True)
class LanguageRow(Compared):
    """One rule: seconds of a batch forwards beside the dense reference; gradient: forwards and back.

    constant: what a count is compared with, 0 for other rules. compiling: seconds from text to plan; peak_mb: what
    compiling takes at most; plan_kb, choices: what is kept.
    """

    rule: str
    objects: int
    constant: int
    gradient: float
    compiling: float
    peak_mb: float
    plan_kb: float
    choices: int

    def __str__(self) -> str:
        what = f"at least {self.constant}" if self.constant else self.rule
        return (f"{what:<14} {self.objects:>3} objects  {seconds(self.median):>8}, "
                f"gradient {seconds(self.gradient):>8}  dense {times(self.ratio):>7}  "
                f"compiled in {seconds(self.compiling):>8}, {self.peak_mb:.2f} MB, plan {self.plan_kb:.1f} kB, "
                f"{self.choices} choices")


def text(rule: str, objects: int) -> str:
    return (f":- type(image, [img]). :- type(object, slots({objects})). :- type(color, [red, blue]).\n"
            ":- neural(in(object, image)). :- neural(color(object, color)). :- neural(near(object, object)).\n"
            f":- target(kp(img)).\n{rule}\n")


def measure(quick: bool, folder: Path) -> Iterator[LanguageRow]:
    for objects in QUICK_OBJECTS if quick else OBJECTS:
        asked = [(name, 0, rule) for name, rule in RULES.items()]
        asked += [("count", k, COUNT.format(k)) for k in (QUICK_CONSTANTS if quick else CONSTANTS)]
        for name, constant, rule in asked:
            with torch_threads(1):
                row = _row(name, objects, constant, text(rule, objects), 0.1 if quick else 0.5)
            yield row


def _row(name: str, objects: int, constant: int, source: str, budget: float) -> LanguageRow:
    program = nsfrc.compile(source=source)
    plan = program.lowered
    assert isinstance(plan, LevelPlan)
    mine, dense = timed_beside(_forward(program, "cpu"), _forward(program, "reference"), budget)
    return LanguageRow(
        **compared(mine, "dense reference", dense), rule=name, objects=objects, constant=constant,
        gradient=timed(_gradient(program), budget).median,
        compiling=timed(lambda: nsfrc.compile(source=source), budget).median,
        peak_mb=_peak(source), plan_kb=plan.nbytes / 1e3, choices=plan.choices,
    )


def _peak(source: str) -> float:
    """The most that compiling holds at once, in MB."""
    tracemalloc.start()
    nsfrc.compile(source=source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def _forward(program: Program, engine: str) -> Callable[[], None]:
    reasoner = program.reasoner(engine, outputs="targets", inputs="neural")
    V0 = valuations(program, BATCH)

    def forward() -> None:
        with torch.no_grad():
            reasoner(V0)

    forward()  # the first call of all compiles the kernels
    return forward


def _gradient(program: Program) -> Callable[[], None]:
    reasoner = program.reasoner("cpu", outputs="targets", inputs="neural")
    V0 = valuations(program, BATCH)

    def gradient() -> None:
        reasoner(V0.detach().requires_grad_()).sum().backward()

    gradient()
    return gradient


def tell(results: Results) -> str:
    rows: list[LanguageRow] = results["language"]
    lines = [[f"at least {r.constant}" if r.constant else r.rule, str(r.objects), seconds(r.median),
              seconds(r.gradient), times(r.ratio), seconds(r.compiling), f"{r.peak_mb:.2f} MB", f"{r.plan_kb:.1f} kB",
              f"{r.choices:,}"] for r in rows]
    header = ["rule", "objects", "forwards", "with gradients", "dense / ours", "text to plan", "most memory", "plan",
              "choices"]
    return markdown(header, lines) + (
        f"\n\nBatches of {BATCH}, one thread, targets from neural atoms. {_large_and_small(rows)}")


def _large_and_small(rows: list[LanguageRow]) -> str:
    """The largest constant beside the smallest, for as many objects as there are."""
    counts = [r for r in rows if r.constant]
    if not counts:
        return ""
    most = [r for r in counts if r.objects == max(r.objects for r in counts)]
    small, large = min(most, key=lambda r: r.constant), max(most, key=lambda r: r.constant)
    return (f"At least {large.constant} of {large.objects} compiles in {large.compiling / small.compiling:.2f}× the "
            f"time of at least {small.constant} and takes {(large.plan_kb - small.plan_kb) / 1e3:.3f} MB more, "
            f"{large.peak_mb - small.peak_mb:.2f} MB while it is compiled.")


PART = Part(
    "language", "what negations and counts cost, beside the dense reference",
    (Table("language", LanguageRow, ("rule", "objects", "constant"), judged=(Judged("ratio", slack=0.3),)),),
    measure, tell,
)
