"""`nsfrc data`: figures and scenes with labels and true objects, to train and test on."""

from __future__ import annotations

import click

from nsfrc.cli.lazy import LazyGroup

COMMANDS = {
    "kandinsky": ("nsfrc.cli.data_kandinsky", "Kandinsky figures, with or without a pattern."),
    "clevr": ("nsfrc.cli.data_clevr:clevr", "CLEVR scenes without classes, to train perception."),
    "clevr-crowded": ("nsfrc.cli.data_clevr:crowded", "The same, half of them with many things that hide each other."),
    "clevr-alike": ("nsfrc.cli.data_clevr:alike", "Crowded ones, in few colours."),
    "clevr-hans3": ("nsfrc.cli.data_clevr:hans3", "CLEVR scenes of the three classes of CLEVR-Hans3."),
    "clevr-hans7": ("nsfrc.cli.data_clevr:hans7", "CLEVR scenes of the seven classes of CLEVR-Hans7."),
}


@click.group(
    "data",
    cls=LazyGroup,
    elsewhere=COMMANDS,
    epilog="""\b
Examples:
  nsfrc data kandinsky twopairs --out figures --count 100
  nsfrc data clevr-hans3 --out hans3 --count 180 --size 240x160 --samples 8
""",
)
def command() -> None:
    """Make figures or scenes with labels and true objects, to train and test on."""
