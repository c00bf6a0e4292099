"""Numbers and probabilities in a .nsfrc file: they come back as they were, and hostile ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import nsfrc
from nsfrc.compiler.artifact import load
from nsfrc.errors import NsfrcError
from tests.test_artifact import rewrite

RULES = """
:- type(image, [img]).
:- type(object, slots(3)).
:- type(size, [1, 2]).
:- neural(in(object, image)).
:- neural(size(object, size)).
:- number(gap(object, object)).
:- target(kp(img)).
kp(X) :- in(O, X), in(P, X), area(O) > 1.5 * area(P), gap(O, P) < 0.5.
0.7::kp(X) :- in(O, X), size(O, N), min(area(O), 1) =\\= N // 2, area(obj1) > 0.2.
t(0.4)::kp(X) :- in(_, X).
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return nsfrc.compile(source=RULES).save(tmp_path / "rules.nsfrc")


def test_round_trip(saved: Path) -> None:
    first, again = nsfrc.compile(source=RULES), nsfrc.load(saved)
    assert again.source == first.source and again.atoms == first.atoms and again.clauses == first.clauses
    world = {"in(obj1,img)": 1, "in(obj2,img)": 0.9, "area(obj1)": 0.4, "area(obj2)": 0.2, "gap(obj1,obj2)": 0.49}
    V0 = again.valuation(world)
    assert torch.equal(V0, first.valuation(world))
    assert torch.equal(again.reasoner("cpu")(V0), first.reasoner("reference")(V0))


def place(data: Any, path: str) -> tuple[Any, str | int]:
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        data = data[part]
    return data, last


def nested(depth: int) -> dict[str, Any]:
    term: dict[str, Any] = {"number": "area", "args": [{"var": "A"}]}
    for _ in range(depth):
        term = {"op": "abs", "args": [term]}
    return term


def predicate(name: str) -> int:
    return [p.name for p in nsfrc.compile(source=RULES).source.predicates].index(name)


AREA, GAP, CHANCE = predicate("area(A) > 0.2"), predicate("gap(A,B) < 0.5"), predicate("0.7::kp(X)")
LEARNT, DERIVED = predicate("t(0.4)::kp(X)"), predicate("kp")
VARIABLE = {"var": "A"}


@pytest.mark.parametrize(("path", "value"), [
    (f"predicates.{AREA}.comparison", None),
    (f"predicates.{AREA}.comparison", 3),
    (f"predicates.{AREA}.comparison", ["<", "0.2"]),
    (f"predicates.{AREA}.comparison", ["==", VARIABLE, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", "0.1", "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", VARIABLE, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", {"number": "area", "args": [VARIABLE]}, "red"]),
    (f"predicates.{AREA}.comparison", ["<", {"number": "area", "args": [{"var": "A"}]}, {"var": "B"}]),
    (f"predicates.{AREA}.comparison", ["<", {"number": "area", "args": [VARIABLE, VARIABLE]}, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", {"number": "weight", "args": [VARIABLE]}, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", {"number": "area", "args": [{"number": "area", "args": []}]}, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", {"number": 3, "args": []}, "0.2"]),
    (f"predicates.{AREA}.comparison",
     ["<", {"op": "mod", "args": [{"number": "area", "args": [VARIABLE]}, "2"]}, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", {"op": "/", "args": [{"number": "area", "args": [VARIABLE]}]}, "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", nested(150), "0.2"]),
    (f"predicates.{AREA}.comparison", ["<", nested(400), "0.2"]),
    (f"predicates.{AREA}.role", "neural"),
    (f"predicates.{AREA}.types", ["size"]),
    (f"predicates.{AREA}.chance", [0.5, False]),
    (f"predicates.{GAP}.comparison", ["<", {"number": "gap", "args": [VARIABLE, "obj9"]}, "0.2"]),
    (f"predicates.{CHANCE}.chance", None),
    (f"predicates.{CHANCE}.chance", [1.5, False]),
    (f"predicates.{CHANCE}.chance", [float("nan"), False]),
    (f"predicates.{CHANCE}.chance", ["0.7", False]),
    (f"predicates.{CHANCE}.chance", [0.7]),
    (f"predicates.{CHANCE}.chance", [0.7, 1]),
    (f"predicates.{CHANCE}.role", "derived"),
    (f"predicates.{LEARNT}.chance", [1, True]),
    (f"predicates.{DERIVED}.chance", [0.5, False]),
    ("numbers", []),
    ("numbers", 3),
    ("numbers.0.types", ["thing", "object"]),
    ("numbers.0.types", [3]),
    ("numbers.0.name", "area"),
    ("settings.semantics", "paper"),
])
def test_hostile_files_are_refused(path: str, value: Any, saved: Path) -> None:
    def change(header: dict[str, Any], _: object) -> None:
        data, last = place(header["program"], path)
        data[last] = value

    rewrite(saved, change)
    with pytest.raises(NsfrcError, match=r"damaged|cut short"):
        load(saved)


def test_files_that_lack_a_field_are_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for path in ("numbers", f"predicates.{AREA}.comparison", f"predicates.{CHANCE}.chance"):
        saved.write_bytes(data)

        def change(header: dict[str, Any], _: object, path: str = path) -> None:
            holder, last = place(header["program"], path)
            del holder[last]

        rewrite(saved, change)
        with pytest.raises(NsfrcError, match="damaged"):
            load(saved)


def test_the_same_program_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    assert nsfrc.load(saved).save(tmp_path / "again.nsfrc").read_bytes() == saved.read_bytes()
