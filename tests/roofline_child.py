"""The child process of `test_roofline`, which has the kernels in Triton's interpreter (TRITON_INTERPRET=1).

    python -m tests.roofline_child

The model's rows come in as JSON; out come rows of the code that measures, and what its timer says of events that are
not real.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import torch

import nsfrc
from nsfrc.benchmarks import on_card, roofline
from nsfrc.benchmarks.measure import Timing
from tests.test_roofline import RULES


def tried() -> list[dict[str, Any]]:
    """Rows of the code that measures, on the processor, with a timer that only runs what it is given."""
    def timer(work: Any) -> Timing:
        work()
        return Timing(3e-6, 2e-6, 4e-6, 1)

    rows = [roofline.RooflineRow(**row) for row in json.load(sys.stdin)]
    program = nsfrc.compile(source=RULES, name="rules")
    return [asdict(row) for row in roofline.measure(program, rows, (3,), torch.device("cpu"), "a card", 1e9, timer)]


def timed_by_events() -> dict[str, Any]:
    """`by_events` with events of a clock that each run moves on by its number in milliseconds."""
    clock = [0.0]

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = clock[0]

        def elapsed_time(self, end: Any) -> float:
            return end.at - self.at

    runs = 0

    def work() -> None:
        nonlocal runs
        runs += 1
        clock[0] += runs

    torch.cuda.Event, torch.cuda.synchronize = Event, lambda: None  # type: ignore[assignment, misc]
    return asdict(on_card.by_events(work, budget=0.03))


if __name__ == "__main__":
    print(json.dumps({"measured": tried(), "events": timed_by_events()}))
