"""What the tests of `anchored` share: random programs and valuations, and engines beside the float64 reference."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import torch

import nsfrc
from nsfrc.compiler import ir, passes
from nsfrc.compiler.levels import LevelPlan, lower_levels
from nsfrc.errors import ERROR, CompileError
from nsfrc.program import Program
from tests.anchored import programs
from tests.engines.support import relative
from tests.engines.support import run as run_engine
from tests.inner_text import surface_text
from tests.random_inner import Surface, random_inner
from tests.random_programs import random_value

GAMMAS = (0.01, 0.1, 1.0, 5.0)
BATCHES = (1, 3, 7, 97, 1)
PASSES = tuple(one.name for one in passes.PIPELINES[ir.ANCHORED])
VALUES, GRADIENTS = 2e-6, 1e-4  # how far an engine may be off
UNLUCKY = {"never-fires", "underivable-target"}  # what a random program may be refused for
VARIANTS = tuple(product((True, False), repeat=3))  # of `Program.level_plan`


def random_typed(seed: int, max_objects: int = 3) -> ir.Program:
    return random_value(random.Random(seed), semantics=ir.ANCHORED, max_objects=max_objects)


@lru_cache
def random_within(seed: int, max_atoms: int = 100) -> tuple[Surface, str]:
    """A random program with goals within goals, and its text."""
    rng = random.Random(seed)
    while True:
        surface = random_inner(rng)
        text = surface_text(surface, rng)
        try:
            atoms = nsfrc.compile(source=text, skip=PASSES).ground.G
            if atoms <= max_atoms:
                return surface, text
        except CompileError as refused:
            if not {d.code for d in refused.diagnostics if d.severity == ERROR} <= UNLUCKY:
                raise AssertionError(text) from refused


@lru_cache
def compiled(name: str | int) -> Program:
    """One of `programs.RULES`, or a random program by its seed."""
    if isinstance(name, int):
        return nsfrc.compile(random_typed(name))
    return nsfrc.compile(source=programs.text(name), name="test")


def plan_without(
    program: Program, skip: Collection[str], declared: bool = True, targets_only: bool = True, as_given: bool = True
) -> LevelPlan:
    """`Program.level_plan` without some passes."""
    stages = passes.run(program.ground, ir.ANCHORED, skip, declared_start=declared, targets_only=targets_only,
                        as_given=as_given)
    *_, final = [program.ground, *(after for _, after in stages)]
    return lower_levels(final, declared)


def valuations(program: Program, batch: int, seed: int = 0, declared: bool = True) -> torch.Tensor:
    """Random V0 [batch, G] in float64, which float32 holds exactly; a third of the values are 0 or 1.

    declared: what is not neural starts as the program says; otherwise some of it starts elsewhere.
    """
    generator = torch.Generator().manual_seed(seed)
    V0 = torch.from_numpy(program.initial_valuation()).repeat(batch, 1)
    values, kind = torch.rand(V0.shape, generator=generator), torch.rand(V0.shape, generator=generator)
    values = torch.where(kind < 0.33, values.round(), values)
    free = torch.from_numpy(program.ground.neural).expand(V0.shape)
    if not declared:
        free = free | (torch.rand(V0.shape, generator=generator) < 0.3)
    return torch.where(free, values, V0).double()


def mixtures(program: Program, rows: int, seed: int = 0) -> torch.Tensor:
    """Clause weights [rows, C] before their soft-max."""
    return 2 * torch.randn(rows, program.ground.C, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@dataclass(frozen=True)
class Difference:
    """How far an engine is from the reference: values absolutely, gradients relatively."""

    values: float
    V0: float
    weights: float

    @property
    def gradients(self) -> float:
        return max(self.V0, self.weights)


def difference(program: Program, V0: torch.Tensor, W: torch.Tensor | None, engine: str, **options) -> Difference:
    """An engine in float32 beside the reference in float64, with and without gradients."""
    mine = run_engine(program, V0, engine, torch.float32, W, **options)
    theirs = run_engine(program, V0, "reference", torch.float64, W, **options)
    with torch.no_grad():  # which may take another plan and other kernels
        plain = program.reasoner(engine, clause_weights="hard" if W is None else W.float(), **options)(V0.float())
    return Difference(
        max(float((values.double() - theirs[0]).abs().max()) for values in (mine[0], plain)),
        relative(mine[1], theirs[1]), 0.0 if W is None else relative(mine[2], theirs[2]),
    )


@dataclass(frozen=True)
class Case:
    """One comparison of an engine with the reference, drawn from a seed."""

    seed: int
    skip: tuple[str, ...]
    declared: bool
    batch: int
    mixtures: int  # 0 for hard weights
    gamma: float
    steps: int | None
    outputs: str
    inputs: str
    within: bool  # whether it has goals within goals

    @classmethod
    def drawn(cls, seed: int, within: bool = False) -> Case:
        rng = random.Random(seed)
        return cls(
            seed,
            tuple(name for name in PASSES if rng.random() < 0.3) if rng.random() < 0.5 else (),
            rng.random() < 0.7,
            rng.choice(BATCHES),
            rng.choice((0, 0, 0, 1, 2, 5, 9)),
            rng.choice(GAMMAS),
            rng.choice((None, None, None, 0, 1, 2, 9)),
            rng.choice(("all", "targets")),
            rng.choice(("all", "neural")),
            within,
        )

    @property
    def options(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("gamma", "steps", "outputs", "inputs")}

    def difference(self, engine: str = "cpu") -> Difference:
        if self.within:
            program = nsfrc.compile(source=random_within(self.seed)[1], skip=self.skip)
        else:
            program = nsfrc.compile(random_typed(self.seed), skip=self.skip)
        if self.skip:
            self._leave_out(program)
        V0 = valuations(program, self.batch, self.seed, self.declared)
        W = mixtures(program, self.mixtures, self.seed) if self.mixtures else None
        return difference(program, V0, W, engine, **self.options)

    def _leave_out(self, program: Program) -> None:
        """Have plans of the program made without passes, also those that are made when first needed."""
        as_given = not self.mixtures and program.ground.suffice(self.steps)
        for key in ((True, self.outputs == "targets", as_given), (False, self.outputs == "targets", True)):
            program._level_plans[key] = plan_without(program, self.skip, *key)
