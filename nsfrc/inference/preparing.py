"""The pipeline for images, with what must be known of them first: given detections, and how many objects there are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsfrc.errors import NsfrcError, TooFewSteps
from nsfrc.inference.candidates import Found
from nsfrc.inference.folders import Listing
from nsfrc.inference.known import Memory, given_perception, known_from, unmatched, with_classes_of
from nsfrc.inference.look_ahead import MOST, look, sized
from nsfrc.models.detections import Detections
from nsfrc.models.detections import detections as as_detections
from nsfrc.models.model_file import find_model, is_model_file, is_pickled
from nsfrc.models.outside import Outside
from nsfrc.perception import create, usable_device
from nsfrc.perception.base import Perception
from nsfrc.perception.vectors import Crisp
from nsfrc.pipelines import PERCEPTION, Pipeline, object_count, pipeline, wishes_of
from nsfrc.program import Program, open_program
from nsfrc.trust import refuse_found, would_run

if TYPE_CHECKING:
    from nsfrc.inference.session import Wanted


@dataclass(frozen=True, eq=False)
class Ready:
    """A pipeline. known: the objects of images, where these are known. told: what to show among the settings."""

    pipe: Pipeline
    known: Memory | None = None
    told: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def prepared(wanted: Wanted, found: Found, listing: Listing) -> Ready:
    """The pipeline that `wanted` asks for; a program with slots(auto) is compiled for the images of `listing`."""
    if isinstance(wanted.program, Pipeline):
        return Ready(wanted.program)
    if wanted.detections is not None:
        return _of_detections(wanted, found, listing)
    program = _opened(wanted, found, Outside(wanted.perception))
    _refuse_code(wanted, found, program)
    if not is_auto(program) or listing.live:
        pipe = _pipeline(wanted, found, program, wanted.perception)
        objects = f"{pipe.spoken_of}, as nobody knows what is to come (slots(auto))"
        return Ready(pipe, told=({"objects": objects} if is_auto(program) else {}) | _presence(pipe.perception))
    device = usable_device(wanted.device)
    name = wanted.perception or program.settings.perception or PERCEPTION
    asker = None if wanted.perception is not None else str(found.path)
    beside = _folder(found) if _may_look_beside(wanted) else None
    model = create(name, MOST, wanted.weights, device, beside, wanted.trust, asker,
                   wishes_of(program.settings, wanted.conf))
    known = look(model, listing, device, wanted.threads)
    made = sized(program, known)
    pipe = _pipeline(wanted, found, made.program, model)
    return Ready(pipe, known, {"objects": made.told} | _presence(model), () if made.remark is None else (made.remark,))


def _of_detections(wanted: Wanted, found: Found, listing: Listing) -> Ready:
    program, given = _program_of_detections(wanted, found)
    given = with_classes_of(given, program.source)
    wishes = wishes_of(program.settings, wanted.conf)
    model = given_perception(given, object_count(program), wishes)
    known = known_from(given, model, listing)
    told, remarks = _presence(model), tuple(unmatched(given, listing))
    if is_auto(program):
        made = sized(program, known)
        program, told = made.program, {"objects": made.told} | told
        remarks = remarks if made.remark is None else (*remarks, made.remark)
        model = given_perception(given, object_count(program), wishes)
    return Ready(_pipeline(wanted, found, program, model), known, told, remarks)


def _program_of_detections(wanted: Wanted, found: Found) -> tuple[Program, Detections]:
    """The program and the detections, each of which may say what the classes of the other are called."""
    assert wanted.detections is not None
    try:
        program = _opened(wanted, found, Outside())
    except NsfrcError:  # it may lack only the names of the classes
        given = as_detections(wanted.detections)
        return _opened(wanted, found, Outside(names=given.names)), given
    if program.source.settings.perception and is_model_file(program.source.settings.perception):
        given = as_detections(wanted.detections, program.settings.names or None)
        return _opened(wanted, found, Outside(names=given.names)), given
    return program, as_detections(wanted.detections, program.settings.names or None)


def _opened(wanted: Wanted, found: Found, outside: Outside) -> Program:
    return wanted.program if isinstance(wanted.program, Program) else open_program(found.path, outside)


def _refuse_code(wanted: Wanted, found: Found, program: Program) -> None:
    """A program that was found and not named may name no code, in a module or in a pickle."""
    own = program.settings.perception or ""
    if wanted.program is not None or wanted.perception is not None:
        return
    if is_model_file(own):
        path = find_model(own, _folder(found))
        if is_pickled(path):
            raise refuse_found(found.path, f"its perception {own}", f"whatever is pickled in {path}")
    elif ":" in own:
        raise refuse_found(found.path, f"its perception {own}", would_run(own.partition(":")[0], _folder(found)))


def _may_look_beside(wanted: Wanted) -> bool:
    """Whether a perception is looked for beside the program: not one that the user names for a program only found."""
    return wanted.program is not None or wanted.perception is None


def _folder(found: Found) -> Path | None:
    return found.path.resolve().parent if found.path.is_file() else None


def _pipeline(wanted: Wanted, found: Found, program: Program, perception: str | Perception | None) -> Pipeline:
    built = isinstance(perception, Perception)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewSteps)  # among the remarks
        return pipeline(
            program, perception, weights=None if built else wanted.weights, concepts=wanted.concepts,
            device=wanted.device, steps=wanted.steps, beside=found.path if _may_look_beside(wanted) else None,
            trust=wanted.trust, conf=None if built else wanted.conf,
        )


def is_auto(program: Program) -> bool:
    """Whether the number of objects follows the images."""
    return any(datatype.auto for datatype in program.source.types)


def presence_of(perception: Perception) -> str | None:
    """When an object is there, in words; None where nothing is said of it."""
    return f"crisp, from confidence {perception.least:g} on" if isinstance(perception, Crisp) else None


def _presence(perception: Perception) -> dict[str, str]:
    said = presence_of(perception)
    return {} if said is None else {"presence": said}
