"""`nsfrc train concept`: learns when objects count as close by, on one line, on the left, … from labelled examples."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsfrc.cli.choices import concepts, perceptions, programs
from nsfrc.errors import NsfrcError
from nsfrc.vocabulary import CONCEPTS

if TYPE_CHECKING:
    from nsfrc.inference.session import Wanted

DECIDES = "\n".join(f"  {concept.name:<10} {concept.learns}" for concept in CONCEPTS)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "concept",
    help=f"""Learn the parameters of the neural predicate NAME from labelled examples.

\b
{DECIDES}

The value is σ(w·x + b), where x is what is measured: one number or, for front, the x, y and z of both objects. w and b
are learnt.

With --program and --images it learns from your own labelled pictures through the rules: the parameters of concepts,
the temperatures of comparisons and the probabilities t(_) that NAME names, or all of them. A quarter of the pictures is
held out, and the best on these is kept.
""",
    epilog="""\b
Examples:
  nsfrc train concept closeby
  nsfrc train concept online --examples 20000 --seed 1 --out mine.json
  nsfrc infer --images figures --program closeby --concepts mine.json
  nsfrc train concept front --scenes CLEVR_v1.0 --examples 20000
  nsfrc train concept --program rules.pl --images labelled/ --out mine.json
  torchrun --nproc-per-node 4 -m nsfrc train concept --program rules.pl --images labelled/ --out mine.json
""",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=concepts)
@click.option("--program", shell_complete=programs, help="Learn through the rules of this program, from --images.")
@click.option("--images", type=click.Path(path_type=Path), multiple=True, metavar="DIR",
              help="Pictures in folders true/ and false/ (or one per class), or with --labels; repeatable.")
@click.option("--labels", type=FILE, metavar="FILE.csv", help="The right answers, as for nsfrc infer. [from folders]")
@click.option("--perception", metavar="NAME", shell_complete=perceptions,
              help="As for nsfrc infer. [from the program, or yolo]")
@click.option("--detections", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="As for nsfrc infer.")
@click.option("--trust", is_flag=True, help="Run the Python that --perception or the program names.")
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
def command(
    names: tuple[str, ...], program: str | None, images: tuple[Path, ...], labels: Path | None, perception: str | None,
    detections: Path | None, trust: bool, scenes: Path | None, examples: int | None, seed: int, out: Path,
    as_json: bool,
) -> None:
    if program is not None:
        if not images and (detections is None or labels is None):
            raise NsfrcError("--program learns from labelled pictures: give --images DIR with folders true/ and "
                             "false/, or --detections FILE and --labels FILE")
        if scenes is not None or examples is not None:
            raise NsfrcError("--scenes and --examples are for learning without a program: leave them out")
        from nsfrc.inference.session import Wanted

        wanted = Wanted(images, program, perception, trust=trust, labels=labels, detections=detections)
        _through_rules(wanted, names, seed, out, as_json)
        return
    if images or labels is not None or perception is not None or detections is not None:
        raise NsfrcError("--images, --labels, --perception and --detections are for learning through rules: give "
                         "--program too")
    known = [concept.name for concept in CONCEPTS]
    if len(names) != 1 or names[0] not in known:
        raise click.UsageError(f"without --program give one NAME of {', '.join(known)}.")
    _from_examples(names[0], examples, seed, scenes, out, as_json)


def _from_examples(
    name: str, examples: int | None, seed: int, scenes: Path | None, out: Path, as_json: bool
) -> None:
    from nsfrc.distributed import joined, leads
    from nsfrc.training.concepts import learn
    from nsfrc.valuation import concepts

    with joined():
        learnt = learn(name, examples, seed, scenes)
        if not leads():
            return
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


def _through_rules(wanted: Wanted, names: tuple[str, ...], seed: int, out: Path, as_json: bool) -> None:
    from nsfrc.distributed import joined, leads
    from nsfrc.inference.given import gather
    from nsfrc.inference.images import quietly
    from nsfrc.inference.known import listing_of
    from nsfrc.inference.session import open_session
    from nsfrc.models.detections import detections as as_detections
    from nsfrc.training.through_rules import examples, fit, write

    listing = gather(wanted.images) if wanted.images else listing_of(as_detections(wanted.detections))
    with joined(), quietly():
        session = open_session(wanted, listing)
        labelled = examples(session, listing)
        found = fit(session.pipe, labelled, names, seed)
        if not leads():
            return
    write(session.pipe, found, out, shlex.join(["nsfrc", *sys.argv[1:]]))
    if as_json:
        click.echo(json.dumps({
            "learnt": found.names, "images": found.images, "held_out": found.held_out, "epochs": found.epochs,
            "accuracy": {"held_out": found.after[0], "training": found.after[1], "before": found.before[0]},
            "thresholds": found.thresholds, "out": str(out),
        }))
        return
    click.echo(f"learnt: {', '.join(found.names)}")
    click.echo(f"{found.images} labelled images, {found.held_out} of them held out; {found.epochs} epochs")
    click.echo(f"right of those held out: {found.before[0]:.1%} before, {found.after[0]:.1%} after; of the others: "
               f"{found.before[1]:.1%} before, {found.after[1]:.1%} after")
    for name, value in found.thresholds.items():
        alone = len(session.questions) == 1
        click.echo(f"best threshold: :- threshold({value:g})." if alone else f"best: :- threshold({name}, {value:g}).")
    click.echo(f"written to {out}: nsfrc infer --concepts {out}")
