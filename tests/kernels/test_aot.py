"""Ahead of time, without a GPU: the kernels of every shipped program compile and spill nothing.

Compiling everything for hard and soft weights, and for either kind of tables, takes an hour: that is
`python -m nsfrc.benchmarks.aot`. Here the kernels that take a whole program at once, which need most registers, are
compiled for each program for sm_80, with hard or soft weights and for targets only or all atoms as is its turn, and for
sm_90 for a small program and the largest, with the other weights and tables. The kernel that needs most of all,
program_backward, is compiled with both weights. Every kernel (each band, and the pieces that a maximum over the batch
cuts kernels into) is compiled for one program, by `nsfrc compile --emit ptx`, whose folder is looked at as well; every
one without pieces for the others too where the suite is to be thorough.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.engines.gpu import aot
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM, REGISTERS, WARPS, Shape
from nsfrc.engines.gpu.tables import layout, pack
from nsfrc.errors import NsfrcError
from nsfrc.kernels.launch import Job
from nsfrc.program import Program
from nsfrc.program import compile as compile_program
from tests.amount import sample
from tests.examples import SHIPPED

ROOT = Path(nsfrc.__file__).parents[1]
PIECES = [f"piece{i}" for i in range(4)]
TWOPAIRS = {
    "program_forward", "program_forward.keep", "program_backward",
    "clause_start", "clause_rows.band0", "clause_join", "clause_join.keep",
    *(f"clause_join.{piece}" for piece in PIECES), "clause_join.keep.piece2", "clause_join.keep.piece3",
    *(f"spread_largest.{z}" for z in ("clauses", "derived", "values")),
    "clause_start_back", "clause_rows.back.band0",
    "clause_join_back", *(f"clause_join_back.piece{i}" for i in range(6)),
    *(f"spread_largest.back.{z}" for z in ("clauses", "derived")), "spread_claim",
    "clause_uses.band0", "clause_uses.band1", "clause_end_back",
}


WHOLE = "twopairs"  # of which every kernel is compiled, for sm_80
CLAUSES = sample((), SHIPPED)  # of which those for clauses are, without pieces
CASES = [(name, "sm_80") for name in SHIPPED] + [("twopairs", "sm_90"), ("clevr_hans7", "sm_90")]
# What the command compiles; it takes hard weights, neural inputs and target outputs, as `chosen` does for these.
COMMAND = ("twopairs", "sm_80")


@dataclass(frozen=True)
class Needs:
    """What is asserted of a kernel; its code stays in the worker."""

    label: str
    registers: int
    most_registers: int
    spill_bytes: int
    stack_bytes: int
    target: str
    code: int


def needs(kernel: aot.Kernel, arch: str) -> Needs:
    done = aot.compile_kernel(kernel, arch)
    target = re.findall(r"^\.target (\w+)$", done.ptx, re.MULTILINE)
    return Needs(
        kernel.label, done.registers, kernel.most_registers, done.spill_bytes, done.stack_bytes, *target,
        len(done.cubin),
    )


@cache
def chosen(name: str, arch: str) -> list[aot.Kernel]:
    """All kernels of a program for a card, with the weights and tables that are its turn."""
    number, second = SHIPPED.index(name), arch == "sm_90"
    hard, targets = (number % 2 == 0) != second, (number // 2 % 2 == 0) != second
    tables = {"inputs": "neural" if targets else "all", "outputs": "targets" if targets else "all"}
    program = compile_program(name)
    other = aot.kernels(program, hard=not hard, **tables)
    found = aot.kernels(program, hard=hard, **tables) + [k for k in other if k.name == "program_backward"]
    if (name, arch) == (WHOLE, "sm_80"):
        return found
    clauses = name in CLAUSES and not second
    return [k for k in found if k.name.startswith("program") or (clauses and not _only_for_batches(k))]


def _only_for_batches(kernel: aot.Kernel) -> bool:
    return "piece" in kernel.label or kernel.name.startswith("spread")


@pytest.fixture(scope="module")
def clean() -> Iterator[None]:
    """An environment for new processes in which Triton compiles; aot itself never uses a cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRITON_INTERPRET", raising=False)
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield


