"""Images through a pipeline, a batch at a time: files → pictures → rows. What is held is a few batches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.explain import as_text, explain
from nsfrc.inference.folders import FALSE, NONE, TRUE, Item
from nsfrc.inference.images import ImageError, Picture, read, to_tensor
from nsfrc.inference.results import DIGITS, Row
from nsfrc.perception.base import Fit, Perception
from nsfrc.pipelines import Pipeline, Prediction

Frame = tuple[tuple[int, int], Fit]  # the size that perception wants, and how images are brought to it


@dataclass(frozen=True)
class Asked:
    """How to answer.

    threshold: from where on a single target holds. least: below it the highest of several targets is no answer.
    labels: class, such as a class folder or "class_id 0" → the answer that is right for it.
    batch_size: images at once, see `infer`.
    decoders: threads that read files ahead; 0 reads each when it is wanted. everything: rows with V0, V_T and picture.
    reasons: rows with the reason as text.
    """

    threshold: float = 0.5
    labels: Mapping[str, str] = field(default_factory=dict)
    batch_size: int = 16
    decoders: int = 1
    everything: bool = False
    reasons: bool = False
    least: float = 0.0


@dataclass(frozen=True, eq=False)
class Loaded:
    """A file with its picture, or with why there is none."""

    item: Item
    picture: Picture | None
    error: str | None


def infer(pipe: Pipeline, items: Iterable[Item], asked: Asked) -> Iterator[list[Row]]:
    """Rows in the order of the items, in lists of a batch; a file that fails is a row with its error.

    A perception with a `piece` is given exactly so many images at a time on a CPU, whatever `batch_size` says, so that
    the row of an image is the same to the last digit whatever comes with it (if torch has 1, 2, 4, 8 … threads).
    """
    piece = pipe.perception.piece if pipe.device.type == "cpu" else None
    size = piece or asked.batch_size
    frame = pipe.perception.size, pipe.perception.fit
    loaded = load(items, frame, asked.decoders, 2 * size)
    try:
        while batch := list(islice(loaded, size)):
            yield _rows(pipe, batch, asked, piece or 0)
    finally:
        loaded.close()


def load(items: Iterable[Item], frame: Frame, threads: int, ahead: int) -> Generator[Loaded, None, None]:
    """Pictures in the order of the items, read by so many threads, at most `ahead` before they are wanted."""
    if not threads:
        for item in items:
            yield _load(item, *frame)
        return
    waiting: deque[Future[Loaded]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="nsfrc-read")
    try:
        for item in items:
            waiting.append(pool.submit(_load, item, *frame))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _load(item: Item, size: tuple[int, int], fit: Fit) -> Loaded:
    if item.error is not None:
        return Loaded(item, None, item.error)
    try:
        return Loaded(item, read(item.path, size, fit), None)
    except ImageError as error:
        return Loaded(item, None, error.reason)


def _rows(pipe: Pipeline, batch: Sequence[Loaded], asked: Asked, padded: int) -> list[Row]:
    pictures = [entry.picture for entry in batch if entry.picture is not None]
    found = _predict(pipe, pictures, asked.everything or asked.reasons, padded) if pictures else None
    place = count()
    return [
        _failed(entry.item, asked, entry.error) if entry.picture is None or found is None
        else _answered(pipe, entry, found, next(place), asked)
        for entry in batch
    ]


def _label(item: Item, asked: Asked) -> str | None:
    return asked.labels.get(item.label) if item.label is not None else None


def _failed(item: Item, asked: Asked, error: str | None) -> Row:
    return Row(item.name, item.path, _label(item, asked), error=error)


def _answered(pipe: Pipeline, entry: Loaded, found: Prediction, i: int, asked: Asked) -> Row:
    """The row of image i of a prediction."""
    values = found.scores[i].tolist()
    if not bool(found.objects[i].isfinite().all()):
        return _failed(entry.item, asked, "perception gave no number (NaN or infinite)")
    if not all(map(math.isfinite, values)):
        return _failed(entry.item, asked, "reasoning gave no number (NaN or infinite)")
    scores = tuple(round(value, DIGITS) for value in values)
    # Of several targets all digits count; one is held against the threshold as it is written.
    several = len(values) > 1
    given = answer(values if several else scores, pipe.program.targets, asked.least if several else asked.threshold)
    label = _label(entry.item, asked)
    return Row(
        entry.item.name, entry.item.path, label, scores, given, None if label is None else label == given,
        objects=found.objects[i].numpy(), V0=found.V0[i].numpy() if asked.everything else None,
        V_T=found.V_T[i].numpy() if found.V_T is not None and asked.everything else None,
        picture=entry.picture if asked.everything else None,
        doubts=_doubts(pipe.perception, entry.picture), further=0 if found.further is None else int(found.further[i]),
        animated=entry.picture is not None and entry.picture.animated,
        dimensions=tuple(pipe.perception.dimensions),
        reason=_reason(pipe, found, i, values) if asked.reasons else None,
    )


def _reason(pipe: Pipeline, found: Prediction, i: int, values: Sequence[float]) -> str | None:
    """Why the highest target of image i has its value, or what it lacks."""
    if found.V_T is None:
        return None
    best = pipe.program.targets[max(range(len(values)), key=values.__getitem__)]
    V_T, V0 = found.V_T[i].numpy(), found.V0[i].numpy()
    return as_text(explain(pipe.program, V_T, best, V0, pipe.reasoner.run.steps))


@torch.no_grad()
def empty_scores(pipe: Pipeline) -> tuple[float, ...] | None:
    """The value of every target in an image without objects; None where neural predicates give no number for it."""
    try:
        nothing = torch.zeros(1, pipe.perception.objects, len(pipe.perception.dimensions), device=pipe.device)
        values = pipe.reasoner(pipe.facts(nothing))[0].tolist()
    except Exception:  # a user's predicate that fails here fails on images too, where it is said
        return None
    return tuple(round(value, DIGITS) for value in values) if all(map(math.isfinite, values)) else None


def _doubts(perception: Perception, picture: Picture | None) -> tuple[str, ...]:
    if picture is None:
        return ()
    with _blame(f"doubts of perception {perception.identity}", 1):
        return tuple(perception.doubts(picture.pixels, (picture.width, picture.height)))


@torch.no_grad()
def _predict(pipe: Pipeline, pictures: Sequence[Picture], everything: bool, padded: int) -> Prediction:
    """The prediction for some pictures, on the CPU; those from their number up to `padded` are black."""
    pixels = [picture.pixels for picture in pictures]
    pixels += [np.zeros_like(pixels[0])] * (padded - len(pixels))
    with _blame(f"perception {pipe.perception.identity}", len(pixels)):
        objects = pipe.perception(to_tensor(pixels).to(pipe.device))
        further = pipe.perception.further if isinstance(pipe.perception.further, torch.Tensor) else None
        finite = objects.isfinite().flatten(1).all(1)
    with _blame(f"the facts converter of {pipe.program.name}", len(pixels)):
        # Where perception gave no number there is nothing, so that the other images go on.
        V0 = pipe.facts(torch.where(finite[:, None, None], objects, 0))
    with _blame(f"the reasoner of {pipe.program.name}", len(pixels)):
        scores = pipe.reasoner(V0)
        V_T = pipe.all_atoms(V0).cpu() if everything else None
    return Prediction(objects.float().cpu(), V0.cpu(), scores.double().cpu(), V_T,
                      None if further is None else further.cpu())


@contextmanager
def _blame(part: str, images: int) -> Iterator[None]:
    """Turn whatever is raised into an error that names the part of the pipeline it comes from."""
    try:
        yield
    except NsfrcError:
        raise
    except Exception as error:  # such as from a user's own perception
        reason = " ".join(str(error).split())
        full = isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in reason
        if full:
            raise NsfrcError(f"{images} images at once do not fit in memory: use a smaller --batch-size") from None
        raise NsfrcError(f"{part} failed: {type(error).__name__}: {reason}") from error


def answer(scores: Sequence[float], targets: Sequence[str], threshold: float) -> str:
    """One target: whether it holds, "true" or "false"; several: the one with the highest value, the first of equals.

    Where the highest is below the threshold, it is "none".
    """
    if len(targets) == 1:
        return TRUE if scores[0] >= threshold else FALSE
    best = max(range(len(targets)), key=lambda i: scores[i])
    return targets[best] if round(scores[best], DIGITS) >= threshold else NONE
