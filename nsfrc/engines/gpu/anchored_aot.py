"""Which kernels an `anchored` program has, for compiling ahead of time. As in `aot`, the launchers are run on tensors
without memory, by jobs that write down what they are to launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from nsfrc.engines import GAMMA
from nsfrc.engines.gpu.anchored_launch import TableJob, WrittenJob, functions_of
from nsfrc.engines.gpu.anchored_shapes import LARGE, SMALL, WARM, Shape
from nsfrc.engines.gpu.anchored_tables import AnchoredTables, pack
from nsfrc.engines.gpu.anchored_written import LANES, Written, fits
from nsfrc.engines.gpu.aot import _Instances, _Tiles, type_of
from nsfrc.kernels import anchored, anchored_back

if TYPE_CHECKING:
    from nsfrc.compiler.levels import LevelPlan
    from nsfrc.program import Program

MOST_REGISTERS = 255  # that a thread can have


@dataclass(frozen=True)
class AnchoredKernel:
    """A kernel and all it is compiled for; see `aot.Kernel`. text: of kernels that are written out."""

    name: str
    variant: str
    constants: tuple[tuple[str, Any], ...]
    arguments: tuple[tuple[str, str], ...]
    grids: tuple[tuple[int | str, ...], ...]
    sizes: dict[str, Any] = field(hash=False)
    options: dict[str, Any] = field(hash=False)
    most_registers: int
    layout: Any = None
    text: str = ""

    @property
    def kernels(self) -> str:
        """The tables it reads: none if it is written out."""
        return "" if self.text else "anchored"

    @property
    def function(self) -> Any:
        if self.text:
            return functions_of(self.text)[self.name]
        return getattr(anchored, self.name, None) or getattr(anchored_back, self.name)

    @property
    def constexprs(self) -> dict[str, Any]:
        return dict(self.constants) | ({} if self.text else {"L": self.layout})

    @property
    def label(self) -> str:
        return f"{self.name}.{self.variant}" if self.variant else self.name


def anchored_kernels(program: Program, *, hard: bool, inputs: str, outputs: str) -> Iterator[AnchoredKernel]:
    """Every kernel that may be launched for a program with its own γ, in the order of the first launch."""
    plan = program.level_plan(inputs == "neural", outputs == "targets")
    warm = (program.settings.gamma or GAMMA) > WARM
    if fits(plan, soft=not hard):
        yield from _written(Written(plan, outputs == "targets", warm, program.atoms, program.clauses))
        return
    tables = pack(plan, outputs == "targets", soft=not hard)
    for shape in (LARGE, SMALL):
        yield from _table_driven(plan, tables, shape, warm, program.settings.steps)


@dataclass(frozen=True, eq=False)
class _WrittenRecorder(WrittenJob):
    launches: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def start(self, name: str, grid: tuple[int, ...], *arguments: Any) -> None:
        self.launches.append((name, arguments))


def _written(written: Written) -> Iterator[AnchoredKernel]:
    job = _WrittenRecorder(written, 1.0, 1.0)
    V0, weights = (torch.empty(rows, columns, device="meta") for rows, columns in ((1, written.plan.G), (0, 1)))
    out, past = job.forward(V0, weights, keep=True)
    job.backward(V0, weights, out, past)
    for name, arguments in job.launches:
        yield written_kernel(job, name, arguments)


def written_kernel(job: WrittenJob, name: str, arguments: tuple[Any, ...]) -> AnchoredKernel:
    """The kernel of a launch."""
    written = job.written
    names = functions_of(written.text)[name].arg_names
    return AnchoredKernel(
        name, "", (), tuple((n, type_of(a)) for n, a in zip(names, arguments, strict=True)), ((_Tiles.word,),),
        {"wide": LANES, "atoms": written.plan.G, "outputs": len(written.outputs)}, job.options, MOST_REGISTERS,
        text=written.text,
    )


@dataclass(frozen=True, eq=False)
class _TableRecorder(TableJob):
    launches: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        self.launches.append((kernel, arguments, constants))


def _table_driven(
    plan: LevelPlan, tables: AnchoredTables, shape: Shape, warm: bool, steps: int | None
) -> Iterator[AnchoredKernel]:
    ints, floats = (torch.empty(len(table), dtype=dtype, device="meta")
                    for table, dtype in ((tables.ints, torch.int32), (tables.floats, torch.float32)))
    job = _TableRecorder(tables, ints, floats, shape, 1.0, 1.0, warm, steps, _Instances(1))
    V0, weights = (torch.empty(rows, columns, device="meta")
                   for rows, columns in ((1, plan.G), (plan.C if tables.soft else 0, plan.C)))
    job.forward(V0, weights, keep=False)
    out, past = job.forward(V0, weights, keep=True)
    job.backward(V0, weights, out, past)
    for kernel, arguments, constants in job.launches:
        yield table_kernel(job, kernel, arguments, constants)


def table_kernel(
    job: TableJob, kernel: Any, arguments: tuple[Any, ...], constants: dict[str, Any]
) -> AnchoredKernel:
    """The kernel of a launch."""
    tables, shape = job.tables, job.shape
    row, n = tables.row, tables.n
    sizes = {
        "tall": shape.tall, "wide": shape.wide, "workspace_rows": row.top, "kept_rows": tables.kept(job.steps),
        "gradient_rows": row.chosen, "atoms": n.atoms, "outputs": n.outputs, "clauses": n.clauses, "pairs": n.pairs,
        "heads": n.heads,
    }
    small = "small" if shape == SMALL else ""
    parts = ["soft" if tables.soft else "", "keep" if constants.get("KEEP") else "", small]
    names = kernel.arg_names[: len(arguments)]
    return AnchoredKernel(
        kernel.__name__, ".".join(filter(None, parts)), tuple(sorted(constants.items())),
        tuple((name, type_of(value)) for name, value in zip(names, arguments, strict=True)), ((_Instances.word,),),
        sizes, job.options, shape.registers, tables.layout(shape, job.warm),
    )
