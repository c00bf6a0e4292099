"""The module that users hold: shapes, defaults, errors, learning, threads and processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import nsfrc
from nsfrc.errors import NsfrcError, TooFewSteps
from tests.engines.support import compile_text, valuations


@pytest.fixture(scope="module")
def program():
    return nsfrc.compile("twopairs")


def test_the_documented_names(program):
    V0 = valuations(program, 3).float()
    assert program.atoms[:3] == ["false", "true", "color(obj1,blue)"]
    reasoner = program.reasoner(engine="cpu", normalise="example", steps=4, gamma=0.01)
    assert isinstance(reasoner, torch.nn.Module)
    V_T = reasoner(V0)
    assert V_T.shape == V0.shape
    assert torch.equal(reasoner.clause_weights, torch.eye(4)) and reasoner.hard
    assert torch.equal(program.predict(V_T)["kp(img)"], V_T[:, program.index("kp(img)")])
    targets = program.reasoner(outputs="targets")(V0)
    assert targets.shape == (3, 1)
    assert torch.allclose(program.predict(targets)["kp(img)"], program.predict(V_T)["kp(img)"], atol=1e-6)
    assert program.index_tensor().shape == (4, 73, 24, 8)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_no_examples_and_no_steps(program, engine):
    V0 = valuations(program, 3).float()
    assert program.reasoner(engine)(V0[:0]).shape == (0, 73)
    assert program.reasoner(engine, outputs="targets")(V0[:0]).shape == (0, 1)
    unchanged = program.reasoner(engine, steps=0)(V0)
    assert torch.equal(unchanged, V0) and unchanged is not V0
    neural = program.reasoner(engine, steps=0, inputs="neural")(torch.zeros_like(V0))
    assert neural[0, 1] == 1 and neural[0].sum() == torch.from_numpy(program.initial_valuation()).sum()
    V0[1, 5] = float("nan")
    with pytest.raises(NsfrcError, match=r"V0\[1, 5\]"):
        program.reasoner(engine, steps=0)(V0)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_an_empty_batch_does_not_stop_a_training(program, engine):
    reasoner = program.reasoner(engine, clause_weights="trainable")
    reasoner(valuations(program, 0).float()).sum().backward()
    assert not reasoner.clause_weights.grad.any()


def test_other_layouts_and_types(program):
    V0 = valuations(program, 8).float()
    reasoner = program.reasoner()
    expected = reasoner(V0)
    assert torch.equal(reasoner(V0.T.contiguous().T), expected)
    assert torch.equal(reasoner(V0.repeat_interleave(2, 0)[::2]), expected)
    assert reasoner(V0.double()).dtype == torch.float64
    assert reasoner(V0.half()).dtype == torch.float16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "cpuu"}, "did you mean cpu"),
        ({"normalise": "image"}, "'example' or 'batch'"),
        ({"outputs": "target"}, "'all' or 'targets'"),
        ({"steps": -1}, "steps must be a whole number, 0 or more, not -1"),
        ({"steps": 2.5}, "a whole number, 0 or more, not 2.5"),
        ({"gamma": "soft"}, "gamma must be a number from 1e-12 to 1e12, not 'soft'"),
        ({"gamma": 0.0}, "gamma must be a number from"),
        ({"gamma": 1e300}, "gamma must be a number from"),
        ({"clause_weights": torch.zeros(2, 3)}, r"must be \[M, 4\]"),
        ({"clause_weights": "soft"}, "'hard', 'trainable' or a tensor"),
        ({"clause_weights": [[1.0]]}, "'hard', 'trainable' or a tensor"),
        ({"engine": None}, "no engine called None"),
    ],
)
def test_bad_options(program, options, message, recwarn):
    with pytest.raises(NsfrcError, match=message):
        program.reasoner(**options)
    assert not recwarn.list


NOT_VALUATIONS = [torch.zeros(2, 72), torch.zeros(73), torch.zeros(2, 73, dtype=torch.long), np.zeros((2, 73))]


@pytest.mark.parametrize("V0", NOT_VALUATIONS)
def test_bad_valuations(program, V0):
    with pytest.raises(NsfrcError, match="V0"):
        program.reasoner()(V0)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_no_numbers(program, value, engine):
    V0 = valuations(program, 5).float()
    V0[3, program.index("color(obj1,red)")] = value
    with pytest.raises(NsfrcError, match=r"V0\[3, \d+\], color\(obj1,red\), is (nan|inf)"):
        program.reasoner(engine)(V0)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_clause_weights_that_are_no_numbers(program, engine):
    V0, weights = valuations(program, 2).float(), torch.zeros(2, 4)
    weights[0, 1] = -float("inf")  # leaves a clause out
    reasoner = program.reasoner(engine, clause_weights=weights)
    assert reasoner(V0).isfinite().all()
    weights[1, 2] = float("nan")
    with pytest.raises(NsfrcError, match="clause_weights has a row with NaN"):
        reasoner(V0)


def test_learnt_weights_do_not_go_into_a_hard_reasoner(program):
    learnt = program.reasoner(clause_weights="trainable").state_dict()
    with pytest.raises(RuntimeError, match=r"Unexpected key.*clause_weights"):
        program.reasoner().load_state_dict(learnt)
    soft = program.reasoner(clause_weights=torch.zeros(4, 4))
    soft.load_state_dict(learnt)
    assert torch.equal(soft.clause_weights, torch.eye(4) * 10)


def test_second_derivatives(program):
    """The CPU engine says that it has none; the reference engine has them."""
    V0, W = valuations(program, 2).float().requires_grad_(), torch.zeros(2, 4, requires_grad=True)
    for engine, weights in (("cpu", "hard"), ("cpu", W), ("reference", W)):
        reasoner = program.reasoner(engine, clause_weights=weights)
        for of in (V0, W) if weights is W else (V0,):
            (first,) = torch.autograd.grad(reasoner(V0).sum(), of, create_graph=True)
            assert first.requires_grad
            if engine == "reference":
                assert torch.autograd.grad(first.square().sum(), V0)[0].abs().max() > 0
                continue
            with pytest.raises(NsfrcError, match=r'first derivatives only: .*engine="reference"'):
                first.square().sum().backward()


def test_a_valuation_that_changed_before_its_gradient_is_noticed(program):
    V0 = valuations(program, 2).float().requires_grad_()
    values = V0 * 1
    out = program.reasoner()(values).sum()
    with torch.no_grad():
        values.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.filterwarnings("ignore")
def test_tracing_is_refused(program):
    with pytest.raises(NsfrcError, match=r"torch\.jit\.trace cannot record a reasoner"):
        torch.jit.trace(program.reasoner(), valuations(program, 2).float())


def test_forward_derivatives_are_refused_and_not_lost(program):
    V0 = valuations(program, 2).float()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(V0, torch.ones_like(V0))
        with pytest.raises(NsfrcError, match=r'no forward-mode derivatives: .*engine="reference"'):
            program.reasoner()(dual)
        assert forward_ad.unpack_dual(program.reasoner("reference")(dual)).tangent is not None


def test_tensors_that_numbers_cannot_be_had_of(program):
    V0, reasoner = valuations(program, 2).float(), program.reasoner(outputs="targets")
    for call in (
        lambda: reasoner(V0.to_sparse()), lambda: reasoner(V0.to("meta")),
        lambda: torch.func.vmap(lambda one: reasoner(one[None])[0])(V0),
        lambda: torch.func.grad(lambda given: reasoner(given).sum())(V0),
    ):
        with pytest.raises(NsfrcError, match=r'plain tensor.*use engine="reference" there'):
            call()


def test_the_reference_keeps_its_digits_under_autocast(program):
    V0, reasoner = valuations(program, 3).float(), program.reasoner("reference", clause_weights=torch.randn(5, 4))
    expected = reasoner(V0)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(reasoner(V0), expected)


def test_a_reasoner_shows_its_options(program):
    shown = repr(program.reasoner(outputs="targets", clause_weights=torch.zeros(2, 4)))
    assert all(part in shown for part in ("outputs=targets", "inputs=all", "normalise=example", "[2, 4]"))


def test_torch_compile_leaves_the_engine_out_of_its_graph(program, recwarn):
    reasoner, V0 = program.reasoner(), valuations(program, 3).float()
    V0.requires_grad_()
    given, wanted = torch.compile(reasoner, backend="eager")(V0), reasoner(V0)
    assert torch.equal(given, wanted)
    assert torch.equal(*(torch.autograd.grad(out.sum(), V0)[0] for out in (given, wanted)))
    assert not [found for found in recwarn.list if "ynamo" in str(found.message)]


def test_facts_that_are_tensors(program):
    with pytest.raises(NsfrcError, match=r"is a tensor; .*nsfrc\.FactsConverter, or fill a tensor \[B, G\]"):
        program.valuation({"color(obj1,red)": torch.tensor(0.5, requires_grad=True)})


def test_too_few_steps(program):
    with pytest.warns(TooFewSteps, match="1 step is too few for twopairs: deriving kp"):
        program.reasoner(steps=1)


def test_copies(program):
    V0 = valuations(program, 5).float()
    reasoner = program.reasoner(clause_weights="trainable")
    for other in (copy.deepcopy(reasoner), pickle.loads(pickle.dumps(reasoner))):
        assert torch.equal(other(V0), reasoner(V0))
        assert other.clause_weights is not reasoner.clause_weights


def test_unknown_atom(program):
    with pytest.raises(NsfrcError, match="did you mean kp"):
        program.index("kpp(img)")
    with pytest.raises(NsfrcError, match="columns"):
        program.predict(torch.zeros(2, 5))


LEARN = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type(color, [red, blue]).
:- neural(color(object, color)).
:- target(kp(img)).
:- target(other(img)).
:- pred(kp(image)).
:- pred(other(image)).
:- neural(in(object, image)).
kp(X) :- in(O, X), color(O, red).
kp(X) :- in(O, X), color(O, blue).
other(X) :- in(O1, X), in(O2, X), color(O1, red), color(O2, blue).
"""


