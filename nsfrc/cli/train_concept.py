"""`nsfrc train concept`: learns when objects count as close by, on one line, on the left, … from labelled examples."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nsfrc.vocabulary import CONCEPTS

DECIDES = "\n".join(f"  {concept.name:<10} {concept.learns}" for concept in CONCEPTS)


@click.command(
    "concept",
    help=f"""Learn the parameters of the neural predicate NAME from labelled examples.

\b
{DECIDES}

The value is σ(w·x + b), where x is what is measured: one number or, for front, the x, y and z of both objects. w and b
are learnt.
""",
    epilog="""\b
Examples:
  nsfrc train concept closeby
  nsfrc train concept online --examples 20000 --seed 1 --out mine.json
  nsfrc infer --images figures --program closeby --concepts mine.json
  nsfrc train concept front --scenes CLEVR_v1.0 --examples 20000
""",
)
@click.argument("name", type=click.Choice([concept.name for concept in CONCEPTS]))
@click.option("--scenes", type=click.Path(path_type=Path),
              help="A folder or file of CLEVR scenes to take examples of leftside, rightside or front from, "
                   "instead of generated ones.")
@click.option("--examples", type=click.IntRange(10, 10_000_000),
              help="How many examples; a fifth is held out. By default 5000, or all of --scenes. Half of the "
                   "generated ones are positive.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
              help="Same seed, same parameters.")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), default=Path("concepts.json"),
              show_default=True, help="File to write; other concepts in it are kept.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON object.")
def command(name: str, scenes: Path | None, examples: int | None, seed: int, out: Path, as_json: bool) -> None:
    from nsfrc.training.concepts import learn
    from nsfrc.valuation import concepts

    learnt = learn(name, examples, seed, scenes)
    entry = learnt.entry()
    concepts.add(out, {name: entry})
    if as_json:
        report = {"concept": name, **entry, "boundary": learnt.boundary, "out": str(out)}
        click.echo(json.dumps(report))
        return
    w = " ".join(f"{part:.6g}" for part in (entry["w"] if isinstance(entry["w"], list) else [entry["w"]]))
    click.echo(f"{name}: w = {w}, b = {learnt.b:.6g} from {learnt.examples:,} examples, seed {seed}")
    click.echo(f"{name}: {learnt.train_accuracy:.2%} of the training examples are right, "
               f"{learnt.validation_accuracy:.2%} of those held out")
    click.echo(learnt.spoken())
    click.echo(f"written to {out}")
