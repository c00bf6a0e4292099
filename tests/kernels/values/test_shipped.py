"""Every shipped program through both files of kernels: values and gradients."""

from __future__ import annotations

import pytest

from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM
from tests.examples import SHIPPED
from tests.kernels.values.support import SHAPES, agree, shipped

# Kernels and the scope of Z they are used for.
PATHS = [("program", "example"), ("clause", "example"), ("clause", "batch")]


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("mixtures", [None, 3], ids=["hard", "soft"])
@pytest.mark.parametrize("batch", [1, 7, 64])
@pytest.mark.parametrize(("kernels", "normalise"), PATHS)
def test_shipped(name, kernels, normalise, mixtures, batch):
    # The reference takes minutes for 64 of threepairs, but no longer for 8 that stand there 8 times.
    distinct = 8 if name == "threepairs" and batch == 64 else batch
    agree(shipped(name), distinct, mixtures, SHAPES[kernels], repeat=batch // distinct, normalise=normalise, steps=2)


@pytest.mark.parametrize("mixtures", [None, 2], ids=["hard", "soft"])
@pytest.mark.parametrize(
    ("shape", "normalise"), [(PROGRAM, "example"), (CLAUSE, "example"), (CLAUSE, "batch")],
    ids=["program", "clause", "clause-batch"],
)
@pytest.mark.parametrize("batch", [7, 33])
def test_in_the_tiles_of_a_card(shape, normalise, mixtures, batch):
    agree(shipped("twopairs"), batch, mixtures, shape, normalise=normalise)


@pytest.mark.parametrize("kernels", SHAPES)
@pytest.mark.parametrize("outputs", ["all", "targets"])
@pytest.mark.parametrize("inputs", ["all", "neural"])
@pytest.mark.parametrize("name", ["closeby", "twopairs"])
def test_inputs_and_outputs(name, inputs, outputs, kernels):
    """closeby has passive atoms, of which only the largest is carried for targets; twopairs merges atoms."""
    agree(shipped(name), 5, None, SHAPES[kernels], inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("gamma", [0.004, 0.05, 1.0])
@pytest.mark.parametrize("kernels", SHAPES)
def test_any_gamma(gamma, kernels):
    agree(shipped("closeby"), 5, None, SHAPES[kernels], gamma=gamma)