def test_clause_weights_learn_which_rule_holds():
    """One learnt clause out of three must explain labels made with the second."""
    program = compile_text(LEARN)
    V0 = valuations(program, 64, crisp=1).float()
    labels = program.predict(
        program.reasoner("reference", clause_weights=torch.tensor([[-20.0, 20.0, -20.0]]))(V0.double())
    )["kp(img)"].float()
    torch.manual_seed(0)
    weights = torch.nn.Parameter(torch.zeros(1, 3))
    reasoner = program.reasoner(clause_weights=weights)
    optimiser = torch.optim.Adam(reasoner.parameters(), lr=0.1)
    for _ in range(60):
        optimiser.zero_grad()
        loss = (program.predict(reasoner(V0))["kp(img)"] - labels).square().mean()
        loss.backward()
        optimiser.step()
    assert weights.softmax(1).argmax().item() == 1
    assert loss.item() < 0.01


def test_trainable_weights_start_close_to_the_program(program):
    V0 = valuations(program, 5).float()
    trainable = program.reasoner(clause_weights="trainable")
    assert isinstance(trainable.clause_weights, torch.nn.Parameter)
    assert [name for name, _ in trainable.named_parameters()] == ["clause_weights"]
    assert (trainable(V0) - program.reasoner()(V0)).abs().max() < 0.01


