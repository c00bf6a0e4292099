"""Faults planted in the machine code, one at a time, and what notices each: a check of engine "ptx", or the values.

    python -m nsfrc.benchmarks.ptx_mutants            all barriers, and up to --most of every other kind; forty minutes
    python -m nsfrc.benchmarks.ptx_mutants --resume   the same, without those that results/ptx_mutants.csv has already

The kernels are `program_forward` and `program_backward` of a small program with soft clause weights, on three tiles
of examples and two blocks, so that a block has a second tile to begin while threads are still at the first. Why a
barrier may go is shown by planting more of them: without those next to it as well, there is a race that there is not
without these alone. Writes results/ptx_mutants.csv; ends with 1 if one survives without a reason.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from nsfrc.benchmarks.measure import RESULTS, read_csv, write_csv
from nsfrc.benchmarks.ptx_faults import (
    BACKWARD,
    FORWARD,
    Mutant,
    first_word,
    mutants,
    source_of,
    with_line,
    without_lines,
)
from nsfrc.contexts import torch_threads
from nsfrc.engines.gpu.launch import PROGRAM
from nsfrc.engines.ptx import launch
from nsfrc.engines.ptx.engine import PtxEngine
from nsfrc.engines.ptx.findings import Finding
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from nsfrc.program import compile as compile_program

# Five objects: kp has more rows than a round of a tile takes, and three clauses have 20 pairs, each a tile of its own.
# With fewer objects loops run once, and barriers that part one round from the next are not needed.
PAPER = """
:- semantics(paper).
:- type(image, [img]). :- type(object, slots(5)). :- type(color, [red, blue]).
:- neural(in(object, image)). :- neural(color(object, color)). :- neural(near(object, object)).
:- target(kp(img)). :- target(pair(obj1, obj2)).
same(X, Y) :- color(X, C), color(Y, C).
pair(X, Y) :- near(X, Y), same(X, Y).
pair(X, Y) :- near(Y, X), color(X, red), color(Y, red).
kp(I) :- in(X, I), in(Y, I), in(Z, I), pair(X, Y), same(Y, Z).
"""
BATCH, INSTANCES, STEPS = 72, 2, 3
FAR = 2**30  # bytes, past every argument
MOST_REMOVED = 6  # barriers beside one that nothing notices the lack of, to see what stands in for it
VALUES, GRADIENTS = 2e-6, 1e-4
GAMMA = 0.2  # large enough for every row to count, and for Z to exceed 1


@dataclass(frozen=True)
class MutantRow:
    """caught_by: checks, "values" (against float64), "refused" (it cannot run), or "" for survivors, which have a
    reason. same_bits: of survivors, whether all results are those of the kernel as it is. ptx: which text it was
    planted in."""

    kind: str
    kernel: str
    line: int
    source: str
    change: str
    caught_by: str
    same_bits: str
    reason: str
    ptx: str


@dataclass(frozen=True)
class Outcome:
    """What a kernel gave: results to compare, and what was found."""

    results: tuple[torch.Tensor, ...]
    findings: tuple[Finding, ...] = ()
    follows: frozenset[tuple[int, int]] = frozenset()

    @property
    def places(self) -> set[tuple[str, int]]:
        return {(one.kind, one.line) for one in self.findings}


class Subject:
    """A program on the machine, its kernels run again and again with changes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        generator = torch.Generator().manual_seed(0)
        start = torch.from_numpy(program.initial_valuation()).double().repeat(BATCH, 1)
        neural = torch.from_numpy(program.ground.neural)
        start[:, neural] = torch.rand(BATCH, int(neural.sum()), generator=generator, dtype=torch.float64)
        weights = torch.randn(program.plan.C + 1, program.plan.C, generator=generator, dtype=torch.float64)
        self.start, self.weights = start.float(), weights.float()
        self.loss = torch.rand(BATCH, program.ground.G, generator=generator)
        self.expected = {kernel: self._reference(kernel) for kernel in (FORWARD, BACKWARD)}
        self.engine, self.reasoner, self.parameters = self._machine()
        self.kept = self.reasoner(self.parameters[0])
        self.ptx: dict[str, str] = {}
        self.sound = {kernel: self.run(kernel) for kernel in (FORWARD, BACKWARD)}
        self.without: dict[tuple[Any, ...], set[tuple[str, int]]] = {}

    def _reasoner(self, engine: str, dtype: torch.dtype) -> tuple[Any, tuple[torch.Tensor, torch.nn.Parameter]]:
        weights = torch.nn.Parameter(self.weights.to(dtype))
        reasoner = self.program.reasoner(engine, steps=STEPS, gamma=GAMMA, clause_weights=weights)
        return reasoner, (self.start.to(dtype).requires_grad_(), weights)

    def _reference(self, kernel: str) -> tuple[torch.Tensor, ...]:
        reasoner, parameters = self._reasoner("reference", torch.float64)
        values = reasoner(parameters[0])
        if kernel == FORWARD:
            return (values.detach(),)
        return torch.autograd.grad((values * self.loss.double()).sum(), parameters)

    def _machine(self) -> tuple[PtxEngine, Any, tuple[torch.Tensor, torch.nn.Parameter]]:
        reasoner, parameters = self._reasoner("ptx", torch.float32)
        engine = reasoner.engine
        engine.fixed, engine.runner.check = PROGRAM, "collect"
        make = engine._make_job
        engine._make_job = lambda kernels, **fields: make(kernels, **fields | {"instances": INSTANCES})
        return engine, reasoner, parameters

    def run(self, kernel: str, edit: Callable[[str], str] | None = None) -> Outcome:
        """The kernel with its text changed; the other one stays as it is."""
        runner = self.engine.runner
        runner.launches.clear()

        def change(label: str, ptx: str) -> str:
            self.ptx.setdefault(label, ptx)
            return edit(ptx) if edit is not None and label == kernel else ptx

        runner.change = change
        if kernel == FORWARD:
            with torch.no_grad():
                results: tuple[torch.Tensor, ...] = (self.reasoner(self.parameters[0]),)
        else:
            results = torch.autograd.grad((self.kept * self.loss).sum(), self.parameters, retain_graph=True)
        launches = [one for one in runner.launches if one.kernel == kernel]
        return Outcome(results, tuple(one for done in runner.launches for one in done.findings),
                       frozenset().union(*(one.follows for one in launches)))

    def digest(self, kernel: str) -> str:
        """Of its instructions: what follows the last function, and comments, name the files of this checkout."""
        text, _, _ = self.ptx[kernel].partition("\t.file\t")
        return sha256(re.sub(r"//.*", "", text).encode()).hexdigest()[:12]

    def places_without(self, kernel: str, lines: tuple[int, ...]) -> set[tuple[str, int]]:
        """What is found without the barriers on some lines."""
        key = (kernel, *sorted(lines))
        if key not in self.without:
            self.without[key] = self.run(kernel, partial(without_lines, numbers=lines)).places
        return self.without[key]

    def wrong(self, kernel: str, results: tuple[torch.Tensor, ...]) -> bool:
        """Whether results are further from float64 than is promised."""
        bound = VALUES if kernel == FORWARD else GRADIENTS
        for mine, theirs in zip(results, self.expected[kernel], strict=True):
            scale = 1.0 if kernel == FORWARD else float(theirs.abs().max())
            if not float((mine.double() - theirs).abs().max()) <= bound * scale:  # NaN is wrong too
                return True
        return False


