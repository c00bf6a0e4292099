"""`nsfrc check`: what is wrong with programs, and nothing else; quick enough to run at every save."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsfrc.cli.choices import parse_slots, programs
from nsfrc.cli.lazy import without_numpy_threads
from nsfrc.errors import Diagnostic, NsfrcError, count
from nsfrc.records import dataclass

if TYPE_CHECKING:
    from nsfrc.compiler.findings import Findings
    from nsfrc.compiler.stages import Options
    from nsfrc.models.names import ClassNames

STDIN, UNNAMED = "-", "<stdin>"


@dataclass(frozen=True)
class Verdict:
    """What was found in one file, and whether warnings fail too."""

    file: str
    found: Findings
    strict: bool

    @property
    def ok(self) -> bool:
        return not (self.found.diagnostics if self.strict else self.found.errors)


@click.command(
    "check",
    epilog="""\b
Examples:
  nsfrc check rules.pl                       every mistake, as FILE:LINE:COLUMN: error: ...
  nsfrc check *.pl --strict                  warnings fail too, as before a commit
  nsfrc check rules.pl --json                for an editor
  nsfrc check - --name rules.pl < buffer     text that is not saved yet
""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=programs)
@click.option("--name", metavar="FILE",
              help="What to call standard input (-); what it includes is looked for beside FILE.")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option("--slots", multiple=True, callback=parse_slots, metavar="TYPE=N",
              help="Size of a type declared with slots(...); repeatable.")
@click.option("--perception", metavar="FILE", help="A model file, whose class names types from_perception take.")
@click.option("--detections", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="Detections, whose class names types from_perception take.")
@click.option("--max-rows", type=click.IntRange(min=1), help="Refuse programs that ground to more rows. [30,000,000]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, with the findings of each file.")
def command(
    files: tuple[str, ...], name: str | None, strict: bool, slots: dict[str, int], perception: str | None,
    detections: Path | None, max_rows: int | None, as_json: bool,
) -> None:
    """Report every mistake in each FILE: a .pl file, a shipped program's name, or - for standard input.

    It finds what `nsfrc compile` would find, down to clauses that can never fire, and writes nothing.
    Findings go to standard output. The exit code is 1 if there is an error in any file.
    """
    without_numpy_threads()
    from nsfrc.compiler.ground import MAX_ROWS
    from nsfrc.compiler.stages import Options
    from nsfrc.models.outside import Outside

    if files.count(STDIN) > 1:
        raise click.UsageError("standard input (-) can only be read once")
    if name is not None and STDIN not in files:
        raise click.UsageError("--name says what to call standard input: also give - as FILE")
    outside = Outside(perception, None if detections is None else _class_names(detections))
    verdicts = []
    for file in files:
        options = Options(slots, max_rows=max_rows or MAX_ROWS, outside=outside)
        verdict = _verdict(file, name or UNNAMED, strict, options)
        verdicts.append(verdict)
        if not as_json:
            click.echo(_text(verdict))
    if as_json:
        import json  # most calls do without

        click.echo(json.dumps({"files": [_data(verdict) for verdict in verdicts]}, indent=1))
    raise SystemExit(0 if all(verdict.ok for verdict in verdicts) else 1)


def _class_names(path: Path) -> ClassNames:
    from nsfrc.models.detections import detections

    return detections(path).names


def _verdict(file: str, unsaved: str, strict: bool, options: Options) -> Verdict:
    """unsaved: what to call standard input."""
    from nsfrc.compiler.findings import Findings, findings

    called = unsaved if file == STDIN else file
    try:
        source, data = _source(file, called)
    except NsfrcError as error:
        return Verdict(called, Findings((Diagnostic(None, str(error)),), errors=1, warnings=0), strict)
    return Verdict(called, findings(source, data, options), strict)


def _source(file: str, called: str) -> tuple[Path, bytes | None]:
    """The path of a program, and its text where that is not in the file."""
    from nsfrc.compiler.parse import find_program

    if file == STDIN:
        return Path(called), stdin_bytes()
    path = find_program(file)
    if path.suffix == ".nsfrc":
        raise NsfrcError(f"{path} is compiled already: check the .pl file that it was made from")
    return path, None


def stdin_bytes() -> bytes:
    """What is on standard input, up to a byte more than a program may have."""
    from nsfrc.compiler.parse.files import MAX_BYTES

    if sys.stdin is None or sys.stdin.closed:
        raise NsfrcError("cannot read standard input: it is closed")
    try:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    except OSError as error:
        raise NsfrcError(f"cannot read standard input: {error.strerror}") from None


def _text(verdict: Verdict) -> str:
    lines = [str(d) if d.span else f"{verdict.file}: {d}" for d in verdict.found.diagnostics]
    return "\n".join([*lines, f"{verdict.file}: {_summary(verdict)}"])


def _summary(verdict: Verdict) -> str:
    found = verdict.found
    parts = [count(number, noun) for number, noun in ((found.errors, "error"), (found.warnings, "warning")) if number]
    if found.clauses is not None and found.atoms is not None:
        sizes = [count(found.clauses, "clause"), count(found.atoms, "ground atom")]
        parts = [*(["fine"] if verdict.ok else []), *sizes, *parts]
    return ", ".join(parts)


def _data(verdict: Verdict) -> dict[str, Any]:
    return {
        "file": verdict.file, "ok": verdict.ok, "clauses": verdict.found.clauses, "atoms": verdict.found.atoms,
        "diagnostics": [d.as_json() for d in verdict.found.diagnostics],
    }
