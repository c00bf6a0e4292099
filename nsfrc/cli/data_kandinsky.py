"""`nsfrc data kandinsky`: figures with labels and true objects."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

from nsfrc.cli.choices import patterns
from nsfrc.data.figures import Palette


class Colors(click.ParamType):
    """Three colours as hexadecimal numbers → a palette."""

    name = "RRGGBB,RRGGBB,RRGGBB"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Palette:
        if isinstance(value, tuple):
            return value
        parts = [part.strip().removeprefix("#") for part in value.split(",")]
        if len(parts) != 3 or not all(re.fullmatch("[0-9a-fA-F]{6}", part) for part in parts):
            self.fail(f"{value!r} is not three colours such as 8000a0,3cb44b,00c8dc", param, ctx)
        red, yellow, blue = ((int(part[:2], 16), int(part[2:4], 16), int(part[4:], 16)) for part in parts)
        return red, yellow, blue


@click.command(
    "kandinsky",
    epilog="""\b
Patterns:
  twopairs  threepairs  closeby  red_triangle  online_pair  nine_circles
  free      no pattern: 2 to 10 objects anywhere, with boxes for training a detector
\b
Examples:
  nsfrc data kandinsky twopairs --out figures --count 200
  nsfrc data kandinsky free --out train --count 8000 --seed 1
  nsfrc data kandinsky red_triangle --out strange --palette 8000a0,3cb44b,00c8dc
""",
)
@click.argument("pattern", shell_complete=patterns)
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder for the figures.")
@click.option("--count", "-n", default=100, show_default=True, type=click.IntRange(1, 1_000_000),
              help="How many figures.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63), help="Same seed, same bytes.")
@click.option("--palette", type=Colors(), metavar="RRGGBB,RRGGBB,RRGGBB",
              help="Colours to draw red, yellow and blue in, which labels still call so. [those of the pattern]")
@click.option("--json", "as_json", is_flag=True, help="Say what was written as JSON.")
def command(pattern: str, out: Path, count: int, seed: int, palette: Palette | None, as_json: bool) -> None:
    """Make Kandinsky figures of PATTERN.

    Half of them have the pattern (DIR/true) and half do not (DIR/false), mostly for one reason only. The
    program of the same name agrees with every label. objects.json has the true objects of each figure.
    """
    from nsfrc.data import figure_folder as folder
    from nsfrc.data.kandinsky import chosen_name

    pattern = chosen_name(pattern)
    done = 0
    figures = folder.write(pattern, out, count, seed, palette)
    try:
        with click.progressbar(figures, length=count, label=f"drawing {pattern}", file=sys.stderr,
                               hidden=not sys.stderr.isatty()) as paths:
            for _ in paths:
                done += 1
    except KeyboardInterrupt:
        figures.close()  # writes objects.json of what is done
        click.echo(f"stopped after {done} of {count} figures, which are in {out}; "
                   f"the same command makes them all", err=True)
        raise SystemExit(130) from None
    if as_json:
        click.echo(json.dumps({"pattern": pattern, "out": str(out), "figures": done, "seed": seed}))
    else:
        click.echo(f"{done} figures of {pattern} in {out}, with their true objects in {out / folder.TRUTH}")
