"""Comparisons of measured numbers: their values, gradients, temperatures, and what measures a number."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from nsfrc.valuation import FactsConverter, Input, Objects
from nsfrc.valuation.measured import OF_AREAS, TEMPERATURE, Comparing
from tests.valuation.support import COLUMN, DIMENSIONS, program, random_objects

pytestmark = pytest.mark.usefixtures("fresh")

TARGET = ":- target(kp(img)). "


def rules_of(folder: Path, comparison: str, more: str = "") -> Program:
    """A program with one comparison, about the object O or the objects O and P."""
    return program(folder, f"{more}{TARGET}kp(X) :- in(O, X), in(P, X), {comparison}.")


def of_pairs(rules: Program, V0: torch.Tensor, text: str) -> torch.Tensor:
    """Values of a comparison for the objects (obj1, obj2) or obj1: [B]."""
    return V0[:, rules.index(text)]


def box(objects: torch.Tensor, place: int) -> dict[str, torch.Tensor]:
    return {name: objects[:, place, column] for name, column in COLUMN.items()}


def sigmoid(difference: torch.Tensor, temperature: float = TEMPERATURE) -> torch.Tensor:
    return 1 / (1 + torch.exp(-difference / temperature))


def bell(difference: torch.Tensor) -> torch.Tensor:
    return torch.exp(-(difference / TEMPERATURE) ** 2)


Boxes = dict[str, torch.Tensor]
CASES: list[tuple[str, str, Callable[[Boxes, Boxes], torch.Tensor]]] = [
    ("x1(O) < x1(P)", "x1(obj1) < x1(obj2)", lambda o, p: sigmoid(p["x1"] - o["x1"])),
    ("x1(O) =< x1(P)", "x1(obj1) =< x1(obj2)", lambda o, p: sigmoid(p["x1"] - o["x1"])),
    ("y1(O) > 0.4", "y1(obj1) > 0.4", lambda o, p: sigmoid(o["y1"] - 0.4)),
    ("y(O) >= y(P) * 2", "y(obj1) >= y(obj2) * 2",
     lambda o, p: sigmoid((o["y1"] + o["y2"]) / 2 - (p["y1"] + p["y2"]))),
    ("confidence(O) =:= 0.5", "confidence(obj1) =:= 0.5", lambda o, p: bell(o["objectness"] - 0.5)),
    ("x(O) =\\= x(P)", "x(obj1) =\\= x(obj2)",
     lambda o, p: 1 - bell((o["x1"] + o["x2"]) / 2 - (p["x1"] + p["x2"]) / 2)),
    ("area(O) > 1.5 * area(P)", "area(obj1) > 1.5 * area(obj2)",
     lambda o, p: sigmoid((o["x2"] - o["x1"]) * (o["y2"] - o["y1"])
                          - 1.5 * (p["x2"] - p["x1"]) * (p["y2"] - p["y1"]), OF_AREAS)),
    ("max(width(O), height(P)) / 2 < abs(x(O) - x(P)) + sqrt(red(O)) ** 2 - min(1, 0.5)",
     "max(width(obj1), height(obj2)) / 2 < abs(x(obj1) - x(obj2)) + sqrt(red(obj1)) ** 2 - min(1, 0.5)",
     lambda o, p: sigmoid(((o["x1"] + o["x2"] - p["x1"] - p["x2"]) / 2).abs() + o["red"] - 0.5
                          - torch.maximum(o["x2"] - o["x1"], p["y2"] - p["y1"]) / 2)),
]


@pytest.mark.parametrize(("comparison", "atom", "expected"), CASES, ids=[case[1] for case in CASES])
def test_values(comparison: str, atom: str, expected: Callable[..., torch.Tensor], tmp_path: Path) -> None:
    rules = rules_of(tmp_path, comparison, ":- number(red(object)). ")
    objects = random_objects(50, 4).double()
    objects[:, :, 2:4] += torch.rand(50, 4, 2, generator=torch.Generator().manual_seed(1)) * 0.2
    V0 = FactsConverter(rules, DIMENSIONS)(objects)
    wanted = expected(box(objects, 0), box(objects, 1))
    torch.testing.assert_close(of_pairs(rules, V0, atom), wanted, rtol=1e-5, atol=1e-6)
    assert float(wanted.std()) > 0.001


def test_number_variables(tmp_path: Path) -> None:
    """A constant of a number type stands for its value; parts without measured numbers are computed as in filters."""
    rules = program(tmp_path, ":- type(part, [-2, 1, 7]). :- pred(part(part)). part(-2). part(7). " + TARGET
                    + "kp(X) :- in(O, X), part(N), x(O) > N mod 3 / (N - 1).")
    objects = random_objects(9, 4)
    V0 = FactsConverter(rules, DIMENSIONS)(objects)
    x = (objects[:, 0, 0] + objects[:, 0, 2]) / 2
    for n, bound in ((-2, 1 / -3), (7, 1 / 6)):
        atom = f"x(obj1) > {n} mod 3 / ({n} - 1)"
        torch.testing.assert_close(V0[:, rules.index(atom)], sigmoid(x - bound), rtol=1e-4, atol=1e-6)
    assert not V0[:, rules.index("x(obj1) > 1 mod 3 / (1 - 1)")].any()


def test_missing_objects_make_comparisons_zero(tmp_path: Path) -> None:
    """Also `=\\=`, and with gradients that are numbers."""
    rules = program(tmp_path, TARGET + "kp(X) :- in(O, X), in(P, X), x(O) =\\= x(P), area(O) / area(P) > 0. "
                                       "kp(X) :- in(O, X), width(O) < 1.")
    objects = random_objects(3, 4)
    objects[1, 1] = 0
    objects.requires_grad_()
    V0 = FactsConverter(rules, DIMENSIONS)(objects)
    for atom in ("x(obj1) =\\= x(obj2)", "area(obj2) / area(obj1) > 0", "width(obj2) < 1"):
        assert V0[1, rules.index(atom)] == 0 and V0[0, rules.index(atom)] > 0
    V0.sum().backward()
    assert objects.grad is not None and bool(objects.grad.isfinite().all()) and not objects.grad[1, 1].any()


@pytest.mark.parametrize("comparison", [
    "1 / (x(O) - 0.5) > 0", "sqrt(x(O) - 0.5) >= 0", "sqrt(x(O) - 0.5) < 1", "(x(O) - 0.5) ** 0.5 < 1",
    "(x(O) - 0.5) ** (0 - 1) =\\= 3", "(x(O) - 0.5) ** 2 >= 0", "0 ** (x(O) - 1) < 1",
])
def test_no_gradient_is_spoilt_where_a_side_has_no_value(comparison: str, tmp_path: Path) -> None:
    rules = program(tmp_path, f"{TARGET}kp(X) :- in(O, X), {comparison}.")
    objects = random_objects(3, 4)
    objects[0, 0, :4] = torch.tensor([0.4, 0.4, 0.6, 0.6])   # x = 0.5
    objects[1, 0, :4] = torch.tensor([0.1, 0.1, 0.3, 0.3])   # x = 0.2
    objects.requires_grad_()
    facts = FactsConverter(rules, DIMENSIONS)
    V0 = facts(objects)
    assert bool(((V0 >= 0) & (V0 <= 1)).all())
    V0.sum().backward()
    assert objects.grad is not None and bool(objects.grad.isfinite().all())
    assert all(parameter.grad is not None and bool(parameter.grad.isfinite()) for parameter in facts.parameters())


def test_a_side_without_a_value_is_never_true(tmp_path: Path) -> None:
    rules = program(tmp_path, f"{TARGET}kp(X) :- in(O, X), 1 / (x(O) - 0.5) =\\= 7.")
    objects = random_objects(1, 4)
    objects[0, 0, :4] = torch.tensor([0.25, 0.25, 0.75, 0.75])
    V0 = FactsConverter(rules, DIMENSIONS)(objects)
    assert V0[0, rules.index("1 / (x(obj1) - 0.5) =\\= 7")] == 0
    assert V0[0, rules.index("1 / (x(obj2) - 0.5) =\\= 7")] > 0


def test_gradients_by_finite_differences(tmp_path: Path) -> None:
    """Of temperatures, learnt probabilities and boxes, through the reasoner."""
    rules = program(tmp_path, f"""{TARGET}
        kp(X) :- in(O, X), in(P, X), area(O) > 1.5 * area(P), abs(x(O) - x(P)) =\\= width(O) * 2.
        t(0.4)::kp(X) :- in(O, X), y1(O) =:= 0.3, sqrt(height(O)) / y2(O) < 0.9 ** x(O).
    """)
    torch.manual_seed(0)
    facts, reasoner = FactsConverter(rules, DIMENSIONS).double(), rules.reasoner("reference", gamma=0.1)
    for name, parameter in facts.named_parameters():
        if name.endswith(".s"):
            torch.nn.init.constant_(parameter, -1.5)
    objects = random_objects(2, 4).double()
    objects[:, :, 2:4] += torch.rand(2, 4, 2) * 0.2
    objects.requires_grad_()
    parameters = dict(facts.named_parameters())
    assert len(parameters) == 5

    def answer(objects: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        changed = dict(zip(parameters, values, strict=True))
        return reasoner(torch.func.functional_call(facts, changed, (objects,)))[:, rules.target_indices]

    torch.autograd.gradcheck(answer, (objects, *parameters.values()), eps=1e-6, atol=1e-5)


def test_a_temperature_is_learnt(tmp_path: Path) -> None:
    """Of areas that are seen with noise, it comes to what makes the answer most likely."""
    rules = program(tmp_path, f"{TARGET}kp(X) :- in(O, X), y1(O) > 0.5.")
    facts = FactsConverter(rules, DIMENSIONS)
    generator = torch.Generator().manual_seed(0)
    true = torch.rand(4000, generator=generator)
    objects = torch.zeros(4000, 4, len(DIMENSIONS))
    objects[:, 0, COLUMN["objectness"]] = 1
    objects[:, 0, COLUMN["y1"]] = true + 0.1 * torch.randn(4000, generator=generator)
    optimiser = torch.optim.Adam(facts.parameters(), lr=0.1)
    (comparing,) = (module for module in facts.modules() if isinstance(module, Comparing))
    assert comparing.temperature.item() == pytest.approx(TEMPERATURE)
    for _ in range(100):
        optimiser.zero_grad()
        value = facts(objects)[:, rules.index("y1(obj1) > 0.5")]
        torch.nn.functional.binary_cross_entropy(value.clamp(1e-6, 1 - 1e-6), (true > 0.5).float()).backward()
        optimiser.step()
    assert 0.045 < comparing.temperature.item() < 0.08      # a normal error of 0.1 is about a logistic one of 0.06


def test_concepts_are_saved_and_read(tmp_path: Path) -> None:
    rules = program(tmp_path, f"{TARGET}kp(X) :- in(O, X), y1(O) > 0.5, closeby(O, P), in(P, X). "
                              "t(0.4)::kp(X) :- in(_, X). :- neural(closeby(object, object)).")
    facts = FactsConverter(rules, DIMENSIONS)
    file = tmp_path / "concepts.json"
    with torch.no_grad():
        for name, parameter in facts.named_parameters():
            parameter.add_(0.5 if "closeby" not in name else 0)
    facts.save_concepts(file)
    entries = json.loads(file.read_text())
    assert set(entries) == {"closeby", "y1(A) > 0.5", "t(0.4)::kp(X)"}
    temperature = math.log1p(math.exp(math.log(math.expm1(TEMPERATURE)) + 0.5))
    assert entries["y1(A) > 0.5"]["temperature"] == pytest.approx(temperature, rel=1e-5)
    again = FactsConverter(rules, DIMENSIONS, file)
    objects = random_objects(5, 4)
    torch.testing.assert_close(again(objects), facts(objects))
    assert not torch.equal(again(objects), FactsConverter(rules, DIMENSIONS)(objects))


@pytest.mark.parametrize(("entry", "said"), [
    ({"y1(A) > 0.5": {"temperature": 0}}, "a comparison has a temperature above 0"),
    ({"y1(A) > 0.5": {"temperature": [0.1]}}, "a comparison has a temperature above 0"),
    ({"y1(A) > 0.5": {"s": 1}}, "a comparison has a temperature above 0"),
    ({"t(0.4)::kp(X)": {"probability": 1.5}}, "it has a probability from 0 to 1"),
    ({"y1(A) > 0.7": {"temperature": 0.1}}, "has parameters of y1"),
])
def test_concepts_that_do_not_fit_are_refused(entry: dict[str, object], said: str, tmp_path: Path) -> None:
    rules = program(tmp_path, f"{TARGET}kp(X) :- in(O, X), y1(O) > 0.5. t(0.4)::kp(X) :- in(_, X).")
    (tmp_path / "concepts.json").write_text(json.dumps(entry))
    with pytest.raises(NsfrcError, match=said):
        FactsConverter(rules, DIMENSIONS, tmp_path / "concepts.json")


def test_a_number_of_the_users_own(tmp_path: Path) -> None:
    @nsfrc.number("gap", symmetric=True)
    def gap(one: Objects, other: Objects) -> torch.Tensor:
        return (one.centre - other.centre).abs().sum(-1)

    @nsfrc.number("crowd")
    def crowd(image: Input) -> torch.Tensor:
        return image["objectness"].sum(1, keepdim=True)

    @nsfrc.number("area")
    def area(obj: Objects) -> torch.Tensor:
        return obj["x1"] * 100

    rules = rules_of(tmp_path, "gap(O, P) < 0.5, crowd(X) > 2, area(O) > 40",
                     ":- number(gap(object, object)). :- number(crowd(image)). ")
    objects = random_objects(6, 4)
    V0 = FactsConverter(rules, DIMENSIONS)(objects)
    o, p = box(objects, 0), box(objects, 1)
    apart = ((o["x1"] + o["x2"] - p["x1"] - p["x2"]) / 2).abs() + ((o["y1"] + o["y2"] - p["y1"] - p["y2"]) / 2).abs()
    torch.testing.assert_close(of_pairs(rules, V0, "gap(obj1,obj2) < 0.5"), sigmoid(0.5 - apart))
    assert torch.equal(of_pairs(rules, V0, "gap(obj1,obj2) < 0.5"), of_pairs(rules, V0, "gap(obj2,obj1) < 0.5"))
    torch.testing.assert_close(V0[:, rules.index("crowd(img) > 2")], sigmoid(objects[:, :, -1].sum(1) - 2))
    torch.testing.assert_close(V0[:, rules.index("area(obj1) > 40")], sigmoid(o["x1"] * 100 - 40, OF_AREAS))


def test_numbers_that_nothing_measures(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, "chasm(O, P) < 0.5", ":- number(chasm(object, object)). ")  # a name that is nowhere else
    message = r"the number chasm\(object, object\) has no function.*@nsfrc.number\(\"chasm\"\)"
    with pytest.raises(NsfrcError, match=message):
        FactsConverter(rules, DIMENSIONS)
    rules = rules_of(tmp_path, "hight(O) < 0.5", ":- number(hight(object)). ")
    with pytest.raises(NsfrcError, match=r"has no number hight; it has x1, .*did you mean height\?"):
        FactsConverter(rules, DIMENSIONS)
    rules = rules_of(tmp_path, "width(O) < 0.5")
    with pytest.raises(NsfrcError, match="perception slots without boxes has no number width"):
        FactsConverter(rules, ("x", "y", "objectness"), source="slots")


def test_functions_that_misbehave(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, "gap(O, P) < 0.5", ":- number(gap(object, object)). ")
    answers: list[object] = [3, torch.zeros(2), float("nan")]
    for answer in answers:
        @nsfrc.number("gap")
        def gap(one: Objects, other: Objects, answer: object = answer) -> object:
            return one["x1"] * answer if isinstance(answer, float) else answer

        with pytest.raises(NsfrcError, match=r"the function of the number gap/2 \(.*test_numbers.py:\d+\) gave"):
            FactsConverter(rules, DIMENSIONS)(random_objects(1, 4))

    @nsfrc.number("gap")
    def alone(one: Objects) -> torch.Tensor:
        return one["x1"]

    with pytest.raises(NsfrcError, match=r"the number gap .* takes one argument for each of the number's"):
        FactsConverter(rules, DIMENSIONS)
    with pytest.raises(NsfrcError, match="number needs a name"):
        nsfrc.number("")
    with pytest.raises(NsfrcError, match=r"number\('gap'\) goes before a function"):
        nsfrc.number("gap")(3)  # type: ignore[type-var]


def test_vectors_that_are_no_numbers_are_blamed(tmp_path: Path) -> None:
    rules = program(tmp_path, f"{TARGET}kp(X) :- in(O, X), width(O) < 0.5.")
    objects = random_objects(2, 4)
    objects[1, 2, COLUMN["x2"]] = float("nan")
    with pytest.raises(NsfrcError, match="entry 'x2' is nan in row 2 of image 1"):
        FactsConverter(rules, DIMENSIONS)(objects)
