"""Perception looks at each picture once; what it saw is kept, so that an edit of the program only reasons again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item
from nsfrc.inference.known import Known
from nsfrc.inference.look_ahead import BATCH, MOST, Looker, sized
from nsfrc.inference.predictor import Decoded, decode
from nsfrc.inference.preparing import is_auto
from nsfrc.models.model_file import find_model, is_model_file, is_pickled
from nsfrc.perception import create, names
from nsfrc.perception.base import Perception
from nsfrc.perception.vectors import Wishes
from nsfrc.pipelines import PERCEPTION, object_count, wishes_of
from nsfrc.program import Program

MODELS = 4  # perceptions that are kept
ELSEWHERE = "nsfrc play runs no code but its own; nsfrc infer --trust runs it, if you trust it"
Kind = tuple[str, int, Wishes]


class LookedAlready(Perception):
    """Stands where a perception would whose objects are known: it has its entries and places, and looks at nothing."""

    looks = False

    def __init__(self, model: Perception) -> None:
        super().__init__()
        self.model = [model]  # a list hides it from torch
        self.dimensions, self.size, self.objects = model.dimensions, model.size, model.objects
        self.identity, self.fit, self.proportions = model.identity, model.fit, model.proportions

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        raise NsfrcError("pictures on the page are looked at before the program is asked")

    def places(self, vectors: np.ndarray) -> np.ndarray | None:
        return self.model[0].places(vectors)


@dataclass(frozen=True, eq=False)
class Looked:
    """A program with what was seen for it. program: for as many objects as there are, where it says slots(auto)."""

    program: Program
    perception: LookedAlready
    name: str
    known: Mapping[str, Known] = field(repr=False)
    remark: str | None = None


class _Looker(Looker):
    """Keeps a small copy of each picture."""

    def decode(self, item: Item) -> Decoded:
        return decode(item, self.perception.size, self.perception.fit, with_thumbnail=True)

    def __call__(self, images: list[Decoded]) -> dict[str, Known]:
        shown = {one.item.name: one.thumbnail for one in images}
        return {name: replace(known, thumbnail=shown[name]) for name, known in super().__call__(images).items()}


class Eyes:
    """Perceptions, made when they are first asked for; those of all clients. One thread looks at a time.

    perception: what the user of the command names in the place of the programs' own.
    """

    def __init__(self, perception: str | None = None) -> None:
        self.perception = perception
        self.offered: tuple[str, ...] = tuple(dict.fromkeys([*([] if perception is None else [perception]), *names()]))
        self._models: dict[tuple[str, str, int, Wishes], Perception] = {}

    def look(
        self, program: Program, folder: Path, items: Sequence[Item], memory: Memory, perception: str | None = None,
        tell: Callable[[int, int], None] = lambda done, of: None,
    ) -> Looked:
        """What a program's perception sees in pictures; those in the memory are not looked at again.

        folder: of the program. perception: one of those offered, in the place of its own. tell: is called with how many
        of how many are looked at. Raises NsfrcError where there is no such perception, or it may not run.
        """
        name = perception or program.settings.perception or PERCEPTION
        auto = is_auto(program)
        kind = name, MOST if auto else object_count(program), wishes_of(program.settings)
        model = self._model(kind, folder)
        known = memory.of(model, kind)
        new = [item for item in items if item.name not in known]
        looker, size = _Looker(model, "cpu"), model.piece or BATCH
        with np.errstate(all="ignore"), torch.no_grad():  # whether numbers are finite is looked at
            for first in range(0, len(new), size):
                tell(first, len(new))
                known |= looker([looker.decode(item) for item in new[first : first + size]])
        here = {item.name: known[item.name] for item in items}
        made = sized(program, here) if auto else None
        return Looked(program if made is None else made.program, LookedAlready(model), name, here,
                      None if made is None else made.remark)

    def _model(self, kind: Kind, folder: Path) -> Perception:
        name, objects, wishes = kind
        beside = None if name == self.perception else folder
        key = (str(beside), *kind) if is_model_file(name) else ("", *kind)
        if key not in self._models:
            self._refuse(name, beside)
            while len(self._models) >= MODELS:
                self._models.pop(next(iter(self._models)))
            self._models[key] = create(name, objects, None, "cpu", beside, False, None, wishes)
        return self._models[key]

    def _refuse(self, name: str, folder: Path | None) -> None:
        """A program on the page may come from a link: it names no code, in a module or in a pickle."""
        if is_model_file(name):
            if is_pickled(path := find_model(name, folder)):
                raise NsfrcError(f"{path} is a pickle, which may hold code: {ELSEWHERE}, or export it as ONNX")
        elif ":" in name:
            raise NsfrcError(f"the perception {name} is a Python module: {ELSEWHERE}")


class Memory:
    """What was seen on the pictures of one client, by what looked; the last few of these."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Kind], dict[str, Known]] = {}

    def of(self, model: Perception, kind: Kind) -> dict[str, Known]:
        key = model.identity, kind
        self._seen[key] = self._seen.pop(key, {})
        while len(self._seen) > MODELS:
            self._seen.pop(next(iter(self._seen)))
        return self._seen[key]

    def clear(self) -> None:
        self._seen.clear()
