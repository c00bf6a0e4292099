"""Random programs, passes on and off, through both files of kernels."""

from __future__ import annotations

import random

import pytest

from nsfrc.compiler.passes import NAMES
from tests.amount import sample
from tests.engines.support import compile_text, random_compiled
from tests.examples import SMALL, VOCABULARY
from tests.kernels.values.support import SHAPES, agree


@pytest.mark.parametrize("kernels", SHAPES)
def test_bodies_without_atoms(kernels):
    program = compile_text(VOCABULARY + SMALL["head variables that the body leaves free"])
    agree(program, 5, 2, SHAPES[kernels], normalise="example", steps=2)


@pytest.mark.parametrize("seed", range(sample(16, 40)))
def test_random_programs(seed):
    draw = random.Random(seed)
    program = random_compiled(draw.randrange(10**6), [name for name in NAMES if draw.random() < 0.2])
    kernels, normalise = draw.choice([("program", "example"), ("clause", "example"), ("clause", "batch")])
    agree(
        program, draw.choice([1, 2, 5, 9, 40]), draw.choice([None, 1, 2, program.plan.C, 7]), SHAPES[kernels], seed,
        normalise=normalise, steps=draw.randint(1, 3), inputs=draw.choice(["all", "neural"]),
        outputs=draw.choice(["all", "targets"]),
    )
