"""What a valuation function is given: one of these for each argument, over all N ground atoms of the predicate."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from nsfrc.errors import NsfrcError, did_you_mean

MEASURES = frozenset(("x1", "y1", "x2", "y2", "x", "y", "z", "objectness"))  # entries that are not attributes
LISTED = 12  # entries that a message names, at most


class UnknownValue(NsfrcError):
    """A constant of the program, such as `green`, that perception has no entry for."""


class Scene:
    """The object vectors [B, E, D] of a batch with the names of their entries; shared by all arguments.

    source: the perception they are from, where it is known.
    """

    def __init__(self, vectors: torch.Tensor, columns: dict[str, int], source: str | None = None) -> None:
        self.vectors, self.columns, self.source = vectors, columns, source
        self._centre: torch.Tensor | None = None

    def column(self, name: str) -> int:
        """Where a named entry stands in a vector."""
        if name in self.columns:
            return self.columns[name]
        hint = did_you_mean(name, self.columns)
        whose = "" if self.source is None else f" of perception {self.source}"
        raise NsfrcError(
            f"object vectors{whose} have no dimension {name!r}; there are {', '.join(self.columns)}"
            + (f": {hint}" if hint else "")
        )

    def unknown(self, name: str) -> UnknownValue:
        """What to raise for a constant of the program that is not an entry of a vector."""
        who = "perception" if self.source is None else f"perception {self.source}"
        known = [column for column in self.columns if column not in MEASURES]
        several = next((column for column in known if name in column.split("_")), None)
        if several is not None:
            hint = f"{several} may be several values at once, which :- attributes([...]) takes apart " \
                "(docs/detector.md, \"Classes that are several things at once\")"
        else:
            hint = did_you_mean(name, known) or "leave it out of the type's constants, or use a perception that has " \
                "an entry of that name (docs/perception.md, \"Bringing your own\")"
        listed = ", ".join(known[:LISTED]) + (f" and {len(known) - LISTED} more" if len(known) > LISTED else "")
        return UnknownValue(f"{who} does not know {name!r}; it knows {listed or 'no attributes'}: {hint}")

    @property
    def centre(self) -> torch.Tensor:
        """Centres of the objects' boxes: [B, E, 2]; computed once."""
        if self._centre is None:
            self._centre = centres(self.vectors, self)
        return self._centre


def centres(vectors: torch.Tensor, scene: Scene) -> torch.Tensor:
    """Centres [..., 2] of the boxes in vectors [..., D]."""
    x1, y1, x2, y2 = (vectors[..., scene.column(name)] for name in ("x1", "y1", "x2", "y2"))
    return torch.stack([x1 + x2, y1 + y2], dim=-1) * 0.5


@dataclass(frozen=True, eq=False)
class Objects:
    """An argument that is an object: for each of the N ground atoms, which row of the scene it is.

    index [N]; absent [B, N]: atoms that name a missing object, or None where there is none; stand_in [D]: what
    such atoms see instead, so that nothing degenerate enters their gradients. Their value becomes 0 afterwards.
    """

    scene: Scene
    index: torch.Tensor
    absent: torch.Tensor | None
    stand_in: torch.Tensor

    @property
    def vectors(self) -> torch.Tensor:
        """The objects' vectors: [B, N, D]."""
        taken = self.scene.vectors.index_select(1, self.index)
        return taken if self.absent is None else torch.where(self.absent[:, :, None], self.stand_in, taken)

    @property
    def centre(self) -> torch.Tensor:
        """Centres (x, y) of the objects' boxes: [B, N, 2], from x1, y1, x2 and y2."""
        taken = self.scene.centre.index_select(1, self.index)
        if self.absent is None:
            return taken
        return torch.where(self.absent[:, :, None], centres(self.stand_in, self.scene), taken)

    def __getitem__(self, name: str) -> torch.Tensor:
        """One named entry of each object's vector: [B, N]."""
        column = self.scene.column(name)
        taken = self.scene.vectors[:, :, column].index_select(1, self.index)
        return taken if self.absent is None else torch.where(self.absent, self.stand_in[column], taken)


@dataclass(frozen=True, eq=False)
class Attributes:
    """An argument that is an attribute such as `red`. names: its N constants; columns [N]: their dimensions, if any."""

    names: tuple[str, ...]
    columns: torch.Tensor | None

    def of(self, objects: Objects) -> torch.Tensor:
        """How far each object has its attribute: the entry of the dimension of that name, [B, N]."""
        if not isinstance(objects, Objects):
            raise NsfrcError(f"Attributes.of needs Objects, not {type(objects).__name__}: check the order of arguments")
        scene, columns = objects.scene, self._columns(objects.scene)
        taken = scene.vectors.flatten(1).index_select(1, objects.index * len(scene.columns) + columns)
        if objects.absent is None:
            return taken
        return torch.where(objects.absent, objects.stand_in.index_select(0, columns), taken)

    def _columns(self, scene: Scene) -> torch.Tensor:
        if self.columns is None:
            raise scene.unknown(next(name for name in self.names if name not in scene.columns))
        return self.columns


@dataclass(frozen=True, eq=False)
class Input:
    """An argument that is the image. names: its N constants. Predicates of the whole image read `vectors`."""

    names: tuple[str, ...]
    scene: Scene

    @property
    def vectors(self) -> torch.Tensor:
        """All objects of the image, missing ones as rows of zeros: [B, E, D]."""
        return self.scene.vectors

    def __getitem__(self, name: str) -> torch.Tensor:
        """One named entry of every object's vector: [B, E]."""
        return self.scene.vectors[:, :, self.scene.column(name)]


Argument = Objects | Attributes | Input
