"""Predicates that users add: what they are given, what they may return, and what they are told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from nsfrc.valuation import Attributes, FactsConverter, Input, Objects, load_plugin, names, neural_predicate
from tests.valuation.support import COLUMN, DIMENSIONS, compiled, program, random_objects

pytestmark = pytest.mark.usefixtures("fresh")

ABOVE = ":- neural(above(object, object)). :- target(kp(img)). kp(X) :- in(O, X), in(P, X), above(O, P)."


def converter(rules: Program) -> FactsConverter:
    return FactsConverter(rules, DIMENSIONS)


def test_a_function_is_called_once_with_all_atoms(tmp_path: Path) -> None:
    calls = []

    @nsfrc.neural_predicate("likes")
    def likes(obj: Objects, color: Attributes, image: Input) -> torch.Tensor:
        calls.append((obj, color, image))
        return color.of(obj) * obj["objectness"]

    rules = program(tmp_path, ":- neural(likes(object, color, image)). :- target(kp(img)).\n"
                              "kp(X) :- likes(O, red, X), in(O, X).")
    facts = converter(rules)
    calls.clear()
    objects = random_objects(5, 4)
    V0 = facts(objects)
    ((obj, color, image),) = calls
    assert obj.vectors.shape == (5, 12, 11) and obj.centre.shape == (5, 12, 2) and image.vectors is objects
    assert color.names == ("blue", "red", "yellow") * 4 and image.names == ("img",) * 12
    assert torch.equal(image["red"], objects[:, :, COLUMN["red"]])
    first = objects[:, 2, COLUMN["yellow"]] * objects[:, 2, -1]
    torch.testing.assert_close(V0[:, rules.index("likes(obj3,yellow,img)")], first)


def test_a_module_class_gets_an_instance_for_each_converter(tmp_path: Path) -> None:
    @neural_predicate("above")
    class Above(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = torch.nn.Parameter(torch.tensor(3.0))

        def forward(self, a: Objects, b: Objects) -> torch.Tensor:
            return torch.sigmoid(self.slope * (b["y1"] - a["y1"]))

    rules = program(tmp_path, ABOVE)
    facts, other = converter(rules), converter(rules)
    assert [name for name, _ in facts.named_parameters()] == ["predicates.above/2.function.slope"]
    assert next(facts.parameters()) is not next(other.parameters())
    objects = random_objects(2, 4)
    facts(objects)[:, rules.index("above(obj1,obj2)")].sum().backward()
    assert next(facts.parameters()).grad != 0
    wanted = torch.sigmoid(3 * (objects[:, 1, 1] - objects[:, 0, 1]))
    torch.testing.assert_close(other(objects)[:, rules.index("above(obj1,obj2)")], wanted)


def test_predicates_of_the_image_or_of_attributes_alone(tmp_path: Path) -> None:
    @neural_predicate("crowded")
    def crowded(image: Input) -> torch.Tensor:
        return image["objectness"].mean(dim=1, keepdim=True)

    @neural_predicate("warm")
    def warm(color: Attributes) -> torch.Tensor:
        return torch.tensor([{"red": 1.0, "yellow": 0.5, "blue": 0.0}[name] for name in color.names])

    rules = program(tmp_path, ":- neural(crowded(image)). :- neural(warm(color)). :- target(kp(img)).\n"
                              "kp(X) :- crowded(X), warm(C), in(O, X).")
    objects = random_objects(3, 4)
    objects[0, 0] = 0
    V0 = converter(rules)(objects)
    torch.testing.assert_close(V0[:, rules.index("crowded(img)")], objects[:, :, -1].mean(1))
    assert V0[:, rules.index("warm(yellow)")].tolist() == [0.5] * 3


def test_shipped_predicates_may_be_replaced(tmp_path: Path) -> None:
    @neural_predicate("in")
    def always(obj: Objects, image: Input) -> torch.Tensor:
        return torch.ones_like(obj["objectness"])

    assert (converter(compiled("twopairs"))(random_objects(1, 4))[0, compiled("twopairs").index("in(obj3,img)")]) == 1


def test_a_predicate_without_a_function(tmp_path: Path) -> None:
    rules = program(tmp_path, ":- neural(behind(object, object)). :- neural(tall(object)). :- target(kp(img)).\n"
                              "kp(X) :- in(O, X), behind(O, P), tall(O).")
    with pytest.raises(NsfrcError) as refused:
        FactsConverter(rules, DIMENSIONS)
    text = str(refused.value)
    assert "behind/2, tall/1" in text and '@nsfrc.neural_predicate("behind")' in text
    assert all(name in text for name in names()) and {"in", "color", "shape", "closeby", "online"} <= set(names())


def test_a_predicate_without_arguments(tmp_path: Path) -> None:
    rules = program(tmp_path, ":- neural(sunny). :- target(kp(img)). kp(X) :- in(O, X), sunny.")
    with pytest.raises(NsfrcError, match=r"sunny .*has no arguments.*neural\(sunny\(image\)\)"):
        converter(rules)


@pytest.mark.parametrize(("value", "message"), [
    (lambda a, b: a["y1"].sum(1), r"shape \[2\]; it must give \[B, N\], here \[2, 12\]"),
    (lambda a, b: a["y1"] > b["y1"], "gave torch.bool values"),
    (lambda a, b: 0.5, "gave float"),
    (lambda a, b: a["colour"], "no dimension 'colour'; there are x1, y1"),
    (lambda a, b: b.of(a), "failed: AttributeError"),
    (lambda a: a["y1"], "one argument for each"),
])
def test_wrong_functions_are_refused_when_a_program_is_opened(value: object, message: str, tmp_path: Path) -> None:
    neural_predicate("above")(value)  # type: ignore[type-var]
    with pytest.raises(NsfrcError, match=message) as refused:
        converter(program(tmp_path, ABOVE))
    assert "above" in str(refused.value) and "test_user.py:" in str(refused.value)


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), float("inf")])
def test_wrong_values_are_refused(value: float, tmp_path: Path) -> None:
    neural_predicate("above")(lambda a, b: torch.full_like(a["y1"], value))
    facts = converter(program(tmp_path, ABOVE))
    with pytest.raises(NsfrcError, match=r"above/2 .*test_user.py:.* gave .*from 0 to 1"):
        facts(random_objects(2, 4))


def test_wrong_uses_of_the_decorator() -> None:
    with pytest.raises(NsfrcError, match="needs the name of a predicate"):
        neural_predicate(lambda a: a)  # type: ignore[arg-type]
    with pytest.raises(NsfrcError, match="a function or a torch module"):
        neural_predicate("p")(3)  # type: ignore[type-var]
    with pytest.raises(NsfrcError, match=r"is not a torch\.nn\.Module"):
        neural_predicate("p")(dict)


PLUGIN = """
import nsfrc
import plugin_helper

