"""One neural predicate, or one number, of a program: its function called once for all ground atoms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.valuation.arguments import Argument, Attributes, Input, Objects, Scene, UnknownValue
from nsfrc.valuation.registry import Registered

if TYPE_CHECKING:
    from nsfrc.compiler.herbrand import Herbrand

OBJECTNESS = "objectness"
# Rounding may carry a value this far beyond 0 or 1.
ROUNDING = 1e-5


class Valuation(torch.nn.Module):
    """One neural predicate or number of a program: its function, and the arguments of its N ground atoms as indices."""

    arguments: torch.Tensor
    inverse: torch.Tensor
    columns: torch.Tensor
    stand_ins: torch.Tensor

    def __init__(
        self, predicate: ir.Predicate, registered: Registered, herbrand: Herbrand, dimensions: dict[str, int]
    ) -> None:
        super().__init__()
        registered.refuse_arity(len(predicate.types))
        self.registered, self.arity = registered, len(predicate.types)
        self.function: Callable[..., Any] = registered.build()
        self.predicate = f"the {registered.kind} {predicate.name}({', '.join(predicate.types)})"
        self.spoken = f"the function of the {registered.kind} {predicate} ({registered.place})"
        types = [herbrand.type_by_name[name] for name in predicate.types]
        self.roles = [t.role for t in types]
        self.dimensions = list(dimensions)
        self.objects = max((len(t.constants) for t in types if t.role == ir.OBJECT), default=0)
        arguments = herbrand.arguments(predicate.key)
        self.once = registered.symmetric and len(set(predicate.types)) == 1
        inverse = np.arange(len(arguments))
        if self.once:  # atoms that name the same constants are valued once
            arguments, inverse = np.unique(np.sort(arguments, axis=1), axis=0, return_inverse=True)
        self.names = [tuple(t.constants[i] for i in arguments[:, k]) for k, t in enumerate(types)]
        # An entry may be called by type and constant, as "class:x", where the constant alone is something else.
        columns = [[dimensions.get(f"{t.name}:{name}", dimensions.get(name, -1)) for name in column]
                   for t, column in zip(types, self.names, strict=True)]
        self.known = [min(column, default=0) >= 0 for column in columns]
        for name, table in (("arguments", arguments.T), ("inverse", inverse.reshape(-1)), ("columns", columns)):
            tensor = torch.from_numpy(np.ascontiguousarray(table, dtype=np.int64))
            self.register_buffer(name, tensor, persistent=False)
        self.register_buffer("stand_ins", _stand_ins(len(types), len(dimensions)), persistent=False)

    def forward(self, scene: Scene, missing: torch.Tensor | None) -> torch.Tensor:
        """Values [B, N] of all ground atoms; missing [B, E] or None."""
        absent = None if missing is None else self._absent(missing)
        values = self._call([self._argument(k, scene, absent) for k in range(self.arity)])
        values = self._shaped(values, len(scene.vectors))
        if absent is not None:
            values = torch.where(absent, 0.0, values)
        return values.index_select(1, self.inverse) if self.once else values

    def blamed(self, vectors: torch.Tensor, atom: int, image: int) -> str | None:
        """What to say of the vectors [E, D] if it is they that spoilt an atom of a predicate that comes with nsfrc."""
        if not getattr(self.function, "__module__", "").startswith(__package__):
            return None
        place = int(self.inverse[atom])
        given = [self.names[k][place] for k, role in enumerate(self.roles) if role == ir.ATTRIBUTE]
        for k, role in enumerate(self.roles):
            if role != ir.OBJECT:
                continue
            row = int(self.arguments[k, place])
            for name, value in zip(self.dimensions, vectors[row].tolist(), strict=True):
                in_range = -ROUNDING <= value <= 1 + ROUNDING
                if not math.isfinite(value) or (not in_range and name in (*given, OBJECTNESS)):
                    wanted = "from 0 to 1" if name in (*given, OBJECTNESS) else "finite"
                    return (f"object vectors: entry {name!r} is {value:.4g} in row {row} of image {image}; perception "
                            f"must give numbers there that are {wanted}")
        return None

    def absent(self, missing: torch.Tensor) -> torch.Tensor | None:
        """As `_absent`, for all ground atoms."""
        absent = self._absent(missing)
        return absent if absent is None or not self.once else absent.index_select(1, self.inverse)

    def _absent(self, missing: torch.Tensor) -> torch.Tensor | None:
        """Atoms that name a missing object: [B, N]."""
        absent = None
        for k, role in enumerate(self.roles):
            if role == ir.OBJECT:
                here = missing.index_select(1, self.arguments[k])
                absent = here if absent is None else absent | here
        return absent

    def _argument(self, k: int, scene: Scene, absent: torch.Tensor | None) -> Argument:
        if self.roles[k] == ir.OBJECT:
            return Objects(scene, self.arguments[k], absent, self.stand_ins[k].to(scene.vectors.dtype))
        if self.roles[k] == ir.ATTRIBUTE:
            return Attributes(self.names[k], self.columns[k] if self.known[k] else None)
        return Input(self.names[k], scene)

    def _call(self, arguments: list[Argument]) -> torch.Tensor:
        try:
            return self.function(*arguments)
        except UnknownValue as error:  # the program's constant, whatever function asked for it
            raise NsfrcError(f"{self.predicate}: {error}") from None
        except NsfrcError as error:
            raise NsfrcError(f"{self.spoken}: {error}") from error
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
            raise NsfrcError(f"{self.spoken} failed: {type(error).__name__}: {reason}") from error

    def _shaped(self, values: object, batch: int) -> torch.Tensor:
        """The values as [B, N]; a function that does not look at the objects may give [N]."""
        count = self.arguments.shape[1]
        if not isinstance(values, torch.Tensor) or not values.is_floating_point():
            given = f"{values.dtype} values" if isinstance(values, torch.Tensor) else type(values).__name__
            raise NsfrcError(f"{self.spoken} gave {given}; it must give a floating point tensor [B, N]")
        if values.shape == (count,):
            values = values.expand(batch, -1)
        if values.shape != (batch, count):
            raise NsfrcError(
                f"{self.spoken} gave values of shape {list(values.shape)}; it must give [B, N], here [{batch}, {count}]"
            )
        return values


def _stand_ins(arguments: int, dimensions: int) -> torch.Tensor:
    """What atoms of missing objects see: vectors [arguments, D] in general position, with values from 0 to 1.

    Rows of zeros would coincide, where many a function has no finite gradient. Later dimensions are greater, so
    that boxes are not inside out.
    """
    number = torch.arange(1, arguments + 1)[:, None]
    column = torch.arange(dimensions)[None, :]
    spread = torch.where(column % 2 == 0, number * 0.6180340, number * 0.7548777) % 1
    return 0.1 + 0.4 * spread + 0.4 * column / max(dimensions, 1)
