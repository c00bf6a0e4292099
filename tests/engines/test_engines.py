"""Every engine agrees with the float64 reference, values and gradients, on shipped and random programs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nsfrc
from nsfrc.compiler.passes import NAMES
from tests.amount import THOROUGH, sample
from tests.engines.support import (
    SMALL,
    compile_text,
    false_above,
    near_ties,
    random_compiled,
    relative,
    run,
    valuations,
)
from tests.examples import SMALL as CORNERS
from tests.examples import VOCABULARY

VALUES, GRADIENTS = 2e-6, 1e-4
WEIGHTS = {"hard": None, "fewer": 2, "more": 7}


def weights(program, kind, seed=0):
    if kind == "hard":
        return None
    rows = program.plan.C if kind == "same" else WEIGHTS[kind]
    return torch.randn(rows, program.plan.C, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def agree(program, V0, W=None, gradients=GRADIENTS, **options):
    """The cpu engine in float32 against the reference in float64."""
    mine = run(program, V0, "cpu", torch.float32, W, **options)
    # The input that float32 sees, so that rounding it is not counted as an error of the engine.
    with near_ties() as ties:
        theirs = run(program, V0.float().double(), "reference", torch.float64, W, **options)
    assert (mine[0] - theirs[0]).abs().max() <= VALUES
    if "close" in ties:
        return
    certain = torch.from_numpy(program.ground.neural) | ("twins" not in ties)
    assert relative(mine[1][:, certain], theirs[1][:, certain]) <= gradients
    if W is not None:
        assert relative(mine[2], theirs[2]) <= gradients


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("normalise", ["example", "batch"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_shipped(name, normalise, kind):
    program = nsfrc.compile(name)
    agree(program, valuations(program, 7), weights(program, kind), normalise=normalise)


@pytest.mark.parametrize("skip", [(), NAMES], ids=["passes", "no passes"])
@pytest.mark.parametrize("name", CORNERS)
def test_corners(name, skip):
    """Bodies without atoms, among others."""
    program = compile_text(VOCABULARY + CORNERS[name], skip)
    agree(program, valuations(program, 5), weights(program, "more"))


@pytest.mark.parametrize("outputs", ["all", "targets"])
@pytest.mark.parametrize("inputs", ["all", "neural"])
@pytest.mark.parametrize("name", ["twopairs", "clevr_hans3"])
def test_inputs_and_outputs(name, inputs, outputs):
    program = nsfrc.compile(name)
    agree(program, valuations(program, 9), inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("name", ["threepairs", "clevr_hans7"])
def test_large_programs_forward(name):
    slots = sample(6, 10) if name == "clevr_hans7" else 6
    program = nsfrc.compile(name, slots={"object": slots})
    V0 = valuations(program, 1, crisp=0.6).float()
    with torch.no_grad():
        mine, theirs = (program.reasoner(e, steps=2)(V0.to(d)).double()
                        for e, d in (("cpu", torch.float32), ("reference", torch.float64)))
    assert (mine - theirs).abs().max() <= VALUES


@given(
    seed=st.integers(0, 10**6),
    skip=st.sets(st.sampled_from(NAMES)),
    kind=st.sampled_from([*WEIGHTS, "same"]),
    normalise=st.sampled_from(["example", "batch"]),
    inputs=st.sampled_from(["all", "neural"]),
    outputs=st.sampled_from(["all", "targets"]),
    batch=st.sampled_from([1, 2, 5, 9]),
    steps=st.integers(1, 5),
)
@settings(max_examples=sample(120, 400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_random_programs(seed, skip, kind, normalise, inputs, outputs, batch, steps):
    program = random_compiled(seed, skip)
    V0 = valuations(program, batch, seed)
    agree(program, V0, weights(program, kind, seed), normalise=normalise, inputs=inputs, outputs=outputs, steps=steps)


@pytest.mark.parametrize("gamma", [0.001, 0.004, 0.0072, 0.05, 0.5, 3.0])
def test_any_gamma(gamma):
    program = nsfrc.compile("twopairs")
    V0 = valuations(program, 6)
    # x/γ has an error of 6e-8/γ in float32, whoever computes it.
    agree(program, V0, gradients=max(GRADIENTS, 2e-6 / gamma), gamma=gamma)


@pytest.mark.parametrize("case", ["above one", "negative", "facts changed", "derived given", "true lowered"])
def test_any_starting_values(case):
    """V0 need not be what the program declares; the engine must notice and not merge atoms."""
    program = nsfrc.compile("twopairs")
    V0 = valuations(program, 6)
    if case == "above one":
        V0[:3, program.index("color(obj1,red)")] = 1.7
    elif case == "negative":
        V0[:3, program.index("color(obj1,red)")] = -0.4
    elif case == "facts changed":
        V0[:, program.index("diff_color(red,blue)")] = 0.5
    elif case == "derived given":
        V0[:, program.index("same_shape_pair(obj2,obj1)")] = 0.8
    else:
        V0[:, 1] = 0.9
    agree(program, V0)
    with torch.no_grad():
        mine = program.reasoner("cpu")(V0.float()).double()
    assert (mine - program.reasoner("reference")(V0.float().double())).abs().max() <= VALUES


@pytest.mark.parametrize("gamma", [0.0005, 0.005])
@pytest.mark.parametrize("name", ["closeby", "twopairs"])
@pytest.mark.parametrize("kind", ["hard", "more"])
def test_any_numbers_at_all(name, gamma, kind):
    """Also where false is more likely than what is derived, so that a head is far below atoms that head nothing."""
    program = nsfrc.compile(name)
    V0 = torch.rand(90, program.plan.G, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    V0[::3] = V0[::3].round()
    V0[1::3, 0] = 1.0
    W = weights(program, kind)
    mine, theirs = (run(program, V0.float().double(), engine, dtype, W, gamma=gamma, steps=2)
                    for engine, dtype in (("cpu", torch.float32), ("reference", torch.float64)))
    assert (mine[0] - theirs[0]).abs().max() <= VALUES
    assert all(bool(gradient.isfinite().all()) for gradient in mine[1:] if gradient is not None)
    # Ties and rounding of x/γ decide which of two nearly equal values has the gradient in some rows.
    off = (mine[1] - theirs[1]).abs().amax(dim=1) / theirs[1].abs().amax(dim=1).clamp(min=1)
    assert (off <= 1e-2).double().mean() >= 0.9


def test_where_gradients_are_off_two_values_tie():
    """False above 0 and a small γ: where two values nearly share a Z, a rounding of V0 moves the reference's own
    gradients as far as an engine is off. Where none do, engine "cpu" is as near as ever."""
    program = nsfrc.compile("closeby")
    tied, apart = false_above(program, 6)
    signs = torch.randint(2, tied.shape, generator=torch.Generator().manual_seed(2)) * 2 - 1
    with near_ties() as ties:
        theirs = run(program, tied, "reference", torch.float64, steps=3, gamma=0.002)
    rounded = run(program, tied * (1 + signs * 2.0**-24), "reference", torch.float64, steps=3, gamma=0.002)
    assert "close" in ties and relative(rounded[1], theirs[1]) > 0.1
    for gamma in (0.01, 0.002, 0.0005):
        with near_ties() as ties:
            theirs = run(program, apart, "reference", torch.float64, steps=3, gamma=gamma)
        mine = run(program, apart, "cpu", torch.float32, steps=3, gamma=gamma)
        assert not ties and (mine[0] - theirs[0]).abs().max() <= VALUES
        assert relative(mine[1], theirs[1]) <= GRADIENTS


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 7, 8, 63, 64, 65, 1023])
def test_a_result_never_depends_on_the_batch(batch):
    program = nsfrc.compile("red_triangle")
    V0 = valuations(program, batch).float()
    reasoner = program.reasoner("cpu")
    whole = reasoner(V0)
    for i in {0, batch // 2, batch - 1}:
        assert (whole[i] - reasoner(V0[i : i + 1])[0]).abs().max() <= 1e-6
    assert torch.equal(whole, reasoner(V0))


def test_same_bits_with_one_thread_and_two(monkeypatch):
    program = nsfrc.compile("nine_circles")
    V0 = valuations(program, 500).float()
    monkeypatch.setattr("nsfrc.engines.cpu.calls.WORTH_A_THREAD", 1)
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            start = V0.clone().requires_grad_()
            V_T = program.reasoner("cpu")(start)
            V_T.sum().backward()
            results.append((V_T.detach(), start.grad))
    finally:
        torch.set_num_threads(before)
    for V_T, gradient in results[1:]:
        assert (V_T - results[0][0]).abs().max() <= 1e-6
        assert relative(gradient, results[0][1]) <= 1e-5


@pytest.fixture
def on_threads(monkeypatch):
    """Runs something on so many threads, however little there is to do."""
    monkeypatch.setattr("nsfrc.engines.cpu.calls.WORTH_A_THREAD", 1)
    before = torch.get_num_threads()

    def run_on(count, work):
        torch.set_num_threads(count)
        return work()

    yield run_on
    torch.set_num_threads(before)


@pytest.mark.parametrize("batch", [4, 5, 7, 9, 17, 35])
def test_a_small_batch_has_the_same_bits_on_any_number_of_threads(on_threads, batch):
    """A part of four examples would be added up in another order than a batch of eight."""
    program = nsfrc.compile("clevr_hans7")
    V0 = valuations(program, batch).float()
    values = [on_threads(threads, lambda: program.reasoner("cpu")(V0)) for threads in (1, 2, 3)]
    assert torch.equal(values[0], values[1]) and torch.equal(values[0], values[2])


def test_few_examples_left_for_a_last_tile_have_the_bits_of_any_others(monkeypatch):
    program = nsfrc.compile("clevr_hans7")
    V0 = valuations(program, 33).float()
    whole = program.reasoner("cpu")(V0)
    monkeypatch.setattr("nsfrc.engines.cpu.calls._lanes", lambda rows: 16)
    assert torch.equal(program.reasoner("cpu")(V0), whole)


@pytest.mark.parametrize("case", ["as declared", "false is likely", "above one", "small gamma"])
@pytest.mark.parametrize("kind", ["hard", "more"])
def test_over_the_batch_the_same_bits_on_any_number_of_threads(kind, case, on_threads):
    """Z is everybody's, and so is what is decided for a head as soon as one example needs it."""
    program = nsfrc.compile("twopairs")
    V0 = valuations(program, 150)
    if case == "false is likely":
        V0[100:, 0] = 0.98  # in one part only, where there are two
    elif case == "above one":
        V0[120, program.index("color(obj1,red)")] = 1.7
    options = {"normalise": "batch", "gamma": 0.002 if case == "small gamma" else 0.01}
    results = [on_threads(count, lambda: run(program, V0, "cpu", torch.float32, weights(program, kind), **options))
               for count in (1, 2, 3, 5)]
    for other in results[1:]:
        assert all(a is b is None or torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
    theirs = run(program, V0.float().double(), "reference", torch.float64, weights(program, kind), **options)
    assert (results[0][0] - theirs[0]).abs().max() <= VALUES


def test_gradients_of_weights_over_the_batch_have_the_same_bits_in_float64(on_threads):
    """They are sums over examples, which float64 does not hide."""
    program = nsfrc.compile("closeby")
    V0 = valuations(program, 1100)
    W = weights(program, "more")
    first, *others = (on_threads(count, lambda: run(program, V0, "cpu", torch.float64, W, normalise="batch"))
                      for count in (1, 2, 3))
    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("way", ["threads of our own", "OpenMP gives one"])
def test_over_the_batch_where_openmp_has_too_few_threads(way, on_threads, monkeypatch):
    """Parts wait for each other: none may wait for the end of another."""
    program = nsfrc.compile("twopairs")
    V0 = valuations(program, 80)
    W = weights(program, "more")
    expected = on_threads(1, lambda: run(program, V0, "cpu", torch.float32, W, normalise="batch"))
    if way == "threads of our own":
        monkeypatch.setattr("nsfrc.engines.cpu.threads._openmp", lambda: None)
        found = on_threads(2, lambda: run(program, V0, "cpu", torch.float32, W, normalise="batch"))
    else:
        openmp = ctypes.CDLL(None)
        if not hasattr(openmp, "omp_set_max_active_levels"):
            pytest.skip("another OpenMP")
        levels = openmp.omp_get_max_active_levels()
        openmp.omp_set_max_active_levels(0)
        try:
            found = on_threads(2, lambda: run(program, V0, "cpu", torch.float32, W, normalise="batch"))
        finally:
            openmp.omp_set_max_active_levels(levels)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_an_example_that_is_refused_ends_all_parts(on_threads):
    """Those who would wait for it too."""
    program = nsfrc.compile("twopairs")
    V0 = valuations(program, 80).float()
    V0[70, 3] = float("nan")
    reasoner = program.reasoner("cpu", normalise="batch")
    with pytest.raises(nsfrc.NsfrcError, match=r"V0\[70, 3\]"):
        on_threads(2, lambda: reasoner(V0))
    V0[70, 3], V0[60, 1] = 0.5, 0.9  # true is lowered: another plan has to do it
    found = [on_threads(count, lambda: reasoner(V0)) for count in (1, 2)]
    assert torch.equal(*found)


@pytest.mark.parametrize("name", ["twopairs", "clevr_hans3"])
def test_one_example_is_reasoned_about_as_among_others(name):
    """It has phases of its own."""
    program = nsfrc.compile(name)
    V0 = valuations(program, 5).float()
    for options in ({}, {"gamma": 0.003}, {"outputs": "targets", "inputs": "neural"}):
        reasoner = program.reasoner("cpu", **options)
        assert (reasoner(V0[:1]) - reasoner(V0)[:1]).abs().max() <= 1e-6


def test_gradients_have_the_same_bits_in_every_run():
    program = nsfrc.compile("twopairs")
    V0, W = valuations(program, 33), torch.randn(3, program.plan.C, dtype=torch.float64)
    first, second = (run(program, V0, "cpu", torch.float32, W) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_constants_in_v0_count_for_nothing_with_neural_inputs():
    """The largest passive atom must be sought among the values that count, also for its gradient."""
    program = random_compiled(7, skip=("merge_equal",))
    V0 = valuations(program, 6)
    changed = V0.clone()
    changed[:, ~torch.from_numpy(program.ground.neural)] = 5.0
    for outputs in ("all", "targets"):
        same = [run(program, v, "cpu", torch.float32, inputs="neural", outputs=outputs) for v in (V0, changed)]
        assert torch.equal(same[0][0], same[1][0]) and torch.equal(same[0][1], same[1][1])


BITS = """
import sys
import torch
import nsfrc
from tests.engines.support import run, valuations

found = []
for name in ("twopairs", "closeby"):
    program = nsfrc.compile(name)
    weights = torch.randn(3, program.plan.C, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for W in (None, weights):
        found += [part for part in run(program, valuations(program, 100), "cpu", torch.float32, W) if part is not None]
torch.save(found, sys.argv[1])
"""


@pytest.mark.skipif(not THOROUGH, reason="compiles all kernels anew: make thorough")
def test_the_process_that_compiles_has_the_same_bits_as_later_ones(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in ("first.pt", "second.pt"):
        subprocess.run([sys.executable, "-c", BITS, str(tmp_path / name)], env=environment, check=True)
    first, second = (torch.load(tmp_path / name, weights_only=True) for name in ("first.pt", "second.pt"))
    assert len(first) == 10 and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
