"""Every shipped program through both files of kernels: values and gradients."""

from __future__ import annotations

import pytest

from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM
from tests.amount import sample
from tests.examples import SHIPPED
from tests.kernels.values.support import SHAPES, agree, shipped

# Kernels, the scope of Z they are used for, and the batch.
PATHS = sample([("program", "example", 64), ("clause", "example", 7), ("clause", "batch", 7)], [
    *(("program", "example", batch) for batch in (1, 7, 64)),
    ("clause", "example", 7),
    *(("clause", "batch", batch) for batch in (1, 7, 64)),
])


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("mixtures", [None, 3], ids=["hard", "soft"])
@pytest.mark.parametrize(("kernels", "normalise", "batch"), PATHS)
def test_shipped(name, kernels, normalise, mixtures, batch):
    # The reference takes minutes for 64 of threepairs, but no longer for 4 that stand there 16 times.
    distinct = 4 if name == "threepairs" and batch == 64 else batch
    agree(shipped(name), distinct, mixtures, SHAPES[kernels], repeat=batch // distinct, normalise=normalise, steps=2)


@pytest.mark.parametrize("mixtures", [None, 2], ids=["hard", "soft"])
@pytest.mark.parametrize(
    ("shape", "normalise"), [(PROGRAM, "example"), (CLAUSE, "example"), (CLAUSE, "batch")],
    ids=["program", "clause", "clause-batch"],
)
@pytest.mark.parametrize("batch", [33])
def test_in_the_tiles_of_a_card(shape, normalise, mixtures, batch):
    agree(shipped("twopairs"), batch, mixtures, shape, normalise=normalise, steps=2)


@pytest.mark.parametrize("kernels", SHAPES)
@pytest.mark.parametrize("outputs", ["all", "targets"])
@pytest.mark.parametrize("inputs", ["all", "neural"])
@pytest.mark.parametrize("name", ["closeby", "twopairs"])
def test_inputs_and_outputs(name, inputs, outputs, kernels):
    """closeby has passive atoms, of which only the largest is carried for targets; twopairs merges atoms."""
    agree(shipped(name), 5, None, SHAPES[kernels], inputs=inputs, outputs=outputs, steps=3)


@pytest.mark.parametrize("gamma", [0.004, 0.05, 1.0])
@pytest.mark.parametrize("kernels", SHAPES)
def test_any_gamma(gamma, kernels):
    agree(shipped("closeby"), 5, None, SHAPES[kernels], gamma=gamma)
