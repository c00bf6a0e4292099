"""The compiler on a page: text → Program → GroundProgram → Plan, each stage by name."""

from __future__ import annotations

import gc
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.check import check
from nsfrc.compiler.ground import MAX_ROWS, ground, ground_live
from nsfrc.compiler.grounded import GroundProgram
from nsfrc.compiler.parse import find_program, read
from nsfrc.compiler.reach import DEFAULT_STEPS, check_reach
from nsfrc.compiler.row_layout import SpeltOut
from nsfrc.compiler.syntax import Sentence
from nsfrc.compiler.well_formed import well_formed
from nsfrc.errors import Diagnostic, Diagnostics, NsfrcError
from nsfrc.models.outside import Outside
from nsfrc.records import dataclass

if TYPE_CHECKING:
    from nsfrc.compiler.levels import AnyPlan


@dataclass(frozen=True)
class Options:
    """How to compile.

    slots: how many constants a type declared with slots(N) has. skip: passes to leave out. max_rows: a program that
    grounds to more is refused. outside: whose class names types `from_perception` take.
    """

    slots: Mapping[str, int] = field(default_factory=dict)
    skip: Collection[str] = ()
    max_rows: int = MAX_ROWS
    outside: Outside = Outside()


DEFAULT = Options()
LIVE = "live"  # the pass that leaves out what grounding need not spell out


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

    ground: its live rows; spelt_out: how much every pair and padding row would be.
    """

    source: Path
    syntax: tuple[Sentence, ...]
    program: ir.Program
    ground: GroundProgram
    spelt_out: SpeltOut
    depth: int
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Compilation:
    """Everything a compilation made, stage by stage; `--emit` prints any of it."""

    source: Path
    syntax: tuple[Sentence, ...]
    program: ir.Program
    ground: GroundProgram
    plan: AnyPlan
    stages: tuple[Stage, ...]
    rows_by_clause: tuple[int, ...]
    depth: int
    steps: int
    warnings: tuple[Diagnostic, ...]
    seconds: dict[str, float] = field(default_factory=dict)


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no cycles of garbage in between: a compilation makes none, and looking takes a fifth of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@uncollected()
def compile_file(name: str | Path, options: Options = DEFAULT) -> Compilation:
    """Compile a file, or a shipped program by name. Raises CompileError with all that is wrong with it."""
    source = find_program(str(name))
    if source.suffix == ".nsfrc":
        raise NsfrcError(f"{source} is compiled already: `nsfrc reason` and `nsfrc.load` take it as it is")
    found, clock = Diagnostics(), Clock()
    with clock("parse"):
        sentences = read(source, found)
    return compile_sentences(sentences, source, found, options, clock)


@uncollected()
def compile_text(text: str, name: str, options: Options = DEFAULT) -> Compilation:
    """Compile the text of a program that is in no file; what it includes is looked for beside a file called `name`."""
    source, found, clock = Path(name), Diagnostics(), Clock()
    with clock("parse"):
        sentences = read(source, found, text.encode("utf-8", "surrogatepass"))
    return compile_sentences(sentences, source, found, options, clock)


def compile_sentences(
    sentences: tuple[Sentence, ...], source: Path, found: Diagnostics, options: Options = DEFAULT,
    clock: Clock | None = None,
) -> Compilation:
    """Compile what has been read; `found` holds what was wrong so far."""
    clock = clock or Clock()
    return _finish(check_sentences(sentences, source, found, options, clock), options, clock)


def check_sentences(
    sentences: tuple[Sentence, ...], source: Path, found: Diagnostics, options: Options = DEFAULT,
    clock: Clock | None = None,
) -> Checked:
    """The stages that can refuse a program, without the passes. Raises CompileError with all that is in `found`."""
    clock = clock or Clock()
    with clock("check"):
        program = check(sentences, source.stem, found, options.slots, options.outside, source.parent)
    return _grounded(program, source, sentences, found, options, clock)


@uncollected()
def compile_program(program: ir.Program, options: Options = DEFAULT) -> Compilation:
    """Compile a program that is there as a value: what learns or generates rules needs no text."""
    clock = Clock()
    with clock("check"):
        well_formed(program)
    checked = _grounded(program, Path(program.name), (), Diagnostics(), options, clock)
    return _finish(checked, options, clock)


def _grounded(
    program: ir.Program, source: Path, sentences: tuple[Sentence, ...], found: Diagnostics, options: Options,
    clock: Clock,
) -> Checked:
    with clock("ground"):
        grounded, spelt_out = ground_live(program, found, options.max_rows)
        depth = check_reach(program, grounded, found)
    return Checked(source, sentences, program, grounded, spelt_out, depth, found.warnings())


def complete(checked: Checked, options: Options = DEFAULT) -> Compilation:
    """Compile a program that has been checked already."""
    return _finish(checked, options, Clock())


def _finish(checked: Checked, options: Options, clock: Clock) -> Compilation:
    from nsfrc.compiler.levels import lower_as  # `nsfrc check` lowers nothing

    program, depth = checked.program, checked.depth
    with clock("passes"):
        as_given = checked.ground.suffice(program.settings.steps)
        start = checked.ground
        if not program.anchored and LIVE in options.skip:
            start = ground(program, Diagnostics(), options.max_rows)
        first = Stage("ground", *checked.spelt_out)
        stages, final = optimise(start, first, program.settings.semantics, options.skip, as_given)
    with clock("lower"):
        plan = lower_as(program.settings.semantics, final)
    return Compilation(
        source=checked.source, syntax=checked.syntax, program=program, ground=checked.ground, plan=plan, stages=stages,
        rows_by_clause=rows_by_clause(final), depth=depth, steps=_steps(program, plan, depth),
        warnings=checked.warnings, seconds=clock.seconds,
    )


def _steps(program: ir.Program, plan: AnyPlan, depth: int) -> int:
    """Steps of the whole program under `paper`; under `anchored` the rounds of what depends on itself."""
    from nsfrc.compiler.levels import LevelPlan

    enough = plan.rounds if isinstance(plan, LevelPlan) else max(DEFAULT_STEPS, depth)
    return program.settings.steps or enough


def optimise(
    program: GroundProgram, first: Stage, semantics: str, skip: Collection[str] = (), as_given: bool = True
) -> tuple[tuple[Stage, ...], GroundProgram]:
    """Run the passes; returns what each left, behind `first`, and the last result. as_given: see `passes.run`."""
    from nsfrc.compiler import passes  # `nsfrc check` runs none

    stages = [first]
    for name, program in passes.run(program, semantics, skip, as_given=as_given):  # noqa: B020 (each pass feeds the next)
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
