"""Which function values which neural predicate, and which measures which number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from nsfrc.errors import NsfrcError

F = TypeVar("F", bound=Callable[..., Any])

PREDICATE, NUMBER = "neural predicate", "number"


@dataclass(frozen=True)
class Registered:
    """The function, module class or module of a neural predicate or of a number (`kind`).

    place: the file and line that users know it by.
    """

    name: str
    function: Callable[..., Any]
    symmetric: bool
    place: str
    kind: str = PREDICATE

    def build(self) -> Callable[..., Any]:
        """What is called with the arguments; a class of modules gets an instance of its own for each converter."""
        if not (isinstance(self.function, type) and issubclass(self.function, torch.nn.Module)):
            return self.function
        try:
            module = self.function()
        except NsfrcError:
            raise
        except Exception as error:
            raise NsfrcError(
                f"cannot make the module of the {self.kind} {self.name} ({self.place}): "
                f"{type(error).__name__}: {error}; its class is called without arguments"
            ) from error
        return module

    def refuse_arity(self, arity: int) -> None:
        """Raise when the function cannot be called with `arity` arguments."""
        function = self.function
        if isinstance(function, type):
            function = getattr(function, "forward", function)
            bound: tuple[None, ...] = (None,) * (arity + 1)  # and self
        else:
            function = function.forward if isinstance(function, torch.nn.Module) else function
            bound = (None,) * arity
        try:
            inspect.signature(function).bind(*bound)
        except TypeError as error:
            raise NsfrcError(
                f"the function of the {self.kind} {self.name} ({self.place}) takes one argument for each of "
                f"the {self.kind.split()[-1]}'s; the program has {self.name}/{arity}: {error}"
            ) from None
        except ValueError:  # a built-in that does not tell its signature
            return


_registered: dict[str, Registered] = {}
_numbers: dict[str, Registered] = {}


def neural_predicate(name: str, *, symmetric: bool = False) -> Callable[[F], F]:
    """Make a function, or a torch module (class), the valuation of the neural predicate `name`, whatever its arity.

    It is called once for all N ground atoms of the predicate, with an `Objects`, `Attributes` or `Input` for
    each argument, and returns values [B, N] from 0 to 1. symmetric: the order of the arguments does not matter,
    so that each set of them is valued once. Of two functions with one name the later one counts.
    """
    if not isinstance(name, str) or not name:
        raise NsfrcError('neural_predicate needs the name of a predicate: @nsfrc.neural_predicate("above")')
    return _decorator(name, symmetric, PREDICATE, f"neural_predicate({name!r})", _registered)


def number(name: str, *, symmetric: bool = False) -> Callable[[F], F]:
    """Make a function, or a torch module (class), what measures the number `name`, as :- number(...) declares it.

    It is called once for all N things that the number is of, with an `Objects`, `Attributes` or `Input` for each
    argument, and returns finite numbers [B, N] of any size. It goes before an entry of the object vector, or a number
    of the box, of that name. symmetric: as of `neural_predicate`.
    """
    if not isinstance(name, str) or not name:
        raise NsfrcError('number needs a name: @nsfrc.number("distance")')
    return _decorator(name, symmetric, NUMBER, f"number({name!r})", _numbers)


def _decorator(
    name: str, symmetric: bool, kind: str, spoken: str, registered: dict[str, Registered]
) -> Callable[[F], F]:
    def register(function: F) -> F:
        if not callable(function):
            raise NsfrcError(f"{spoken} goes before a function or a torch module, not {function!r}")
        if isinstance(function, type) and not issubclass(function, torch.nn.Module):
            raise NsfrcError(f"{spoken}: the class {function.__name__} is not a torch.nn.Module")
        registered[name] = Registered(name, function, symmetric, _place(function), kind)
        return function

    return register


def _place(function: Callable[..., Any]) -> str:
    source: Any = type(function) if isinstance(function, torch.nn.Module) else function
    code = getattr(inspect.unwrap(source), "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return f"{getattr(source, '__module__', '?')}.{getattr(source, '__qualname__', repr(source))}"


def names() -> list[str]:
    """Every neural predicate that has a function."""
    return sorted(_registered)


def find(name: str) -> Registered | None:
    return _registered.get(name)


def numbers() -> list[str]:
    """Every number that has a function."""
    return sorted(_numbers)


def find_number(name: str) -> Registered | None:
    return _numbers.get(name)
