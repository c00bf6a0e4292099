"""`nsfrc import`: a published language folder becomes a program."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "import",
    epilog="""\b
Examples:
  nsfrc import lang/twopairs                   write twopairs.pl here
  nsfrc import lang/twopairs --out rules.pl
""",
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Where to write. [FOLDER.pl]")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(folder: Path, out: Path | None, force: bool) -> None:
    """Turn FOLDER (clauses.txt, consts.txt, preds.txt, neural_preds.txt, bk.txt) into one .pl file."""
    from nsfrc.compiler.importer import import_language
    from nsfrc.errors import Diagnostics, NsfrcError
    from nsfrc.files import write_whole

    remarks = Diagnostics()
    text = import_language(folder, remarks)
    for warning in remarks.warnings():
        click.echo(str(warning), err=True)
    path = out or Path(f"{folder.resolve().name}.pl")
    if path.exists() and not force:
        raise NsfrcError(f"{path} exists: name another file with --out, or replace it with --force")
    write_whole(path, text.encode())
    click.echo(f"written to {path}")
