"""What images are answered with: program, pipeline and thresholds, each with where it came from in words."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType

from nsfrc.compiler.ir import CLASSES
from nsfrc.compiler.reach import silenced
from nsfrc.errors import NsfrcError
from nsfrc.inference.calibration import Choice, fingerprint, thresholds_for
from nsfrc.inference.candidates import Found, find_candidate
from nsfrc.inference.folders import Listing, first_of, printable
from nsfrc.inference.known import Memory
from nsfrc.inference.labels import Labels, about_folders, about_table, from_folders, read_labels
from nsfrc.inference.predictor import Asked, empty_scores
from nsfrc.inference.preparing import prepared, presence_of
from nsfrc.models.detections import Detections
from nsfrc.pipelines import PERCEPTION, Pipeline
from nsfrc.program import Program
from nsfrc.questions import NONE, Question
from nsfrc.trust import refuse, would_run
from nsfrc.valuation import load_plugin

SHOWN = 10  # labels that are listed among the settings


@dataclass(frozen=True)
class Wanted:
    """What the user asks for; None leaves the choice to the program, or to what ships.

    images: the paths as they were given, for messages and to look for a program in. trust: whether modules and plug-ins
    that the user or a program named by the user names may run, see `nsfrc.trust`. threshold: for all questions;
    thresholds: for single ones, as the user calls them. labels: a table of them. conf: the least confidence of an
    object. detections: what is in the images, where that is known already. threads: that may look at images.
    """

    images: tuple[Path, ...] = ()
    program: str | Path | Program | Pipeline | None = None
    perception: str | None = None
    weights: Path | None = None
    concepts: Path | None = None
    plugins: tuple[str, ...] = ()
    threshold: float | None = None
    steps: int | None = None
    device: str = "cpu"
    trust: bool = False
    thresholds: Mapping[str, float] = field(default_factory=dict)
    labels: Path | None = None
    conf: float | None = None
    detections: Path | Detections | None = None
    threads: int = 1


@dataclass(frozen=True, eq=False)
class Session:
    """A pipeline that is ready.

    perception: the name it goes by. settings: what is used, for people to read. made_with: everything that rows
    depend on. labels: the right answers. remarks: what the user should know before it starts. empty: the value of every
    target in an image without objects, where there is one. thresholds: of every question; 0 for classes that have none.
    known: the objects of images, where perception has looked at them already or they were given.
    """

    pipe: Pipeline
    perception: str
    thresholds: dict[str, float]
    labels: Labels
    settings: dict[str, str]
    made_with: dict[str, str]
    remarks: tuple[str, ...]
    empty: tuple[float, ...] | None = None
    known: Memory | None = field(default=None, repr=False)

    @property
    def targets(self) -> list[str]:
        return self.pipe.program.targets

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return self.pipe.program.questions

    def asked(self, reasons: bool, pictures: bool) -> Asked:
        """How a predictor answers here."""
        return Asked(self.thresholds, self.labels, reasons, pictures)


def open_session(wanted: Wanted, listing: Listing) -> Session:
    """Load plug-ins and program, build the pipeline, choose the threshold. Raises NsfrcError. listing: the images.

    Where the program says slots(auto), perception looks at all images first.
    """
    found = _program(wanted)
    plugins = load_plugins(wanted)
    ready = prepared(wanted, found, listing)
    pipe = ready.pipe
    program, identity = pipe.program, pipe.perception.identity
    asked = program.questions
    chosen = thresholds_for(program, identity, wanted.threshold, wanted.thresholds, wanted.steps,
                            wanted.concepts is not None)
    labels = from_folders(listing.classes, asked) if wanted.labels is None else read_labels(wanted.labels, asked)
    empty = empty_scores(pipe)
    settings = _settings(wanted, found, pipe, chosen) | ready.told | _shown_empty(empty)
    settings |= _shown_labels(labels, listing.source, wanted.labels, asked)
    files = [wanted.weights, wanted.concepts, *(Path(p.__file__) for p in plugins if p.__file__)]
    made_with = {
        "program": f"{program.name} {fingerprint(program)}", "perception": f"{_name(wanted, program)} {identity}",
        "files": ", ".join(_mark(path) for path in files if path is not None) or "none",
        "steps": str(pipe.reasoner.run.steps),
        "threshold": _marked_thresholds(asked, chosen),
        "images": ", ".join(str(path.resolve()) for path in wanted.images), "device": pipe.device.type,
    }
    if (presence := presence_of(pipe.perception)) is not None:
        made_with["presence"] = presence
    if wanted.labels is not None:
        made_with["labels"] = _mark(wanted.labels)
    remarks = [*ready.remarks, *(w.message for w in program.warnings if not silenced(w, wanted.steps)),
               program.too_few(wanted.steps),
               *_about_labels(wanted, listing, labels, asked), *listing.left_out()]
    told = tuple(remark for remark in remarks if remark is not None)
    thresholds = {name: choice.value for name, choice in chosen.items()}
    return Session(pipe, _name(wanted, program), thresholds, labels, settings, made_with, told, empty, ready.known)


def _program(wanted: Wanted) -> Found:
    """The file of the program and why it was taken; for one that is in memory already, its name."""
    if isinstance(wanted.program, Pipeline | Program):
        program = wanted.program.program if isinstance(wanted.program, Pipeline) else wanted.program
        return Found(Path(program.name), "as it was given")
    if wanted.program is not None:
        return Found(Path(wanted.program), "from --program")
    return find_candidate([Path(), *wanted.images])


def load_plugins(wanted: Wanted) -> list[ModuleType]:
    for text in wanted.plugins:
        if not wanted.trust:
            raise refuse(f"--plugin {text}", str(Path(text).resolve()) if text.endswith(".py") else would_run(text))
    return [load_plugin(text) for text in wanted.plugins]


def _marked_thresholds(asked: Sequence[Question], chosen: Mapping[str, Choice]) -> str:
    """The thresholds as they are written beside rows: 0.5, or kp1(img) 0.5, classes none."""
    texts = {one.name: str(chosen[one.name].value or "none") if one.of_classes else str(chosen[one.name].value)
             for one in asked}
    return next(iter(texts.values())) if len(asked) == 1 else ", ".join(f"{name} {x}" for name, x in texts.items())


def _shown_empty(scores: tuple[float, ...] | None) -> dict[str, str]:
    """What an empty image scores, where that is more than 0: under `paper`, or where facts alone derive a target."""
    if scores is None or not max(scores):
        return {}
    up_to = "up to " if len(scores) > 1 else ""
    return {"no objects": f"an empty image scores {up_to}{max(scores):.2f}, see docs/paper.md"}


def _name(wanted: Wanted, program: Program) -> str:
    """The name that the perception goes by."""
    if isinstance(wanted.program, Pipeline):
        return type(wanted.program.perception).__name__
    if wanted.detections is not None:
        return "detections"
    return wanted.perception or program.settings.perception or PERCEPTION


def _settings(wanted: Wanted, found: Found, pipe: Pipeline, chosen: Mapping[str, Choice]) -> dict[str, str]:
    own = pipe.program.settings
    seen = "from --perception" if wanted.perception else "from the program" if own.perception else "by default"
    if isinstance(wanted.program, Pipeline) or wanted.detections is not None:
        seen = "as it was given" if wanted.detections is None else "as they were given"
    steps = "from --steps" if wanted.steps is not None else "from the program" if own.steps else "by default"
    name, identity = _name(wanted, pipe.program), pipe.perception.identity
    settings = {
        "program": f"{printable(str(found.path))} ({found.reason})",
        "perception": f"{identity if identity.startswith(name) else f'{name}, {identity}'} ({seen})",
    }
    if pipe.reasoner.run.steps is not None:  # else as many as needed
        settings["steps"] = f"{pipe.reasoner.run.steps} {steps}"
    settings |= _shown_thresholds(pipe.program.questions, chosen)
    return settings if pipe.device.type == "cpu" else settings | {"device": str(pipe.device)}


def _shown_thresholds(asked: Sequence[Question], chosen: Mapping[str, Choice]) -> dict[str, str]:
    """`0.5 by default`; of several targets each that differs by name, and what is done with classes."""
    told: dict[str, list[str]] = {}
    for one in asked:
        if not one.of_classes:
            told.setdefault(f"{chosen[one.name].value:g} {chosen[one.name].source}", []).append(one.name)
    shown = {}
    if len(told) == 1:
        (text, names), = told.items()
        shown["threshold"] = text if len(names) == 1 else f"{text}, for each of {len(names)} targets"
    elif told:
        shown["threshold"] = "; ".join(f"{', '.join(_first(names))} {text}" for text, names in told.items())
    for one in asked:
        if one.of_classes:
            shown["classes"] = f"the highest of {', '.join(_first(one.atoms))} is the answer"
            if (choice := chosen[one.name]).value:
                shown["classes"] += f", from {choice.value:g} on ({choice.source}); below, it is {NONE}"
    return shown


def _first(names: Sequence[str]) -> list[str]:
    return [*names[:SHOWN], f"{len(names) - SHOWN} more"] if len(names) > SHOWN else list(names)


def _shown_labels(labels: Labels, source: str, table: Path | None, asked: Sequence[Question]) -> dict[str, str]:
    """Which class folder stands for which class, as it may have been guessed from a number; or the table."""
    if table is not None:
        return {"labels": f"of {', '.join(_first(list(labels.of_file)))} from {printable(str(table))}"}
    if (len(asked) == 1 and not asked[0].of_classes) or not labels:
        return {}
    if labels.question != CLASSES:
        return {"labels": f"of {labels.question} ({source})"}
    pairs = [f"{name} is {target}" for name, target in labels.of_class.items()]
    more = f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
    return {"labels": f"{', '.join(pairs[:SHOWN])}{more} ({source})"}


def _about_labels(wanted: Wanted, listing: Listing, labels: Labels, asked: Sequence[Question]) -> list[str | None]:
    """What to say of images without labels, and of labels without images."""
    if wanted.labels is not None:
        return [*about_table(wanted.labels, listing, labels)]
    return [about_folders(listing, labels, asked), _about_loose(listing, labels), listing.without_class()]


def _about_loose(listing: Listing, labels: Labels) -> str | None:
    """What to say of images beside class folders."""
    if not labels or not (loose := listing.loose):
        return None
    has = "1 image beside the class folders has" if len(loose) == 1 else \
        f"{len(loose)} images beside the class folders have"
    return f"{has} no label: {first_of(loose)}"


def _mark(path: Path) -> str:
    """A file by its name and content."""
    try:
        return f"{path.name} {zlib.crc32(path.read_bytes()):08x}"
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None
