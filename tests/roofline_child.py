"""The child process of `test_roofline`, which has the kernels in Triton's interpreter (TRITON_INTERPRET=1).

    python -m tests.roofline_child count NAME KERNELS INPUTS OUTPUTS    what the kernels do for an example
    python -m tests.roofline_child measure NAME                         rows of the code that measures
    python -m tests.roofline_child events                               its timer, with events that are not real
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

import nsfrc
from nsfrc.benchmarks import on_card, roofline
from nsfrc.benchmarks.measure import Timing
from nsfrc.engines import Run
from nsfrc.kernels.launch import Job
from tests.test_roofline import SHAPES, STEPS

OPERATIONS = {"fmul": "mul", "fadd": "add", "fsub": "add", "exp2": "exp", "log2": "log", "fdiv": "div",
              "precise_divf": "div"}


class Counts:
    """Elements of every operation that the interpreter meets, masked loads and stores by what they move."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.near: list[torch.Tensor] = []
        self.tables: list[torch.Tensor] = []
        self.rows = 0  # of the workspace, by which it is known among new tensors
        builder = interpreter.InterpreterBuilder
        for method, kind in OPERATIONS.items():
            after(builder, f"create_{method}", lambda result, *_, kind=kind: self.add(kind, result.data.size))
        # A negation is written as 0 - x.
        after(TritonSemantic, "minus", lambda result, _: self.add("add", -result.handle.data.size))
        after(interpreter.ReduceOps, "sum",
              lambda result, x: self.add("add", x.handle.data.size - result.handle.data.size))
        after(builder, "create_masked_load", lambda _, pointers, mask, *__: self.moved("read", pointers, mask))
        after(builder, "create_masked_store", lambda _, pointers, value, mask, *__: self.moved("write", pointers, mask))
        after(Job, "empty", lambda tensor, *size: self.near.append(tensor) if self.rows in size else None)

    def add(self, kind: str, elements: int) -> None:
        self.seen[kind] += elements

    def start(self, job: Job) -> None:
        self.seen.clear()
        self.near, self.tables, self.rows = [], [job.indices, job.floats], job.layout.row.end

    def moved(self, verb: str, pointers: Any, mask: Any) -> None:
        at = pointers.data[np.broadcast_to(mask.data.astype(bool), pointers.data.shape)]
        if not at.size or (verb == "write" and pointers.data.size == 1):
            return  # the ticket is for an instance, not for an example
        if any(holds(tensor, at) for tensor in self.tables):
            self.add("table", at.size)
        else:
            self.add(f"{'near' if any(holds(tensor, at) for tensor in self.near) else 'far'}_{verb}", at.size)

    def of_example(self, examples: int) -> dict[str, float]:
        return {kind: n if kind == "table" else n / examples for kind, n in self.seen.items()}


def holds(tensor: torch.Tensor, at: np.ndarray) -> bool:
    begin = tensor.data_ptr()
    return bool(begin <= at.min() and at.max() < begin + 4 * tensor.numel())


def after(owner: Any, method: str, look: Callable[..., object]) -> None:
    """Have `look` see the result and the arguments of every call."""
    old = getattr(owner, method)

    def new(self: Any, *arguments: Any, **named: Any) -> Any:
        result = old(self, *arguments, **named)
        look(result, *arguments)
        return result

    setattr(owner, method, new)


def counted(name: str, kernels: str, inputs: str, outputs: str) -> dict[str, dict[str, float]]:
    """Operations and values moved of an example: forward, with what gradients need kept, and backward."""
    program, shape, counts, result = nsfrc.compile(name), SHAPES[kernels], Counts(), {}
    engine, run = on_card.forced(program, shape), Run(STEPS, 0.01, "example", outputs, inputs)
    V0 = torch.from_numpy(program.initial_valuation()).repeat(shape.wide, 1)
    weights = V0.new_empty(0, program.plan.C)
    for direction in ("forward", "keep"):
        kernel_file, job = engine.job(shape.wide, 0, run, direction, V0.device)
        counts.start(job)
        out, past = kernel_file.forward(job, V0, weights)
        result[direction] = counts.of_example(shape.wide)
    kernel_file, job = engine.job(shape.wide, 0, run, "backward", V0.device)
    counts.start(job)
    kernel_file.backward(job, V0, weights, torch.ones_like(out), past)
    result["backward"] = counts.of_example(shape.wide)
    return result


def tried(name: str) -> list[dict[str, Any]]:
    """Rows of the code that measures, on the processor, with a timer that only runs what it is given."""
    def timer(work: Any) -> Timing:
        work()
        return Timing(3e-6, 2e-6, 4e-6, 1)

    program = replace(nsfrc.compile(name), steps=1)
    return [asdict(row) for row in roofline.measure(program, (3,), torch.device("cpu"), "a card", 1e9, timer)]


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
    todo: dict[str, Callable[..., object]] = {"count": counted, "measure": tried, "events": timed_by_events}
    print(json.dumps(todo[sys.argv[1]](*sys.argv[2:])))
