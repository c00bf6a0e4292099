"""A rule from the labels that were clicked: `nsfrc learn` on what perception has seen already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.compiler.syntax import DIRECTIVE, Sentence, calls
from nsfrc.contexts import torch_threads
from nsfrc.errors import NsfrcError
from nsfrc.inference.known import Known
from nsfrc.learning.api import label_rows
from nsfrc.learning.evidence import FromObjects
from nsfrc.learning.learner import ENOUGH, Learner, Options, compile_base
from nsfrc.learning.pictures import asked
from nsfrc.learning.results import Learnt, NothingLearnt, finish
from nsfrc.learning.search import Progress
from nsfrc.learning.source import SourceText, key_of
from nsfrc.page.seen import Looked
from nsfrc.pipelines import object_count
from nsfrc.program import Program
from nsfrc.questions import Question

FEW = 4.0  # as how many labels one counts where there are too few to exclude chance
GUESS = "a guess: with so few labels chance finds a rule, too; label more pictures to be sure"
ASKS = (("target", 1), ("query", 1), ("classes", 1), ("threshold", 1), ("threshold", 2))


@dataclass(frozen=True)
class Lesson:
    """What is to be learnt: a text that says so, the program that it makes, and the question that labels answer."""

    source: SourceText
    base: Program
    question: Question


def labelled_questions(program: Program) -> tuple[Question, ...]:
    """What labels can be about: what the program says is to be learnt, or else all that it asks, classes first."""
    if program.source.learning is not None:
        return asked(program)
    return tuple(sorted(program.questions, key=lambda one: not one.of_classes))


def lesson(text: str, path: Path, program: Program, question: Question) -> Lesson:
    """The text as `nsfrc learn` takes it: rules that it has for its question are taken out. Raises NsfrcError."""
    source = SourceText.of(None, text, str(path))
    if program.source.learning is None:
        source = SourceText.of(None, _without_rules(source, program, question), str(path))
    base = compile_base(source)
    return Lesson(source, base, asked(base)[0])


def _without_rules(source: SourceText, program: Program, question: Question) -> str:
    targets = program.source.classes if question.of_classes else \
        [target for target in program.source.targets if str(target) in question.atoms]
    keys = {target.key for target in targets}

    def drop(one: Sentence) -> bool:
        if one.kind == DIRECTIVE:
            return one.term is not None and any(calls(one.term, *name) for name in ASKS)
        return key_of(one) in keys

    heads = [ir.atom_text(key[0], [ir.quoted(name) for name in program.source.predicate(key).types])
             for key in dict.fromkeys(target.key for target in targets)]
    named = f"[{', '.join(heads)}]" if question.of_classes else heads[0]
    return f"{source.without(drop)}\n:- learn({named}).\n"


def learn(
    made: Lesson, looked: Looked, labels: Mapping[str, str], names: Sequence[str],
    tell: Callable[[str, Progress], None] = lambda target, progress: None,
    stopped: Callable[[], bool] = lambda: False, seconds: float | None = None,
) -> Learnt:
    """The program that the labels give. labels: picture → answer; names: the pictures, those without a label too.

    stopped: asked now and then; where it says so, what was found so far is the result. Raises NsfrcError.
    """
    count = object_count(made.base)
    there = [name for name in names if looked.known[name].error is None]
    if not any(name in labels for name in there):
        raise NsfrcError("no picture has a label: click true or false below some, at least two of each")
    objects = torch.stack([torch.from_numpy(_vectors(looked.known[name], count)) for name in there])
    evidence = FromObjects(objects, tuple(looked.perception.dimensions), there, None, looked.name)
    rows = label_rows(made.base, [labels.get(name) for name in there], len(there))
    few = len(there) and all(min((row == 1).sum(), (row == 0).sum()) < ENOUGH for row in rows)

    def found(options: Options) -> Learnt:
        learner = Learner(made.source, evidence, rows, options, tell, stopped)
        return finish(learner, learner.run(), "nsfrc play")

    with torch_threads(1):
        try:
            return found(Options(seconds=seconds))
        except NothingLearnt:
            if not few or stopped():
                raise
        guess = found(Options(noise=0.0, seconds=seconds, weight=FEW))
    return replace(guess, remarks=(*guess.remarks, GUESS))


def _vectors(known: Known, count: int) -> np.ndarray:
    return known.vectors(count)[:count]
