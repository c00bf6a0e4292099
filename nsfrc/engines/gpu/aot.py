"""Compiling the kernels of a program ahead of time, without a GPU: `nsfrc compile --emit ptx|cubin`.

Which kernels a program has is not written down twice: the launchers are run on tensors without memory, with a
job that records what it is told to launch.

What is compiled is what Triton would compile at the launch: pointers are multiples of 16 bytes, as those of
torch are, and so is the stride of a row, which is a multiple of 32 values. The other whole numbers (batch, steps,
t, tiles, used) are any int32, since the kernels ask not to be specialised for them. Only for a V0 that does not begin
at a multiple of 16 bytes would Triton compile again.
"""

from __future__ import annotations

import io
import re
import tempfile
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nsfrc.errors import NsfrcError

try:
    import triton
except ImportError:
    raise NsfrcError('compiling kernels needs the package triton: pip install "nsfrc[gpu]"') from None
import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.errors import TritonError
from triton.runtime.jit import JITFunction

from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM, REGISTERS, WARPS, Shape
from nsfrc.engines.gpu.tables import Tables, layout, pack
from nsfrc.kernels import clause, program
from nsfrc.kernels.launch import Job
from nsfrc.kernels.layout import Layout

if TYPE_CHECKING:
    from nsfrc.program import Program

ARCHS = {"sm_80": 80, "sm_90": 90}
MODULES = {"program": program, "clause": clause}
SHAPES = (PROGRAM, CLAUSE)
# Numbers that are a multiple of 16 at every launch, which Triton then relies on.
ALIGNED = ("stride",)


@dataclass(frozen=True)
class Kernel:
    """A kernel and all it is compiled for.

    variant: what tells it from others of its name, such as "back.band0". arguments: (name, Triton's type).
    grids: instances along each axis, for every way it is launched: a number, "tiles" of examples, or "instances",
    of which there may be as many as one likes, each with a workspace of its own.
    """

    name: str
    variant: str
    kernels: str  # file it is in: "program" or "clause"
    layout: Layout
    constants: tuple[tuple[str, Any], ...]
    arguments: tuple[tuple[str, str], ...]
    grids: tuple[tuple[int | str, ...], ...]

    @property
    def function(self) -> Any:
        return getattr(MODULES[self.kernels], self.name)

    @property
    def most_registers(self) -> int:
        return REGISTERS

    @property
    def options(self) -> dict[str, Any]:
        """For Triton, beside the registers."""
        return {"num_warps": WARPS}

    @property
    def constexprs(self) -> dict[str, Any]:
        return {"L": self.layout, **dict(self.constants)}

    @property
    def sizes(self) -> dict[str, Any]:
        """What those who launch it must know of its layout."""
        what = self.layout
        return {
            "tall": what.tall, "wide": what.wide, "workspace_rows": what.row.end, "gradient": what.gradient,
            "atoms": what.n.atoms, "outputs": what.n.outputs, "kept": what.n.kept, "clauses": what.n.clauses,
            "pairs": what.n.pairs, "mixtures": what.n.mixtures,
        }

    @property
    def label(self) -> str:
        return f"{self.name}.{self.variant}" if self.variant else self.name


@dataclass(frozen=True)
class Compiled:
    """Machine code of a kernel, and what it needs: registers of a thread, bytes of spills (stored and loaded, in all
    functions of the kernel), of stack, and of shared memory."""

    kernel: Kernel
    arch: str
    entry: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared: int
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def variant(self) -> str:
        return self.kernel.variant


class _Tiles(int):
    """A number that is known again in a grid."""

    word = "tiles"


class _Instances(int):
    word = "instances"


