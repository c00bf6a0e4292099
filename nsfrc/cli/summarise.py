"""`nsfrc summarise`: what a folder of results comes to."""

from __future__ import annotations

import json

import click

from nsfrc.errors import NsfrcError


@click.command(
    "summarise",
    epilog="""\b
Examples:
  nsfrc summarise rows/                 counts, accuracy, confusion matrix and calibration
  nsfrc summarise s3://bucket/rows --json
  nsfrc summarise rows/ --fit-threshold the best thresholds, as directives to copy
""",
)
@click.argument("dest")
@click.option("--fit-threshold", is_flag=True,
              help="Choose the thresholds that tell the labelled images apart best, as directives to copy.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(dest: str, fit_threshold: bool, as_json: bool) -> None:
    """Count the rows of DEST, a folder that nsfrc infer --ray wrote.

    Parts are read one after the other and only counts are kept, so that memory does not grow with their number. A
    folder that is still being written is counted as far as it is.
    """
    from nsfrc.ray.extra import need_arrow
    from nsfrc.ray.places import Place
    from nsfrc.ray.summary import summarise

    need_arrow()
    manifest, measures, missing = summarise(Place.of(dest))
    if not measures.count:
        raise NsfrcError(f"{dest} has no rows yet: the run that writes it has just begun, or --resume goes on with it")
    if missing:
        click.echo(f"warning: {len(missing)} of {manifest.expected} parts are not there yet: these are the numbers of "
                   f"the others; the same nsfrc infer with --resume answers for the rest", err=True)
    if as_json:
        click.echo(json.dumps({**measures.as_data(), "made_with": dict(manifest.made_with), "parts": manifest.expected,
                               "missing": len(missing)}))
    else:
        for name in ("program", "perception", "threshold"):
            click.echo(f"{name:<10}  {manifest.made_with.get(name, '')}")
        click.echo("\n" + measures.as_text())
    if fit_threshold:
        click.echo("\n" + measures.fitted(), err=as_json)
