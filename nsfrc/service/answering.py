"""What requests ask about → units of work → rows, as `nsfrc infer` and `nsfrc reason` have them."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.explain import explain
from nsfrc.inference.calibration import thresholds_for
from nsfrc.inference.folders import Item, Listing, printable
from nsfrc.inference.images import FORMATS, ImageError
from nsfrc.inference.known import given_perception, known_of, with_classes_of
from nsfrc.inference.predictor import Asked, Decoded, Predictor
from nsfrc.inference.rows import Answered, Row, as_json
from nsfrc.inference.session import Wanted, load_plugins, open_session
from nsfrc.models.detection_files import from_records
from nsfrc.models.detections import Detections, are_pixels
from nsfrc.models.names import class_names
from nsfrc.models.outside import Outside
from nsfrc.pipelines import object_count, pipeline, wishes_of
from nsfrc.program import Program, open_program
from nsfrc.questions import DIGITS, Question
from nsfrc.reasoner import empty_values
from nsfrc.service.bodies import Sent, Uploaded
from nsfrc.service.refusals import Refused
from nsfrc.service.settings import MEGA, TAKES, Settings, Takes
from nsfrc.valuation.worlds import Worlds

DETECTIONS, CLASSES = 300, 1000  # of a picture, and of a request; each pair of the two is a number in memory
KEPT = 8  # pipelines for detections, of the sets of class names that were met last


@dataclass(frozen=True, eq=False)
class Unit:
    """One picture, file or world, and what answers it; the same object for all that can go in one batch."""

    by: Callable[[Sequence[Any]], list[Row]]
    what: Any


class Coming(Listing):
    """Pictures that nobody knows before they come."""

    live = True


class Answerer:
    """Turns requests into units, on threads that read, and units into lines of JSON, on the one that answers.

    settings: what is used, in words. remarks: what to know at the start.
    """

    def __init__(self, told: Settings) -> None:
        wanted, reasons = Wanted(**told.wanted), told.reasons
        load_plugins(wanted)
        self.program = open_program(wanted.program, Outside(wanted.perception))  # type: ignore[arg-type]
        if not self.program.targets:
            raise NsfrcError(f"{self.program.name} has no target: add :- target(...). to it")
        self.limits, self.takes = told.limits, told.takes or default_takes(self.program)
        self.settings = {"program": printable(str(wanted.program))}
        self.remarks = tuple(one.message for one in self.program.warnings)
        self.pictures: Predictor | None = None
        if "pictures" in self.takes:
            session = open_session(wanted, Coming(Path(), {}))
            self.pictures = Predictor(session.pipe, session.asked(reasons, False))
            self.program, self.remarks = session.pipe.program, session.remarks
            self.settings = session.settings | self.settings
        self.questions: tuple[Question, ...] = self.program.questions
        self.detections = Detected(self.program, wanted, reasons) if "detections" in self.takes else None
        self.facts = Reasoned(self.program, wanted, reasons) if "facts" in self.takes else None

    def warm(self) -> None:
        """Answer for a black picture and for no facts, so that no request waits for what the first one makes."""
        with suppress(NsfrcError):  # what fails for them is told of requests, too
            if self.pictures is not None:
                rows, columns = self.pictures.pipe.perception.size
                item = Item(Path(), "", image=np.zeros((rows, columns, 3), np.uint8))
                self([Unit(self.pictures, self.pictures.decode(item))])
            if self.facts is not None:
                self(self.facts.units([{}]))

    def units(self, sent: Sent) -> list[Unit]:
        """What a request holds, read. Raises Refused."""
        if sent.kind not in self.takes:
            raise Refused(422, f"this service takes {' and '.join(self.takes)}, not {sent.kind}")
        try:
            if self.pictures is not None and sent.pictures:
                return [Unit(self.pictures, self._decoded(self.pictures, one)) for one in sent.pictures]
            if self.detections is not None and sent.detections:
                return self.detections.units(sent.detections)
            assert self.facts is not None
            return self.facts.units(sent.facts)
        except NsfrcError as error:
            raise Refused(422, str(error)) from None

    def _decoded(self, predictor: Predictor, one: Uploaded) -> Decoded:
        """A picture, or why there is none; one with too many pixels is not decoded."""
        item = Item(Path(one.name), one.name, image=one.data)
        try:
            refuse_large(one, self.limits.pixels)
        except ImageError as error:
            return Decoded(item, None, error.reason)
        return predictor.decode(item)

    def __call__(self, units: Sequence[Unit]) -> list[Line]:
        """The rows of units that the same answers."""
        with np.errstate(all="ignore"):
            rows = units[0].by([unit.what for unit in units])
        return [Line(as_json(row, self.questions), row.error is None) for row in rows]


@dataclass(frozen=True)
class Line:
    """A row as JSON. good: whether it has an answer."""

    text: str
    good: bool


def refuse_large(one: Uploaded, most: int) -> None:
    """Raise ImageError for a picture of more pixels. What is no picture is left to whoever decodes it."""
    try:
        with Image.open(io.BytesIO(one.data), formats=[name for name in FORMATS if name in Image.OPEN]) as image:
            width, height = image.size
    except Image.DecompressionBombError:
        width = height = most
    except Exception:
        return
    if width * height > most:
        raise ImageError(one.name, f"{width} × {height} is more than {most / MEGA:g} megapixels; make it smaller first")


class Detected:
    """Answers for detections. Each set of class names has a pipeline of its own, as `--detections` gives it one."""

    def __init__(self, program: Program, wanted: Wanted, reasons: bool) -> None:
        self.program, self.wanted = program, wanted
        self.objects, self.wishes = object_count(program), wishes_of(program.settings, wanted.conf)
        chosen = thresholds_for(program, "detections", wanted.threshold, wanted.thresholds, wanted.steps,
                                wanted.concepts is not None)
        self.asked = Asked({name: one.value for name, one in chosen.items()}, reasons=reasons)
        names = program.settings.names
        self.listed = class_names(list(names), "the program") if names else None
        self._made: OrderedDict[tuple[str, ...], Predictor] = OrderedDict()
        self._lock = threading.Lock()

    def units(self, records: Sequence[Any]) -> list[Unit]:
        """A unit for each file. Raises NsfrcError; sizes of pictures are taken from the request alone."""
        places = ((f"detections[{number}]", record) for number, record in enumerate(records))
        found = from_records(places, "the request", self.listed)
        if len(found.names) > CLASSES or any(len(rows) > DETECTIONS for rows in found.rows.values()):
            raise NsfrcError(f"a request has at most {CLASSES} classes, and a picture {DETECTIONS} detections")
        found = with_classes_of(found, self.program.source)
        with self._lock:
            predictor = self._made.pop(found.names.names, None)
            if predictor is None:
                model = given_perception(found, self.objects, self.wishes)
                wanted = self.wanted
                pipe = pipeline(self.program, model, concepts=wanted.concepts, device=wanted.device, steps=wanted.steps)
                predictor = Predictor(pipe, self.asked)
            self._made[found.names.names] = predictor
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        perception = predictor.pipe.perception
        return [Unit(predictor, Decoded(Item(Path(), printable(file)), None,
                                        known=known_of(_fractions(found, file), perception))) for file in found.rows]


def _fractions(found: Detections, file: str) -> np.ndarray:
    """The rows of a file; pictures of a request have nothing to do with each other, so each has pixels or fractions."""
    pixels = are_pixels(found.rows[file])
    if pixels and file not in found.sizes:
        raise NsfrcError(f"the boxes of {file} are in pixels: add the width and height of the picture, or send "
                         f"fractions")
    return replace(found, in_pixels=pixels).fractions(file)


@dataclass(frozen=True, eq=False)
class World:
    """Facts as V0 [G]."""

    name: str
    V0: torch.Tensor = field(repr=False)


class Reasoned:
    """Answers for facts."""

    def __init__(self, program: Program, wanted: Wanted, reasons: bool) -> None:
        self.program, self.steps, self.questions = program, wanted.steps, program.questions
        chosen = thresholds_for(program, "facts", wanted.threshold, wanted.thresholds, wanted.steps,
                                wanted.concepts is not None)
        self.thresholds = {name: one.value for name, one in chosen.items()}
        self.worlds = Worlds(program, wanted.concepts)
        self.targets = program.reasoner(steps=wanted.steps, outputs="targets", inputs="neural")
        self.atoms = program.reasoner(steps=wanted.steps, outputs="all", inputs="neural") if reasons else None
        self.empty = empty_values(self.targets)

    def units(self, worlds: Sequence[Any]) -> list[Unit]:
        V0 = self.worlds(self.program, worlds)
        return [Unit(self, World(f"world {i + 1}", V0[i])) for i in range(len(V0))]

    @torch.no_grad()
    def __call__(self, worlds: Sequence[World]) -> list[Row]:
        V0 = torch.stack([one.V0 for one in worlds])
        scores = self.targets(V0).double().tolist()
        V_T = None if self.atoms is None else self.atoms(V0)
        return [self._row(one, values, None if V_T is None else V_T[i].numpy())
                for i, (one, values) in enumerate(zip(worlds, scores, strict=True))]

    def _row(self, world: World, values: Sequence[float], V_T: np.ndarray | None) -> Row:
        answers = {}
        for one in self.questions:
            given = one.answer(values, self.thresholds[one.name], self.empty if one.of_classes else None)
            reasons = () if V_T is None else (explain(self.program, V_T, one.best(values), world.V0, self.steps),)
            answers[one.name] = Answered(None, given, reasons)
        return Row(world.name, Path(world.name), answers, tuple(round(value, DIGITS) for value in values))


def default_takes(program: Program) -> tuple[Takes, ...]:
    """What a program can be asked with: pictures and detections tell one without objects nothing."""
    return TAKES if any(one.role == ir.OBJECT for one in program.source.types) else ("facts",)