@dataclass(frozen=True)
class _Recorder(Job):
    """A job that writes down what it is to launch."""

    launches: list[tuple[Any, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def tiles(self, batch: int) -> int:
        return _Tiles(super().tiles(batch))

    def launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        self.launches.append((kernel, grid, arguments, constants))


def kernels(
    program: Program, *, hard: bool = True, inputs: str = "neural", outputs: str = "targets"
) -> list[Kernel]:
    """Every kernel that may be launched for a program, for either scope of Z, in the order of the first launch.

    hard: every clause chosen once, or weights [C, C]. inputs, outputs: as for `Program.reasoner`.
    """
    if program.anchored:
        from nsfrc.engines.gpu.anchored_aot import anchored_kernels

        found_kernels: list[Any] = list(anchored_kernels(program, hard=hard, inputs=inputs, outputs=outputs))
        return found_kernels  # with what a Kernel is asked for
    plan = program.plan if inputs == "neural" else program.unmerged_plan()
    found: dict[tuple[Any, ...], Kernel] = {}
    for shape in SHAPES:
        packed = pack(plan, outputs == "targets", shape.rows_of_part)
        forward, backward = (
            layout(packed, shape.tall, shape.wide, 0 if hard else plan.C,
                   hard=hard, neural_only=inputs == "neural", gradient=gradient)
            for gradient in (False, True)
        )
        for whole_batch in (False, True) if shape is CLAUSE else (False,):
            for kernel in _recorded(forward, backward, packed, shape, whole_batch):
                same = found.setdefault(key := (kernel.name, kernel.constants, kernel.layout), kernel)
                found[key] = replace(same, grids=tuple(dict.fromkeys(same.grids + kernel.grids)))
    return list(found.values())


def _recorded(forward: Layout, backward: Layout, tables: Tables, shape: Shape, whole_batch: bool) -> list[Kernel]:
    """What the launchers start: forwards, forwards with V kept, and backwards."""
    nowhere = torch.device("meta")
    indices = torch.empty(tables.indices.size, dtype=torch.int32, device=nowhere)
    floats = torch.empty(tables.floats.size, device=nowhere)

    def recorder(what: Layout, keep: bool = False) -> _Recorder:
        return _Recorder(
            layout=what, indices=indices, floats=floats, k=1.0, unit=1.0, steps=3, whole_batch=whole_batch, keep=keep,
            warps=WARPS, registers=REGISTERS, instances=_Instances(0),
        )

    job, keeping, back = recorder(forward), recorder(forward, keep=True), recorder(backward)
    mixtures = 0 if forward.hard else forward.n.mixtures
    V0, weights = job.empty(1, forward.n.atoms), job.empty(mixtures, forward.n.clauses)
    launchers = MODULES[shape.kernels]
    launchers.forward(job, V0, weights)
    out, past = launchers.forward(keeping, V0, weights)
    launchers.backward(back, V0, weights, out, past)
    return [
        kernel_of(*launch, shape.kernels, recorder.layout) for recorder in (job, keeping, back)
        for launch in recorder.launches
    ]


def kernel_of(
    function: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], constants: dict[str, Any],
    module: str, what: Layout,
) -> Kernel:
    recomputed = what.gradient and function.__name__ in ("clause_rows", "spread_largest")
    parts = ["" if what.hard else "soft", "back" if recomputed else "", "keep" if constants.get("KEEP") else ""]
    parts += _differences(function.__name__, constants, what)
    names = function.arg_names[: len(arguments)]
    return Kernel(
        function.__name__, ".".join(filter(None, parts)), module, what, tuple(sorted(constants.items())),
        tuple((name, type_of(value)) for name, value in zip(names, arguments, strict=True)),
        (tuple(getattr(size, "word", size) for size in grid),),
    )


def _differences(name: str, constants: dict[str, Any], what: Layout) -> list[str]:
    """What tells the launches of one kernel from each other, in words."""
    parts = []
    if "BAND" in constants:
        bands = what.uses if name == "clause_uses" else what.sums
        parts.append(f"band{bands.index(constants['BAND'])}")
    if "FIRST" in constants and constants["FIRST"] == constants["LAST"]:
        parts.append(f"piece{constants['FIRST']}")
    if "ROW" in constants:
        rows = {what.row.clause_z: "clauses", what.row.derived_z: "derived", what.row.value_z: "values"}
        parts.append(rows[constants["ROW"]])
    return parts


def type_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return {torch.float32: "*fp32", torch.int32: "*i32"}[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def compile_kernel(kernel: Kernel, arch: str) -> Compiled:
    """Compile for "sm_80" or "sm_90", always from scratch and without source positions, so that nothing but the kernel
    decides what comes out."""
    if knobs.runtime.interpret or not isinstance(kernel.function, JITFunction):
        raise NsfrcError("TRITON_INTERPRET is set, so kernels are run in Python and not compiled: unset it")
    with ExitStack() as stack:
        for group in (knobs.cache, knobs.compilation, knobs.nvidia):
            stack.enter_context(group.scope())
        knobs.cache.dir = stack.enter_context(tempfile.TemporaryDirectory())
        knobs.compilation.disable_line_info = True
        knobs.nvidia.dump_ptxas_log = True
        log = stack.enter_context(redirect_stdout(io.StringIO()))  # where Triton prints what ptxas says
        try:
            done = triton.compile(
                source(kernel), target=GPUTarget("cuda", ARCHS[arch], 32),
                options={**kernel.options, "maxnreg": kernel.most_registers},
            )
        except TritonError as error:
            reason = str(error).strip().splitlines()
            raise NsfrcError(f"{kernel.label} does not compile for {arch}: {' '.join(reason[:3])}") from error
        return _compiled(kernel, arch, done, log.getvalue())


def source(kernel: Kernel) -> Any:
    """The kernel with its types and constants, as Triton's own launch would hand it to the compiler."""
    parameters, types = kernel.function.params, dict(kernel.arguments)
    attributes = {
        (p.num,): [["tt.divisibility", 16]]
        for p in parameters
        if types.get(p.name, "").startswith("*") or (p.name in ALIGNED and not p.do_not_specialize)
    }
    return ASTSource(
        fn=kernel.function, signature={p.name: types.get(p.name, "constexpr") for p in parameters},
        constexprs=kernel.constexprs, attrs=attributes,
    )


def _compiled(kernel: Kernel, arch: str, done: Any, log: str) -> Compiled:
    """ptxas gives the registers of the entry with all it calls, and stack and spills function by function."""
    registers = re.findall(r"Used (\d+) registers", log)
    functions = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if len(registers) != 1 or not functions:
        raise NsfrcError(f"cannot read what ptxas says of {kernel.label}: is Triton {triton.__version__} too new?")
    return Compiled(
        kernel=kernel, arch=arch, entry=done.metadata.name, registers=int(registers[0]),
        spill_bytes=sum(int(stores) + int(loads) for _, stores, loads in functions),
        stack_bytes=sum(int(frame) for frame, _, _ in functions), shared=done.metadata.shared,
        ptx=done.asm["ptx"], cubin=done.asm["cubin"],
    )
