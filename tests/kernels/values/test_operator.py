"""The operator torch sees: launches, bits, graphs, copies, odd inputs."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import nsfrc
from nsfrc.engines.gpu import engine as gpu
from nsfrc.errors import NsfrcError
from nsfrc.kernels.launch import Job
from tests.engines.support import relative, valuations
from tests.kernels.values.support import DEVICE, SHAPES, on_card, shipped, weights


def starting(program, batch, seed=0):
    return valuations(program, batch, seed).to(DEVICE, torch.float32)


class Compute(TorchDispatchMode):
    """Operators that run on the device: all but those that make or view memory."""

    FREE = ("empty", "empty_like", "new_empty", "view", "slice", "detach", "alias", "as_strided")

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function.name().split("::")[1].split(".")[0]
        if name not in self.FREE:
            self.names.append(name)
        return function(*arguments, **(options or {}))


@pytest.fixture
def launches(monkeypatch):
    """Names of the kernels launched."""
    started = []
    original = Job.launch

    def launch(self, kernel, *arguments, **constants):
        started.append(kernel.__name__)
        original(self, kernel, *arguments, **constants)

    monkeypatch.setattr(Job, "launch", launch)
    return started


@pytest.mark.parametrize("mixtures", [None, 3], ids=["hard", "soft"])
def test_one_launch_forward_and_one_backward(launches, mixtures):
    program = shipped("closeby")
    W = weights(program, mixtures)
    mixed = torch.empty(0, 1, device=DEVICE) if W is None else W.softmax(1).to(DEVICE, torch.float32)
    V0 = starting(program, 70)
    runner = program.reasoner("gpu").engine
    runner.fixed = SHAPES["program"]
    arguments = (runner.number, runner.digest, 4, 0.01, "example", "all", "all")
    torch.ops.nsfrc.reason(V0, mixed, *arguments, True)  # the first call moves tables to the card
    launches.clear()
    with Compute() as compute:
        out, past = torch.ops.nsfrc.reason(V0, mixed, *arguments, True)
        assert launches == ["program_forward"]
        torch.ops.nsfrc.reason_backward(V0, mixed, out, past, *arguments)
    assert launches == ["program_forward", "program_backward"]
    assert compute.names == ["reason", "reason_backward"]


def test_launches_of_the_clause_kernels(launches):
    """A step is a launch a band of parts and one for the rest; over a batch, its maxima stand between."""
    program = shipped("closeby")
    reasoner = program.reasoner("gpu", steps=3)
    reasoner.engine.fixed = SHAPES["clause"]
    reasoner(starting(program, 3))
    assert launches == ["clause_start"] + ["clause_rows", "clause_join"] * 3
    launches.clear()
    program.reasoner("gpu", steps=1, normalise="batch")(starting(program, 3))
    assert launches == [
        "clause_start", "clause_rows", "clause_join", "spread_largest", "clause_join", "spread_largest",
        "clause_join", "spread_largest", "clause_join",
    ]


@pytest.mark.parametrize(
    ("kernels", "normalise"), [("program", "example"), ("clause", "example"), ("clause", "batch")]
)
def test_the_same_bits_in_every_run(kernels, normalise):
    program = shipped("closeby")
    V0, W, shape = valuations(program, 40), weights(program, 3), SHAPES[kernels]
    first, second = (on_card(program, V0, W, shape, normalise=normalise, steps=2) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kernels", SHAPES)
def test_a_result_never_depends_on_the_batch(kernels):
    program = shipped("closeby")
    reasoner = program.reasoner("gpu")
    reasoner.engine.fixed = SHAPES[kernels]
    V0 = starting(program, 65)
    whole = reasoner(V0)
    for i in (0, 31, 32, 64):
        assert torch.equal(whole[i], reasoner(V0[i : i + 1])[0])


def test_an_instance_takes_tile_after_tile(monkeypatch):
    """With fewer instances than tiles the workspace is used again, and the weights' gradient still adds up."""
    program = shipped("closeby")
    V0, W = valuations(program, 130), weights(program, 2)
    many = on_card(program, V0, W, SHAPES["program"], steps=2)
    monkeypatch.setattr(gpu, "INSTANCES_PER_MULTIPROCESSOR", 1)
    monkeypatch.setattr(gpu, "multiprocessors", lambda device: 2)
    few = on_card(program, V0, W, SHAPES["program"], steps=2)
    assert torch.equal(few[0], many[0]) and torch.equal(few[1], many[1])
    assert relative(few[2], many[2]) <= 1e-6


