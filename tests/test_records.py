"""`nsfrc.records.dataclass` is the standard library's, feature by feature."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from nsfrc import records


def both(options: dict[str, bool], body: str) -> list[type]:
    """A class of this body, made by either decorator."""
    found = []
    for decorator in (dataclasses.dataclass, records.dataclass):
        known: dict[str, Any] = {"field": field, "__name__": __name__}
        exec(f"class Some:\n {body}", known)
        found.append(decorator(**options)(known["Some"]))
    return found


OPTIONS = [{}, {"frozen": True}, {"frozen": True, "slots": True}, {"slots": True}, {"frozen": True, "eq": False},
           {"eq": False}, {"kw_only": True}, {"frozen": True, "kw_only": True}]
BODIES = [
    "a: int\n b: str = 'x'", "a: int", "pass", "a: int = 1\n b: list = field(default_factory=list)",
    "a: int\n b: str = field(compare=False, repr=False)", "a: int\n b: int = field(default=2, kw_only=True)",
    "a: int\n def __repr__(self): return 'mine'",
    "a: int\n def __post_init__(self): object.__setattr__(self, 'a', self.a)",
    "a: int\n def __eq__(self, other): return True\n def __hash__(self): return 1",
]
CALLS: list[Callable[[type], object]] = [
    lambda cls: repr(cls(a=1)),
    lambda cls: repr(cls(a=1, b="y")),
    lambda cls: repr(cls(1, "y")),
    lambda cls: repr(cls()),
    lambda cls: cls(a=1) == cls(a=1),
    lambda cls: cls(a=1) == cls(a=2),
    lambda cls: cls(a=1, b="y") == cls(a=1, b="z"),
    lambda cls: cls(a=1) == 1,
    lambda cls: cls() == cls(),
    lambda cls: hash(cls(a=1)) == hash(cls(a=1)),
    lambda cls: hash(cls(a=1, b="y")) == hash(cls(a=1, b="z")),
    lambda cls: setattr(cls(a=1), "a", 2),
    lambda cls: delattr(cls(a=1), "a"),
    lambda cls: _sets_another(cls(a=1)),
    lambda cls: dataclasses.replace(cls(a=1), a=3).a,
    lambda cls: dataclasses.asdict(cls(a=1)),
    lambda cls: [(one.name, one.default, one.compare) for one in dataclasses.fields(cls)],
    lambda cls: cls(a=1, unknown=2),
    lambda cls: cls.__match_args__,
    lambda cls: str(inspect.signature(cls.__init__)).replace("<factory>", "").replace("<dataclasses._MISSING", ""),
    lambda cls: hasattr(cls(a=1), "__dict__"),
    lambda cls: cls(a=1).b is cls(a=1).b,
    lambda cls: copy.deepcopy(cls(a=1)).a,
]


def _sets_another(record: object) -> bool:
    try:
        record.other = 2  # type: ignore[attr-defined]
    except (AttributeError, TypeError):  # which of them is up to Python
        return False
    return True


def outcome(call: Callable[[type], object], cls: type) -> object:
    try:
        return call(cls)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("body", BODIES)
def test_it_does_what_the_standard_library_does(options: dict[str, bool], body: str) -> None:
    if sys.version_info >= (3, 13):
        pytest.skip("it is the standard library's")
    theirs, ours = both(options, body)
    for number, call in enumerate(CALLS):
        if "signature" in inspect.getsource(call) and "factory" in body:
            continue  # the same arguments, but another word for a default that is made
        assert outcome(call, ours) == outcome(call, theirs), (number, options, body)


@records.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2


@records.dataclass(frozen=True)
class Named(Point):
    """Point is its base."""

    name: str = ""


def test_records_are_pickled_and_inherited() -> None:
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1, 2)
    assert Named(1, name="a") == Named(1, 2, "a") != Named(1, 2, "b")
    assert pickle.loads(pickle.dumps(Named(1, name="a"))) == Named(1, 2, "a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Named(1).x = 2  # type: ignore[misc]
    match Point(3):
        case Point(x, y):
            assert (x, y) == (3, 2)
