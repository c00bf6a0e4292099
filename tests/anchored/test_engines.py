"""The CPU engine under `anchored` beside the float64 reference: values, gradients, batches, threads, plans."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

from nsfrc.errors import NsfrcError
from tests.amount import sample
from tests.anchored.plain_child import CASES
from tests.anchored.programs import RULES
from tests.anchored.support import BATCHES, GAMMAS, GRADIENTS, VALUES, Case, compiled, difference, mixtures, valuations

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def two_threads(monkeypatch, one_thread):
    """Batches of any size are split in two."""
    torch.set_num_threads(2)
    monkeypatch.setattr("nsfrc.engines.cpu.calls.WORTH_A_THREAD", 1)


@pytest.mark.parametrize("seed", range(sample(20, 50)))
def test_random_programs(seed):
    """Drawn with passes left out, other starting values, clause weights, steps, inputs and outputs."""
    found = Case.drawn(seed).difference()
    assert found.values <= VALUES and found.gradients <= GRADIENTS, Case.drawn(seed)


@pytest.mark.parametrize("seed", range(sample(10, 20)))
def test_random_programs_with_goals_within_goals(seed):
    found = Case.drawn(seed, within=True).difference()
    assert found.values <= VALUES and found.gradients <= GRADIENTS, Case.drawn(seed, within=True)


@pytest.mark.parametrize("seed", sample((60, 62, 63), range(60, 70)))
def test_random_programs_in_two_threads(seed, two_threads):
    found = Case.drawn(seed).difference()
    assert found.values <= VALUES and found.gradients <= GRADIENTS, Case.drawn(seed)


@pytest.mark.parametrize("outputs", ["all", "targets"])
@pytest.mark.parametrize("inputs", ["all", "neural"])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_what_is_asked(inputs, outputs, gamma):
    """One reasoner after another on batches of all sizes: what a plan or a schedule keeps must not get in the way."""
    program = compiled("products shared with what is recursive")
    for rows, batch in product((0, 2), BATCHES):
        found = difference(program, valuations(program, batch, batch), mixtures(program, rows) if rows else None,
                           "cpu", inputs=inputs, outputs=outputs, gamma=gamma)
        assert found.values <= VALUES and found.gradients <= GRADIENTS, (rows, batch, found)


@pytest.mark.parametrize("name", RULES)
def test_small_programs(name):
    program = compiled(name)
    for declared, rows, steps in ((True, 0, None), (True, 3, None), (False, 0, 1), (False, 5, 7)):
        V0, W = valuations(program, 9, declared=declared), mixtures(program, rows) if rows else None
        found = difference(program, V0, W, "cpu", steps=steps, gamma=0.1)
        assert found.values <= VALUES and found.gradients <= GRADIENTS, (declared, rows, steps)


@pytest.mark.parametrize("gamma", [1e-12, 1e-4, 0.003, 0.5, 1.0, 1.0001, 40.0, 1e6, 1e12])
def test_any_gamma(gamma):
    program = compiled("paths")
    found = difference(program, valuations(program, 9), None, "cpu", gamma=gamma)
    assert found.values <= VALUES
    # x/γ has an error of 6e-8/γ in float32, whoever computes it.
    assert found.gradients <= max(GRADIENTS, min(2e-6 / gamma, 1.0))


def test_values_above_one():
    program = compiled("paths")
    V0 = valuations(program, 9) * 1.7
    found = difference(program, V0, None, "cpu", gamma=0.1)
    assert found.values <= VALUES and found.gradients <= GRADIENTS
    assert program.reasoner("cpu")(V0.float())[:, program.index("kp(img)")].max() <= 1


@pytest.mark.parametrize("name", ["paths", "levels", "attributes that may be equal", "facts that cut half of a cycle"])
def test_few_examples_equal_many(name):
    program = compiled(name)
    for gamma in GAMMAS:
        reasoner = program.reasoner("cpu", gamma=gamma)
        V0 = valuations(program, 97).float()
        whole = reasoner(V0)
        for size in (1, 2, 3, 4, 5):
            few = torch.cat([reasoner(V0[i : i + size]) for i in range(0, 90, size)])
            assert (few - whole[: len(few)]).abs().max() <= 1e-6


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", ["levels", "attributes that may be equal"])
def test_gradients_of_few_examples_are_those_of_many_to_the_bit(name, gamma):
    program = compiled(name)
    reasoner = program.reasoner("cpu", gamma=gamma, outputs="targets", inputs="neural")
    V0 = valuations(program, 24).float().requires_grad_()
    whole = reasoner(V0)
    gradient, = torch.autograd.grad(whole.sum(), V0)
    for size in (1, 2, 4):
        for i in range(0, 24, size):
            part = V0[i : i + size].detach().requires_grad_()
            values = reasoner(part)
            found, = torch.autograd.grad(values.sum(), part)
            assert torch.equal(values, whole[i : i + size]), (i, size)
            assert torch.equal(found, gradient[i : i + size]), (i, size)


@pytest.mark.parametrize("threads", [1, 2])
def test_every_example_is_looked_at(threads, two_threads):
    """By whichever thread: one that starts otherwise than the program says, and one that cannot be."""
    torch.set_num_threads(threads)
    program = compiled("facts that cut half of a cycle")
    V0 = valuations(program, 8).float()
    fact = next(i for i in range(2, program.ground.G) if program.ground.initial[i] == 1)
    V0[6, fact] = 0.5
    expected = program.reasoner("reference")(V0)
    assert (program.reasoner("cpu")(V0) - expected).abs().max() <= VALUES
    V0[7, fact] = -0.25
    with pytest.raises(NsfrcError, match=rf"V0\[7, {fact}\].*is -0.25; values go from 0"):
        program.reasoner("cpu")(V0)
    V0[5, fact] = float("nan")
    with pytest.raises(NsfrcError, match=rf"V0\[5, {fact}\].*is nan; it must be finite"):
        program.reasoner("cpu")(V0)


def test_threads_change_no_bit(two_threads):
    program = compiled("paths")
    V0, W = valuations(program, 97).float(), torch.nn.Parameter(mixtures(program, 2).float())
    found = []
    for threads in (1, 2, 3, 2):
        torch.set_num_threads(threads)
        start = V0.clone().requires_grad_()
        values = program.reasoner("cpu", clause_weights=W)(start)
        found.append((values.detach(), *torch.autograd.grad(values.sum(), (start, W))))
    for values, g_V0, g_W in found[1:]:
        assert torch.equal(values, found[0][0]) and torch.equal(g_V0, found[0][1])
        assert torch.allclose(g_W, found[0][2], rtol=1e-5)
    assert all(torch.equal(one, other) for one, other in zip(found[1], found[3], strict=True))


def test_gradients_are_asked_for_or_not_with_one_answer():
    """Another plan, which reads all of V0, and other kernels."""
    for seed in range(10):
        program = compiled(seed)
        V0 = valuations(program, 5, seed).float()
        reasoner = program.reasoner("cpu", gamma=0.5)
        assert (reasoner(V0) - reasoner(V0.clone().requires_grad_())).abs().max() <= 1e-6


def test_other_layouts_and_types():
    program = compiled("paths")
    V0, reasoner = valuations(program, 8).float(), program.reasoner()
    expected = reasoner(V0)
    assert torch.equal(reasoner(V0.T.contiguous().T), expected)
    assert torch.equal(reasoner(V0.repeat_interleave(2, 0)[::2]), expected)
    assert reasoner(V0.double()).dtype == torch.float64 and reasoner(V0.half()).dtype == torch.float16
    assert reasoner(V0[:0]).shape == (0, program.ground.G)


def test_kernels_as_plain_python_agree_with_the_reference():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.anchored.plain_child"], cwd=ROOT, text=True, capture_output=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(CASES)
