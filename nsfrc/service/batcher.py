"""Units of work that wait are answered several at once, by one thread; how many may wait is bounded."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from nsfrc.service.refusals import Refused, busy
from nsfrc.service.settings import Batching


class Unit(Protocol):
    """Something to answer for; those that are answered `by` the same go in one batch."""

    @property
    def by(self) -> object: ...


Answer = Callable[[Sequence[Any]], Sequence[Any]]
Told = Callable[[int, float], None]  # how many a batch had, and its seconds


@dataclass(eq=False)
class _Waiting:
    unit: Unit
    future: asyncio.Future[Any]
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """Answers units in batches. answer: what does so, on a thread of its own. told: is told of each batch.

    queue: how many units there may be, waiting or being worked on; beyond these a request is refused with 503.
    """

    def __init__(self, answer: Answer, batching: Batching, queue: int, told: Told, start: Callable[[], None]) -> None:
        self.answer, self.batching, self.queue, self.told = answer, batching, queue, told
        self.held = 0
        self._waiting: deque[_Waiting] = deque()
        self._some, self._full = asyncio.Event(), asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "nsfrc-answer", initializer=start)
        self._task: asyncio.Task[None] | None = None
        self.closed = False

    @property
    def full(self) -> bool:
        return self.held >= self.queue

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="nsfrc-batches")

    async def close(self) -> None:
        """End; what still waits is refused."""
        self.closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        for one in self._waiting:
            if not one.future.done():
                one.future.set_exception(Refused(503, "the service is stopping", again=5))
        self._waiting.clear()
        await asyncio.to_thread(self._thread.shutdown)

    @contextmanager
    def room(self, count: int) -> Iterator[None]:
        """Room for so many units until the block has ended. Raises Refused where there is none."""
        if self.closed:
            raise Refused(503, "the service is stopping", again=5)
        if self.held + count > self.queue:
            raise busy("too many requests are waiting")
        self.held += count
        try:
            yield
        finally:
            self.held -= count

    async def __call__(self, units: Sequence[Unit]) -> list[Any]:
        """What came of each unit. Where the caller is cancelled, those that still wait are not worked on."""
        loop = asyncio.get_running_loop()
        mine = [_Waiting(unit, loop.create_future()) for unit in units]
        self._waiting.extend(mine)
        self._some.set()
        if len(self._waiting) >= self.batching.most:
            self._full.set()
        try:
            return [await one.future for one in mine]
        finally:
            for one in mine:
                if not one.future.cancel() and not one.future.cancelled():
                    one.future.exception()  # looked at, so that nobody complains that it was not

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._some.wait()
            await self._filled()
            batch = self._taken()
            if not self._waiting:
                self._some.clear()
            if len(self._waiting) < self.batching.most:
                self._full.clear()
            if not batch:
                continue
            start = time.monotonic()
            try:
                found: Sequence[Any] = await loop.run_in_executor(
                    self._thread, self._answered, [one.unit for one in batch])
            except Exception as error:  # such as no memory for so many; nobody must wait for ever
                found = [error] * len(batch)
            self.told(len(batch), time.monotonic() - start)
            for one, result in zip(batch, found, strict=True):
                if not one.future.done():
                    if isinstance(result, Exception):
                        one.future.set_exception(result)
                    else:
                        one.future.set_result(result)

    async def _filled(self) -> None:
        """Wait for a whole batch, as long as the first unit may wait."""
        left = self._waiting[0].since + self.batching.wait - time.monotonic() if self._waiting else 0.0
        if left > 0 and len(self._waiting) < self.batching.most:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._full.wait()

    def _taken(self) -> list[_Waiting]:
        """The next batch: the first unit, and those after it that are answered by the same."""
        found: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        while self._waiting and len(found) < self.batching.most:
            one = self._waiting.popleft()
            if one.future.done():  # nobody waits for it any more
                continue
            same = not found or one.unit.by is found[0].unit.by
            (found if same else others).append(one)
        self._waiting.extendleft(reversed(others))
        return found

    def _answered(self, units: Sequence[Unit]) -> Sequence[Any]:
        """What came of each; where a batch fails, each is tried alone, so that it fails for itself."""
        try:
            return self.answer(units)
        except Exception as error:
            if len(units) == 1:
                return [error]
            return [self._answered([unit])[0] for unit in units]
