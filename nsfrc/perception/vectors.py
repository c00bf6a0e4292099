"""Detections as object vectors: how classes and attributes become entries, and what makes an object be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nsfrc.models.names import ClassNames, split_values
from nsfrc.perception.base import Perception
from nsfrc.vocabulary import NUMBERS

CORNERS = ("x1", "y1", "x2", "y2")
OBJECTNESS, CONFIDENCE = "objectness", "confidence"
TAKEN = frozenset((*CORNERS, *NUMBERS, "z", OBJECTNESS))  # names that a class cannot have alone
CLASS = "class"
CONF = 0.25  # as ultralytics has it


@dataclass(frozen=True)
class Wishes:
    """What a program, or its user, says of a detector.

    names, size: of the model, where its file has none. attributes: in whose values its classes fall apart. crisp:
    whether a detection is there with value 1, or with its confidence; None leaves it to the perception. conf: the least
    confidence of a detection; None is 0.25.
    """

    names: tuple[str, ...] = ()
    size: tuple[int, int] | None = None
    attributes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    crisp: bool | None = None
    conf: float | None = None

    @property
    def least(self) -> float:
        return CONF if self.conf is None else self.conf


def entry(kind: str, value: str, taken: frozenset[str] | set[str] = TAKEN) -> str:
    """The name of the entry for a value of a type; with the type where the value alone would be something else."""
    return f"{kind}:{value}" if value in taken else value


class Layout:
    """The entries of the vectors of a detector: corners, one for each class, one for each value of each attribute.

    every: whether each value must be that of some class.
    """

    def __init__(
        self, names: ClassNames, attributes: Sequence[tuple[str, Sequence[str]]] = (), every: bool = True
    ) -> None:
        self.classes = len(names)
        taken = set(TAKEN)
        entries = []
        for kind, values in ((CLASS, names.atoms), *attributes):
            for value in values:
                entries.append(entry(kind, value, taken))
                taken.add(value)
        self.dimensions = (*CORNERS, *entries, OBJECTNESS)
        self.table = np.zeros((len(names), len(entries)), dtype=np.float32)
        self.table[:, : len(names)] = np.eye(len(names), dtype=np.float32)
        if attributes:
            places = {(kind, value): i for i, (kind, value) in enumerate(
                ((kind, value) for kind, values in attributes for value in values), len(names))}
            for row, own in enumerate(split_values(names.names, attributes, every)):
                for one in own.items():
                    self.table[row, places[one]] = 1

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Rows x1 y1 x2 y2 | confidence | class, [n, 6] → vectors [n, D]."""
        rows = rows.astype(np.float32)
        return np.concatenate([rows[:, :4], self.table[rows[:, 5].astype(np.int64)], rows[:, 4:5]], axis=1)

    def batch(self, found: Sequence[np.ndarray], objects: int) -> torch.Tensor:
        """Rows of B images → [B, E, D], the first E of each."""
        vectors = torch.zeros(len(found), objects, len(self.dimensions))
        for place, rows in enumerate(found):
            taken = self.vectors(rows[:objects])
            vectors[place, : len(taken)] = torch.from_numpy(taken)
        return vectors


class Crisp(Perception):
    """Another perception whose objects are there with value 1 from a confidence on, and else not at all.

    What was the objectness is the entry `confidence`.
    """

    def __init__(self, module: Perception, least: float) -> None:
        super().__init__()
        self.module, self.least = module, least
        self.objects, self.size, self.fit = module.objects, module.size, module.fit
        self.piece, self.proportions, self.side_by_side = module.piece, module.proportions, module.side_by_side
        self.identity = module.identity
        self.place = module.column(OBJECTNESS)
        self.keeps = CONFIDENCE not in module.dimensions
        self.dimensions = (*module.dimensions, CONFIDENCE) if self.keeps else module.dimensions

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.see(images, None)

    def see(self, images: torch.Tensor, frames: Sequence[tuple[float, ...]] | None) -> torch.Tensor:
        found = self.module.see(images, frames)
        if not torch.compiler.is_compiling():  # a graph has no place for what is kept beside its result
            self.further = self.module.further
        return crisp(found, self.place, self.least, self.keeps)

    def doubts(self, pixels: np.ndarray, shape: tuple[int, int]) -> tuple[str, ...]:
        return self.module.doubts(pixels, shape)

    def places(self, vectors: np.ndarray) -> np.ndarray | None:
        return self.module.places(vectors[:, : len(self.module.dimensions)])

    def __getattr__(self, name: str) -> Any:
        """What else the module has is found here too."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(self.module, name)


def crisp(vectors: torch.Tensor, place: int, least: float, keep: bool = True) -> torch.Tensor:
    """Vectors [..., D] whose entry `place` is a confidence → 1 or a row of zeros there, the confidence after them."""
    confidence = vectors[..., place]
    # A program compares what people write, 0.25, with what a model of 32 bits says.
    there = ((confidence >= torch.tensor(least, dtype=vectors.dtype)) & (confidence > 0)).unsqueeze(-1)
    made = vectors.clone()
    made[..., place] = 1
    made = torch.cat([made, confidence.unsqueeze(-1)], -1) if keep else made
    return torch.where(there, made, 0)