def outcome(subject: Subject, mutant: Mutant) -> Outcome | str:
    """What came of a mutant, or why it could not run."""
    if not mutant.argument:
        try:
            return subject.run(mutant.kernel, mutant.edit)
        except NsfrcError as error:
            return str(error)
    with _changed_argument(mutant):
        return subject.run(mutant.kernel)


class _changed_argument:
    """While this lasts, a launch of the mutant's kernel gets another argument."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def __enter__(self) -> None:
        self.original = launch.Runner.launch
        mutant, original = self.mutant, self.original

        def changed(runner: Any, kernel: Any, grid: Any, arguments: tuple[Any, ...]) -> None:
            if kernel.label == mutant.kernel:
                names = [name for name, _ in kernel.arguments]
                assert mutant.change is not None
                arguments = tuple(
                    mutant.change(value) if name == mutant.argument else value
                    for name, value in zip(names, arguments, strict=True)
                )
            original(runner, kernel, grid, arguments)

        launch.Runner.launch = changed  # type: ignore[method-assign, assignment]

    def __exit__(self, *_: object) -> None:
        launch.Runner.launch = self.original  # type: ignore[method-assign]


# Why a mutant may live: kind, what its place or text has, and the reason. A barrier that no neighbour stands in for has
# one by the line of the kernel: another that survives, or one that has moved, is to be looked at.
REASONS: tuple[tuple[str, str, str], ...] = (
    ("barrier removed", r"program\.py:96\b", "after the zeros for gradients of weights: every instance of these "
     "launches has a tile, whose barriers come before anything is added to them; it is for an instance that has none"),
    ("product rounded before its sum", "", "rounding twice instead of once, alike in all threads that hold the value: "
     "within what is promised"),
    ("shuffle by another distance", "", "these threads hold equal values, or Z, whose maximum it is, is 1 either way"),
    ("offset one word further", "", "the next word holds the same number: a list in which neighbours are equal, or one "
     "that is not used by this program"),
    ("argument too short", r"indices", "the tables at its end are for gradients: the backward kernel does miss them"),
    ("number off by one", r"stride", "only the kernel that keeps values for gradients uses it, and it is not this one"),
)


def chain(follows: frozenset[tuple[int, int]], line: int, step: int) -> list[int]:
    """Barriers that follow one, or with step -1 come before it, the next first."""
    found = [line]
    while len(found) <= MOST_REMOVED:
        near = sorted({pair[::step][1] for pair in follows if pair[::step][0] == found[-1]} - set(found))
        if not near:
            break
        found.append(min(near, key=lambda one: abs(one - found[-1])))
    return found[1:]


def stands_in(subject: Subject, mutant: Mutant) -> str:
    """Barriers before or after a removed one that part what it parted: without them too there is a race that there is
    not without them alone. "" if there are none such."""
    kernel, removed = mutant.kernel, mutant.line
    lines = subject.ptx[kernel].split("\n")
    after, before = (chain(subject.sound[kernel].follows, removed, step) for step in (1, -1))
    sets = [(after[:n], before[:n], [*after[:n], *before[:n]]) for n in (1, 2, MOST_REMOVED)]
    for others in dict.fromkeys(tuple(some) for choice in sets for some in choice if some):
        new = subject.places_without(kernel, (removed, *others)) - subject.places_without(kernel, others)
        if new:
            kind, place = min(new, key=lambda found: found[1])
            told = ", ".join(f"line {other} ({source_of(lines, other - 1)})" for other in others)
            return (f"barriers that part the same accesses: {told}. Without these too there is a {kind} (line {place}, "
                    f"{source_of(lines, place - 1)}), which there is not without these alone")
    return ""


def needless_mask(subject: Subject, mutant: Mutant, same: bool) -> str:
    """Why a mask may go. Whether a thread is without it is seen by sending those far away."""
    def sent_away(text: str) -> str:
        line = text.split("\n")[mutant.line - 1]
        away = line.replace("@%", "@!%").replace("+ 0 ]", f"+ {FAR} ]")
        assert away.count("@!%") == away.count(str(FAR)) == 1, line
        return with_line(text, mutant.line - 1, f"{away} {line}")

    if not subject.run(mutant.kernel, sent_away).findings:
        return "no thread is without it in these launches: the list fills its tile"
    if not same:
        return ""
    if "ld.global" in mutant.text:
        return "threads past the end of a list load other words of the same argument, of which nothing is stored"
    return "threads without it store what another thread stores there, or what nothing reads"


def needless_words(subject: Subject, mutant: Mutant) -> str:
    """Why the end of an argument may go: without nearly all of it nothing is missed either."""
    with _changed_argument(replace(mutant, change=first_word)):
        found = subject.run(mutant.kernel)
    return "" if found.findings else "the kernel reads nothing of it for this program: all but one word may go"


def needless(subject: Subject, mutant: Mutant, same: bool) -> str:
    """Why nothing notices a mutant: planting more tells, or else REASONS; "" if nothing does."""
    shown = ""
    if mutant.kind == "barrier removed":
        shown = stands_in(subject, mutant)
    elif mutant.kind == "mask dropped":
        shown = needless_mask(subject, mutant, same)
    elif mutant.kind == "argument too short":
        shown = needless_words(subject, mutant)
    where = f"{mutant.source} {mutant.text}"
    return shown or next((text for kind, place, text in REASONS if kind == mutant.kind and re.search(place, where)), "")


def judged(subject: Subject, mutant: Mutant) -> MutantRow:
    found = outcome(subject, mutant)
    reason = same = ""
    if isinstance(found, str):
        caught = "refused"
    else:
        caught = "; ".join(sorted({one.kind for one in found.findings}))
        caught = caught or ("values" if subject.wrong(mutant.kernel, found.results) else "")
        if not caught:
            sound = subject.sound[mutant.kernel].results
            equal = all(map(torch.equal, found.results, sound))
            same = "yes" if equal else "no"
            reason = needless(subject, mutant, equal)
    return MutantRow(mutant.kind, mutant.kernel, mutant.line, mutant.source, mutant.text, caught, same, reason,
                     subject.digest(mutant.kernel))


def known(path: Path, subject: Subject) -> dict[tuple[Any, ...], MutantRow]:
    """Rows of a file that were planted in the same text."""
    if not path.exists():
        return {}
    rows: list[MutantRow] = read_csv(path, MutantRow)
    return {(row.kind, row.kernel, row.line, row.change): row for row in rows
            if row.ptx == subject.digest(row.kernel) and (row.caught_by or row.reason)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=16, help="mutants of a kind and kernel, barriers aside")
    parser.add_argument("--barriers", type=int, help="barriers of a kernel that are removed in turn [all]")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has, planted in the same text")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    rows: list[MutantRow] = []
    path = options.out / "ptx_mutants.csv"
    with torch_threads(1):
        subject = Subject(compile_program(source=PAPER, name="mutants"))
        for kernel, sound in subject.sound.items():
            assert not sound.findings and not subject.wrong(kernel, sound.results), "sound as they are"
        done = known(path, subject) if options.resume else {}
        for mutant in mutants(subject.ptx, options.most, options.barriers):
            found = done.get((mutant.kind, mutant.kernel, mutant.line, mutant.text))
            rows.append(found or judged(subject, mutant))
            write_csv(path, [*rows, *(row for row in done.values() if row not in rows)])
            print(f"{rows[-1].kind:30} {rows[-1].kernel:22} {rows[-1].source:18} "
                  f"{rows[-1].caught_by or 'SURVIVES: ' + (rows[-1].reason or 'why?')}", flush=True)
        write_csv(path, rows)
    for kind, count in Counter(row.kind for row in rows).items():
        caught = sum(1 for row in rows if row.kind == kind and row.caught_by)
        print(f"{kind}: {caught} of {count} noticed")
    return int(any(not row.caught_by and not row.reason for row in rows))


if __name__ == "__main__":
    sys.exit(main())
