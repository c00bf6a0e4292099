"""`nsfrc explain`: a program in words and numbers. Does not import torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from nsfrc.cli.choices import parse_slots, programs
from nsfrc.cli.machines import errors_as_json
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.describe.account import Explained


@click.command(
    "explain",
    epilog="""\b
Examples:
  nsfrc explain twopairs                     a shipped program
  nsfrc explain rules.pl --clause 2          one clause of it
  nsfrc explain threepairs --slots object=9  what more objects would cost
  nsfrc explain rules.nsfrc --json           what a compiled program does, for machines
""",
)
@click.argument("program", shell_complete=programs)
@click.option("--clause", type=click.IntRange(min=1), metavar="N", help="Only this clause; the first one is 1.")
@click.option("--slots", multiple=True, callback=parse_slots, metavar="TYPE=N",
              help="Size of a type declared with slots(...); repeatable.")
@click.option("--perception", metavar="FILE", help="A model file, whose class names types from_perception take.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON, for machines.")
def command(
    program: str, clause: int | None, slots: dict[str, int], perception: str | None, as_json: bool
) -> None:
    """Describe PROGRAM (.pl, .nsfrc or a shipped name) in words.

    It shows what is asked, what perception must see, each clause as a sentence with its cost, when each predicate can
    first be derived, and what a step costs. Nothing is written.

    `nsfrc infer --report` shows why an image has its answer.
    """
    from nsfrc.describe import account, as_text

    with errors_as_json(as_json):
        data = account(_open(program, slots, perception))
        if clause is not None and clause > len(data["clauses"]):
            raise NsfrcError(f"{data['program']} has no clause {clause}: its clauses are 1 to {len(data['clauses'])}")
    if not as_json:
        click.echo(as_text(data, clause))
        return
    click.echo(json.dumps(data if clause is None else data["clauses"][clause - 1], indent=1))


def _open(name: str, slots: dict[str, int], perception: str | None) -> Explained:
    from nsfrc.describe import of_artifact, of_compilation

    if name.endswith(".nsfrc"):
        from nsfrc.program import load

        if slots:
            raise NsfrcError(f"{name} is compiled, so its slots are fixed: give the .pl file to use --slots")
        return of_artifact(load(name), name)
    from nsfrc.compiler.stages import Options, compile_file
    from nsfrc.models.outside import Outside

    done = compile_file(name, Options(slots, outside=Outside(perception)))
    for warning in done.warnings:
        click.echo(str(warning), err=True)
    return of_compilation(done)
