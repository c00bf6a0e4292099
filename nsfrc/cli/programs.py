"""`nsfrc programs`: what comes with nsfrc."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import click


@click.command("programs", epilog="Example: nsfrc programs")
def command() -> None:
    """List the programs that come with nsfrc; other commands take these names instead of a file."""
    from nsfrc.compiler.parse import find_program, shipped_programs

    for name in shipped_programs():
        path = find_program(name)
        click.echo(f"{name:<14} {path}\n{_about(path)}\n")


def _about(path: Path) -> str:
    """The comment that a shipped program begins with."""
    lines = takewhile(lambda line: line.startswith("%"), path.read_text("utf-8").splitlines())
    indent = " " * 15
    return click.wrap_text(" ".join(line.lstrip("% ") for line in lines), 100, indent, indent)
