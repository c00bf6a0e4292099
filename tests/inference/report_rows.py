"""Rows for reports, made of generated figures and their true objects: no detector is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

import nsfrc
from nsfrc.data.kandinsky import DIMENSIONS, figure, truth
from nsfrc.data.render import render
from nsfrc.explain import explain
from nsfrc.inference.images import SMALL, read
from nsfrc.inference.measures import Measured
from nsfrc.inference.report_thumbnail import thumbnail
from nsfrc.inference.rows import Answered, Row
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
        self.measures = Measured(self.program.questions)
        self.V_T: dict[str, np.ndarray] = {}  # by the name of the file

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
        name = str(path.relative_to(self.folder))
        self.V_T[name], start = V_T, V0[0].numpy()
        (target,) = self.program.targets
        said = Answered(label, answer, (explain(self.program, V_T, target, start),))
        return self._counted(Row(name, path, {target: said}, scores, objects=objects, V0=start,
                                 thumbnail=thumbnail(read(path, SIZE, side=SMALL))))

    def failed(self, name: str, error: str, label: str | None = None) -> Row:
        return self._counted(Row(name, self.folder / name, {self.program.targets[0]: Answered(label)}, error=error))

    def _counted(self, row: Row) -> Row:
        self.measures.add(row)
        return row
