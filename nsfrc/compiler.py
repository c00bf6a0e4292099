"""The compiler on a page: text → Program → GroundProgram → Plan, each stage by name."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nsfrc import ir, passes
from nsfrc.check import check
from nsfrc.errors import Diagnostic, Diagnostics, NsfrcError
from nsfrc.ground import MAX_ROWS, ground
from nsfrc.grounded import GroundProgram
from nsfrc.parse import find_program, read
from nsfrc.passes.live import live
from nsfrc.plan import Plan, lower
from nsfrc.reach import DEFAULT_STEPS, check_reach
from nsfrc.syntax import Sentence


@dataclass(frozen=True)
class Stage:
    """What one pass left: slots that take part in a step, rows and products."""

    name: str
    atoms: int
    rows: int
    products: int


@dataclass(frozen=True)
class Checked:
    """A program that was read, checked and grounded: all that can be wrong with it has been said.

    spelt_out: every pair and padding row, as the passes take it in; ground: its live rows.
    """

    source: Path
    syntax: tuple[Sentence, ...]
    program: ir.Program
    spelt_out: GroundProgram
    ground: GroundProgram
    depth: int
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Compilation:
    """Everything a compilation made, stage by stage; `--emit` prints any of it."""

    source: Path
    syntax: tuple[Sentence, ...]
    program: ir.Program
    ground: GroundProgram
    plan: Plan
    stages: tuple[Stage, ...]
    rows_by_clause: tuple[int, ...]
    depth: int
    steps: int
    warnings: tuple[Diagnostic, ...]
    seconds: dict[str, float] = field(default_factory=dict)


def compile_file(
    name: str | Path,
    *,
    slots: Mapping[str, int] | None = None,
    skip: Collection[str] = (),
    max_rows: int = MAX_ROWS,
) -> Compilation:
    """Compile a file, or a shipped program by name. Raises CompileError with all that is wrong with it."""
    source = find_program(str(name))
    if source.suffix == ".nsfrc":
        raise NsfrcError(f"{source} is compiled already: `nsfrc reason` and `nsfrc.load` take it as it is")
    found, clock = Diagnostics(), Clock()
    with clock("parse"):
        sentences = read(source, found)
    return compile_sentences(sentences, source, found, slots=slots, skip=skip, max_rows=max_rows, clock=clock)


def compile_text(
    text: str,
    name: str,
    *,
    slots: Mapping[str, int] | None = None,
    skip: Collection[str] = (),
    max_rows: int = MAX_ROWS,
) -> Compilation:
    """Compile the text of a program that is in no file; what it includes is looked for beside a file called `name`."""
    source, found, clock = Path(name), Diagnostics(), Clock()
    with clock("parse"):
        sentences = read(source, found, text.encode("utf-8", "surrogatepass"))
    return compile_sentences(sentences, source, found, slots=slots, skip=skip, max_rows=max_rows, clock=clock)


def compile_sentences(
    sentences: tuple[Sentence, ...],
    source: Path,
    found: Diagnostics,
    *,
    slots: Mapping[str, int] | None = None,
    skip: Collection[str] = (),
    max_rows: int = MAX_ROWS,
    clock: Clock | None = None,
) -> Compilation:
    """Compile what has been read; `found` holds what was wrong so far."""
    clock = clock or Clock()
    checked = check_sentences(sentences, source, found, slots=slots, max_rows=max_rows, clock=clock)
    program, depth = checked.program, checked.depth
    with clock("passes"):
        stages, final = optimise(checked.spelt_out, skip)
    with clock("lower"):
        plan = lower(final)
    return Compilation(
        source=source, syntax=sentences, program=program, ground=checked.ground, plan=plan, stages=stages,
        rows_by_clause=rows_by_clause(final), depth=depth,
        steps=program.settings.steps or max(DEFAULT_STEPS, depth), warnings=checked.warnings, seconds=clock.seconds,
    )


def check_sentences(
    sentences: tuple[Sentence, ...],
    source: Path,
    found: Diagnostics,
    *,
    slots: Mapping[str, int] | None = None,
    max_rows: int = MAX_ROWS,
    clock: Clock | None = None,
) -> Checked:
    """The stages that can refuse a program, without the passes. Raises CompileError with all that is in `found`."""
    clock = clock or Clock()
    with clock("check"):
        program = check(sentences, source.stem, found, slots)
    with clock("ground"):
        spelt_out = ground(program, found, max_rows)
        grounded = live(spelt_out)
        depth = check_reach(program, grounded, found)
    return Checked(source, sentences, program, spelt_out, grounded, depth, found.warnings())


def optimise(program: GroundProgram, skip: Collection[str] = ()) -> tuple[tuple[Stage, ...], GroundProgram]:
    """Run the passes; returns what each left and the last result."""
    stages = [_stage("ground", program)]
    for name, program in passes.run(program, skip):  # noqa: B020 (each pass feeds the next)
        stages.append(_stage(name, program))
    return tuple(stages), program


def _stage(name: str, program: GroundProgram) -> Stage:
    return Stage(name, program.active, program.rows, program.products)


def rows_by_clause(program: GroundProgram) -> tuple[int, ...]:
    counts = np.bincount(program.pair_clause[program.pair_of_row], minlength=program.C)
    return tuple(int(n) for n in counts)


class Clock:
    """Collects how long named parts took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
