"""`nsfrc compile`: text in, artifact and report out. Never imports torch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsfrc.errors import CompileError, Diagnostic, NsfrcError

if TYPE_CHECKING:
    from nsfrc.compiler import Compilation

STAGES = ("ast", "ir", "ground", "index", "plan")


def parse_slots(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """`object=9` → {"object": 9}."""
    slots = {}
    for value in values:
        name, _, number = value.partition("=")
        if not name or not re.fullmatch("[0-9]{1,9}", number) or int(number) < 1:
            raise click.BadParameter(f"{value!r} is not TYPE=NUMBER, as in object=9")
        slots[name] = int(number)
    return slots


@click.command(
    "compile",
    epilog="""\b
Examples:
  nsfrc compile twopairs.pl                  write twopairs.nsfrc here and show the report
  nsfrc compile twopairs --slots object=6    a shipped program for six objects
  nsfrc compile rules.pl --emit ir           show the checked program
  nsfrc compile rules.pl --json              the report for machines
""",
)
@click.argument("program")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Where to write. [NAME.nsfrc]")
@click.option("--slots", multiple=True, callback=parse_slots, metavar="TYPE=N",
              help="Size of a type declared with slots(...); repeatable.")
@click.option("--emit", type=click.Choice(STAGES), help="Show this stage instead, or write it with --out.")
@click.option("--skip", multiple=True, metavar="PASS",
              help="Leave out a pass: live, multiset, number, goal or share; repeatable.")
@click.option("--max-rows", type=click.IntRange(min=1), help="Refuse programs that ground to more rows. [30,000,000]")
@click.option("--json", "as_json", is_flag=True, help="Report, or errors, as JSON.")
def command(
    program: str, out: Path | None, slots: dict[str, int], emit: str | None, skip: tuple[str, ...],
    max_rows: int | None, as_json: bool,
) -> None:
    """Compile PROGRAM, a .pl file or the name of a shipped program.

    Errors are listed all at once with their places. The result is one file, NAME.nsfrc in the
    current folder, which `nsfrc.load` and the other commands read without compiling again.
    """
    from nsfrc.compiler import compile_file
    from nsfrc.ground import MAX_ROWS

    try:
        done = compile_file(program, slots=slots, skip=skip, max_rows=max_rows or MAX_ROWS)
        _refuse_overwrite(done.source, out)
    except NsfrcError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"errors": [d.as_json() for d in _diagnostics(error)]}, indent=1))
        raise SystemExit(1) from None
    if not as_json:
        for warning in done.warnings:
            click.echo(str(warning), err=True)
    if emit:
        _emit(done, emit, out)
        return
    from nsfrc.program import from_compilation
    from nsfrc.report import as_data, as_text

    path = from_compilation(done).save(out or Path(f"{done.program.name}.nsfrc"))
    data = as_data(done, path)
    click.echo(json.dumps(data, indent=1) if as_json else as_text(data))


def _diagnostics(error: NsfrcError) -> tuple[Diagnostic, ...]:
    return error.diagnostics if isinstance(error, CompileError) else (Diagnostic(None, str(error)),)


def _refuse_overwrite(source: Path, out: Path | None) -> None:
    if out is not None and out.exists() and out.samefile(source):
        raise NsfrcError(f"--out {out} is the program itself: name another file")


def _emit(done: Compilation, stage: str, out: Path | None) -> None:
    from nsfrc.artifact import write_whole
    from nsfrc.emit import STAGES as writers

    if out is None:
        for line in writers[stage](done):
            click.echo(line)
    elif out.suffix == ".npy":
        _emit_npy(done, stage, out)
    else:
        write_whole(out, "".join(line + "\n" for line in writers[stage](done)).encode())


def _emit_npy(done: Compilation, stage: str, out: Path) -> None:
    """The dense index tensor as a numpy file."""
    import io

    import numpy as np

    from nsfrc.artifact import write_whole
    from nsfrc.program import from_compilation

    if stage != "index":
        raise NsfrcError(f"{out}: only --emit index can be written as .npy, not {stage}")
    data = io.BytesIO()
    np.save(data, from_compilation(done).index_tensor())
    write_whole(out, data.getvalue())
