"""Thresholds that were chosen on validation figures, for a perception and a program; they ship as calibration.json.

    {"yolo-n:1f2e3d4c": {"0a1b2c3d": {"threshold": 0.62, "program": "twopairs", "figures": 1000, "accuracy": 1.0}}}
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from nsfrc.compiler.ir import CLASSES
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from nsfrc.questions import called, questions

DEFAULT = 0.5
FILE = "calibration.json"
MANY = 5  # questions that a message lists


@dataclass(frozen=True)
class Choice:
    """A value and where it came from, in words."""

    value: float
    source: str


@dataclass(frozen=True)
class Best:
    """The threshold that tells labelled scores apart best, and its accuracy; low, high: all those that are as good.

    `low` itself is the highest score below them, and so is not among them.
    """

    threshold: float
    accuracy: float
    low: float
    high: float


def fingerprint(program: Program) -> str:
    """What scores depend on besides perception: clauses, facts, targets, types, steps and γ; as hexadecimal digits."""
    types = [[t.name, t.constants, t.role] for t in program.ground.herbrand.types]
    told = [program.clauses, program.targets, types, program.steps, program.settings.gamma]
    told += [program.settings.semantics] if program.anchored else []
    text = json.dumps([*told, len(program.classes)] if program.classes else told)
    return f"{zlib.crc32(program.initial_valuation().tobytes(), zlib.crc32(text.encode())):08x}"


def threshold_for(
    program: Program, identity: str, given: float | None = None, steps: int | None = None, own_concepts: bool = False,
    question: str | None = None,
) -> Choice:
    """The threshold to use: the caller's, else the program's, else the calibrated one, else 0.5; for classes 0.

    A calibration holds for the steps of the program and the concepts that ship; with others it is not taken. It is of
    programs with one target. question: which one it is for, where there are several.
    """
    if given is not None:
        return Choice(given, "from --threshold")
    own = dict(program.settings.thresholds).get(question or program.questions[0].name, program.settings.threshold)
    if own is not None:
        return Choice(own, "from the program")
    if question == CLASSES:
        return Choice(0.0, "by default")
    entry = shipped().get(identity, {}).get(fingerprint(program))
    if entry is None or len(program.targets) > 1 or own_concepts or steps not in (None, program.steps):
        return Choice(DEFAULT, "by default")
    return Choice(float(entry["threshold"]), f"from the calibration chosen on {entry['figures']} validation figures")


def thresholds_for(
    program: Program, identity: str, given: float | None, named: Mapping[str, float], steps: int | None = None,
    own_concepts: bool = False,
) -> dict[str, Choice]:
    """A threshold for every question. given: the caller's for all of them; named: those for single ones, as the caller
    calls them; raises NsfrcError where that is no question of the program.
    """
    asked = program.questions
    own: dict[str, float] = {}
    for name, value in named.items():
        if (found := called(asked, name)) is None:
            known = ", ".join(one.name for one in asked[:MANY]) + (" ..." if len(asked) > MANY else "")
            a_class = called(questions(program.classes), name) is not None
            which = " (classes share a threshold: --threshold classes=X)" if a_class else ""
            raise NsfrcError(f"--threshold {name}={value:g}: {program.name} has no such question{which}; it asks "
                             f"{known}")
        own[found.name] = value
    return {one.name: threshold_for(program, identity, own.get(one.name, given), steps, own_concepts, one.name)
            for one in asked}


@cache
def shipped() -> dict[str, dict[str, dict[str, Any]]]:
    """The calibration that comes with nsfrc, by identity of the perception and fingerprint of the program."""
    return json.loads(resources.files("nsfrc.inference").joinpath(FILE).read_text(encoding="utf-8"))


def choose_threshold(scores: Sequence[float], labels: Sequence[bool]) -> tuple[float, float]:
    """The threshold that tells labelled scores apart best, and its accuracy; true is a score of at least it.

    Of the gaps between scores that are equally good, the middle of the widest is taken: it leaves most room for both.
    """
    found = best_threshold(scores, labels)
    return found.threshold, found.accuracy


def best_threshold(scores: Sequence[float], labels: Sequence[bool], counts: Sequence[int] | None = None) -> Best:
    """What `choose_threshold` chooses, with the gap that it is the middle of. counts: how often each is there."""
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    times = np.ones(len(values), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    if values.shape != truth.shape or values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise NsfrcError("choosing a threshold takes as many labels as scores, at least one, and finite scores")
    order = np.argsort(values, kind="stable")
    values, truth, times = values[order], truth[order], times[order]
    # Cut i calls the i lowest scores false: right are the false among these and the true among the others.
    false, true = times * ~truth, times * truth
    right = np.concatenate([[0], np.cumsum(false)]) + np.concatenate([np.cumsum(true[::-1])[::-1], [0]])
    edges = np.concatenate([[min(0.0, values[0])], values, [max(1.0, values[-1])]])
    width = np.diff(edges)
    possible = width > 0
    possible[0] = True  # a threshold of 0 makes all true
    best = right[possible].max()
    cut = int(np.argmax(np.where(possible & (right == best), width, -1.0)))
    low, high = float(edges[cut]), float(edges[cut + 1])
    return Best((low + high) / 2, float(best / times.sum()), low, high)