@nsfrc.neural_predicate("above")
def above(a, b):
    return (a["y1"] < b["y1"]).float() * plugin_helper.ONE
"""


def test_plugins_register_predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "plugin_helper.py").write_text("ONE = 1.0\n")
    (tmp_path / "mine.py").write_text(PLUGIN)
    module = load_plugin(str(tmp_path / "mine.py"))
    assert load_plugin(str(tmp_path / "mine.py")) is module
    rules = program(tmp_path, ABOVE)
    assert set(converter(rules)(random_objects(3, 4))[:, rules.index("above(obj1,obj2)")].tolist()) <= {0.0, 1.0}
    monkeypatch.chdir(tmp_path)
    assert load_plugin("plugin_helper").ONE == 1.0


@pytest.mark.parametrize(("text", "message"), [
    ("x = \n", r"bad.py:1 failed: SyntaxError"),
    ("import torch\n\ndef f():\n    return 1 / 0\n\nf()\n", r"bad.py:4 failed: ZeroDivisionError: division by zero$"),
    ("import no_such_module_anywhere\n", r"bad.py:1 failed: ModuleNotFoundError"),
    ("raise SystemExit(3)\n", "bad.py:1 failed: SystemExit"),
])
def test_plugins_that_fail_are_one_line_with_the_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(NsfrcError, match=message) as refused:
        load_plugin(str(tmp_path / "bad.py"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["nowhere.py", "folder/nowhere.py", "no_such_module_anywhere", "no_such.module", ""])
def test_plugins_that_are_not_there(text: str) -> None:
    with pytest.raises(NsfrcError, match="there is no plug-in"):
        load_plugin(text)


def test_a_package_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "failing_package").mkdir()
    (tmp_path / "failing_package/__init__.py").write_text("1 / 0\n")
    with pytest.raises(NsfrcError, match=r"failing_package\.predicates failed: ZeroDivisionError"):
        load_plugin("failing_package.predicates")
