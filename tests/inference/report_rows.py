"""Rows for reports, made of generated figures and their true objects: no detector is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

import nsfrc
from nsfrc.data.kandinsky import DIMENSIONS, figure, truth
from nsfrc.data.render import render
from nsfrc.inference.images import read
from nsfrc.inference.measures import Measures
from nsfrc.inference.results import Row
from nsfrc.program import Program
from nsfrc.valuation import FactsConverter

SIZE = (160, 160)


class Maker:
    """Makes figures of a shipped pattern, and the rows that a perfect detector would lead to."""

    def __init__(self, folder: Path, pattern: str = "twopairs", program: Program | None = None) -> None:
        self.folder, self.pattern = folder, pattern
        self.program = program or nsfrc.compile(pattern)
        self.facts = FactsConverter(self.program, DIMENSIONS)
        self.reasoner = self.program.reasoner()
        self.measures = Measures(self.program.targets)

    def row(self, index: int, name: str | None = None, label: str | None = "", threshold: float = 0.5) -> Row:
        """The row of figure `index`; label: its own unless another one, or None, is given."""
        made = figure(self.pattern, 0, index)
        path = self.folder / (name or f"{index}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(render(made.figure)).save(path)
        objects = truth(made.figure, self.facts.objects)
        return self.of(path, objects, str(bool(made.label)).lower() if label == "" else label, threshold)

    def of(self, path: Path, objects: np.ndarray, label: str | None, threshold: float = 0.5) -> Row:
        """The row of an image file with given object vectors [E, D]."""
        with torch.no_grad():
            V0 = self.facts(torch.from_numpy(objects)[None])
            V_T = self.reasoner(V0)[0].numpy()
        scores = tuple(round(float(V_T[i]), 4) for i in self.program.target_indices)
        answer = str(scores[0] >= threshold).lower()
        self.measures.add(label, scores, answer)
        right = None if label is None else label == answer
        name = str(path.relative_to(self.folder))
        return Row(name, path, label, scores, answer, right, None, objects, V0[0].numpy(), V_T, read(path, SIZE))

    def failed(self, name: str, error: str, label: str | None = None) -> Row:
        self.measures.add(label, (), None)
        return Row(name, self.folder / name, label=label, error=error)
