"""Numbers by name: what `Program.valuation` makes of {"area(obj1)": 0.3}."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.valuation import FactsConverter
from nsfrc.valuation.measured import OF_AREAS, TEMPERATURE
from tests.valuation.support import DIMENSIONS, random_objects

RULES = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type('Size', [1, 2]).
:- neural(in(object, image)).
:- neural(size(object, 'Size')).
:- number('my gap'(object, object)).
:- target(kp(img)).
kp(X) :- in(O, X), area(O) > 0.3, in(P, X), 'my gap'(O, P) =\\= 2.
kp(X) :- in(O, X), size(O, N), area(O) > N.
kp(X) :- in(O, X), area(O) > 1, lucky.
t(0.4)::lucky.
"""


@pytest.fixture(scope="module")
def rules() -> nsfrc.Program:
    return nsfrc.compile(source=RULES)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x / OF_AREAS))


def test_comparisons_are_computed(rules: nsfrc.Program) -> None:
    one, other = rules.valuation(
        {"area(obj1)": 0.301, " area( obj2 )": 0.298, "'my gap'(obj1,obj2)": 2.01, "in(obj1,img)": 0.5, "x1(obj2)": 7},
        {})
    assert one[rules.index("area(obj1) > 0.3")].item() == pytest.approx(sigmoid(0.001), abs=1e-6)
    assert one[rules.index("area(obj2) > 0.3")].item() == pytest.approx(sigmoid(-0.002), abs=1e-6)
    bell = 1 - math.exp(-(0.01 / TEMPERATURE) ** 2)
    assert one[rules.index("'my gap'(obj1,obj2) =\\= 2")].item() == pytest.approx(bell, abs=1e-5)
    assert one[rules.index("area(obj3) > 0.3")] == 0 == one[rules.index("'my gap'(obj2,obj1) =\\= 2")]
    assert one[rules.index("in(obj1,img)")] == 0.5
    assert other.sum() == 1 + torch.tensor(0.4)     # true, and the probability


def test_a_comparison_may_be_said_itself(rules: nsfrc.Program) -> None:
    """Whatever reads the same gets the value, and it goes before what is computed."""
    (row,) = rules.valuation({"area(obj1) > 1": 0.75, "area(obj1)": 5})
    same = [i for i, name in enumerate(rules.atoms) if name == "area(obj1) > 1"]
    assert len(same) == 2 and [row[i].item() for i in same] == [0.75, 0.75]
    assert row[rules.index("area(obj1) > 2")] == 1


def test_as_the_facts_converter_has_it() -> None:
    rules = nsfrc.compile(source="""
        :- type(image, [img]). :- type(object, slots(3)). :- neural(in(object, image)). :- target(kp(img)).
        kp(X) :- in(O, X), in(P, X), area(O) > 1.5 * area(P), abs(x(O) - x(P)) =:= 0.1, y1(O) < 0.5.
    """)
    objects = random_objects(5, 3)
    V0 = FactsConverter(rules, DIMENSIONS)(objects)
    worlds = []
    for image in objects.tolist():
        world = {}
        for number, (x1, y1, x2, y2, *_, objectness) in enumerate(image, 1):
            world |= {f"area(obj{number})": (x2 - x1) * (y2 - y1), f"x(obj{number})": (x1 + x2) / 2,
                      f"y1(obj{number})": y1, f"in(obj{number},img)": objectness}
        worlds.append(world)
    torch.testing.assert_close(rules.valuation(*worlds), V0, rtol=1e-4, atol=1e-5)


def test_concepts(rules: nsfrc.Program, tmp_path: Path) -> None:
    file = tmp_path / "learnt.json"
    file.write_text(json.dumps({"area(A) > 0.3": {"temperature": 0.5, "made_by": {}}, "closeby": {"w": 1, "b": 2},
                                "t(0.4)::lucky": {"probability": 0.9}}))
    (row,) = rules.valuation({"area(obj1)": 0.8}, concepts=file)
    assert row[rules.index("area(obj1) > 0.3")].item() == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-6)
    assert row[rules.index("t(0.4)::lucky")].item() == pytest.approx(0.9, abs=1e-6)
    file.write_text('{"closeby": {"w": 1, "b": 2}}')
    with pytest.raises(NsfrcError, match="has parameters of closeby; of what facts need, program learns"):
        rules.valuation({}, concepts=file)


@pytest.mark.parametrize(("world", "said"), [
    ({"area(obj1)": math.nan}, r"the number area\(obj1\) is nan; it must be a finite number"),
    ({"area(obj1)": True}, r"the number area\(obj1\) is True"),
    ({"area(obj1)": "3"}, r"the number area\(obj1\) is '3'"),
    ({"area(obj4)": 3}, r"must be a number from 0 to 1"),
    ({"area(obj4)": 0.5}, r"program has no ground atom area\(obj4\)"),
    ({"area(obj1) > 0.3": 3}, r"the value of area\(obj1\) > 0.3 is 3; it must be a number from 0 to 1"),
    ({"area(obj1)": torch.tensor(1.0)}, "is a tensor"),
])
def test_refused(rules: nsfrc.Program, world: dict[str, float], said: str) -> None:
    with pytest.raises(NsfrcError, match=said):
        rules.valuation(world)
    with pytest.raises(NsfrcError, match=f"world 2: .*{said}"):
        rules.valuation({}, world)
