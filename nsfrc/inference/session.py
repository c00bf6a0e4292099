"""What `nsfrc infer` works with: program, pipeline and threshold, each with where it came from in words."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nsfrc.errors import NsfrcError
from nsfrc.inference.calibration import Choice, fingerprint, threshold_for
from nsfrc.inference.candidates import Found, find_candidate
from nsfrc.inference.folders import NONE, Listing, first_of, folder, match_labels, printable
from nsfrc.inference.measures import short
from nsfrc.inference.stream import empty_scores
from nsfrc.pipelines import PERCEPTION, Pipeline, pipeline
from nsfrc.program import Program, open_program
from nsfrc.reach import silenced
from nsfrc.valuation import load_plugin

SHOWN = 10  # labels that are listed among the settings


@dataclass(frozen=True)
class Wanted:
    """What the user asks for; None leaves the choice to the program, or to what ships."""

    images: Path
    program: str | None = None
    perception: str | None = None
    weights: Path | None = None
    concepts: Path | None = None
    plugins: tuple[str, ...] = ()
    threshold: float | None = None
    steps: int | None = None
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Session:
    """A pipeline that is ready.

    perception: the name it goes by. settings: what is used, for people to read. made_with: everything that rows
    depend on. labels: class → the right answer. remarks: what the user should know before it starts. empty: the
    value of every target in an image without objects, where there is one. least: below it the highest of several
    targets is no answer, which then is "none"; 0 where nobody asked for that.
    """

    pipe: Pipeline
    perception: str
    threshold: float
    labels: dict[str, str]
    settings: dict[str, str]
    made_with: dict[str, str]
    remarks: tuple[str, ...]
    empty: tuple[float, ...] | None = None
    least: float = 0.0

    @property
    def targets(self) -> list[str]:
        return self.pipe.program.targets


def open_session(wanted: Wanted, listing: Listing | None = None) -> Session:
    """Load plug-ins and program, build the pipeline, choose the threshold. Raises NsfrcError.

    listing: the folder of images, where it has been listed already.
    """
    found = _program(wanted)
    program = open_program(found.path)
    plugins = [load_plugin(text) for text in wanted.plugins]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*steps? (is|are) too few")  # among the remarks
        pipe = pipeline(
            program, wanted.perception, weights=wanted.weights, concepts=wanted.concepts, device=wanted.device,
            steps=wanted.steps, beside=found.path,
        )
    identity = pipe.perception.identity
    threshold = threshold_for(program, identity, wanted.threshold, wanted.steps, wanted.concepts is not None)
    listing = folder(wanted.images) if listing is None else listing
    least = _least(wanted, program)
    labels = match_labels(listing.classes, program.targets, least > 0)
    empty = empty_scores(pipe)
    settings = _settings(wanted, found, pipe, threshold) | _shown_empty(empty)
    settings |= _shown_labels(labels, listing.source, program.targets)
    files = [wanted.weights, wanted.concepts, *(Path(p.__file__) for p in plugins if p.__file__)]
    made_with = {
        "program": f"{program.name} {fingerprint(program)}", "perception": f"{_name(wanted, program)} {identity}",
        "files": ", ".join(_mark(path) for path in files if path is not None) or "none",
        "steps": str(pipe.reasoner.run.steps),
        "threshold": str(threshold.value if len(program.targets) == 1 else least or "none"),
        "images": str(wanted.images.resolve()),
    }
    remarks = [*(w.message for w in program.warnings if not silenced(w, wanted.steps)), program.too_few(wanted.steps),
               _about_labels(listing, labels, program.targets), _about_loose(listing, labels), listing.without_class(),
               *listing.left_out()]
    told = tuple(remark for remark in remarks if remark is not None)
    return Session(pipe, _name(wanted, program), threshold.value, labels, settings, made_with, told, empty, least)


def _least(wanted: Wanted, program: Program) -> float:
    """Below which the highest of several targets is no answer; 0 where that is not asked for."""
    least = program.settings.threshold if wanted.threshold is None else wanted.threshold
    if len(program.targets) == 1 or not least:
        return 0.0
    if NONE in program.targets:
        raise NsfrcError(f"{program.name} has a target `none`, and with a threshold that is the answer where no target "
                         f"reaches it: call the target something else, or leave out the threshold")
    return least


def _shown_empty(scores: tuple[float, ...] | None) -> dict[str, str]:
    if scores is None:
        return {}
    up_to = "up to " if len(scores) > 1 else ""
    return {"no objects": f"an empty image scores {up_to}{max(scores):.2f}: values drift, see docs/semantics.md"}


def _program(wanted: Wanted) -> Found:
    if wanted.program is not None:
        return Found(Path(wanted.program), "from --program")
    return find_candidate([Path(), wanted.images])


def _name(wanted: Wanted, program: Program) -> str:
    return wanted.perception or program.settings.perception or PERCEPTION


def _settings(wanted: Wanted, found: Found, pipe: Pipeline, threshold: Choice) -> dict[str, str]:
    own = pipe.program.settings
    seen = "from --perception" if wanted.perception else "from the program" if own.perception else "by default"
    steps = "from --steps" if wanted.steps is not None else "from the program" if own.steps else "by default"
    name, identity = _name(wanted, pipe.program), pipe.perception.identity
    answer = f"{threshold.value:g} {threshold.source}"
    if len(pipe.program.targets) > 1:
        answer = "none: the target with the highest value is the answer"
        if _least(wanted, pipe.program):
            answer = f"{threshold.value:g} {threshold.source}: where no target reaches it, the answer is {NONE}"
    return {
        "program": f"{printable(str(found.path))} ({found.reason})",
        "perception": f"{identity if identity.startswith(name) else f'{name}, {identity}'} ({seen})",
        "steps": f"{pipe.reasoner.run.steps} {steps}",
        "threshold": answer,
    }


def _shown_labels(labels: dict[str, str], source: str, targets: Sequence[str]) -> dict[str, str]:
    """Which class stands for which of several targets, as it may have been guessed from a number."""
    if len(targets) == 1 or not labels:
        return {}
    pairs = [f"{name} is {target}" for name, target in labels.items()]
    more = f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
    return {"labels": f"{', '.join(pairs[:SHOWN])}{more} ({source})"}


def _about_labels(listing: Listing, labels: dict[str, str], targets: Sequence[str]) -> str | None:
    """What to say of classes that mean no answer."""
    others = [name for name in listing.classes if name not in labels]
    if not others or (listing.loose and not labels):  # the latter are just folders
        return None
    shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    last = len(targets) - 1
    if listing.given is not None:
        known = f"the targets stand for class_id 0 to {last}" if last else "the program has one target, and no classes"
        return f"the images of {shown} ({listing.source}) have no label: {known}"
    numbered = f"all numbered, from class0 to class{last} or from class1 to class{last + 1}"
    meant = "true and false" if len(targets) == 1 else f"named {', '.join(short(targets))}, or {numbered}"
    return f"the images in {shown} have no label: class folders are {meant}"


def _about_loose(listing: Listing, labels: dict[str, str]) -> str | None:
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
