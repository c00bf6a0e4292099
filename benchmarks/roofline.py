"""The Triton kernels on an A100: a model from the plan and published figures, or times where there is a card.

    python -m nsfrc.benchmarks.roofline                       every shipped program
    python -m nsfrc.benchmarks.roofline --program twopairs    one, printed only
    python -m nsfrc.benchmarks.roofline --json                for machines

Without a GPU all rows are of kind "model": counted operations and bytes, the bounds they give, and predicted times;
none is a measurement. With one, rows of kind "measured" stand beside the model's. Writes
results/roofline.csv and results/roofline.png.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from nsfrc.benchmarks import dense
from nsfrc.benchmarks.card import A100, SHAPES, Card, Cost, Task, cost, full_from, predicted, seconds_waiting, tables_of
from nsfrc.benchmarks.measure import RESULTS, Timing, write_csv
from nsfrc.benchmarks.reasoning import PROGRAMS, valuations
from nsfrc.benchmarks.roofline_report import describe, measured_line, plot
from nsfrc.compiler.plan import Plan
from nsfrc.engines.gpu import launch
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM, Shape
from nsfrc.errors import NsfrcError
from nsfrc.program import Program, open_program

if TYPE_CHECKING:
    from nsfrc.benchmarks.on_card import Timer

BATCHES = (1, 10, 100, 1000, 10_000, 100_000)
INPUTS, DIRECTIONS = ("neural", "all"), ("forward", "training")
OPERATIONS = ("mul", "add", "exp", "log", "div")


@dataclass(frozen=True)
class RooflineRow:
    """One program and batch with one file of kernels; all outputs, every clause chosen once.

    kind: "model" or "measured". direction: "forward", or "training" for forward and backward.
    mul … div: operations of an example that the plan needs; *_done: with the padding of tiles.
    *_bytes: of an example; tables of a batch; workspace of a tile of examples. level: the cache that holds all
    workspaces in use. bound_ns: of an example, by the resource `limit`. floor: seconds of one example alone.
    seconds: predicted, or the median measured (with p20, p80); model_seconds: predicted for the A100.
    dense_*: eager dense PyTorch, seconds being measured in rows that are, if it fitted.
    """

    kind: str
    card: str
    program: str
    inputs: str
    direction: str
    batch: int
    kernels: str
    chosen: bool
    steps: int
    mul: int
    add: int
    exp: int
    log: int
    div: int
    mul_done: int
    add_done: int
    exp_done: int
    log_done: int
    div_done: int
    compulsory_bytes: float
    l1_bytes: float
    l2_bytes: float
    memory_bytes: float
    tables_bytes: float
    workspace_bytes: float
    level: str
    limit: str
    bound_ns: float
    floor: float
    full_from: int
    seconds: float
    p20: float | None
    p80: float | None
    model_seconds: float
    over_model: float | None
    dense_bytes: float
    dense_flops: float
    dense_exps: float
    dense_gb: float
    dense_fits: bool
    dense_seconds: float | None
    dense_over: float | None


def plan_of(program: Program, inputs: str) -> Plan:
    return program.plan if inputs == "neural" else program.unmerged_plan()


def tasks(program: Program, inputs: str, direction: str, shape: Shape) -> list[Task]:
    """What one call of the engine does, one launch (or chain of launches) after the other."""
    parts = ("forward",) if direction == "forward" else ("keep", "backward")
    plan, neural = plan_of(program, inputs), inputs == "neural"
    return [Task(plan, shape, neural, False, part, program.steps) for part in parts]


def chosen(program: Program, inputs: str, batch: int, card: Card = A100) -> Shape:
    """The kernels that the engine takes."""
    forward, split = (tables_of(tasks(program, inputs, "forward", shape)[0]) for shape in (PROGRAM, CLAUSE))
    return launch.choose(forward, split, batch, program.steps, False, card.multiprocessors)


@cache
def dense_cost(program: Program, direction: str, batch: int) -> tuple[dense.Moved, float]:
    """What eager dense PyTorch moves for a batch, and the bytes of memory it needs."""
    moved = dense.forward(program.plan, program.steps, batch)
    if direction == "training":
        moved += dense.backward(program.plan, program.steps, batch)
    return moved, dense.peak(program.plan, program.steps, batch, direction == "training")


def model(program: Program, inputs: str, direction: str, batch: int, shape: Shape, card: Card = A100) -> RooflineRow:
    """The model's row."""
    todo = tasks(program, inputs, direction, shape)
    costs = [cost(task, batch, card) for task in todo]
    hardest = max(costs, key=lambda c: c.bound)
    seconds = sum(predicted(task, batch, card) for task in todo)
    moved, memory = dense_cost(program, direction, batch)
    fits, dense_seconds = memory <= card.memory, dense.seconds(moved, card)
    return RooflineRow(
        kind="model", card=card.name, program=program.name, inputs=inputs, direction=direction, batch=batch,
        kernels=shape.kernels, chosen=chosen(program, inputs, batch, card) == shape, steps=program.steps,
        **operations(costs),
        compulsory_bytes=sum(c.compulsory for c in costs), l1_bytes=sum(c.l1 for c in costs),
        l2_bytes=sum(c.l2 for c in costs), memory_bytes=sum(c.hbm for c in costs),
        tables_bytes=costs[0].tables, workspace_bytes=hardest.workspace, level=hardest.level, limit=hardest.limit,
        bound_ns=sum(c.bound for c in costs) * 1e9, floor=sum(seconds_waiting(task, 1, card) for task in todo),
        full_from=max(full_from(task, card) for task in todo), seconds=seconds, p20=None, p80=None,
        model_seconds=seconds, over_model=None, dense_bytes=moved.bytes / batch, dense_flops=moved.flops / batch,
        dense_exps=moved.exps / batch, dense_gb=memory / 1e9, dense_fits=fits, dense_seconds=dense_seconds,
        dense_over=dense_seconds / seconds,
    )