def test_many_python_threads(program):
    V0 = valuations(program, 300).float()
    reasoner = program.reasoner()
    expected = reasoner(V0)
    with ThreadPoolExecutor(8) as pool:
        assert all(torch.equal(r, expected) for r in pool.map(reasoner, [V0] * 32))


def _reason_in_child(queue, V0):
    queue.put(float(nsfrc.compile("twopairs").reasoner()(torch.tensor(V0)).sum()))


def test_forked_child(program, monkeypatch):
    """A child forked after the parent used its threads must not wait for them."""
    monkeypatch.setattr("nsfrc.engines.cpu.calls.WORTH_A_THREAD", 1)
    V0 = valuations(program, 200).float()
    expected = float(program.reasoner()(V0).sum())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_reason_in_child, args=(queue, V0.tolist()))
    child.start()
    assert queue.get(timeout=120) == pytest.approx(expected)
    child.join()


@pytest.mark.parametrize("name", ["twopairs", "at_least_three"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_used_reasoners_share_no_memory(name, again):
    """Kernels are told addresses: a copy must not have those of the original, which may be gone."""
    reasoner = nsfrc.compile(name).reasoner("cpu")
    V0 = valuations(reasoner.program, 3).float()
    expected = reasoner(V0)
    (bound,) = reasoner.engine._latest[1].values()
    copied = again(reasoner)
    assert copied.engine._latest == (None, {})
    del reasoner
    assert torch.equal(copied(V0), expected)
    with pytest.raises(TypeError, match="addresses of this process"):
        again(bound)
