"""All programs, both semantics, both cards, and random programs: `make ptx`. The suite has a sample in
test_engine.py."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.compiler.ir import ANCHORED
from nsfrc.engines.gpu.anchored_shapes import LARGE, SMALL
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM
from tests.amount import THOROUGH
from tests.engines.support import false_above, near_ties, random_compiled, relative, run
from tests.kernels.anchored_programs import ROOT, anchored
from tests.kernels.ptx.support import GRADIENTS, VALUES, agree, executed

pytestmark = [
    pytest.mark.ptx,
    pytest.mark.skipif(not THOROUGH, reason="takes half an hour: make ptx"),
]
PROGRAMS = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles", "clevr_hans3",
            "clevr_hans7")
EXAMPLES = sorted(path.stem for path in Path(ROOT / "examples").glob("*.pl"))
ARCHS = ("sm_80", "sm_90")


FEWER = {"clevr_hans7": 4}  # objects: executing it takes long


def shipped(name: str):
    return nsfrc.compile(name, slots={"object": FEWER[name]} if name in FEWER else None)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_under_paper(name, arch):
    options = {"inputs": "neural", "outputs": "targets", "arch": arch}
    agree(shipped(name), 40, shape=PROGRAM, **options)
    agree(shipped(name), 9, 2, shape=CLAUSE, **options)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_under_anchored(name, arch):
    agree(anchored(name, FEWER.get(name)), 9, arch=arch, inputs="neural", outputs="targets")


@pytest.mark.parametrize("shape", [PROGRAM, CLAUSE], ids=["program", "clause"])
def test_false_above_nothing(shape):
    """However small γ is: where no two values tie, gradients are as near as ever."""
    program = shipped("closeby")
    _, V0 = false_above(program, 6)
    for gamma in (0.01, 0.002, 0.0005):
        with near_ties() as ties:
            theirs = run(program, V0, "reference", torch.float64, steps=3, gamma=gamma)
        mine, _ = executed(program, V0, shape=shape, steps=3, gamma=gamma)
        assert not ties and (mine[0] - theirs[0]).abs().max() <= VALUES
        assert relative(mine[1], theirs[1]) <= GRADIENTS


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, arch):
    agree(nsfrc.compile(name), 9, arch=arch)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    draw = random.Random(seed)
    arch, inputs, outputs = draw.choice(ARCHS), draw.choice(["all", "neural"]), draw.choice(["all", "targets"])
    options = {"arch": arch, "inputs": inputs, "outputs": outputs}
    batch, mixtures = draw.choice([1, 2, 9, 40]), draw.choice([None, 1, 3])
    if seed % 2:
        shape = draw.choice([None, LARGE, SMALL])
        agree(random_compiled(seed, semantics=ANCHORED), batch, mixtures, shape=shape, **options)
        return
    shape, normalise = draw.choice([(PROGRAM, "example"), (CLAUSE, "example"), (CLAUSE, "batch")])
    agree(random_compiled(seed), batch, mixtures, seed, shape=shape, normalise=normalise, steps=draw.randint(1, 3),
          **options)
