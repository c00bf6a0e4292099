"""The Triton kernels on an A100: what engine "ptx" counts, over published figures; and times where there is a card.

    python -m nsfrc.benchmarks.roofline                       every shipped program under both semantics
    python -m nsfrc.benchmarks.roofline --program twopairs    one, printed only
    python -m nsfrc.benchmarks.roofline --json                for machines

Rows of kind "model" are counted: the machine code for sm_80 is executed for 32 and for 64 examples, one tile after the
other in one instance, so that what a tile costs is told from what comes once. The bound is the time of the busiest of
four resources on a full card; none of these rows is a measurement. With a card, rows of kind "measured" follow.
clevr_hans7 has 4 objects here. Writes results/roofline.csv and results/roofline.png.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from nsfrc.benchmarks import dense
from nsfrc.benchmarks.a100 import A100, Card
from nsfrc.benchmarks.measure import RESULTS, Timing, write_csv
from nsfrc.benchmarks.parts import PROGRAMS
from nsfrc.benchmarks.ptx import counted_program
from nsfrc.benchmarks.reasoning import valuations
from nsfrc.benchmarks.roofline_report import describe, measured_line, plot
from nsfrc.compiler import ir
from nsfrc.contexts import torch_threads
from nsfrc.engines.gpu import anchored_shapes
from nsfrc.engines.gpu.launch import (
    CLAUSE,
    INSTANCES_PER_MULTIPROCESSOR,
    PROGRAM,
    Shape,
    choose,
)
from nsfrc.engines.gpu.tables import pack
from nsfrc.errors import NsfrcError
from nsfrc.program import Program, open_program
from nsfrc.program import compile as compile_program

if TYPE_CHECKING:
    from nsfrc.benchmarks.on_card import Timer
    from nsfrc.engines.ptx.launch import Launch

FULL = 100_000  # examples, with which every instance that a card holds has several tiles
BATCHES = (1, 10, 100, 1000, 10_000, FULL)
TILE = 32  # examples of the larger tiles; the smaller ones divide it
DIRECTIONS = ("forward", "training")
SECTOR, LANES = 32, 32  # bytes; threads of a warp


class Counted(NamedTuple):
    """What some launches did: instructions of warps, those of them for the special function units, barriers of warps,
    sectors of 32 bytes asked of global memory, and bytes that the second cache had to fetch or take in."""

    instructions: float
    special: float
    barriers: float
    sectors: float
    missed: float

    def minus(self, other: Counted, parts: int = 1) -> Counted:
        return Counted(*((a - b) / parts for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class RooflineRow:
    """A program with one kind of kernels: targets from neural atoms, every clause chosen once.

    kind: "model" or "measured". direction: "forward", or "training" for forward and backward. kernels: "program" and
    "clause" of `paper`, "anchored" for those of `anchored`; chosen: whether the engine takes them for this batch.
    instructions … missed_bytes: of an example, its share of a tile; once_*: of an instance before its first tile, and
    for bytes also tables and workspace. *_ns: what an example takes of a full card by issue slots, special function
    units, bytes of the second cache (as if the first held nothing) and of memory; bound_ns: the largest, `limit`.
    of_roofline: the part of it that is the work itself, its special functions or bytes of memory, whichever is more;
    the rest is instructions and sectors around them.
    seconds: bound, or the median measured (with p20, p80); over_model: measured over bound. dense_*: eager dense
    PyTorch, which is modelled for `paper` only; seconds being measured in rows that are, if it fitted.
    """

    kind: str
    card: str
    program: str
    semantics: str
    objects: int
    direction: str
    kernels: str
    chosen: bool
    batch: int
    instructions: float
    special: float
    barriers: float
    sectors: float
    missed_bytes: float
    once_instructions: float
    once_missed_bytes: float
    issue_ns: float
    special_ns: float
    l2_ns: float
    memory_ns: float
    limit: str
    bound_ns: float
    of_roofline: float
    seconds: float
    p20: float | None
    p80: float | None
    over_model: float | None
    dense_bytes: float | None
    dense_gb: float | None
    dense_fits: bool | None
    dense_seconds: float | None
    dense_over: float | None


def both_semantics(name: str) -> Iterator[Program]:
    """A shipped program as `paper` and as `anchored`; a file as it is."""
    if name not in PROGRAMS:
        yield open_program(name)
        return
    source = counted_program(name).source
    for semantics in (ir.PAPER, ir.ANCHORED):
        yield compile_program(replace(source, settings=replace(source.settings, semantics=semantics)))


def shapes(program: Program) -> tuple[Shape | None, ...]:
    """Kinds of kernels; None is for what the engine chooses."""
    return (None,) if program.anchored else (PROGRAM, CLAUSE)


def launched(program: Program, shape: Shape | None, batch: int) -> tuple[tuple[list[Launch], ...], int]:
    """What is launched forwards, and for training, all tiles in one instance; and the bytes of tables."""
    reasoner = program.reasoner("ptx", inputs="neural", outputs="targets")
    engine: Any = reasoner.engine
    engine.runner.count, engine.runner.check = True, "off"
    tables = [0]

    def alone(make: Any, **changes: Any) -> Any:
        def made(*names: Any, **fields: Any) -> Any:
            tables[0] = sum(4 * fields[name].numel() for name in ("indices", "ints", "floats") if name in fields)
            return make(*names, **fields | {"instances": 1} | changes)

        return made

    if program.anchored:
        engine._make_table_job = alone(engine._make_table_job, shape=anchored_shapes.LARGE)
    else:
        engine.fixed, engine._make_job = shape, alone(engine._make_job)
    V0 = valuations(program, 4 * TILE)[:batch].float()  # the first ones are the same for every batch
    with torch.no_grad():
        reasoner(V0)
    forward = list(engine.launches)
    engine.launches.clear()
    reasoner(V0.requires_grad_()).sum().backward()
    return (forward, list(engine.launches)), tables[0]


def counted(launches: list[Launch], tables: int, card: Card) -> Counted:
    """An instance has its share of the second cache, and the tables there are everybody's. Kernels of "clause" find
    nothing there of what the launch before left, since a full card's workspace is larger."""
    from nsfrc.engines.ptx.tally import kind_of

    total = Counted(0, 0, 0, 0, 0)
    for one in launches:
        assert one.counts is not None
        kinds = {kind: sum(n for op, n in one.instructions.items() if kind_of(op) == kind)
                 for kind in ("special", "barriers")}
        share = tables + max(0, card.l2 - tables) // (INSTANCES_PER_MULTIPROCESSOR * card.multiprocessors)
        alone = one.kernel.startswith(("program", "anchored"))
        asked = sum(one.counts.by_kind[kind].parts for kind in ("ld global", "st global") if kind in one.counts.by_kind)
        done = Counted(sum(one.instructions.values()), kinds["special"], kinds["barriers"], asked,
                       one.counts.missed_bytes(share if alone else card.l2))
        total = Counted(*(a + b for a, b in zip(total, done, strict=True)))
    return total