@dataclass(frozen=True)
class Written:
    """What `nsfrc compile --emit ptx` wrote and reported, and two folders with some of the same kernels."""

    folder: Path
    reported: list[dict]
    elsewhere: list[Path]


Started = tuple[Path, list[subprocess.Popen[str]]]


@pytest.fixture(scope="module")
def started(clean: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The command in one place and some of the same kernels in two others, at work beside what follows."""
    base = tmp_path_factory.mktemp("code")
    main = "from nsfrc.cli import main; main()"
    processes = [
        python(base / "here", main, "compile", COMMAND[0], "--emit", "ptx", "--arch", COMMAND[1], "--json"),
        *(python(base / place, AGAIN, COMMAND[0]) for place in ("there", "a longer name")),
    ]
    yield base, processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def written(started: Started) -> Written:
    base, processes = started
    printed = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], printed
    return Written(base / "here" / ".".join(COMMAND), json.loads(printed[0][0])["kernels"],
                   [base / "there", base / "a longer name"])


@pytest.fixture(scope="module")
def everything(started: Started, request: pytest.FixtureRequest) -> dict[tuple[str, str], list[Needs]]:
    by_command = aot.kernels(compile_program(COMMAND[0]))
    work = [
        (name, arch, kernel) for name, arch in CASES for kernel in chosen(name, arch)
        if (name, arch) != COMMAND or kernel not in by_command
    ]
    found: dict[tuple[str, str], list[Needs]] = {}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        done = pool.map(needs, [kernel for *_, kernel in work], [arch for _, arch, _ in work])
        for (name, arch, _), result in zip(work, done, strict=True):
            found.setdefault((name, arch), []).append(result)
    found[COMMAND] += needs_of_folder(request.getfixturevalue("written"))
    return found


def needs_of_folder(written: Written) -> list[Needs]:
    found = []
    for entry, one in zip(json.loads((written.folder / "kernels.json").read_text())["kernels"], written.reported,
                          strict=True):
        target = re.findall(r"^\.target (\w+)$", (written.folder / entry["file"]).read_text(), re.MULTILINE)
        found.append(Needs(
            entry["file"].removesuffix(".ptx"), entry["registers"], entry["most_registers"], entry["spill_bytes"],
            entry["stack_bytes"], *target, one["cubin_bytes"],
        ))
    return found


@pytest.mark.parametrize("name, arch", CASES)
def test_every_kernel_compiles_and_spills_nothing(
    name: str, arch: str, everything: dict[tuple[str, str], list[Needs]]
) -> None:
    found = everything[name, arch]
    assert sorted(n.label for n in found) == sorted(k.label for k in chosen(name, arch))
    assert len(found) >= (28 if (name, arch) == (WHOLE, "sm_80") else 12 if arch == "sm_80" and name in CLAUSES else 4)
    assert [n for n in found if n.spill_bytes or n.stack_bytes or n.registers > n.most_registers] == []
    assert {n.target for n in found} == {{"sm_80": "sm_80", "sm_90": "sm_90a"}[arch]}
    assert min(n.registers for n in found) > 0 and min(n.code for n in found) > 1000


def test_both_weights_and_both_tables_are_compiled() -> None:
    for name, arch in CASES:
        assert {k.layout.hard for k in chosen(name, arch) if k.name == "program_backward"} == {True, False}
    assert {(chosen(name, "sm_80")[0].layout.hard, chosen(name, "sm_80")[0].layout.neural_only)
            for name in SHIPPED} == {(h, n) for h in (False, True) for n in (False, True)}


def test_the_kernels_of_a_program() -> None:
    program = compile_program("twopairs")
    hard, soft = aot.kernels(program), aot.kernels(program, hard=False)
    assert sorted(k.label for k in hard) == sorted(TWOPAIRS)
    assert sorted(k.label.replace(".soft", "") for k in soft) == sorted([*TWOPAIRS, "clause_weights"])
    assert {k.layout.n.mixtures for k in soft} == {program.plan.C}
    for kernel in (*hard, *soft):
        shape = PROGRAM if kernel.name.startswith("program") else CLAUSE
        assert (kernel.layout.tall, kernel.layout.wide) == (shape.tall, shape.wide)
    grids = {k.label: k.grids for k in hard}
    assert grids["program_forward"] == (("instances",),)
    assert grids["clause_rows.band0"] == (("tiles", 1),)
    assert grids["spread_claim"] == ((1,), (program.plan.C,))


class Launches(Job):
    """What is launched for real tensors, and with what."""

    def launch(self, kernel, grid, *arguments, **constants):  # type: ignore[no-untyped-def]
        LAUNCHED.append((kernel.__name__, self.layout, constants, arguments))


LAUNCHED: list[tuple] = []


def launched(program: Program, shape: Shape, hard: bool, whole_batch: bool, batch: int, steps: int) -> list[tuple]:
    tables = pack(program.plan, True, shape.rows_of_part)
    forward, backward = (
        Launches(
            layout=layout(tables, shape.tall, shape.wide, 0 if hard else program.plan.C,
                          hard=hard, neural_only=True, gradient=gradient),
            indices=torch.from_numpy(tables.indices.copy()), floats=torch.from_numpy(tables.floats.copy()),
            k=144.0, unit=1 / 144, steps=steps, whole_batch=whole_batch, keep=not gradient, warps=WARPS,
            registers=REGISTERS, instances=432,
        )
        for gradient in (False, True)
    )
    V0, weights = torch.zeros(batch, program.plan.G), torch.zeros(0 if hard else program.plan.C, program.plan.C)
    LAUNCHED.clear()
    kernels = aot.MODULES[shape.kernels]
    out, past = kernels.forward(forward, V0, weights)
    kernels.backward(backward, V0, weights, out, past)
    return list(LAUNCHED)


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("name", ["twopairs", "clevr_hans3"])
def test_what_is_compiled_is_what_triton_would_compile_at_the_launch(name: str, hard: bool) -> None:
    from triton._C.libtriton import native_specialize_impl
    from triton.backends.nvidia.compiler import CUDABackend

    program = compile_program(name)
    listed = {(k.name, k.layout, k.constants): k for k in aot.kernels(program, hard=hard)}
    for shape, whole_batch in ((PROGRAM, False), (CLAUSE, False), (CLAUSE, True)):
        for function, what, constants, arguments in launched(program, shape, hard, whole_batch, batch=37, steps=5):
            kernel = listed[function, what, tuple(sorted(constants.items()))]
            source = aot.source(kernel)
            assert [n for n, kind in source.signature.items() if kind == "constexpr"] == [
                p for p in kernel.function.arg_names if p in constants or p == "L"]
            for number, value in enumerate(arguments):
                argument = kernel.function.arg_names[number]
                kind, special = native_specialize_impl(CUDABackend, value, False, True, True)
                aligned = (number,) in source.attrs
                if argument in ("batch", "steps", "t", "tiles", "used"):  # any number, so none in particular
                    assert (source.signature[argument], aligned) == ("i32", False)
                else:
                    assert (source.signature[argument], aligned) == (kind, special == "D"), (function, argument)


def python(folder: Path, script: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a script in a folder that is its home, its place for temporary files and where it stands."""
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder), "HOME": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