def test_gradients_twice_from_one_graph():
    program = shipped("closeby")
    V0 = starting(program, 40).requires_grad_()
    W = torch.nn.Parameter(weights(program, 2).to(DEVICE, torch.float32))
    reasoner = program.reasoner("gpu", clause_weights=W)
    reasoner.engine.fixed = SHAPES["program"]
    total = reasoner(V0).sum()
    first = torch.autograd.grad(total, (V0, W), retain_graph=True)
    second = torch.autograd.grad(total, (V0, W))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_graphs_are_whole(dynamic):
    program = shipped("closeby")
    W = torch.nn.Parameter(weights(program, 2).to(DEVICE, torch.float32))
    reasoner = program.reasoner("gpu", clause_weights=W)

    def loss(values):
        return (reasoner(values.sigmoid()) * 2).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for batch in (3, 4) if dynamic else (3,):
        V0 = starting(program, batch).requires_grad_()
        expected = torch.autograd.grad(loss(V0), (V0, W))
        actual = torch.autograd.grad(compiled(V0), (V0, W))
        assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_the_operator_keeps_torchs_rules():
    program = shipped("closeby")
    runner = program.reasoner("gpu").engine
    V0 = starting(program, 3).requires_grad_()
    mixed = torch.full((2, 1), 1.0, device=DEVICE, requires_grad=True)
    arguments = (V0, mixed, runner.number, runner.digest, 2, 0.01, "example", "targets", "all", True)
    torch.library.opcheck(gpu.reason, arguments)


def test_programs_differ_in_what_torch_may_cache():
    first, second = (shipped(name).reasoner("gpu").engine for name in ("closeby", "twopairs"))
    assert first.digest == shipped("closeby").reasoner("gpu").engine.digest != second.digest


def test_copies_find_their_engine():
    program = shipped("closeby")
    V0 = starting(program, 3)
    reasoner = program.reasoner("gpu")
    for other in (copy.deepcopy(reasoner), pickle.loads(pickle.dumps(reasoner))):
        assert torch.equal(other(V0), reasoner(V0))
        assert other.engine.number != reasoner.engine.number


def test_other_layouts_and_types():
    program = shipped("closeby")
    reasoner, V0 = program.reasoner("gpu"), starting(program, 6)
    expected = reasoner(V0)
    assert torch.equal(reasoner(V0.T.contiguous().T), expected)
    assert reasoner(V0.double()).dtype == torch.float64
    half = V0.half().requires_grad_()
    reasoner(half).sum().backward()
    assert half.grad.dtype == torch.float16 and half.grad.any()


def test_no_examples_and_no_steps():
    program = shipped("closeby")
    V0 = starting(program, 3)
    assert program.reasoner("gpu")(V0[:0]).shape == (0, 43)
    assert torch.equal(program.reasoner("gpu", steps=0)(V0), V0)


@pytest.mark.parametrize("case", ["above one", "negative", "facts changed", "derived given", "true lowered"])
def test_any_starting_values(case):
    program = nsfrc.compile("twopairs")
    V0 = valuations(program, 6)
    atom, value = {
        "above one": ("color(obj1,red)", 1.7), "negative": ("color(obj1,red)", -0.4),
        "facts changed": ("diff_color(red,blue)", 0.5), "derived given": ("same_shape_pair(obj2,obj1)", 0.8),
        "true lowered": ("true", 0.9),
    }[case]
    V0[:3, program.index(atom)] = value
    reasoner = program.reasoner("gpu", steps=2)
    reasoner.engine.fixed = SHAPES["program"]
    theirs = program.reasoner("reference", steps=2)(V0.float().double())
    assert (reasoner(V0.to(DEVICE, torch.float32)).double().cpu() - theirs).abs().max() <= 2e-6


def test_a_nan_stays_with_its_example():
    program = shipped("closeby")
    V0 = starting(program, 3)
    expected = program.reasoner("gpu")(V0)
    V0[1, program.index("closeby(obj1,obj2)")] = float("nan")
    answer = program.reasoner("gpu")(V0)
    assert torch.equal(answer[[0, 2]], expected[[0, 2]])
    assert answer[1, program.index("closeby(obj1,obj2)")].isnan()


def test_too_large_a_batch_is_refused(monkeypatch):
    monkeypatch.setattr(gpu, "MOST_VALUES", 10_000)
    program = shipped("closeby")
    with pytest.raises(NsfrcError, match=r'too many at once for closeby with normalise="batch": at most \d+'):
        program.reasoner("gpu", normalise="batch")(starting(program, 400))
