"""The examples as a search sees them: which atoms hold, which objects are there, and what was measured of these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.learning.evidence import Evidence
from nsfrc.program import Program

HOLDS = 0.5  # the value from which on an atom counts as true in the search
IN = "in"


@dataclass(frozen=True, eq=False)
class Seen:
    """Crisp examples of a program. values: soft V [B, G] with the background derived; numbers: name → [B, E]."""

    program: Program
    values: np.ndarray
    numbers: dict[str, np.ndarray]

    @cached_property
    def holds(self) -> np.ndarray:
        """[B, G]: what is true."""
        return self.values > HOLDS

    @property
    def examples(self) -> int:
        return len(self.values)

    @cached_property
    def object_type(self) -> ir.DataType | None:
        """The type that variables of learnt clauses have, if there is one."""
        found = [t for t in self.program.source.types if t.role == ir.OBJECT]
        if len(found) > 1:
            names = ", ".join(ir.quoted(t.name) for t in found)
            raise NsfrcError(f"{self.program.name} has several object types ({names}); clauses are learnt over one: "
                             f"use one type, and a predicate to tell its kinds apart")
        return found[0] if found else None

    @cached_property
    def image_type(self) -> str | None:
        return next((t.name for t in self.program.source.types if t.role == ir.INPUT), None)

    @cached_property
    def has_in(self) -> bool:
        """Whether in(object, image) says which objects are there."""
        there = self.program.ground.herbrand.predicate_by_key.get((IN, 2))
        return there is not None and self.object_type is not None \
            and there.types == (self.object_type.name, self.image_type)

    @cached_property
    def present(self) -> np.ndarray:
        """[B, E]: which objects are there."""
        if self.object_type is None:
            return np.zeros((self.examples, 0), dtype=bool)
        if not self.has_in:
            return np.ones((self.examples, len(self.object_type.constants)), dtype=bool)
        return np.asarray(self.holds[:, self.program.ground.herbrand.tables[IN, 2][:, 0]])

    @cached_property
    def in_doubt(self) -> int:
        """How many examples have a neural atom that is neither clearly true nor clearly false."""
        soft = self.values[:, self.program.ground.neural]
        return int(((soft > 0.3) & (soft < 0.7)).any(axis=1).sum())


def see(program: Program, evidence: Evidence) -> Seen:
    """Derive the background once for all examples."""
    V0 = evidence.valuation(program)
    with torch.no_grad():
        values = program.reasoner("cpu", outputs="all", inputs="neural")(V0.float())
    return Seen(program, values.numpy(), evidence.numbers(program))
