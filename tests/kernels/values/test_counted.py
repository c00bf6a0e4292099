"""Negations and counts in the kernels of `anchored`, written out and driven by tables: values and gradients."""

from __future__ import annotations

import importlib.util
import random
from dataclasses import replace

import pytest
import torch

import nsfrc
from nsfrc.engines.gpu import anchored_phases
from nsfrc.engines.gpu.anchored_shapes import LARGE, SMALL
from nsfrc.engines.gpu.anchored_written import fits
from nsfrc.engines.gpu.source import emit
from tests.engines.support import relative, run, valuations
from tests.kernels.counted_programs import BEGINNING, compiled, counted
from tests.kernels.values.support import DEVICE, GRADIENTS, VALUES
from tests.kernels.values.test_anchored import WIDE, agree, launches, on_card, weights  # noqa: F401

COMPARISONS = (">=", "=<", "=:=", "=\\=")
EVERY = [(inputs, outputs) for inputs in ("all", "neural") for outputs in ("all", "targets")]


@pytest.mark.parametrize("inputs, outputs", EVERY)
@pytest.mark.parametrize("name, batch, shape", [("negations", 7, None), ("counts", 7, WIDE), ("recursion", 7, WIDE)])
def test_inputs_and_outputs(name, batch, shape, inputs, outputs):
    agree(counted(name), batch, None, shape, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("inputs, outputs", EVERY[::3])
@pytest.mark.parametrize("name, batch, shape", [
    ("negations", 33, WIDE), ("counts", 33, None), ("tower", 1, None), ("tower", 1, WIDE), ("few", 1, None),
])
def test_other_batches(name, batch, shape, inputs, outputs):
    agree(counted(name), batch, None, shape, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("name, mixtures, batch", [("negations", 2, 33), ("counts", 3, 5)])
def test_soft_weights(name, mixtures, batch):
    agree(counted(name), batch, mixtures, WIDE)


@pytest.mark.parametrize("name, mixtures, shape", [("recursion", 2, SMALL), ("counts", None, LARGE)])
def test_in_the_tiles_of_a_card(name, mixtures, shape):
    agree(counted(name), shape.wide + 1, mixtures, shape)


def test_lists_of_uses_that_are_cut(monkeypatch):
    """A value that many choices are made by gathers in pieces."""
    monkeypatch.setattr(anchored_phases, "PIECE", 2)
    agree(counted("counts"), 3, None, WIDE, inputs="neural", outputs="targets")


@pytest.mark.parametrize("name, shape", [("counts", None), ("counts", WIDE), ("tower", None), ("recursion", WIDE)])
def test_crisp_worlds_are_exact(name, shape):
    program = counted(name)
    V0 = torch.from_numpy(program.initial_valuation()).double().repeat(20, 1)
    neural = torch.from_numpy(program.ground.neural)
    V0[:, neural] = (torch.rand(20, int(neural.sum()), generator=torch.Generator().manual_seed(3)) > 0.4).double()
    mine = on_card(program, V0, shape=shape)[0]
    assert set(mine.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(mine, program.reasoner("reference")(V0))


@pytest.mark.parametrize("name, atom", [("negations", "color(obj1,red)"), ("counts", "near(obj2,obj1)"),
                                        ("counts", "near(obj4,obj3)")])
@pytest.mark.parametrize("shape", [None, WIDE], ids=["written", "tables"])
def test_values_above_one_count_as_one(name, atom, shape):
    program = counted(name)
    V0 = valuations(program, 5)
    V0[:3, program.index(atom)] = 1.7
    agree(program, 5, None, shape, V0=V0)


@pytest.mark.parametrize("shape", [None, WIDE], ids=["written", "tables"])
def test_a_target_may_be_a_count(shape):
    """No head is left then."""
    base = compiled(BEGINNING + ":- target(k(obj1)). :- neural(near_to(object)). k(X) :- near_to(X).").source
    program = nsfrc.compile(replace(base, targets=(replace(base.targets[0], name="near_to"),)))
    assert program.level_plan(True, True).heads == 0
    agree(program, 3, None, shape, inputs="neural", outputs="targets")


def test_a_nan_stays_with_its_example():
    for name, shape in (("few", None), ("few", WIDE)):
        program = counted(name)
        V0 = valuations(program, 3)
        expected = on_card(program, V0, shape=shape)[0]
        V0[1, program.index("color(obj1,blue)")] = float("nan")
        answer = on_card(program, V0, shape=shape)[0]
        assert torch.equal(answer[[0, 2]], expected[[0, 2]]) and answer[1, program.index("kp(img)")].isnan()


@pytest.mark.parametrize("name, mixtures, kernels", [("few", None, "written"), ("recursion", 2, "anchored")])
def test_one_launch_each_way_and_the_same_bits(launches, name, mixtures, kernels):  # noqa: F811
    program = counted(name)
    V0, W = valuations(program, 7), weights(program, mixtures)
    first, second = (on_card(program, V0, W, WIDE if kernels == "anchored" else None) for _ in range(2))
    assert launches == [f"{kernels}_forward", f"{kernels}_backward"] * 2
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name, shape", [("few", None), ("counts", SMALL)])
def test_a_result_never_depends_on_the_batch(name, shape):
    program = counted(name)
    reasoner = program.reasoner("gpu", inputs="neural")
    reasoner.engine.fixed = shape
    V0 = valuations(program, 9).to(DEVICE, torch.float32)
    whole = reasoner(V0)
    for i in (0, 8):
        assert torch.equal(whole[i], reasoner(V0[i : i + 1])[0])


@pytest.mark.parametrize("name, outputs", [("few", "targets"), ("recursion", "all")])
def test_the_emitted_file_has_the_same_values(name, outputs, tmp_path):
    program = counted(name)
    path = tmp_path / "emitted.py"
    path.write_text(emit(program, outputs))
    spec = importlib.util.spec_from_file_location("emitted", path)
    emitted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(emitted)
    V0 = valuations(program, 5)
    theirs = run(program, V0.float().double(), "reference", torch.float64, outputs=outputs, inputs="neural")
    start = V0.to(DEVICE, torch.float32).requires_grad_()
    V_T = emitted.forward(start)
    mixture = torch.rand(V_T.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (V_T.double() * mixture.to(DEVICE)).sum().backward()
    neural = torch.from_numpy(program.ground.neural)
    assert (V_T.detach().double().cpu() - theirs[0]).abs().max() <= VALUES
    assert relative(start.grad.double().cpu()[:, neural], theirs[1][:, neural]) <= GRADIENTS


def random_text(rng: random.Random) -> tuple[str, dict[str, tuple[str, list[str]]]]:
    """Predicates of objects, each made of earlier ones, of their negations and of how many objects have them."""
    lines, counts = [BEGINNING, ":- target(kp(img))."], {}
    last = rng.randint(3, 6)
    for i in range(last + 1):
        goals = [rng.choice([f"color(X, {rng.choice(['red', 'blue'])})", "near(X, Y)"])]
        for j in {rng.randrange(i) for _ in range(rng.randint(1, 2))} if i else ():
            goals.append(rng.choice([f"q{j}(X)", f"not_q{j}(X)", f"not_q{j}(X)", f"in(X, I), c{j}(I)"]))
        rng.shuffle(goals)
        lines.append(f"q{i}(X) :- {', '.join(goals)}. r{i}(I, X) :- in(X, I), q{i}(X).")
        lines.append(f":- neural(not_q{i}(object)). :- neural(c{i}(image)).")
        counts[f"c{i}"] = (f"r{i}", [f"N {rng.choice(COMPARISONS)} {rng.randint(0, 4)}",
                                     *(["N mod 2 =:= 1"] if rng.random() < 0.3 else [])])
    return "\n".join([*lines, f"kp(I) :- in(X, I), q{last}(X), not_q{last - 1}(X).", f"kp(I) :- c{last}(I)."]), counts


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed):
    text, counts = random_text(random.Random(seed))
    program = compiled(text, counts=counts)
    soft = seed % 5 == 4
    assert program.lowered.choices
    written = fits(program.level_plan(False, False), soft)
    agree(program, (1, 7, 31)[seed % 3], 2 if soft else None, None if written and seed % 2 else WIDE)
