"""`nsfrc figures`: the paper's figures, drawn from what this code computes."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import click


@click.command("figures", epilog="""\b
Figures:
  softor      soft-or beside the maximum and the probabilistic sum
  batch       time by batch size over the Kandinsky sets, from what `nsfrc bench` measured
  statistics  classes, numbers, places and sizes of the objects in pattern-free figures
  confusion   what the detector that ships takes for what, on figures it was not trained on
\b
Examples:
  nsfrc figures --out figures
  nsfrc figures --only softor,statistics --count 500
  nsfrc bench --quick --out results && nsfrc figures --only batch --results results
""")
@click.option("--out", "-o", default="figures", show_default=True, type=click.Path(path_type=Path),
              help="Folder for the pictures (.png) and the numbers behind them (.csv).")
@click.option("--only", help="Names of figures, separated by commas. [all]")
@click.option("--results", type=click.Path(path_type=Path),
              help="Folder that `nsfrc bench` wrote, for batch. [that of the checkout, if there is one]")
@click.option("--count", "-n", type=click.IntRange(1, 1_000_000),
              help="How many generated figures to look at. [2000 for statistics, 500 for confusion]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**62), help="Which generated figures.")
@click.option("--gamma", default=0.01, show_default=True, type=float, help="Softness of the soft-or in softor.")
@click.option("--json", "as_json", is_flag=True, help="Say what was written as JSON.")
def command(
    out: Path, only: str | None, results: Path | None, count: int | None, seed: int, gamma: float, as_json: bool
) -> None:
    """Draw the figures of the paper from what nsfrc computes, each with the numbers behind it.

    batch needs results of `nsfrc bench` and is left out if there are none; the others need nothing.
    """
    from nsfrc.benchmarks import paper_figures
    from nsfrc.benchmarks.paper_figures_base import Missing, Wanted
    from nsfrc.errors import NsfrcError

    names = paper_figures.NAMES if only is None else paper_figures.chosen_names(only)
    if not (math.isfinite(gamma) and 1e-6 <= gamma <= 10):
        raise NsfrcError(f"--gamma {gamma:g}: give a number from 0.000001 to 10, such as 0.01")
    paper_figures.ready(out)
    wanted = Wanted(gamma, results, count, seed, quiet=not sys.stderr.isatty())
    written: list[str] = []
    left_out: dict[str, str] = {}
    for name in names:
        try:
            png, csv = paper_figures.write(name, out, wanted)
        except Missing as error:
            left_out[name] = str(error)
            continue
        written += [str(png), str(csv)]
        if not as_json:
            click.echo(f"written to {png}, with its numbers in {csv}")
    if as_json:
        click.echo(json.dumps({"written": written, "left_out": left_out}))
    if left_out and only is not None:
        raise NsfrcError("; ".join(left_out.values()))
    for name, why in left_out.items():
        click.echo(f"{name} left out: {why}", err=True)