def bounds(example: Counted, card: Card) -> dict[str, float]:
    """Seconds of an example on a full card, by resource."""
    return {
        "issue": example.instructions / card.rate(card.issued_each),
        "special": example.special * LANES / card.rate(card.special_each),
        "L2": example.sectors * SECTOR / (card.l2_clock * card.clock),
        "memory": example.missed / card.memory_rate,
    }


def models(
    program: Program, kinds: tuple[Shape | None, ...] | None = None, card: Card = A100
) -> Iterator[RooflineRow]:
    """Rows for all kinds of kernels, or for these."""
    for shape in kinds or shapes(program):
        with torch_threads(1):
            one, two = (launched(program, shape, batch) for batch in (TILE, 2 * TILE))
        for number, direction in enumerate(DIRECTIONS):
            less, more = (counted(launches[number], tables, card) for launches, tables in (one, two))
            yield _model(program, direction, shape, more.minus(less, TILE), less.minus(more.minus(less)), card)


def _model(
    program: Program, direction: str, shape: Shape | None, example: Counted, once: Counted, card: Card
) -> RooflineRow:
    by = bounds(example, card)
    limit = max(by, key=lambda resource: by[resource])
    row = RooflineRow(
        kind="model", card=card.name, program=program.name, semantics=program.source.settings.semantics,
        objects=max((len(t.constants) for t in program.source.types if t.role == ir.OBJECT), default=0),
        direction=direction, kernels=shape.kernels if shape else "anchored", chosen=True, batch=0,
        instructions=example.instructions, special=example.special, barriers=example.barriers,
        sectors=example.sectors, missed_bytes=example.missed, once_instructions=once.instructions,
        once_missed_bytes=once.missed, issue_ns=by["issue"] * 1e9, special_ns=by["special"] * 1e9,
        l2_ns=by["L2"] * 1e9, memory_ns=by["memory"] * 1e9, limit=limit, bound_ns=by[limit] * 1e9,
        of_roofline=max(by["special"], by["memory"]) / by[limit], seconds=0.0, p20=None, p80=None, over_model=None,
        dense_bytes=None, dense_gb=None, dense_fits=None, dense_seconds=None, dense_over=None,
    )
    return at_batch(row, program, FULL, card)


