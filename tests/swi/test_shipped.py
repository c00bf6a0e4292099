"""The shipped programs in SWI-Prolog: silent to load, and right about crisp images."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import nsfrc
from nsfrc.compiler.check import check
from nsfrc.compiler.parse import find_program, read
from nsfrc.errors import Diagnostics
from tests.swi import crisp, oracle
from tests.swi.worlds import random_world

FILES = sorted(oracle.PROGRAMS.glob("*/*.pl"))
EXAMPLES = [path for path in FILES if path.parent.name == "examples"]
WORLDS = {
    "twopairs": 200, "threepairs": 30, "closeby": 50, "red_triangle": 100, "online_pair": 50,
    "nine_circles": 50, "clevr_hans3": 100, "clevr_hans7": 40,
}

pytestmark = oracle.needs_swipl


def named(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", FILES, ids=named)
def test_loads_without_a_word(path: Path) -> None:
    result = oracle.run(path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("name", WORLDS)
def test_answers_as_the_semantics_say(name: str) -> None:
    path, found = find_program(name), Diagnostics()
    program = check(read(path, found), name, found)
    assert not found.found
    rng = random.Random(name)
    worlds = [random_world(program, rng) for _ in range(WORLDS[name])]
    targets = [str(target) for target in program.targets]
    expected = crisp.answers(program, worlds, targets)
    assert oracle.answers(path, worlds, targets) == expected
    assert {answer for row in expected for answer in row} == {True, False}


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_examples_answer_alike(path: Path) -> None:
    """Worlds without numbers: a comparison then holds nowhere, and its negation everywhere."""
    program = nsfrc.compile(path)
    rng = random.Random(path.stem)
    worlds = [random_world(program.source, rng) for _ in range(15)]
    V0 = program.valuation(*(dict.fromkeys(world, 1.0) for world in worlds))
    expected = (program.reasoner("reference", outputs="targets")(V0) > 0.5).tolist()
    assert oracle.answers(path, worlds, program.targets) == expected


def test_every_program_is_tested() -> None:
    tested = sorted([*WORLDS, *map(named, EXAMPLES)])
    assert sorted(path.stem for path in FILES if path.parent.name not in (path.stem, "library")) == tested
