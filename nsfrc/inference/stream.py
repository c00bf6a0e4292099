"""Images through a predictor, a batch at a time, or some batches side by side. What is held is a few batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from nsfrc.inference.folders import Item
from nsfrc.inference.pieces import Piecewise, side_by_side
from nsfrc.inference.predictor import Decoded, Predictor
from nsfrc.inference.rows import Row


@dataclass(frozen=True)
class Reading:
    """batch_size: images at once, see `stream`. decoders: threads that read ahead; 0 reads each when it is wanted.

    live: whether each image is answered for as soon as it is there. threads: as many pieces are answered for at once,
    by threads that read and compute, where the predictor allows that; else `decoders` counts.
    """

    batch_size: int = 16
    decoders: int = 1
    live: bool = False
    threads: int = 1


def stream(
    predictor: Predictor, items: Iterable[Item], reading: Reading = Reading()  # noqa: B008 (it is frozen)
) -> Generator[list[Row], None, None]:
    """Rows in the order of the items, in lists of a batch; a file that fails is a row with its error.

    A perception with a `piece` is given exactly so many images at a time on a CPU, whatever `batch_size` says, so that
    the row of an image is the same to the last digit whatever comes with it (if torch has 1, 2, 4, 8 … threads).
    """
    size = 1 if reading.live else predictor.piece or reading.batch_size
    if reading.threads > 1 and predictor.side_by_side and not reading.live:
        left = iter(items)
        first = list(islice(left, size + 1))
        items = chain(first, left)
        if len(first) > size:  # one piece alone is sooner there with all threads at it
            yield from side_by_side(Piecewise(predictor.decode, predictor), items, size, reading.threads)
            return
    decoded = read_ahead(predictor, items, 0 if reading.live else reading.decoders, 2 * size)
    try:
        while batch := list(islice(decoded, size)):
            yield predictor(batch)
    finally:
        decoded.close()


class Decoder(Protocol):
    """Reads one image."""

    def decode(self, item: Item) -> Decoded: ...


def read_ahead(
    predictor: Decoder, items: Iterable[Item], threads: int, ahead: int
) -> Generator[Decoded, None, None]:
    """Images in the order of the items, read by so many threads, at most `ahead` before they are wanted."""
    if not threads:
        for item in items:
            yield predictor.decode(item)
        return
    waiting: deque[Future[Decoded]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="nsfrc-read")
    try:
        for item in items:
            waiting.append(pool.submit(predictor.decode, item))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def reading_with(threads: int, batch_size: int) -> Reading:
    """How images are read where there are so many threads, of which torch has `computing(threads)`."""
    return Reading(batch_size, threads - computing(threads), threads=threads)


def computing(threads: int) -> int:
    """How many of so many threads compute, while the others read: a power of two, and two thirds at most.

    Among three, torch would share out images in parts that end amid a vector, and their last digits would depend on it.
    """
    return 1 << (max(1, threads * 2 // 3).bit_length() - 1)
