"""`nsfrc train concept`: learns when objects count as close by, or as on one line, from generated examples."""

from __future__ import annotations

import json
from pathlib import Path

import click

NAMES = ("closeby", "online")


@click.command(
    "concept",
    epilog="""\b
Examples:
  nsfrc train concept closeby
  nsfrc train concept online --examples 20000 --seed 1 --out mine.json
  nsfrc infer --images figures --program closeby --concepts mine.json
""",
)
@click.argument("name", type=click.Choice(NAMES))
@click.option("--examples", type=click.IntRange(10, 10_000_000), default=5000, show_default=True,
              help="How many examples to make, half of them positive; a fifth is held out.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
              help="Same seed, same parameters.")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), default=Path("concepts.json"),
              show_default=True, help="File to write; other concepts that it holds stay.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON object.")
def command(name: str, examples: int, seed: int, out: Path, as_json: bool) -> None:
    """Learn the parameters of the neural predicate NAME from generated, labelled examples.

    closeby(A, B): how near the centres of two objects must be. online(A, B, C, ...): how straight the line must be
    on which their centres lie. Both are σ(w·x + b) of one measured number x; w and b are learnt.
    """
    from nsfrc.training.concepts import learn
    from nsfrc.valuation import concepts

    learnt = learn(name, examples, seed)
    concepts.add(out, {name: learnt.entry()})
    if as_json:
        report = {"concept": name, **learnt.entry(), "boundary": learnt.boundary, "out": str(out)}
        click.echo(json.dumps(report))
        return
    click.echo(f"{name}: w = {learnt.w:.6g}, b = {learnt.b:.6g} from {examples:,} examples, seed {seed}")
    click.echo(f"{name}: {learnt.train_accuracy:.2%} of the training examples are right, "
               f"{learnt.validation_accuracy:.2%} of those held out")
    click.echo(learnt.spoken())
    click.echo(f"written to {out}")
