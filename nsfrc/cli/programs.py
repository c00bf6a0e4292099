"""`nsfrc programs`: what comes with nsfrc."""

from __future__ import annotations

import click


@click.command("programs", epilog="Example: nsfrc programs")
def command() -> None:
    """List the programs that come with nsfrc; each name can stand for a file in other commands."""
    from nsfrc.parse import find_program, shipped_programs

    for name in shipped_programs():
        path = find_program(name)
        click.echo(f"{name:<14} {path}")
