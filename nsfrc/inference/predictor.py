"""Decoded images → rows: the pipeline, what its numbers mean as answers, and why.

A `Predictor` has everything for that and can be handed to another process.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.explain import Reason, explain
from nsfrc.inference.calibration import threshold_for
from nsfrc.inference.folders import Item
from nsfrc.inference.given import gather, picture_of
from nsfrc.inference.images import LARGE, SMALL, ImageError, Picture, read, to_tensor
from nsfrc.inference.known import Known, batch
from nsfrc.inference.labels import Labels
from nsfrc.inference.report_thumbnail import Thumbnail, thumbnail
from nsfrc.inference.rows import Answered, Row
from nsfrc.pipelines import Pipeline, Prediction, blame
from nsfrc.questions import DIGITS, Question
from nsfrc.valuation.plugins import files_of, load_plugin

if TYPE_CHECKING:
    from nsfrc.perception.base import Fit, Perception


@dataclass(frozen=True)
class Asked:
    """How to answer.

    thresholds: question → from where on a target holds, or below which the highest class is not the answer; those of
    the program where it does not name one, else 0.5 of a target and 0 of classes. labels: the right answers, as far as
    they are known.
    reasons: rows with the reasons. pictures: rows with all that a report shows, which includes the reasons.
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)
    reasons: bool = False
    pictures: bool = False


@dataclass(frozen=True, eq=False)
class Decoded:
    """An image that was read, or why it could not be. thumbnail: where a report wants one.

    known: its objects, where perception need not look any more; there may then be no picture.
    """

    item: Item
    picture: Picture | None
    error: str | None = None
    thumbnail: Thumbnail | None = None
    known: Known | None = None


@dataclass(frozen=True, eq=False)
class Predictor:
    """Turns decoded images into rows, `asked` saying how.

    `predictor(predictor.read("a.png", "b.png"))` is a list of rows. It can be pickled, with the plug-ins that it needs,
    and so work in other processes. known: the objects of images by name, for which perception is not asked.
    """

    pipe: Pipeline
    asked: Asked = Asked()
    known: Mapping[str, Known] | None = field(default=None, repr=False)

    @property
    def piece(self) -> int | None:
        """How many images the pipeline must be given at a time, for rows that are the same whatever comes with them."""
        return self.pipe.perception.piece if self.pipe.device.type == "cpu" else None

    @property
    def side_by_side(self) -> bool:
        """Whether several threads may call it at once, with a piece each: where nothing of the user's own is called."""
        functions = (getattr(part, "function", None) for part in self.pipe.facts.modules())
        ours = all((getattr(one, "__module__", None) or type(one).__module__).startswith("nsfrc.") for one in functions
                   if one is not None)
        return self.piece is not None and self.known is None and self.pipe.perception.side_by_side and ours

    def read(self, *images: Any) -> list[Decoded]:
        """Paths, folders, bytes, PIL images and arrays, decoded; what cannot be read becomes a row with its error."""
        return [self.decode(item) for item in gather(images)]

    def decode(self, item: Item) -> Decoded:
        """Read one image, once, for perception and for a report."""
        if self.known is not None and (known := self.known.get(item.name)) is not None:
            return _shown(item, known, self.pipe.perception, self.asked.pictures)
        return decode(item, self.pipe.perception.size, self.pipe.perception.fit, self.asked.pictures)

    def __call__(self, images: Sequence[Decoded]) -> list[Row]:
        """A row for each image, in their order."""
        size = self.piece or max(1, len(images))
        parts = (images[first : first + size] for first in range(0, len(images), size))
        return [row for part in parts for row in self._rows(part)]

    def _rows(self, part: Sequence[Decoded]) -> Iterator[Row]:
        pictures = [one.picture for one in part if one.picture is not None]
        pixels = [picture.pixels for picture in pictures]
        found = None
        explained = self.asked.reasons or self.asked.pictures
        if any(one.known is not None for one in part):
            yield from self._known_rows(part, explained)
            return
        if pixels:
            frames = [picture.frame for picture in pictures if picture.frame is not None]
            found = self.pipe.predict(to_tensor(pixels).to(self.pipe.device), explained, padded=self.piece,
                                      frames=frames or None).cpu()
        place = count()
        for one in part:
            if one.picture is None or found is None:
                yield self._failed(one.item, one.error)
            else:
                yield self.answered(one, one.picture, found, next(place))

    def _known_rows(self, part: Sequence[Decoded], explained: bool) -> Iterator[Row]:
        """Rows of images whose objects are known."""
        there = [one.known for one in part if one.known is not None and one.error is None]
        found = None
        if there:
            objects, further = batch(there, self.pipe.spoken_of)
            found = self.pipe.judge(objects.to(self.pipe.device), further, explained).cpu()
        place = count()
        for one in part:
            if one.error is not None or found is None:
                yield self._failed(one.item, one.error)
            else:
                yield self.answered(one, one.picture, found, next(place))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return self.pipe.program.questions

    @cached_property
    def _thresholds(self) -> dict[str, float]:
        return {one.name: threshold_for(self.pipe.program, "", self.asked.thresholds.get(one.name),
                                        question=one.name).value for one in self.questions}

    def _failed(self, item: Item, error: str | None) -> Row:
        answers = {one.name: Answered(self.asked.labels.of(item, one.name)) for one in self.questions}
        return Row(item.name, item.path, answers, error=error)

    def answered(self, one: Decoded, picture: Picture | None, found: Prediction, i: int) -> Row:
        """The row of image i of a prediction."""
        objects = found.objects[i].numpy()
        if not np.isfinite(objects).all():
            return self._failed(one.item, "perception gave no number (NaN or infinite)")
        values = found.scores[i].tolist()
        if not all(map(math.isfinite, values)):
            return self._failed(one.item, "reasoning gave no number (NaN or infinite)")
        asked, perception = self.asked, self.pipe.perception
        doubts, animated = self._noted(one, picture)
        return Row(
            one.item.name, one.item.path,
            {question.name: self._answer(question, one.item, found, i, values) for question in self.questions},
            tuple(round(value, DIGITS) for value in values),
            objects=objects, dimensions=tuple(perception.dimensions),
            V0=found.V0[i].numpy() if asked.pictures else None,
            thumbnail=one.thumbnail, doubts=doubts, further=0 if found.further is None else int(found.further[i]),
            animated=animated,
        )

    def _noted(self, one: Decoded, picture: Picture | None) -> tuple[tuple[str, ...], bool]:
        """What is unlike the images that perception was made for, and whether the image has more frames."""
        if one.known is not None or picture is None:
            return (one.known.doubts, one.known.animated) if one.known is not None else ((), False)
        return doubts_of(self.pipe.perception, picture), picture.animated

    def _answer(self, one: Question, item: Item, found: Prediction, i: int, values: Sequence[float]) -> Answered:
        """What came of one question for image i, whose scores these are."""
        given = one.answer(values, self._thresholds[one.name], self.pipe.empty_values() if one.of_classes else None)
        label = self.asked.labels.of(item, one.name)
        return Answered(label, given, self._reasons(one, found, i, values, label))

    def _reasons(
        self, one: Question, found: Prediction, i: int, values: Sequence[float], label: str | None
    ) -> tuple[Reason, ...]:
        """Why the target or the highest class of image i has its value; for a report also why that of the label has."""
        if found.V_T is None:
            return ()
        program, steps = self.pipe.program, self.pipe.reasoner.run.steps
        wanted = [one.best(values)]
        if self.asked.pictures and label in one.atoms and label not in wanted:
            wanted.append(label)
        V_T, V0 = found.V_T[i].numpy(), found.V0[i].numpy()
        return tuple(explain(program, V_T, target, V0, steps) for target in wanted)

    def __reduce__(self) -> tuple[Any, ...]:
        """Files of plug-ins first, which another process has to load before it can find what is in them."""
        try:
            content = pickle.dumps((self.pipe, self.asked, self.known))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise NsfrcError(f"this pipeline cannot be handed to another process ({error}): your own functions "
                             f"and classes must be at the top level of a file that can be imported there") from error
        functions = [getattr(part, "function", None) for part in self.pipe.facts.modules()]
        used = {getattr(one, "__module__", "") for one in (*self.pipe.modules(), *functions)}
        return _restored, (files_of(used), content)


