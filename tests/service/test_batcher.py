"""Units are answered several at once, within a bounded queue, and each fails for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("fastapi")

from nsfrc.service.batcher import Batcher
from nsfrc.service.refusals import Refused
from nsfrc.service.settings import Batching


@dataclass(frozen=True)
class Unit:
    what: int
    by: object = None


class Answers:
    """Answers with ten times the number; keeps what was in each batch. hold: is waited for before the first answer."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.hold = threading.Event()
        self.hold.set()

    def __call__(self, units: Sequence[Unit]) -> list[int]:
        self.hold.wait(10)
        self.batches.append([unit.what for unit in units])
        if any(unit.what < 0 for unit in units):
            raise ValueError("below 0")
        return [10 * unit.what for unit in units]


def run(answers: Answers, batching: Batching, work: Any, queue: int = 100) -> Any:
    async def whole() -> Any:
        batcher = Batcher(answers, batching, queue, lambda count, seconds: None, lambda: None)
        batcher.start()
        try:
            return await work(batcher)
        finally:
            await batcher.close()

    return asyncio.run(whole())


def test_what_waits_is_one_batch() -> None:
    answers = Answers()

    async def work(batcher: Batcher) -> Any:
        return await asyncio.gather(*(batcher([Unit(i)]) for i in range(10)))

    assert run(answers, Batching(5, 5.0), work) == [[10 * i] for i in range(10)]
    assert answers.batches == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_the_first_waits_only_so_long() -> None:
    answers = Answers()
    assert run(answers, Batching(100, 0.01), lambda batcher: batcher([Unit(1), Unit(2)])) == [10, 20]
    assert answers.batches == [[1, 2]]


def test_batches_are_of_one_kind_and_in_order() -> None:
    answers = Answers()
    one, other = object(), object()
    units = [Unit(0, one), Unit(1, other), Unit(2, one), Unit(3, other), Unit(4, one)]
    assert run(answers, Batching(10, 0.0), lambda batcher: batcher(units)) == [0, 10, 20, 30, 40]
    assert answers.batches == [[0, 2, 4], [1, 3]]


def test_the_queue_is_bounded() -> None:
    async def work(batcher: Batcher) -> None:
        with batcher.room(3), pytest.raises(Refused) as refused, batcher.room(1):
            pass
        assert refused.value.status == 503 and refused.value.headers["retry-after"] == "1"
        with batcher.room(3):
            assert batcher.full
        assert batcher.held == 0

    run(Answers(), Batching(), work, queue=3)


def test_nobody_waits_for_what_was_cancelled() -> None:
    answers = Answers()
    answers.hold.clear()

    async def work(batcher: Batcher) -> list[int]:
        first = asyncio.ensure_future(batcher([Unit(1)]))
        await asyncio.sleep(0.05)  # it is being worked on
        late = asyncio.ensure_future(batcher([Unit(2), Unit(3)]))
        kept = asyncio.ensure_future(batcher([Unit(4)]))
        await asyncio.sleep(0.01)
        late.cancel()
        answers.hold.set()
        found = await first + await kept
        assert late.cancelled() or late.cancelling()
        return found

    assert run(answers, Batching(10, 0.0), work) == [10, 40]
    assert answers.batches == [[1], [4]]


def test_each_fails_for_itself() -> None:
    async def work(batcher: Batcher) -> Any:
        return await asyncio.gather(*(batcher([Unit(i)]) for i in (1, -1, 2)), return_exceptions=True)

    good, bad, other = run(Answers(), Batching(3, 5.0), work)
    assert (good, other) == ([10], [20]) and isinstance(bad, ValueError)


def test_what_waits_at_the_end_is_refused() -> None:
    answers = Answers()

    async def work(batcher: Batcher) -> asyncio.Future[Any]:
        waiting = asyncio.ensure_future(batcher([Unit(1)]))
        await asyncio.sleep(0.01)
        return waiting

    async def whole() -> None:
        batcher = Batcher(answers, Batching(10, 60.0), 10, lambda count, seconds: None, lambda: None)
        batcher.start()
        waiting = await work(batcher)
        await batcher.close()
        with pytest.raises(Refused, match="stopping"):
            await waiting
        with pytest.raises(Refused, match="stopping"), batcher.room(1):
            pass

    before = threading.active_count()
    asyncio.run(whole())
    assert threading.active_count() == before
