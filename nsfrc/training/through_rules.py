"""Learning from one's own labels through the rules: what neural predicates, comparisons and probabilities have learnt
is fitted so that the program answers labelled images rightly. Perception looks once, and stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from nsfrc.distributed import backward, copies, mean_of, share, together, total
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.inference.calibration import best_threshold
from nsfrc.inference.folders import Item, Listing
from nsfrc.inference.known import batch
from nsfrc.inference.look_ahead import look
from nsfrc.inference.session import Session
from nsfrc.pipelines import Pipeline
from nsfrc.questions import TRUE, Question
from nsfrc.valuation import concepts

FEWEST = 8
HELD_OUT = 0.25
EPOCHS, PATIENCE = 400, 60
RATE = 0.03  # of a parameter's own size, a step
EDGE = 1e-4  # how near to 0 and 1 a score counts, since a logarithm is not finite there


@dataclass(frozen=True)
class Labelled:
    """Images as object vectors [N, E, D] with the right answers [N, targets], NaN where one is not known."""

    objects: torch.Tensor
    truth: torch.Tensor
    failed: int = 0

    def __len__(self) -> int:
        return len(self.objects)

    def at(self, places: np.ndarray) -> Labelled:
        which = torch.from_numpy(places)
        return Labelled(self.objects[which], self.truth[which])


@dataclass(frozen=True)
class Fitted:
    """What came of it. before, after: the share of answers that are right among images held out, and in training.

    loss: on those held out, before and after. thresholds: target → the best one on all of the images.
    """

    names: tuple[str, ...]
    images: int
    held_out: int
    epochs: int
    before: tuple[float, float]
    after: tuple[float, float]
    loss: tuple[float, float]
    thresholds: dict[str, float]


def examples(session: Session, listing: Listing) -> Labelled:
    """What perception sees in every labelled image. Raises NsfrcError where there are too few."""
    pipe = session.pipe
    items = labelled_items(session, listing)
    known = session.known or look(pipe.perception, items, str(pipe.device))
    there = [(item, known[item.name]) for item in items if known[item.name].error is None]
    truth = right_answers(session, [item for item, _ in there])
    objects, _ = batch([one for _, one in there], pipe.spoken_of)
    return Labelled(objects, truth, len(items) - len(there))


def labelled_items(session: Session, listing: Listing) -> list[Item]:
    return [item for item in listing if any(session.labels.of(item, one.name) is not None
                                            for one in session.questions)]


def right_answers(session: Session, items: Sequence[Item]) -> torch.Tensor:
    """The right value of every target for each image [N, targets], NaN where it is not known. Raises NsfrcError where
    there is too little to learn from."""
    if len(items) < FEWEST:
        raise NsfrcError(f"{len(items)} labelled images are too few to learn from: {FEWEST} or more are needed, in "
                         f"folders true/ and false/, or with a table of --labels")
    truth = torch.tensor([[value for one in session.questions
                           for value in _values(one, session.labels.of(item, one.name))] for item in items])
    known = truth[truth.isfinite()]
    if not bool((known == 1).any()) or not bool((known == 0).any()):
        raise NsfrcError("all labels are the same: images for which the answer is true and others for which it is "
                         "false are needed")
    return truth


def _values(one: Question, label: str | None) -> list[float]:
    """The right value of every atom of a question."""
    if label is None:
        return [math.nan] * len(one.atoms)
    return [float(label == (atom if one.of_classes else TRUE)) for atom in one.atoms]


def learners(pipe: Pipeline) -> dict[str, list[torch.nn.Parameter]]:
    """What can be learnt, by the name that a file of concepts has for it."""
    found: dict[str, list[torch.nn.Parameter]] = {}
    for name, learner, _ in pipe.facts.learners():
        if isinstance(learner, torch.nn.Module) and concepts.learnt(learner):
            found.setdefault(name, []).extend(learner.parameters())
    return found


def chosen(pipe: Pipeline, names: Sequence[str]) -> dict[str, list[torch.nn.Parameter]]:
    """Those of `learners` that have these names; all where none is named. Raises NsfrcError."""
    there = learners(pipe)
    if not there:
        raise NsfrcError(f"{pipe.program.name} has nothing that can be learnt: no concept such as closeby, no "
                         f"comparison of numbers, and no probability t(_)")
    for name in names:
        if name not in there:
            hint = did_you_mean(name, there) or f"there are {', '.join(there)}"
            raise NsfrcError(f"{pipe.program.name} has nothing to learn called {name!r}: {hint}")
    return {name: there[name] for name in names} if names else there


def fit(pipe: Pipeline, labelled: Labelled, names: Sequence[str] = (), seed: int = 0, epochs: int = EPOCHS) -> Fitted:
    """Fit what is called by `names` (all by default) to labelled images; the best on those held out is kept."""
    wanted = chosen(pipe, names)
    train, held = _split(labelled, seed)
    parameters = [p for several in wanted.values() for p in several]
    for parameter in pipe.parameters():
        parameter.requires_grad_(False)
    for parameter in parameters:
        parameter.requires_grad_(True)
    thresholds = _thresholds(pipe)
    before = _right(pipe, held, thresholds), _right(pipe, train, thresholds)
    start = _loss_of(pipe, held)
    best, best_loss, since, done = [p.detach().clone() for p in parameters], start, 0, 0
    for loss in _epochs(pipe, train, held, parameters, epochs):
        done += 1
        if loss < best_loss - 1e-6:
            best, best_loss, since = [p.detach().clone() for p in parameters], loss, 0
        elif (since := since + 1) >= PATIENCE:
            break
    with torch.no_grad():
        for parameter, value in zip(parameters, best, strict=True):
            parameter.copy_(value)
    after = _right(pipe, held, thresholds), _right(pipe, train, thresholds)
    return Fitted(tuple(wanted), len(labelled), len(held), done, before, after, (start, best_loss),
                  _best_thresholds(pipe, labelled))


def _epochs(
    pipe: Pipeline, train: Labelled, held: Labelled, parameters: list[torch.nn.Parameter], epochs: int
) -> Iterator[float]:
    """The loss on what is held out after every epoch."""
    fitting = Fitting(pipe, train, parameters)
    for _ in range(epochs):
        fitting.step()
        yield _loss_of(pipe, held)


class Fitting:
    """Steps of an optimiser over all labelled images, which several processes share."""

    def __init__(self, pipe: Pipeline, labelled: Labelled, parameters: list[torch.nn.Parameter]) -> None:
        groups = [{"params": [p], "lr": RATE * max(1.0, float(p.detach().abs().mean()))} for p in parameters]
        self.optimiser = torch.optim.Adam(groups)
        self.scores = together(torch.nn.Sequential(pipe.facts, pipe.reasoner), some_unused=True)
        own = share(len(labelled))
        self.objects, self.truth = labelled.objects[own].to(pipe.device), labelled.truth[own].to(pipe.device)
        self.count, self.times = int(labelled.truth.isfinite().sum()), copies(len(labelled))

    def step(self) -> float:
        """One step; the loss before it."""
        self.optimiser.zero_grad()
        loss = mean_of(_losses(self.scores(self.objects), self.truth), self.count, self.times)
        whole = float(total(loss.detach()))
        if not math.isfinite(whole):
            raise NsfrcError("the loss is not a number: perception or a predicate gives no number for some image")
        backward(loss)
        self.optimiser.step()
        return whole


def _losses(scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """The loss of every answer that is known."""
    truth = truth.to(scores)
    known = truth.isfinite()
    return torch.nn.functional.binary_cross_entropy(scores.clamp(EDGE, 1 - EDGE)[known], truth[known], reduction="none")


def _loss(pipe: Pipeline, labelled: Labelled) -> torch.Tensor:
    return _losses(pipe.reasoner(pipe.facts(labelled.objects.to(pipe.device))), labelled.truth).mean()


@torch.no_grad()
def _loss_of(pipe: Pipeline, labelled: Labelled) -> float:
    return float(_loss(pipe, labelled))


@torch.no_grad()
def _right(pipe: Pipeline, labelled: Labelled, thresholds: torch.Tensor) -> float:
    """The share of known answers that are right; of classes the highest counts."""
    scores = pipe.reasoner(pipe.facts(labelled.objects.to(pipe.device))).cpu()
    right, count, place = 0, 0, 0
    for one in pipe.program.questions:
        truth, said = (table[:, place : place + len(one.atoms)] for table in (labelled.truth, scores))
        known = truth.isfinite().all(1)
        if one.of_classes:
            good = truth[known].argmax(1) == said[known].argmax(1)
        else:
            good = (truth[known][:, 0] > 0.5) == (said[known][:, 0] >= thresholds[place])
        right, count, place = right + int(good.sum()), count + int(known.sum()), place + len(one.atoms)
    return right / max(count, 1)


def _thresholds(pipe: Pipeline) -> torch.Tensor:
    own = dict(pipe.program.settings.thresholds)
    usual = pipe.program.settings.threshold
    names = [one.name for one in pipe.program.questions for _ in one.atoms]
    return torch.tensor([own.get(name, 0.5 if usual is None else usual) for name in names])


@torch.no_grad()
def _best_thresholds(pipe: Pipeline, labelled: Labelled) -> dict[str, float]:
    scores = pipe.reasoner(pipe.facts(labelled.objects.to(pipe.device))).double().cpu()
    found = {}
    place = 0
    for one in pipe.program.questions:
        truth = labelled.truth[:, place]
        known = truth.isfinite()
        if not one.of_classes and len(truth[known].unique()) == 2:
            best = best_threshold(scores[known, place].clamp(0, 1).tolist(), (truth[known] > 0.5).tolist())
            found[one.name] = round(best.threshold, 4)
        place += len(one.atoms)
    return found


def _split(labelled: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """Images to train on and images held out."""
    mask = held_out(labelled.truth, seed)
    return labelled.at(np.flatnonzero(~mask)), labelled.at(np.flatnonzero(mask))


def held_out(truth: torch.Tensor, seed: int) -> np.ndarray:
    """[N]: which images are held out, the same share of each answer; truth: [N, targets]."""
    rng, held = np.random.default_rng(seed), []
    _, kinds = np.unique(np.nan_to_num(truth.numpy(), nan=-1.0), axis=0, return_inverse=True)
    kinds = kinds.reshape(-1)
    for kind in np.unique(kinds):
        places = rng.permutation(np.flatnonzero(kinds == kind))
        held += places[: round(len(places) * HELD_OUT)].tolist()
    mask = np.zeros(len(truth), dtype=bool)
    mask[held] = True
    return mask


def write(pipe: Pipeline, fitted: Fitted, path: Path, command: str) -> None:
    """What was learnt, as a file that `--concepts` reads; other entries of the file stay."""
    made_by = {"command": command, "images": fitted.images, "held_out": fitted.held_out,
               "accuracy_before": fitted.before[0], "accuracy": fitted.after[0]}
    pipe.facts.save_concepts(path, made_by, fitted.names)
