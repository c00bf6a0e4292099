"""Images through a pipeline, a batch at a time: files → pictures → rows. What is held is a few batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

import torch

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import FALSE, TRUE, Item
from nsfrc.inference.images import ImageError, Picture, read, to_tensor
from nsfrc.inference.results import DIGITS, Row
from nsfrc.pipelines import Pipeline, Prediction


@dataclass(frozen=True)
class Asked:
    """How to answer.

    threshold: from where on a single target holds. labels: class folder → the answer that is right there.
    decoders: threads that read files ahead; 0 reads each when it is wanted. everything: rows with V0, V_T and picture.
    """

    threshold: float = 0.5
    labels: Mapping[str, str] = field(default_factory=dict)
    batch_size: int = 16
    decoders: int = 1
    everything: bool = False


@dataclass(frozen=True, eq=False)
class Loaded:
    """A file with its picture, or with why there is none."""

    item: Item
    picture: Picture | None
    error: str | None


def infer(pipe: Pipeline, items: Iterable[Item], asked: Asked) -> Iterator[list[Row]]:
    """Rows in the order of the items, in lists of at most `batch_size`; a file that fails is a row with its error."""
    loaded = load(items, pipe.perception.size, asked.decoders, 2 * asked.batch_size)
    try:
        while batch := list(islice(loaded, asked.batch_size)):
            yield _rows(pipe, batch, asked)
    finally:
        loaded.close()


def load(items: Iterable[Item], size: tuple[int, int], threads: int, ahead: int) -> Generator[Loaded, None, None]:
    """Pictures in the order of the items, read by so many threads, at most `ahead` before they are wanted."""
    if not threads:
        for item in items:
            yield _load(item, size)
        return
    waiting: deque[Future[Loaded]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="nsfrc-read")
    try:
        for item in items:
            waiting.append(pool.submit(_load, item, size))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _load(item: Item, size: tuple[int, int]) -> Loaded:
    if item.error is not None:
        return Loaded(item, None, item.error)
    try:
        return Loaded(item, read(item.path, size), None)
    except ImageError as error:
        return Loaded(item, None, error.reason)


def _rows(pipe: Pipeline, batch: Sequence[Loaded], asked: Asked) -> list[Row]:
    pictures = [entry.picture for entry in batch if entry.picture is not None]
    found = _predict(pipe, pictures, asked.everything) if pictures else None
    rows: list[Row] = []
    done = 0
    for entry in batch:
        label = asked.labels.get(entry.item.label) if entry.item.label is not None else None
        if entry.picture is None or found is None:
            rows.append(Row(entry.item.name, entry.item.path, label, error=entry.error))
            continue
        scores = tuple(round(value, DIGITS) for value in found.scores[done].tolist())
        given = answer(scores, pipe.program.targets, asked.threshold)
        rows.append(Row(
            entry.item.name, entry.item.path, label, scores, given, None if label is None else label == given,
            objects=found.objects[done].numpy(), V0=found.V0[done].numpy() if asked.everything else None,
            V_T=None if found.V_T is None else found.V_T[done].numpy(),
            picture=entry.picture if asked.everything else None,
        ))
        done += 1
    return rows


def _predict(pipe: Pipeline, pictures: Sequence[Picture], everything: bool) -> Prediction:
    """The prediction for some pictures, on the CPU."""
    images = to_tensor([picture.pixels for picture in pictures])
    try:
        found = pipe.predict(images.to(pipe.device), everything)
    except NsfrcError:
        raise
    except (MemoryError, torch.OutOfMemoryError):
        raise NsfrcError(f"{len(pictures)} images at once do not fit in memory: use a smaller --batch-size") from None
    except Exception as error:  # from a user's own perception
        reason = " ".join(str(error).split())
        raise NsfrcError(f"perception {pipe.perception.identity} failed: {type(error).__name__}: {reason}") from error
    V_T = None if found.V_T is None else found.V_T.cpu()
    return Prediction(found.objects.float().cpu(), found.V0.cpu(), found.scores.double().cpu(), V_T)


def answer(scores: Sequence[float], targets: Sequence[str], threshold: float) -> str:
    """One target: whether it holds, "true" or "false"; several: the one with the highest value, the first of equals."""
    if len(targets) == 1:
        return TRUE if scores[0] >= threshold else FALSE
    return targets[max(range(len(targets)), key=lambda i: scores[i])]