def _restored(plugins: list[str], content: bytes) -> Predictor:
    for path in plugins:
        load_plugin(path)
    return Predictor(*pickle.loads(content))


def decode(item: Item, size: tuple[int, int], fit: Fit, with_thumbnail: bool = False) -> Decoded:
    """An image brought to the size (H, W) of a perception, and from the same decoding a thumbnail, if asked for."""
    if item.error is not None:
        return Decoded(item, None, item.error)
    side = (LARGE if fit in ("grey_bars", "filled") else SMALL) if with_thumbnail else 0
    try:
        with np.errstate(all="ignore"):  # what a file's numbers come to is looked at, not warned of
            if item.image is None:
                picture = read(item.path, size, fit, side)
            else:
                picture = picture_of(item.image, item.name, size, fit, side)
    except ImageError as error:
        return Decoded(item, None, error.reason)
    return Decoded(item, picture, thumbnail=thumbnail(picture) if with_thumbnail else None)


def _shown(item: Item, known: Known, perception: Perception, with_thumbnail: bool) -> Decoded:
    """An image whose objects are known: it is only read to be shown."""
    if known.error is not None:
        return Decoded(item, None, known.error, known=known)
    if with_thumbnail and known.thumbnail is not None:
        return Decoded(item, None, thumbnail=known.thumbnail, known=known)
    if not with_thumbnail or (item.image is None and not item.path.is_file()):
        return Decoded(item, None, known=known)
    seen = decode(item, perception.size, perception.fit, with_thumbnail)
    return Decoded(item, seen.picture, None, seen.thumbnail, known)


def doubts_of(perception: Perception, picture: Picture) -> tuple[str, ...]:
    """What is unlike the images that a perception was made for."""
    with blame(f"doubts of perception {perception.identity}", 1):
        return tuple(perception.doubts(picture.pixels, (picture.width, picture.height)))


@torch.no_grad()
def empty_scores(pipe: Pipeline) -> tuple[float, ...] | None:
    """The value of every target in an image without objects; None where neural predicates give no number for it."""
    try:
        nothing = torch.zeros(1, pipe.perception.objects, len(pipe.perception.dimensions), device=pipe.device)
        values = pipe.reasoner(pipe.facts(nothing))[0].tolist()
    except Exception:  # a user's predicate that fails here fails on images too, where it is said
        return None
    return tuple(round(value, DIGITS) for value in values) if all(map(math.isfinite, values)) else None