AGAIN = """
import sys
from pathlib import Path
from nsfrc.engines.gpu import aot
from nsfrc.program import compile
for kernel in aot.kernels(compile(sys.argv[1])):
    if kernel.label in ("program_forward", "spread_claim"):
        for arch in aot.ARCHS:
            done = aot.compile_kernel(kernel, arch)
            Path(f"{arch}.{kernel.label}.ptx").write_text(done.ptx)
            Path(f"{arch}.{kernel.label}.cubin").write_bytes(done.cubin)
"""


def test_a_folder_of_machine_code(written: Written) -> None:
    """The command itself in one place, some of the same kernels again in two others: the same bytes."""
    check_folder(written.folder, written.reported)
    one, other = written.elsewhere
    for path in one.glob("sm_*"):
        data = path.read_bytes()
        assert data == (other / path.name).read_bytes()
        assert b".loc" not in data and str(ROOT).encode() not in data and str(one.parent).encode() not in data
        if path.name.startswith(COMMAND[1]) and path.suffix == ".ptx":
            assert data == (written.folder / path.name.removeprefix(f"{COMMAND[1]}.")).read_bytes()
    assert len(list(one.glob("sm_*"))) == 8


def check_folder(folder: Path, reported: list[dict]) -> None:
    manifest, program = json.loads((folder / "kernels.json").read_text()), compile_program(COMMAND[0])
    kernels = {f"{k.label}.ptx": k for k in aot.kernels(program)}
    assert manifest["arch"] == COMMAND[1] and manifest["targets"] == ["kp(img)"]
    assert [k["file"] for k in manifest["kernels"]] == list(kernels)
    tables = [file for files in manifest["tables"].values() for file in files.values()]
    assert {p.name for p in folder.iterdir()} == {"kernels.json", *kernels, *tables}
    packed = pack(program.plan, True, CLAUSE.rows_of_part)
    assert np.array_equal(np.load(folder / manifest["tables"]["clause"]["indices"]), packed.indices)
    for entry, one in zip(manifest["kernels"], reported, strict=True):
        kernel = kernels[entry["file"]]
        assert (folder / entry["file"]).stat().st_size == one["ptx_bytes"]
        assert entry["entry"].encode() in (folder / entry["file"]).read_bytes()
        assert (entry["kernel"], entry["variant"]) == (one["kernel"], one["variant"]) == (kernel.name, kernel.variant)
        assert entry["spill_bytes"] == one["spill_bytes"] == 0
        assert 0 < entry["registers"] == one["registers"] <= entry["most_registers"] == kernel.most_registers
        assert entry["shared_bytes"] == one["shared_bytes"] and entry["num_warps"] == WARPS
        assert entry["layout"]["workspace_rows"] == kernel.layout.row.end
        assert entry["layout"]["wide"] == kernel.layout.wide


