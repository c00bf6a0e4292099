"""The kernels of `anchored`, written out and driven by tables: values, gradients, and the operator torch sees."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from nsfrc.compiler.ir import ANCHORED
from nsfrc.compiler.passes import NAMES
from nsfrc.engines.gpu import anchored_engine, anchored_phases
from nsfrc.engines.gpu.anchored_launch import TableJob, WrittenJob
from nsfrc.engines.gpu.anchored_shapes import LARGE, SMALL, Shape
from nsfrc.engines.gpu.anchored_written import fits
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from tests.engines.support import random_compiled, relative, run, valuations
from tests.kernels.anchored_programs import anchored
from tests.kernels.values.support import DEVICE, GRADIENTS, VALUES
from tests.kernels.values.test_operator import Compute

# In the interpreter a tile costs the same whatever its size; those of a card are tried apart.
WIDE = Shape(tall=256, wide=32, warps=4, registers=128)


def weights(program: Program, mixtures: int | None) -> torch.Tensor | None:
    if mixtures is None:
        return None
    return torch.randn(mixtures, program.ground.C, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def on_card(program, V0, W=None, shape=None, **options):
    """V_T and the gradients of V0 and W from the kernels, as `run` gives them. shape: tiles of tables."""
    start = V0.detach().to(DEVICE, torch.float32).requires_grad_()
    parameter = None if W is None else torch.nn.Parameter(W.to(DEVICE, torch.float32))
    reasoner = program.reasoner("gpu", clause_weights="hard" if parameter is None else parameter, **options)
    reasoner.engine.fixed = shape
    V_T = reasoner(start)
    mixture = torch.rand(V_T.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (V_T.double() * mixture.to(DEVICE)).sum().backward()
    g_W = None if parameter is None else parameter.grad.double().cpu()
    return V_T.detach().double().cpu(), start.grad.double().cpu(), g_W


def agree(program, batch, mixtures=None, shape=None, V0=None, **options):
    """The kernels' values and gradients against the reference's in float64."""
    V0 = valuations(program, batch) if V0 is None else V0
    W = weights(program, mixtures)
    theirs = run(program, V0.float().double(), "reference", torch.float64, W, **options)
    mine = on_card(program, V0, W, shape, **options)
    assert (mine[0] - theirs[0]).abs().max() <= VALUES
    assert relative(mine[1], theirs[1]) <= GRADIENTS
    if W is not None:
        assert relative(mine[2], theirs[2]) <= GRADIENTS


@pytest.mark.parametrize("inputs", ["all", "neural"])
@pytest.mark.parametrize("outputs", ["all", "targets"])
@pytest.mark.parametrize("name, batch, shape, mixtures", [
    ("closeby", 7, None, None), ("closeby", 33, WIDE, None), ("twopairs", 7, None, None), ("twopairs", 7, WIDE, 3),
    ("path", 7, WIDE, None), ("two paths", 1, WIDE, None), ("mixed", 33, WIDE, None), ("chain", 7, None, None),
])
def test_inputs_and_outputs(name, batch, shape, mixtures, inputs, outputs):
    agree(anchored(name), batch, mixtures, shape, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("name, mixtures", [("path", 1), ("path", 5), ("two paths", 3), ("mixed", 2)])
@pytest.mark.parametrize("batch", [1, 33])
def test_soft_weights(name, mixtures, batch):
    agree(anchored(name), batch, mixtures, WIDE)


@pytest.mark.parametrize("shape", [LARGE, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("name, mixtures", [("path", 2), ("twopairs", None)])
def test_in_the_tiles_of_a_card(name, mixtures, shape):
    agree(anchored(name), 33, mixtures, shape)


def test_lists_that_are_cut_twice(monkeypatch):
    """84 rows of a head, in pieces of 3: parts of parts of parts; and lists of uses likewise."""
    monkeypatch.setattr(anchored_phases, "PIECE", 3)
    agree(anchored("nine_circles"), 3, None, WIDE, inputs="neural", outputs="targets")
    agree(anchored("twopairs"), 3, 2, WIDE)


@pytest.mark.parametrize("gamma", [1e-12, 0.2, 0.3, 1.0, 1e4])
@pytest.mark.parametrize("name, shape", [("closeby", None), ("path", WIDE)])
def test_any_gamma(name, shape, gamma):
    agree(anchored(name), 5, None, shape, gamma=gamma)


def test_the_largest_gamma_is_a_sum():
    """The float64 reference has lost its digits there; softor⁰ is the sum of its reasons."""
    program = anchored("closeby")
    V0 = valuations(program, 5) * 0.1
    V0[:, 1] = 1
    for shape in (None, WIDE):
        mine = on_card(program, V0, shape=shape, gamma=1e12)
        theirs = run(program, V0.float().double(), "reference", torch.float64, gamma=1e4)
        assert (mine[0] - theirs[0]).abs().max() <= 1e-5


@pytest.mark.parametrize("name, shape", [("twopairs", None), ("twopairs", WIDE), ("path", WIDE), ("mixed", WIDE)])
@pytest.mark.parametrize("gamma", [0.01, 0.4])
def test_crisp_worlds_are_exact(name, shape, gamma):
    """Exactly 0 or 1, as in the reference, and more rounds than needed change no bit."""
    program = anchored(name)
    V0 = torch.from_numpy(program.initial_valuation()).double().repeat(9, 1)
    neural = torch.from_numpy(program.ground.neural)
    V0[:, neural] = (torch.rand(9, int(neural.sum()), generator=torch.Generator().manual_seed(3)) > 0.4).double()
    mine = on_card(program, V0, shape=shape, gamma=gamma)[0]
    assert set(mine.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(mine, program.reasoner("reference", gamma=gamma)(V0))
    assert torch.equal(mine, on_card(program, V0, shape=shape, gamma=gamma, steps=20)[0])


@pytest.mark.parametrize("shape", [None, WIDE], ids=["written", "tables"])
@pytest.mark.parametrize("gamma", [0.01, 0.7])
def test_one_reason_is_the_value_to_the_bit(shape, gamma):
    program = anchored("chain")
    V0 = valuations(program, 33).float()
    reasoner = program.reasoner("gpu", outputs="targets", gamma=gamma)
    reasoner.engine.fixed = shape
    assert torch.equal(reasoner(V0.to(DEVICE))[:, 0].cpu(), V0[:, program.index("color(obj1,red)")])


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_rounds_of_what_depends_on_itself(steps):
    agree(anchored("path"), 5, None if steps == 0 else 2, WIDE, steps=steps)


@pytest.mark.parametrize("case", ["above one", "facts changed", "derived given", "true lowered"])
def test_any_starting_values(case):
    program = anchored("mixed")
    V0 = valuations(program, 6)
    atom, value = {
        "above one": ("color(obj1,red)", 1.7), "facts changed": ("likes(red,blue)", 0.5),
        "derived given": ("good(red)", 0.8), "true lowered": ("true", 0.9),
    }[case]
    V0[:3, program.index(atom)] = value
    agree(program, 6, None, WIDE, V0=V0)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    program = random_compiled(seed, [NAMES[seed % len(NAMES)]] if seed % 2 else [], ANCHORED)
    written = fits(program.level_plan(False, False), soft=seed % 3 == 2)
    agree(program, (1, 7, 33)[seed % 3], 2 if seed % 3 == 2 else None, None if written else WIDE)


@pytest.fixture
def launches(monkeypatch):
    """Kernels that were started."""
    started = []
    for job in (TableJob, WrittenJob):
        def launch(self, kernel, *arguments, original=job.launch, **constants):
            started.append(kernel if isinstance(kernel, str) else kernel.__name__)
            original(self, kernel, *arguments, **constants)

        monkeypatch.setattr(job, "launch", launch)
    return started


@pytest.mark.parametrize("name, mixtures, kernels", [
    ("twopairs", None, "written"), ("twopairs", 3, "anchored"), ("path", None, "anchored"),
])
def test_one_launch_forward_and_one_backward(launches, name, mixtures, kernels):
    program = anchored(name)
    W = weights(program, mixtures)
    mixed = torch.empty(0, program.ground.C, device=DEVICE) if W is None else W.softmax(1).to(DEVICE, torch.float32)
    V0 = valuations(program, 70).to(DEVICE, torch.float32)
    runner = program.reasoner("gpu").engine
    runner.fixed = None if kernels == "written" else WIDE
    arguments = (runner.number, runner.digest, -1, 0.01, "targets", "neural")
    torch.ops.nsfrc.reason_anchored(V0, mixed, *arguments, True)  # the first call moves tables to the card
    launches.clear()
    with Compute() as compute:
        out, past = torch.ops.nsfrc.reason_anchored(V0, mixed, *arguments, True)
        torch.ops.nsfrc.reason_anchored_backward(V0, mixed, out, past, *arguments)
    assert launches == [f"{kernels}_forward", f"{kernels}_backward"]
    assert compute.names == ["reason_anchored", "reason_anchored_backward"]


@pytest.mark.parametrize("name, mixtures", [("twopairs", None), ("path", 3)])
def test_the_same_bits_in_every_run(name, mixtures):
    program = anchored(name)
    V0, W = valuations(program, 40), weights(program, mixtures)
    first, second = (on_card(program, V0, W, WIDE if mixtures else None, inputs="neural") for _ in range(2))
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name, shape", [("twopairs", None), ("twopairs", WIDE), ("path", SMALL)])
def test_a_result_never_depends_on_the_batch(name, shape):
    program = anchored(name)
    reasoner = program.reasoner("gpu", inputs="neural")
    reasoner.engine.fixed = shape
    V0 = valuations(program, 65).to(DEVICE, torch.float32)
    whole = reasoner(V0)
    for i in (0, 31, 32, 64):
        assert torch.equal(whole[i], reasoner(V0[i : i + 1])[0])


def test_an_instance_takes_tile_after_tile(monkeypatch):
    program = anchored("path")
    V0, W = valuations(program, 100), weights(program, 2)
    many = on_card(program, V0, W, WIDE)
    monkeypatch.setattr(anchored_engine, "INSTANCES_PER_MULTIPROCESSOR", 1)
    monkeypatch.setattr(anchored_engine, "multiprocessors", lambda device: 2)
    few = on_card(program, V0, W, WIDE)
    assert torch.equal(few[0], many[0]) and torch.equal(few[1], many[1])
    assert relative(few[2], many[2]) <= 1e-6


def test_gradients_twice_from_one_graph():
    """Rounds are computed again in what was kept, which is then as it was."""
    program = anchored("path")
    V0 = valuations(program, 9).to(DEVICE, torch.float32).requires_grad_()
    W = torch.nn.Parameter(weights(program, 2).to(DEVICE, torch.float32))
    reasoner = program.reasoner("gpu", clause_weights=W)
    reasoner.engine.fixed = WIDE
    total = reasoner(V0).sum()
    first = torch.autograd.grad(total, (V0, W), retain_graph=True)
    second = torch.autograd.grad(total, (V0, W))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_compiled_graphs_are_whole():
    program = anchored("path")
    W = torch.nn.Parameter(weights(program, 2).to(DEVICE, torch.float32))
    reasoner = program.reasoner("gpu", clause_weights=W)

    def loss(values):
        return (reasoner(values.sigmoid()) * 2).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for batch in (3, 4):
        V0 = valuations(program, batch).to(DEVICE, torch.float32).requires_grad_()
        expected = torch.autograd.grad(loss(V0), (V0, W))
        actual = torch.autograd.grad(compiled(V0), (V0, W))
        assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


@pytest.mark.parametrize("name, mixtures", [("closeby", 0), ("twopairs", 2)])
def test_the_operator_keeps_torchs_rules(name, mixtures):
    program = anchored(name)
    runner = program.reasoner("gpu").engine
    runner.fixed = WIDE if mixtures else None
    V0 = valuations(program, 3).to(DEVICE, torch.float32).requires_grad_()
    mixed = torch.full((mixtures, program.ground.C), 1 / program.ground.C, device=DEVICE, requires_grad=mixtures > 0)
    arguments = (V0, mixed, runner.number, runner.digest, -1, 0.01, "targets", "all", True)
    torch.library.opcheck(anchored_engine.reason_anchored, arguments)


def test_gamma_may_change():
    program = anchored("closeby")
    V0 = valuations(program, 3)
    reasoner = program.reasoner("gpu")
    for gamma in (0.5, 0.1, 0.01):
        reasoner.gamma = gamma
        theirs = program.reasoner("reference", gamma=gamma)(V0.float().double())
        assert (reasoner(V0.to(DEVICE, torch.float32)).double().cpu() - theirs).abs().max() <= VALUES


def test_copies_types_and_no_examples():
    program = anchored("path")
    V0 = valuations(program, 3).to(DEVICE, torch.float32)
    reasoner = program.reasoner("gpu")
    expected = reasoner(V0)
    for other in (copy.deepcopy(reasoner), pickle.loads(pickle.dumps(reasoner))):
        assert torch.equal(other(V0), expected) and other.engine.number != reasoner.engine.number
    assert torch.equal(reasoner(V0.T.contiguous().T), expected)
    assert reasoner(V0.double()).dtype == torch.float64
    assert reasoner(V0[:0]).shape == (0, program.ground.G)


def test_a_nan_stays_with_its_example():
    for name in ("closeby", "path"):
        program = anchored(name)
        V0 = valuations(program, 3).to(DEVICE, torch.float32)
        expected = program.reasoner("gpu")(V0)
        V0[1, program.index("in(obj1,img)")] = float("nan")
        answer = program.reasoner("gpu")(V0)
        assert torch.equal(answer[[0, 2]], expected[[0, 2]]) and answer[1, program.index("kp(img)")].isnan()


def test_too_large_a_batch_is_refused(monkeypatch):
    monkeypatch.setattr(anchored_engine, "MOST_VALUES", 10_000)
    with pytest.raises(NsfrcError, match=r"400 examples are too many at once for path: at most \d+"):
        anchored("path").reasoner("gpu")(valuations(anchored("path"), 400).to(DEVICE, torch.float32))
