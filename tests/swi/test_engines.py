"""Crisp worlds: what the engines compute, cut at one half, is what SWI-Prolog answers."""

from __future__ import annotations

import random

import pytest
import torch

import nsfrc
from nsfrc.compiler.check import check
from nsfrc.compiler.parse import find_program, parse, read
from nsfrc.errors import Diagnostics, Source
from nsfrc.program import Program
from tests.amount import sample
from tests.engines.support import compile_text
from tests.examples import SMALL, VOCABULARY, small
from tests.random_programs import random_program
from tests.swi import oracle
from tests.swi.test_shipped import WORLDS
from tests.swi.worlds import random_world

pytestmark = oracle.needs_swipl

# Enough for every derivation in these programs, recursive ones included.
STEPS = 8


def thresholded(program: Program, worlds: list[set[str]], atoms: list[str]) -> list[list[bool]]:
    V0 = torch.from_numpy(program.initial_valuation()).repeat(len(worlds), 1)
    for row, world in zip(V0, worlds, strict=True):
        row[[program.index(atom) for atom in world]] = 1.0
    V_T = program.reasoner("cpu", steps=STEPS)(V0)
    return (V_T[:, [program.index(atom) for atom in atoms]] > 0.5).tolist()


@pytest.mark.parametrize("seed", range(100, sample(112, 130)))
def test_random_programs(seed: int) -> None:
    text, found = random_program(random.Random(seed)), Diagnostics()
    typed = check(parse(Source(f"random{seed}.pl", text), found), "random", found)
    program, rng = compile_text(text), random.Random(seed)
    worlds = [random_world(typed, rng) for _ in range(30)]
    heads = {program.atoms[i] for i in program.ground.pair_head}
    asked = rng.sample(sorted(heads), min(len(heads), 40))
    assert thresholded(program, worlds, asked) == oracle.answers(text, worlds, asked), text


@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name: str) -> None:
    """Each a corner of the language, such as constants of two types that share a name."""
    text = f":- use_module(library(nsfr)).\n:- style_check(-singleton).\n{VOCABULARY}{SMALL[name]}"
    typed, program, rng = small(name), compile_text(text), random.Random(name)
    worlds = [random_world(typed, rng) for _ in range(30)]
    heads = sorted({program.atoms[i] for i in program.ground.pair_head})
    assert thresholded(program, worlds, heads) == oracle.answers(text, worlds, heads)


@pytest.mark.parametrize("name", WORLDS)
def test_shipped_programs(name: str) -> None:
    path, found = find_program(name), Diagnostics()
    typed, program, rng = check(read(path, found), name, found), nsfrc.compile(name), random.Random(name)
    worlds = [random_world(typed, rng) for _ in range(30)]
    assert thresholded(program, worlds, program.targets) == oracle.answers(path, worlds, program.targets)
