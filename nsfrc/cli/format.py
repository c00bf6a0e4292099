"""`nsfrc format`: programs in one layout."""

from __future__ import annotations

import difflib
import stat
from pathlib import Path

import click

from nsfrc.cli.check import STDIN, UNNAMED, stdin_bytes
from nsfrc.cli.choices import programs
from nsfrc.cli.lazy import without_numpy_threads
from nsfrc.errors import CompileError, NsfrcError


@click.command(
    "format",
    epilog="""\b
Examples:
  nsfrc format rules.pl                 written in place, if anything changes
  nsfrc format --check *.pl             which files are not laid out so, as before a commit
  nsfrc format --diff rules.pl          what would change
  nsfrc format - < rules.pl             from standard input to standard output
""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=programs)
@click.option("--check", is_flag=True, help="Write nothing; the exit code is 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing, and show what would change.")
def command(files: tuple[str, ...], check: bool, diff: bool) -> None:
    """Lay each FILE out in one way: a .pl file, or - for standard input.

    Only white space changes. Comments, blank lines between groups and the lines of clauses that are broken
    into several are kept. A file with a syntax error is left as it is, and the exit code is 1.
    """
    without_numpy_threads()
    if files.count(STDIN) > 1:
        raise click.UsageError("standard input (-) can only be read once")
    ok = True
    for file in files:
        try:
            changes = _formatted(file, check, diff)
        except CompileError as error:
            click.echo(str(error), err=True)
            ok = False
        except NsfrcError as error:
            click.echo(f"error: {error}", err=True)
            ok = False
        else:
            ok &= not (check and changes)
    raise SystemExit(0 if ok else 1)


def _formatted(file: str, check: bool, diff: bool) -> bool:
    """Format one file and say what was done; whether it changes."""
    from nsfrc.compiler.formatting import formatted
    from nsfrc.files import write_whole

    called = UNNAMED if file == STDIN else file
    before = _text(file, called)
    after = formatted(before, called)
    changes = before != after
    if diff and changes:
        click.echo(_difference(called, before, after), nl=False)
    if check and changes:
        click.echo(f"{called} would be laid out differently: nsfrc format {file}", err=True)
    if check or diff:
        return changes
    if file == STDIN:
        click.echo(after.encode(), nl=False)
    elif changes:
        path = Path(file).resolve()  # a link stays one
        write_whole(path, after.encode(), stat.S_IMODE(path.stat().st_mode))
        click.echo(f"formatted {file}", err=True)
    return changes


def _text(file: str, called: str) -> str:
    """The text of a program, with its byte order mark if it has one."""
    from nsfrc.compiler.parse.files import MAX_BYTES, read
    from nsfrc.errors import Diagnostics

    data = stdin_bytes() if file == STDIN else _read(Path(file))
    if len(data) > MAX_BYTES:
        raise NsfrcError(f"{called} is longer than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        found = Diagnostics()
        read(Path(called), found, data)  # which says at which place
        found.stop()
        raise


def _read(path: Path) -> bytes:
    from nsfrc.compiler.parse.files import MAX_BYTES

    try:
        if path.is_dir():
            raise NsfrcError(f"{path} is a folder: name the programs in it, as {path}/*.pl")
        if path.exists() and not path.is_file():
            raise NsfrcError(f"cannot format {path}: it is not a regular file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise NsfrcError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _difference(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), name, f"{name}, formatted", lineterm="")
    return "".join(f"{line}\n" for line in lines)
