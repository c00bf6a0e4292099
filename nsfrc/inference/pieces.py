"""Pieces of a list of images, side by side: a thread takes a piece from its files to what comes of them.

Each thread computes alone, so that sums never depend on how many there are.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

import numpy as np
import torch

from nsfrc.inference.folders import Item
from nsfrc.inference.predictor import Decoded

NAME = "nsfrc-piece"
AHEAD = 2  # pieces for each thread that are at work or wait for it, so that none waits for whoever takes the results

Result = TypeVar("Result")


class Piecewise(Generic[Result]):
    """Reads the images of a piece, then answers for them."""

    def __init__(self, decode: Callable[[Item], Decoded], answer: Callable[[list[Decoded]], Result]) -> None:
        self.decode, self.answer = decode, answer
        self._made, self._making = False, threading.Lock()

    def __call__(self, items: Sequence[Item]) -> Result:
        with np.errstate(all="ignore"):  # which belongs to each thread; see `images.quietly`
            decoded = [self.decode(item) for item in items]
            with self._making:  # one image makes what all use: kernels, the network in ONNX Runtime
                if not self._made and (some := [one for one in decoded if one.picture is not None][:1]):
                    self.answer(some)
                    self._made = True
            return self.answer(decoded)


def side_by_side(
    piecewise: Callable[[Sequence[Item]], Result], items: Iterable[Item], size: int, threads: int
) -> Generator[Result, None, None]:
    """What comes of every `size` items, in their order; as many pieces at once as there are threads."""
    waiting: deque[Future[Result]] = deque()
    left = iter(items)
    pool = ThreadPoolExecutor(threads, NAME, initializer=torch.set_num_threads, initargs=(1,))
    try:
        while piece := list(islice(left, size)):
            waiting.append(pool.submit(piecewise, piece))
            if len(waiting) >= AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(torch.get_num_threads())  # of this thread, and so again of those that are yet to start