def test_arguments_are_those_of_the_machine_code(clean: None) -> None:
    from nsfrc.engines.gpu import kernel_folder

    program = compile_program("closeby")
    compiled = [aot.compile_kernel(k, "sm_80") for k in aot.kernels(program) if k.label in ("clause_start_back",)]
    (entry,) = json.loads(kernel_folder.contents(program, compiled, "ptx")["kernels.json"])["kernels"]
    parameters = re.findall(r"\.param \.(\w+)", re.findall(r"\.visible \.entry[^{]*", compiled[0].ptx)[0])
    sizes = {"u64": "*", "u32": "i32", "f32": "fp32"}
    assert [sizes[p] for p in parameters] == [
        "*" if a["type"].startswith("*") else a["type"] for a in entry["arguments"]]
    assert [a["name"] for a in entry["arguments"]][:3] == ["g_out", "past", "past_z"]


def test_interpreted_kernels_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = aot.kernels(compile_program("closeby"))[0]
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(NsfrcError, match="TRITON_INTERPRET is set"):
        aot.compile_kernel(kernel, "sm_80")


def test_what_ptxas_says_is_added_up() -> None:
    """Spills of every function count, stores and loads."""
    log = (
        "ptxas info    : Function properties for a\n"
        "    8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 96 registers, used 1 barriers\n"
        "ptxas info    : Function properties for b\n"
        "    16 bytes stack frame, 16 bytes spill stores, 1 bytes spill loads\n"
    )
    kernel = aot.kernels(compile_program("closeby"))[0]

    class Done:
        metadata = type("Metadata", (), {"name": "entry", "shared": 512})
        asm = {"ptx": "", "cubin": b""}  # noqa: RUF012

    done = aot._compiled(kernel, "sm_80", Done, log)
    assert (done.registers, done.spill_bytes, done.stack_bytes, done.shared) == (96, 29, 24, 512)
    with pytest.raises(NsfrcError, match="cannot read what ptxas says"):
        aot._compiled(kernel, "sm_80", Done, "")
