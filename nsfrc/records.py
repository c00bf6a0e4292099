"""`dataclass`, made in a quarter of the time: making them is most of what the start of a command costs.

    from nsfrc.records import dataclass

is `dataclasses.dataclass` in all that nsfrc uses of it. The standard library up to Python 3.12 compiles the text of up
to six methods for every class; here only `__init__` is compiled, and the others are closures.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING or sys.version_info >= (3, 13):
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """The decorator, with `frozen`, `slots`, `eq` and `kw_only`; every field is an argument."""
        return _made(cls) if cls is not None else lambda cls: _made(cls, **options)


def _made(cls: type, *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False) -> type:
    own = set(vars(cls))
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _init(cls, fields, frozen), "__repr__": _repr}
    if eq:
        values = _values([field.name for field in fields if field.compare])
        methods |= {"__eq__": _eq(values), "__hash__": _hash(values) if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _init(cls: type, fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    """`__init__`, as text that is compiled: calling it is quicker than looping over the fields would be."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    arguments, body = ["self"], []
    for field in sorted(fields, key=lambda field: field.kw_only is True):
        if field.kw_only and "*" not in arguments:
            arguments.append("*")
        name, value, default = field.name, field.name, ""
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"], default = field.default, f"=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"], default = field.default_factory, "=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        arguments.append(name + default)
        if frozen and isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            known[f"_set_{name}"] = slot.__set__  # a third less time than looking for the slot by its name
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(body or ["pass"]), known)
    init: Callable[..., None] = known["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For pickling what has slots and cannot be set."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
