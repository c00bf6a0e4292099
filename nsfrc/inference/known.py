"""What is known of images before the program is asked: objects that perception has seen already, or that were given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, Listing, first_of
from nsfrc.inference.images import ImageError, picture_size
from nsfrc.models.detections import Detections
from nsfrc.models.names import atom
from nsfrc.perception.base import Perception
from nsfrc.perception.vectors import Crisp, Layout, Wishes, crisp

if TYPE_CHECKING:
    from nsfrc.compiler import ir
    from nsfrc.inference.report_thumbnail import Thumbnail


@dataclass(frozen=True, eq=False)
class Known:
    """The objects of an image: the entries [n, D] of their vectors that are not 0, and where these stand.

    further: objects beyond these; doubts, animated: as of a row. error: why there are none. thumbnail: a small copy of
    the image, where one was made when it was looked at, so that it need not be read again to be shown.
    """

    shape: tuple[int, int] = (0, 0)
    places: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    values: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32), repr=False)
    further: int = 0
    doubts: tuple[str, ...] = ()
    animated: bool = False
    error: str | None = None
    thumbnail: Thumbnail | None = field(default=None, repr=False)

    @classmethod
    def of(cls, vectors: np.ndarray, **more: object) -> Known:
        flat = vectors.astype(np.float32).reshape(-1)
        places = np.flatnonzero(flat).astype(np.int32)
        return cls((vectors.shape[0], vectors.shape[1]), places, flat[places], **more)  # type: ignore[arg-type]

    def vectors(self, objects: int) -> np.ndarray:
        """[E, D] with E at least `objects`; rows of zeros are objects that are not there."""
        whole = np.zeros((max(objects, self.shape[0]), self.shape[1]), np.float32)
        whole.reshape(-1)[self.places] = self.values
        return whole


def batch(several: Sequence[Known], objects: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Objects [B, E, D] and how many more there are, [B]."""
    most = max([objects, *(known.shape[0] for known in several)])
    vectors = np.stack([known.vectors(most) for known in several])
    return torch.from_numpy(vectors), torch.tensor([known.further for known in several])


class Given(Perception):
    """Stands where a perception would, for detections that are given: it knows their entries, and looks at nothing."""

    size = (32, 32)
    fit = "filled"
    looks = False

    def __init__(self, layout: Layout, objects: int, identity: str) -> None:
        super().__init__()
        self.layout, self.objects, self.identity = layout, objects, identity
        self.dimensions = layout.dimensions

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        raise NsfrcError("there is no perception here: the detections are given, and images are only shown")


def given_perception(found: Detections, objects: int, wishes: Wishes) -> Perception:
    """What stands for perception where detections are given; crisp presence is the default."""
    model = Given(Layout(found.names, wishes.attributes, every=False), objects, f"detections:{found.digest[:16]}")
    return model.eval() if wishes.crisp is False else Crisp(model, wishes.least).eval()


def with_classes_of(found: Detections, source: ir.Program | None) -> Detections:
    """With the classes that a program speaks of and that were never found, at the end; all as the program writes them.
    """
    if source is None or source.settings.names or source.settings.attributes:
        return found
    spoken = {name for p in source.predicates if p.name == "class" and len(p.types) == 2 for name in (p.types[1],)}
    constants = [c for t in source.types if t.name in spoken for c in t.constants]
    unmet = [c for c in dict.fromkeys(constants) if c not in found.names.atoms]
    other = [c for c in unmet if atom(c) not in constants]  # as `Cup` where there is no `cup`
    new = [c for c in unmet if c not in other or atom(c) not in found.names.atoms]
    names = replace(found.names, names=(*found.names.names, *new), spelt=tuple((atom(c), c) for c in other))
    return replace(found, names=names) if unmet else found


def known_from(found: Detections, perception: Perception, listing: Listing) -> dict[str, Known]:
    """What was given of each image of a listing, by its name."""
    known = {}
    for item in listing:
        key = found.key(item.name)
        rows = np.zeros((0, 6)) if key is None else _fractions(found, key, item)
        known[item.name] = known_of(rows, perception)
    return known


def known_of(rows: np.ndarray, perception: Perception) -> Known:
    """What rows of a picture say, [n, 6] with coordinates as fractions of it."""
    layout = perception.layout  # type: ignore[union-attr]
    assert isinstance(layout, Layout)
    vectors = layout.vectors(rows)
    if isinstance(perception, Crisp):
        made = crisp(torch.from_numpy(vectors), perception.place, perception.least).numpy()
        vectors = made[made[:, perception.place] > 0]
    return Known.of(vectors)


def _fractions(found: Detections, key: str, item: Item) -> np.ndarray:
    size = None
    if found.in_pixels and key not in found.sizes and item.path.is_file():
        try:
            size = picture_size(item.path)
        except ImageError as error:
            raise NsfrcError(f"{found.source}: boxes are in pixels, and {error}") from None
    return found.fractions(key, size)


def listing_of(found: Detections) -> Listing:
    """The files that detections are of, where there are no pictures."""
    return Listing(Path(), dict.fromkeys(found.rows), pictures=False)


def unmatched(found: Detections, listing: Listing) -> list[str]:
    """What to say of images without an entry, and of entries without an image."""
    keys = {item.name: found.key(item.name) for item in listing}
    without = [name for name, key in keys.items() if key is None]
    left = [key for key in found.rows if key not in set(keys.values())]
    said = []
    if without:
        are = "1 image is" if len(without) == 1 else f"{len(without)} images are"
        said.append(f"{are} not in {found.source} and so without objects: {first_of(without)}")
    if left:
        are = "1 file" if len(left) == 1 else f"{len(left)} files"
        said.append(f"{are} of {found.source} have no image here and were left out: {first_of(left)}")
    return [*found.remarks, *said]


def most_objects(known: Iterable[Known]) -> int:
    """How many objects the fullest image has."""
    return max((one.shape[0] + one.further for one in known), default=0)


Memory = Mapping[str, Known]