def operations(costs: list[Cost]) -> dict[str, int]:
    useful = {name: sum(c.useful[name] for c in costs) for name in OPERATIONS}
    return useful | {f"{name}_done": sum(c.done[name] for c in costs) for name in OPERATIONS}


def models(program: Program, batches: tuple[int, ...] = BATCHES) -> list[RooflineRow]:
    return [
        model(program, inputs, direction, batch, shape)
        for inputs in INPUTS for direction in DIRECTIONS for batch in batches for shape in SHAPES
    ]


def measured(row: RooflineRow, card: str, fused: Timing, by_dense: Timing | None) -> RooflineRow:
    """A row of the model with what was measured in its place."""
    return replace(
        row, kind="measured", card=card, seconds=fused.median, p20=fused.p20, p80=fused.p80,
        over_model=fused.median / row.model_seconds, dense_seconds=by_dense.median if by_dense else None,
        dense_over=by_dense.median / fused.median if by_dense else None,
    )


def measure(
    program: Program, batches: tuple[int, ...], device: torch.device, name: str, memory: float,
    timer: Timer | None = None,
) -> Iterator[RooflineRow]:
    """Both files of kernels in turn, and the dense reference where it fits. memory: bytes of the device."""
    if find_spec("triton") is None:
        raise NsfrcError('measuring needs the package triton: pip install "nsfrc[gpu]", or use --model')
    from nsfrc.benchmarks import on_card

    timer = timer or on_card.by_events
    small = dense.peak(program.plan, program.steps, 1, False) <= on_card.DENSE_SHARE * memory
    reference = on_card.reference_on(program, device) if small else None
    engines = [(shape, on_card.forced(program, shape)) for shape in SHAPES]
    for inputs in INPUTS:
        for direction in DIRECTIONS:
            for batch in batches:
                sample = on_card.Sample(program, inputs, direction, valuations(program, batch).to(device))
                by_dense = on_card.time_dense(sample, reference, timer, memory)
                for shape, engine in engines:
                    row = model(program, inputs, direction, batch, shape)
                    yield measured(row, name, timer(sample.run(engine)), by_dense)


def write_plot(rows: list[RooflineRow], path: Path) -> str:
    """What to tell the user about it."""
    if find_spec("matplotlib") is None:
        return 'no plot, which needs matplotlib: pip install "nsfrc[bench]"'
    plot(rows, path)
    return f"written: {path}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", help="a shipped program or a file; may be repeated")
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES))
    parser.add_argument("--json", action="store_true", help="print all rows as JSON and nothing else")
    parser.add_argument("--model", action="store_true", help="the model only, even where there is a GPU")
    parser.add_argument("--out", type=Path, help="folder for the files; the default is results/ if no program is named")
    options = parser.parse_args(arguments)
    if min(options.batches) < 1:
        parser.error("--batches must be 1 or more")
    try:
        run(options)
    except NsfrcError as error:
        parser.error(str(error))


def run(options: argparse.Namespace) -> None:
    out: Path | None = options.out or (None if options.program else RESULTS)
    rows: list[RooflineRow] = []
    for program in [open_program(name) for name in options.program or PROGRAMS]:
        rows += report(program, tuple(options.batches), options.model, quiet=options.json)
        if out is not None:
            write_csv(out / "roofline.csv", rows)  # after every program, so that stopping early loses little
    said = [f"written: {out / 'roofline.csv'}", write_plot(rows, out / "roofline.png")] if out is not None else []
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else "\n".join(said))


def report(program: Program, batches: tuple[int, ...], model_only: bool, quiet: bool) -> list[RooflineRow]:
    """The model's rows, printed, then those measured if there is a card."""
    rows = models(program, batches)
    if not quiet:
        for inputs in INPUTS:
            print(describe(plan_of(program, inputs), [r for r in rows if r.inputs == inputs]))
    if model_only or not torch.cuda.is_available():
        return rows
    device = torch.device("cuda")
    memory = torch.cuda.mem_get_info(device)[1]
    for row in measure(program, batches, device, torch.cuda.get_device_name(device), memory):
        rows.append(row)
        if not quiet:
            print(measured_line(row), flush=True)
    return rows


if __name__ == "__main__":
    main()
