"""What is known of the examples: facts by name, objects as perception saw them, or valuations.

A rule that is tried may speak of comparisons that the program before it had not, so evidence gives V0 of any program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from nsfrc.valuation import FactsConverter
from nsfrc.valuation.arguments import Scene
from nsfrc.valuation.measured import language_of
from nsfrc.valuation.numbers import measure
from nsfrc.valuation.valued import OBJECTNESS, Valuation
from nsfrc.valuation.worlds import Worlds


class Evidence(Protocol):
    """Examples, each with a name for people."""

    @property
    def names(self) -> Sequence[str]: ...

    def valuation(self, program: Program) -> torch.Tensor:
        """V0 [B, G] of a program with the same neural predicates."""
        ...

    def numbers(self, program: Program) -> dict[str, np.ndarray]:
        """The numbers of single objects that the program declares: name → [B, E], NaN where not known."""
        ...


def numbers_of(program: ir.Program) -> list[ir.Number]:
    """The numbers of one object."""
    objects = {t.name for t in program.types if t.role == ir.OBJECT}
    return [number for number in program.numbers if len(number.types) == 1 and number.types[0] in objects]


@dataclass(frozen=True, eq=False)
class FromWorlds:
    """Facts by name, a dict for each example."""

    worlds: Sequence[Mapping[str, float]]
    names: Sequence[str]
    concepts: Path | None = None

    def valuation(self, program: Program) -> torch.Tensor:
        return Worlds(program, self.concepts)(program, self.worlds)

    def numbers(self, program: Program) -> dict[str, np.ndarray]:
        found = {}
        for number in numbers_of(program.source):
            atoms = [ir.atom_text(number.name, [ir.quoted(c)]) for c in program.source.type(number.types[0]).constants]
            found[number.name] = np.array([[_plain(world).get(atom, np.nan) for atom in atoms]
                                           for world in self.worlds], dtype=np.float64).reshape(len(self.worlds), -1)
        return found


def _plain(world: Mapping[str, float]) -> dict[str, float]:
    return {str(atom).replace(" ", ""): value for atom, value in world.items()}


@dataclass(frozen=True, eq=False)
class FromObjects:
    """Object vectors [B, E, D] and the names of their entries. concepts: parameters of neural predicates."""

    objects: torch.Tensor
    dimensions: Sequence[str]
    names: Sequence[str]
    concepts: Path | None = None
    source: str | None = None

    def converter(self, program: Program) -> FactsConverter:
        return FactsConverter(program, tuple(self.dimensions), self.concepts, self.source)

    def valuation(self, program: Program) -> torch.Tensor:
        with torch.no_grad():
            found: torch.Tensor = self.converter(program)(self.objects)
            return found

    def numbers(self, program: Program) -> dict[str, np.ndarray]:
        columns = {name: i for i, name in enumerate(self.dimensions)}
        missing = self.objects[:, :, columns[OBJECTNESS]] == 0
        wanted = numbers_of(program.source)
        language = language_of(replace(program.source, numbers=tuple(wanted)))
        found = {}
        for number in wanted:
            registered = measure(number, True, columns, self.source)
            valued = Valuation(language.predicate_by_key[number.key], registered, language, columns)
            with torch.no_grad():
                values = valued(Scene(self.objects, columns, self.source), missing).double()
            places = language.arguments(number.key)[:, 0]
            table = np.full((len(values), len(program.source.type(number.types[0]).constants)), np.nan)
            table[:, places] = np.where(missing.numpy()[:, places], np.nan, values.numpy())
            found[number.name] = table
        return found


@dataclass(frozen=True, eq=False)
class FromValuation:
    """V0 [B, G] of one program; other programs find their atoms in it by name."""

    program: Program
    V0: torch.Tensor
    names: Sequence[str]

    def valuation(self, program: Program) -> torch.Tensor:
        if any(p.role == ir.COMPARED and p.key not in self.program.ground.herbrand.offsets
               for p in program.source.predicates):
            raise NsfrcError("V0 alone says nothing of numbers: give the images, object vectors or worlds instead")
        V0 = torch.from_numpy(program.initial_valuation())[None].repeat(len(self.V0), 1).to(self.V0)
        here = [i for i, name in enumerate(program.atoms) if program.ground.neural[i] and self.program.positions(name)]
        there = [self.program.positions(program.atoms[i])[0] for i in here]
        V0[:, here] = self.V0[:, there]
        return V0

    def numbers(self, program: Program) -> dict[str, np.ndarray]:
        return {}
