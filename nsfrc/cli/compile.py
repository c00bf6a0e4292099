"""`nsfrc compile`: text in, artifact and report out. Imports torch only to compile kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsfrc.cli.choices import parse_slots, passes, programs
from nsfrc.cli.lazy import without_numpy_threads
from nsfrc.cli.machines import errors_as_json
from nsfrc.compiler.passes import NAMES
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.compiler.stages import Compilation

STAGES = ("ast", "ir", "ground", "index", "plan", "triton")
MACHINE_CODE = ("ptx", "cubin")  # a folder of kernels, and not a text
ARCHS = ("sm_80", "sm_90")


@click.command(
    "compile",
    epilog="""\b
Examples:
  nsfrc compile twopairs.pl                  write twopairs.nsfrc here and show the report
  nsfrc compile twopairs --slots object=6    a shipped program for six objects
  nsfrc compile rules.pl --emit ir           show the checked program
  nsfrc compile rules.pl --emit triton -o rules_gpu.py
                                             its GPU kernels as one Python file
  nsfrc compile rules.pl --emit cubin --arch sm_90
                                             machine code for an H100 into rules.sm_90/;
                                             no GPU is needed, but Triton is
  nsfrc compile rules.pl --json              the report for machines
""",
)
@click.argument("program", shell_complete=programs)
@click.option("--out", "-o", type=click.Path(path_type=Path),
              help="Where to write: a file, or a folder for ptx and cubin. [NAME.nsfrc, or NAME.ARCH]")
@click.option("--slots", multiple=True, callback=parse_slots, metavar="TYPE=N",
              help="Size of a type declared with slots(...); repeatable.")
@click.option("--perception", metavar="FILE", help="A model file, whose class names types from_perception take.")
@click.option("--emit", type=click.Choice([*STAGES, *MACHINE_CODE]),
              help="Show this stage instead, or write it with --out; ptx and cubin are always written.")
@click.option("--arch", type=click.Choice(ARCHS),
              help="What ptx and cubin are for: sm_80 is the A100, sm_90 the H100. [sm_80]")
@click.option("--count", is_flag=True,
              help="With --emit ptx: also execute the kernels on the CPU, check them, and count what they do.")
@click.option("--skip", multiple=True, metavar="PASS", shell_complete=passes,
              help=f"Leave out a pass ({', '.join(NAMES)}); repeatable.")
@click.option("--max-rows", type=click.IntRange(min=1), help="Refuse programs that ground to more rows. [30,000,000]")
@click.option("--json", "as_json", is_flag=True, help="Report, or errors, as JSON.")
def command(
    program: str, out: Path | None, slots: dict[str, int], perception: str | None, emit: str | None, arch: str | None,
    count: bool,
    skip: tuple[str, ...], max_rows: int | None, as_json: bool,
) -> None:
    """Compile PROGRAM, a .pl file or the name of a shipped program.

    Errors are listed all at once with their places. The result is one file, NAME.nsfrc in the
    current folder, which `nsfrc.load` and the other commands read without compiling again.

    With --emit ptx or cubin it is a folder: machine code of every GPU kernel for neural inputs, target outputs and
    hard clause weights, the tables they read, and kernels.json, which says how to launch them.
    """
    without_numpy_threads()
    from nsfrc.compiler.ground import MAX_ROWS
    from nsfrc.compiler.stages import Options, compile_file
    from nsfrc.models.outside import Outside

    _check_options(emit, arch, out, count)
    with errors_as_json(as_json):
        done = compile_file(program, Options(slots, skip, max_rows or MAX_ROWS, Outside(perception)))
        _refuse_overwrite(done.source, out)
        if not as_json:
            for warning in done.warnings:
                click.echo(str(warning), err=True)
        if emit in STAGES:
            _emit(done, emit, out)
            if out is not None and not as_json:
                click.echo(f"written to {out}")
            return
        data = _compile_kernels(done, emit, arch or ARCHS[0], out) if emit else _save(done, out)
        counted = _count(done, arch or ARCHS[0]) if count else ([], [])
    from nsfrc.compiler.report import as_text

    if as_json:
        click.echo(json.dumps(data | ({"counts": counted[0]} if count else {}), indent=1))
        return
    click.echo(as_text(data))
    for line in counted[1]:
        click.echo(line)


def _check_options(emit: str | None, arch: str | None, out: Path | None, count: bool) -> None:
    if count and emit != "ptx":
        raise click.UsageError("--count is for --emit ptx only")
    if emit in MACHINE_CODE:
        return
    if arch is not None:
        raise click.UsageError(f"--arch {arch} is for --emit ptx and --emit cubin only")
    if out is not None and out.is_dir():
        raise click.BadParameter(f"{out} is a directory: name a file", param_hint="--out")


def _save(done: Compilation, out: Path | None) -> dict[str, Any]:
    """Write the artifact; the report."""
    from nsfrc.compiler.report import as_data
    from nsfrc.program import from_compilation

    return as_data(done, from_compilation(done).save(out or Path(f"{done.program.name}.nsfrc")))


def _compile_kernels(done: Compilation, emit: str, arch: str, out: Path | None) -> dict[str, Any]:
    """Write a folder of machine code; the report."""
    from nsfrc.compiler.report import as_data
    from nsfrc.engines.gpu import aot, kernel_folder
    from nsfrc.program import from_compilation

    program, path = from_compilation(done), out or Path(f"{done.program.name}.{arch}")
    kernel_folder.refuse_foreign(path)  # before the minute that compiling takes
    with click.progressbar(aot.kernels(program), label=f"compiling kernels for {arch}", file=sys.stderr) as kernels:
        compiled = [aot.compile_kernel(kernel, arch) for kernel in kernels]
    kernel_folder.write(path, kernel_folder.contents(program, compiled, emit))
    return as_data(done, path, compiled)


def _count(done: Compilation, arch: str) -> tuple[list[dict[str, Any]], list[str]]:
    """What the kernels do, as data and as lines."""
    from dataclasses import asdict

    from nsfrc.engines.ptx.tally import as_lines, tally
    from nsfrc.program import from_compilation

    rows = tally(from_compilation(done), arch)
    return [asdict(one) for one in rows], ["", *as_lines(rows)]


def _refuse_overwrite(source: Path, out: Path | None) -> None:
    if out is not None and out.exists() and out.samefile(source):
        raise NsfrcError(f"--out {out} is the program itself: name another file")


def _emit(done: Compilation, stage: str, out: Path | None) -> None:
    from nsfrc.files import write_whole

    if out is None:
        for line in _lines(done, stage):
            click.echo(line)
    elif out.suffix == ".npy":
        _emit_npy(done, stage, out)
    else:
        write_whole(out, "".join(line + "\n" for line in _lines(done, stage)).encode())


def _lines(done: Compilation, stage: str) -> Iterator[str]:
    from nsfrc.compiler.emit import STAGES as writers
    from nsfrc.program import from_compilation

    if stage != "triton":
        return writers[stage](done)
    from nsfrc.engines.gpu.source import emit

    return iter(emit(from_compilation(done)).splitlines())


def _emit_npy(done: Compilation, stage: str, out: Path) -> None:
    """The dense index tensor as a numpy file."""
    import io

    import numpy as np

    from nsfrc.files import write_whole
    from nsfrc.program import from_compilation

    if stage != "index":
        raise NsfrcError(f"{out}: only --emit index can be written as .npy, not {stage}")
    data = io.BytesIO()
    np.save(data, from_compilation(done).index_tensor())
    write_whole(out, data.getvalue())
