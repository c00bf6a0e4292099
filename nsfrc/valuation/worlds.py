"""Facts by name → V0: {"color(obj1,red)": 0.9, "area(obj1)": 0.3}, without images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.valuation import concepts as concept_files
from nsfrc.valuation.measured import Comparing, Learnt, Measures, language_of
from nsfrc.vocabulary import NUMBERS

if TYPE_CHECKING:
    from nsfrc.program import Program


class Worlds:
    """Turns worlds into valuations of one program. concepts: a file with learnt temperatures and probabilities."""

    def __init__(self, program: Program, concepts: Path | None = None) -> None:
        # Not the program itself: what is made without a file is kept for as long as its program is there.
        self._name, self._herbrand = program.name, program.ground.herbrand
        self._neural, self._start = program.ground.neural, program.initial_valuation()
        self.numbers = (*program.source.numbers, *_offered(program.source))
        self._numbers = language_of(replace(program.source, numbers=self.numbers))
        inputs = program.source.predicates
        self._comparing = {p.key: Comparing(p, self._herbrand, self._numbers) for p in inputs if p.role == ir.COMPARED}
        learnt = {p.key: Learnt(p) for p in inputs if p.chance is not None and p.chance.learnt}
        if concepts is not None:
            self._load(concepts, {key[0]: one for key, one in (*self._comparing.items(), *learnt.items())})
            for key, one in learnt.items():
                self._start[self._herbrand.offsets[key][0]] = one.probability.item()

    def _load(self, path: Path, own: Mapping[str, torch.nn.Module]) -> None:
        entries = concept_files.read(path)
        used = [name for name in entries if name in own]
        if not used:
            others = ", ".join(entries) or "nothing"
            raise NsfrcError(f"{path} has parameters of {others}; of what facts need, {self._name} learns "
                             f"{', '.join(own) or 'nothing'}")
        for name in used:
            concept_files.set_parameters(own[name], entries[name], f"{path}: {name}")

    @cached_property
    def _places(self) -> dict[str, tuple[ir.PredicateKey, int]]:
        """Of every number of something: which number, and which of its things."""
        names = iter(self._numbers.names()[2:])
        return {next(names).replace(" ", ""): (p.key, place) for p in self._numbers.predicates
                for place in range(self._numbers.offsets[p.key][1] - self._numbers.offsets[p.key][0])}

    def __call__(self, program: Program, worlds: Sequence[Mapping[str, float]]) -> torch.Tensor:
        """V0 [B, G], a row a world."""
        rows = np.tile(self._start, (len(worlds), 1))
        asked = {one.key for comparing in self._comparing.values() for one in comparing.test.measured}
        numbers = {key: np.full((len(worlds), last - first), np.nan)
                   for key, (first, last) in self._numbers.offsets.items() if key in asked}
        said = []
        for world, facts in enumerate(worlds):
            try:
                said.append(self._sorted(program, facts, numbers, world))
            except NsfrcError as error:
                raise NsfrcError(f"world {world + 1}: {error}" if len(worlds) > 1 else str(error)) from None
        self._compare(rows, numbers)
        for row, values in zip(rows, said, strict=True):
            for place, value in values.items():
                row[place] = value
        return torch.from_numpy(rows)

    def _compare(self, rows: np.ndarray, numbers: dict[ir.PredicateKey, np.ndarray]) -> None:
        """Fill in the comparisons, where any number is given."""
        if all(np.isnan(table).all() for table in numbers.values()):
            return
        values = {key: torch.from_numpy(table) for key, table in numbers.items()}
        measures = Measures(values, {key: ~table.isnan() for key, table in values.items()})
        for key, comparing in self._comparing.items():
            first, last = self._herbrand.offsets[key]
            with torch.no_grad():
                rows[:, first:last] = comparing(measures, len(rows)).numpy()

    def _sorted(
        self, program: Program, facts: Mapping[str, float], numbers: dict[ir.PredicateKey, np.ndarray], world: int
    ) -> dict[int, float]:
        """The atoms of a world and their values; its numbers go into their tables."""
        if not isinstance(facts, Mapping):
            raise NsfrcError(
                f'the facts of a world are a dict from atoms to values, as {{"in(obj1,img)": 0.9}}, not a '
                f"{type(facts).__name__}; give several worlds as valuation(*worlds)"
            )
        values: dict[int, float] = {}
        for atom, value in facts.items():
            if isinstance(value, torch.Tensor):
                raise NsfrcError(
                    f"the value of {atom} is a tensor; valuation takes plain numbers, as .item() gives, and no "
                    f"gradients: for gradients use nsfrc.FactsConverter, or fill a tensor [B, G] by program.index"
                )
            plain = isinstance(value, Real) and not isinstance(value, bool)
            places = program.positions(str(atom))
            number = None if places else self._places.get(str(atom).replace(" ", ""))
            if number is not None:
                if not plain or not math.isfinite(value):
                    raise NsfrcError(f"the number {atom} is {value!r}; it must be a finite number")
                key, place = number
                if key in numbers:
                    numbers[key][world, place] = value
                continue
            if not plain or not 0 <= value <= 1:
                raise NsfrcError(f"the value of {atom} is {value!r}; it must be a number from 0 to 1")
            if not self._neural[program.index(str(atom))]:
                raise NsfrcError(f"{atom} is not a neural atom; the program itself decides its value")
            values |= dict.fromkeys(places, value)
        return values


def _offered(program: ir.Program) -> list[ir.Number]:
    """Numbers of boxes that a program does not speak of; a world may have them all the same."""
    known = {number.key for number in program.numbers} | {predicate.key for predicate in program.predicates}
    objects = [datatype.name for datatype in program.types if datatype.role == ir.OBJECT]
    return [ir.Number(name, (objects[0],)) for name in NUMBERS if (name, 1) not in known] if len(objects) == 1 else []


_worlds: WeakKeyDictionary[Program, Worlds] = WeakKeyDictionary()


def valuation(
    program: Program, worlds: Sequence[Mapping[str, float]], concepts: Path | None = None
) -> torch.Tensor:
    """The facts of worlds as V0 [B, G]; see `Program.valuation`."""
    if concepts is not None:
        return Worlds(program, concepts)(program, worlds)
    if program not in _worlds:
        _worlds[program] = Worlds(program)
    return _worlds[program](program, worlds)