def at_batch(row: RooflineRow, program: Program, batch: int, card: Card = A100) -> RooflineRow:
    """The same for so many examples, beside dense PyTorch."""
    seconds = row.bound_ns * batch / 1e9
    row = replace(row, batch=batch, seconds=seconds)
    if program.anchored:
        return row
    whole, split = (pack(program.plan, True, shape.rows_of_part) for shape in (PROGRAM, CLAUSE))
    taken = choose(whole, split, batch, program.steps, False, card.multiprocessors).kernels
    moved, memory = dense_cost(program, row.direction, batch)
    by_dense = dense.seconds(moved, card)
    return replace(
        row, chosen=row.kernels == taken, dense_bytes=moved.bytes / batch, dense_gb=memory / 1e9,
        dense_fits=memory <= card.memory, dense_seconds=by_dense, dense_over=by_dense / seconds,
    )


def dense_cost(program: Program, direction: str, batch: int) -> tuple[dense.Moved, float]:
    """What eager dense PyTorch moves for a batch, and the bytes of memory it needs."""
    moved, training = dense.forward(program.plan, program.steps, batch), direction == "training"
    if training:
        moved += dense.backward(program.plan, program.steps, batch)
    return moved, dense.peak(program.plan, program.steps, batch, training)


def measured(row: RooflineRow, card: str, fused: Timing, by_dense: Timing | None) -> RooflineRow:
    """A row of the model with what was measured in its place."""
    return replace(
        row, kind="measured", card=card, seconds=fused.median, p20=fused.p20, p80=fused.p80,
        over_model=fused.median / row.seconds, dense_seconds=by_dense.median if by_dense else None,
        dense_over=by_dense.median / fused.median if by_dense else None,
    )


def measure(
    program: Program, rows: list[RooflineRow], batches: tuple[int, ...], device: torch.device, name: str, memory: float,
    timer: Timer | None = None,
) -> Iterator[RooflineRow]:
    """All kernels of the model's rows in turn, and the dense reference where it fits. memory: bytes of the device."""
    from nsfrc.benchmarks import on_card

    timer = timer or on_card.by_events
    small = not program.anchored and dense.peak(program.plan, program.steps, 1, False) <= on_card.DENSE_SHARE * memory
    reference = on_card.reference_on(program, device) if small else None
    engines = {shape.kernels if shape else "anchored": on_card.forced(program, shape) for shape in shapes(program)}
    for direction in DIRECTIONS:
        for batch in batches:
            sample = on_card.Sample(program, direction, valuations(program, batch).to(device))
            by_dense = on_card.time_dense(sample, reference, timer, memory)
            for row in (row for row in rows if row.direction == direction):
                yield measured(at_batch(row, program, batch), name, timer(sample.run(engines[row.kernels])), by_dense)


def write_plot(rows: list[RooflineRow], path: Path) -> str:
    """What to tell the user about it."""
    if find_spec("matplotlib") is None:
        return 'no plot, which needs matplotlib: pip install "nsfrc[bench]"'
    plot(rows, path)
    return f"written: {path}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", help="a shipped program or a file; may be repeated")
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES), help="to measure, with a card")
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
    if find_spec("triton") is None:
        raise NsfrcError('counting and measuring need the package triton: pip install "nsfrc[gpu]"')
    out: Path | None = options.out or (None if options.program else RESULTS)
    rows: list[RooflineRow] = []
    for program in (one for name in options.program or PROGRAMS for one in both_semantics(name)):
        for row in report(program, tuple(options.batches), options.model):
            rows.append(row)
            if not options.json:
                print(describe(row) if row.kind == "model" else measured_line(row), flush=True)
        if out is not None:
            write_csv(out / "roofline.csv", rows)  # after every program, so that stopping early loses little
    said = [f"written: {out / 'roofline.csv'}", write_plot(rows, out / "roofline.png")] if out is not None else []
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else "\n".join(said))


def report(program: Program, batches: tuple[int, ...], model_only: bool) -> Iterator[RooflineRow]:
    """The model's rows, then those measured if there is a card."""
    rows = list(models(program))
    yield from rows
    if not model_only and torch.cuda.is_available():
        device = torch.device("cuda")
        memory = torch.cuda.mem_get_info(device)[1]
        yield from measure(program, rows, batches, device, torch.cuda.get_device_name(device), memory)


if __name__ == "__main__":
    main()
