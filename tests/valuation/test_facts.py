"""V0 from object vectors, atom by atom against a loop in plain Python; missing objects; shapes, dtypes, batches."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from nsfrc.valuation import FactsConverter, Objects, registry
from nsfrc.valuation.concepts import shipped
from tests.valuation.support import COLUMN, DIMENSIONS, compiled, program, random_objects

KANDINSKY = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles")


def one_atom(program: Program, atom: str, vectors: np.ndarray) -> float:
    """The value of one ground atom for one image [E, D], from its text."""
    name, *arguments = re.findall(r"[a-z_]+[0-9]*", atom)
    rows = [vectors[int(a[3:]) - 1].astype(float) for a in arguments if a.startswith("obj")]
    if not program.ground.neural[program.index(atom)]:
        return float(program.ground.initial[program.index(atom)])
    if any(row[-1] == 0 for row in rows):
        return 0.0
    if name == "in":
        return rows[0][-1]
    if name in ("color", "shape"):
        return rows[0][COLUMN[arguments[1]]]
    centres = np.array([(row[0:2] + row[2:4]) / 2 for row in rows])
    if name == "closeby":
        x = np.linalg.norm(centres[0] - centres[1])
    else:
        x = np.linalg.svd(centres - centres.mean(0), compute_uv=False)[-1] / math.sqrt(5)
    learnt = shipped(name)
    return 1 / (1 + math.exp(min(700.0, -(learnt["w"] * x + learnt["b"]))))


@pytest.mark.parametrize("name", KANDINSKY)
def test_every_atom_has_its_value(name: str) -> None:
    rules = compiled(name)
    facts = FactsConverter(rules, DIMENSIONS)
    objects = random_objects(3, facts.objects)
    objects[1:, :, 0:4] *= 0.15  # some of them close to each other
    objects[2, facts.objects - 1] = 0
    V0 = facts(objects).detach().numpy()
    wanted = [[one_atom(rules, atom, image) for atom in rules.atoms[2:]] for image in objects.numpy()]
    np.testing.assert_allclose(V0[:, 2:], wanted, atol=2e-4)
    assert (V0[:, 0] == 0).all() and (V0[:, 1] == 1).all()


@pytest.mark.parametrize("name", ["closeby", "online_pair"])
def test_symmetric_predicates_are_valued_once_for_a_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = compiled(name)
    predicate = name.removesuffix("_pair")
    once = FactsConverter(rules, DIMENSIONS)
    entry = registry._registered[predicate]
    each = registry.Registered(predicate, entry.function, False, entry.place)
    monkeypatch.setitem(registry._registered, predicate, each)
    every = FactsConverter(rules, DIMENSIONS)
    objects = random_objects(4, once.objects)
    objects[0, :, 0:4] *= 0.1
    objects[1, 2] = 0
    torch.testing.assert_close(once(objects), every(objects))
    counts = [v.arguments.shape[1] for facts in (once, every) for v in facts._valuations()
              if v.registered.name == predicate]
    assert counts == {"closeby": [6, 12], "online": [1, 120]}[predicate]


def test_missing_objects_make_their_atoms_false_and_spoil_no_gradient() -> None:
    for name in ("closeby", "online_pair"):
        rules = compiled(name)
        facts = FactsConverter(rules, DIMENSIONS)
        objects = random_objects(3, facts.objects)
        objects[0, 1] = 0
        objects[1] = 0  # an empty image
        objects.requires_grad_()
        V0 = facts(objects)
        V0.square().sum().backward()
        named = [i for i, atom in enumerate(rules.atoms) if "obj2" in atom and rules.ground.neural[i]]
        assert named and (V0[0, named] == 0).all()
        assert (V0[1, torch.from_numpy(rules.ground.neural)] == 0).all()
        assert objects.grad is not None and objects.grad.isfinite().all()
        assert (objects.grad[0, 1] == 0).all() and (objects.grad[1] == 0).all()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in facts.parameters())


def test_missing_objects_and_functions_that_cannot_bear_them(tmp_path: Path, fresh: None) -> None:
    @nsfrc.neural_predicate("above")
    class Above(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(2))

        def forward(self, a: Objects, b: Objects) -> torch.Tensor:
            # Infinite slopes where two objects coincide, or a box has no width, as rows of zeros would.
            apart = ((self.scale * (a.centre - b.centre)).square().sum(-1)).sqrt()
            return torch.exp(-apart) * torch.exp(-(a["x2"] - a.vectors[:, :, 0]).sqrt())

    rules = program(tmp_path, ":- neural(above(object, object)). :- target(kp(img)).\nkp(X) :- in(O, X), above(O, P).")
    objects = random_objects(2, 4)
    objects[:, 2:] = 0
    objects.requires_grad_()
    facts = FactsConverter(rules, DIMENSIONS)
    V0 = facts(objects)
    V0.sum().backward()
    (scale,) = facts.parameters()
    assert scale.grad is not None and scale.grad.isfinite().all()
    assert objects.grad is not None and objects.grad.isfinite().all()
    assert (objects.grad[:, :2, :4] != 0).any()
    assert V0[0, rules.index("above(obj1,obj2)")] > 0 and V0[0, rules.index("above(obj1,obj3)")] == 0


def test_results_do_not_depend_on_the_batch() -> None:
    facts = FactsConverter(compiled("red_triangle"), DIMENSIONS)
    objects = random_objects(7, 6)
    objects[4, 3] = 0  # one image with a missing object, the others without
    together = facts(objects)
    alone = torch.cat([facts(objects[i : i + 1]) for i in range(7)])
    torch.testing.assert_close(together, alone, rtol=2e-6, atol=1e-7)  # vectorised exp rounds its last few otherwise
    assert facts(objects[:0]).shape == (0, compiled("red_triangle").ground.G)


def test_more_rows_than_the_program_has_objects_are_left_out() -> None:
    facts = FactsConverter(compiled("twopairs"), DIMENSIONS)
    objects = random_objects(2, 9)
    assert torch.equal(facts(objects), facts(objects[:, :4]))


def test_torch_compile_keeps_the_graph_whole() -> None:
    facts = FactsConverter(compiled("online_pair"), DIMENSIONS)
    objects = random_objects(5, 5)
    objects[2, 4] = 0
    whole = torch.compile(facts, backend="eager", fullgraph=True)
    torch.testing.assert_close(whole(objects), facts(objects))


def test_double_precision() -> None:
    facts = FactsConverter(compiled("closeby"), DIMENSIONS)
    assert facts(random_objects(2, 4).double()).dtype == torch.float64


def test_bad_shapes_and_dimensions() -> None:
    facts = FactsConverter(compiled("twopairs"), DIMENSIONS)
    with pytest.raises(NsfrcError, match=r"shape \[2, 3, 11\]; .* \[B, 4 or more, 11\]"):
        facts(random_objects(2, 3))
    with pytest.raises(NsfrcError, match="floating point"):
        facts(torch.ones(2, 4, 11, dtype=torch.int64))
    with pytest.raises(NsfrcError, match=r"no dimension 'objectness'.*x1, y1"):
        FactsConverter(compiled("twopairs"), DIMENSIONS[:-1])
    with pytest.raises(NsfrcError, match=r"perception does not know 'yellow'; it knows red, blue, square"):
        FactsConverter(compiled("twopairs"), [d for d in DIMENSIONS if d != "yellow"])
    with pytest.raises(NsfrcError, match="no dimension 'x1'"):
        FactsConverter(compiled("closeby"), DIMENSIONS[1:])


def test_a_loaded_program_is_as_good_as_a_compiled_one(tmp_path: Path) -> None:
    compiled("red_triangle").save(tmp_path / "rules.nsfrc")
    objects = random_objects(2, 6)
    loaded = FactsConverter(nsfrc.load(tmp_path / "rules.nsfrc"), DIMENSIONS)
    assert torch.equal(loaded(objects), FactsConverter(compiled("red_triangle"), DIMENSIONS)(objects))


@pytest.mark.parametrize(("entry", "value", "message"), [
    ("red", float("nan"), "entry 'red' is nan in row 2 of image 1; .* from 0 to 1"),
    ("red", 1.5, "entry 'red' is 1.5 in row 2 of image 1"),
    ("objectness", -0.5, "entry 'objectness' is -0.5 in row 2 of image 1"),
    ("x1", float("nan"), "entry 'x1' is nan in row 2 of image 1; .* finite"),
])
def test_what_perception_got_wrong_is_said_of_perception(entry: str, value: float, message: str) -> None:
    objects = random_objects(2, 4)
    objects[1, 2, COLUMN[entry]] = value
    with pytest.raises(NsfrcError, match=f"^object vectors: {message}"):
        FactsConverter(compiled("closeby"), DIMENSIONS)(objects)


def test_dimensions_that_are_repeated() -> None:
    with pytest.raises(NsfrcError, match=r"each once, not .*'red', 'red'"):
        FactsConverter(compiled("closeby"), [*DIMENSIONS, "red", "red"])


def test_building_a_converter_leaves_modes_alone(tmp_path: Path, fresh: None) -> None:
    class Steady(torch.nn.Module):
        def forward(self, a: nsfrc.valuation.Objects) -> torch.Tensor:
            return a["red"]

    module = Steady().eval()
    nsfrc.neural_predicate("steady")(module)
    rules = program(tmp_path, ":- neural(steady(object)). :- target(kp(img)). kp(X) :- in(A, X), steady(A).")
    FactsConverter(rules, DIMENSIONS)
    assert not module.training
