"""`nsfrc train`: the learnt parts. Perception from figures of no pattern, concepts from labelled examples."""

from __future__ import annotations

import click

from nsfrc.cli.lazy import LazyGroup

COMMANDS = {
    "perception": ("nsfrc.cli.train_perception", "Train a perception model from scratch on generated figures."),
    "concept": ("nsfrc.cli.train_concept", "Learn what a concept such as closeby means."),
}


@click.group(
    "train", cls=LazyGroup, elsewhere=COMMANDS, epilog="Example: nsfrc train perception --out yolo.safetensors"
)
def command() -> None:
    """Train perception, or learn concepts such as closeby."""
