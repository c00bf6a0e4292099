"""`nsfrc.learn`: examples in whatever form they come, with labels, to a learnt program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.learning.evidence import Evidence, FromObjects, FromValuation, FromWorlds
from nsfrc.learning.learner import Learner, Options, compile_base
from nsfrc.learning.results import Learnt, finish
from nsfrc.learning.search import Progress
from nsfrc.learning.source import SourceText
from nsfrc.program import Program
from nsfrc.questions import FALSE, NONE, TRUE


def learn(
    program: str | Path | None,
    examples: Any,
    labels: Sequence[Any] | None = None,
    *,
    source: str | None = None,
    dimensions: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    clauses: int = 5,
    noise: float | None = None,
    beam: int = 30,
    seed: int = 0,
    seconds: float | None = None,
    tell: Callable[[str, Progress], None] | None = None,
) -> Learnt:
    """Learn the clauses of what a program's `learn` directive names; raises NothingLearnt if there are none.

    program: a .pl file or a shipped name; or its text as `source`. examples: worlds (dicts of facts), V0 [B, G] of the
    compiled program, object vectors [B, E, D] with `dimensions`, or a folder of images, a list of them, as
    `nsfrc.infer` takes them. labels: of one target True, False or None for each example; of classes their names, or
    numbers from 0. Folders of images that are called true and false, or like the classes, need none. names: of the
    examples, for messages. clauses: of a target, at most. noise: the share of wrong labels, estimated by default.
    seconds: for the search. tell: called with the target and the progress now and then.
    """
    text = SourceText.of(program, source)
    base = compile_base(text)
    evidence: Evidence
    if isinstance(examples, torch.Tensor | np.ndarray) and dimensions is not None:
        objects = torch.as_tensor(examples).float()
        evidence = FromObjects(objects, tuple(dimensions), _names(names, len(objects)))
    elif isinstance(examples, torch.Tensor | np.ndarray) and examples.ndim == 2:
        V0 = torch.as_tensor(examples)
        if V0.shape[1] != base.ground.G:
            raise NsfrcError(f"V0 has {V0.shape[1]} columns; {base.name} has {base.ground.G} ground atoms")
        evidence = FromValuation(base, V0, _names(names, len(V0)))
    elif isinstance(examples, Sequence) and not isinstance(examples, str) and examples \
            and all(isinstance(one, Mapping) for one in examples):
        evidence = FromWorlds(examples, _names(names, len(examples)))
    else:
        from nsfrc.learning.pictures import look

        evidence, found = look(base, text, examples, labels is None)
        labels = labels if labels is not None else found
    if labels is None:
        raise NsfrcError("learn needs labels: True or False for each example")
    options = Options(clauses, noise, beam, seed, seconds)
    learner = Learner(text, evidence, label_rows(base, labels, len(evidence.names)), options,
                      tell or (lambda target, progress: None))
    return finish(learner, learner.run(), "nsfrc.learn")


def _names(names: Sequence[str] | None, count: int) -> Sequence[str]:
    if names is not None and len(names) != count:
        raise NsfrcError(f"there are {len(names)} names for {count} examples")
    return tuple(map(str, names)) if names is not None else tuple(f"example {i + 1}" for i in range(count))


def label_rows(program: Program, labels: Sequence[Any], count: int) -> list[np.ndarray]:
    """Labels as [B] for each target: 1, 0 or NaN."""
    learning = program.source.learning
    assert learning is not None
    labels = labels.tolist() if isinstance(labels, np.ndarray | torch.Tensor) else list(labels)
    if len(labels) != count:
        raise NsfrcError(f"there are {len(labels)} labels for {count} examples: give one for each, None where "
                         f"it is not known")
    if not learning.classes:
        if len(learning.targets) > 1:
            raise NsfrcError("labels of several targets that are no classes are not supported")
        return [np.array([_truth(one) for one in labels], dtype=float)]
    known = {**{str(target): i for i, target in enumerate(learning.targets)},
             **{target.name: i for i, target in enumerate(learning.targets)}}
    numbers = [_class(one, known, len(learning.targets)) for one in labels]
    return [np.array([np.nan if n is None else float(n == i) for n in numbers]) for i in range(len(learning.targets))]


def _truth(label: Any) -> float:
    if label is None or label == "" or label != label:
        return float("nan")
    if isinstance(label, str):
        if label in (TRUE, FALSE):
            return float(label == TRUE)
    elif isinstance(label, bool | int | float | np.generic) and label in (0, 1):
        return float(label)
    raise NsfrcError(f"a label is True, False or None, not {label!r}")


def _class(label: Any, known: Mapping[str, int], count: int) -> int | None:
    """The number of a class, None where it is not known, -1 for none of them."""
    if label is None or label == "" or label != label:
        return None
    if isinstance(label, str):
        if label == NONE:
            return -1
        if label in known:
            return known[label]
        hint = did_you_mean(label, known) or f"the classes are {', '.join(known)}"
        raise NsfrcError(f"{label!r} is not a class; {hint}")
    if isinstance(label, int | float | np.generic) and float(label) in range(count):
        return int(label)
    raise NsfrcError(f"a label is the name of a class or its number from 0 to {count - 1}, not {label!r}")
