"""`nsfrc reason`: a program applied to facts that come from a file or from a random generator."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click
import numpy as np

from nsfrc.check.clauses import define
from nsfrc.check.declare import does_nothing, is_query
from nsfrc.check.vocabulary import Vocabulary
from nsfrc.cli.choices import programs
from nsfrc.errors import Diagnostics, NsfrcError
from nsfrc.parse import read
from nsfrc.program import Program, open_program
from nsfrc.reach import silenced
from nsfrc.syntax import DIRECTIVE, QUERY, Term, calls

EXAMPLE = 'one object from atoms to values, as in {"in(obj1,img)": 0.9}'


@click.command(
    "reason",
    epilog="""\b
Examples:
  nsfrc reason twopairs --random 5                five random worlds
  nsfrc reason rules.nsfrc --facts facts.jsonl    one world a line: {"color(obj1,red)": 0.9, ...}
  nsfrc reason rules.pl --facts - --json          from standard input, one JSON object a line out
  nsfrc reason rules.pl --facts facts.pl          one world of crisp facts, as SWI-Prolog takes them
""",
)
@click.argument("program", shell_complete=programs)
@click.option("--facts", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
              help="JSON lines, each an object from neural atoms to values in [0, 1]; atoms not named are 0. "
                   "A .pl file of facts is one world, in which these are 1.")
@click.option("--random", "count", type=click.IntRange(min=1), help="Make so many random worlds instead.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of --random.")
@click.option("--engine", type=click.Choice(["cpu", "reference"]), default="cpu", show_default=True)
@click.option("--normalise", type=click.Choice(["example", "batch"]), default="example", show_default=True,
              help="Whether Z is the maximum of one world or of the whole batch.")
@click.option("--steps", type=click.IntRange(min=0), help="Steps of reasoning. [from the program]")
@click.option("--gamma", type=float, help="Softness of the soft-or. [from the program, else 0.01]")
@click.option("--batch-size", type=click.IntRange(min=1), default=256, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(
    program: str, facts: Path | None, count: int | None, seed: int, engine: str, normalise: str,
    steps: int | None, gamma: float | None, batch_size: int, as_json: bool,
) -> None:
    """Apply PROGRAM (.pl, .nsfrc or a shipped name) to facts and print the value of its targets."""
    if (facts is None) == (count is None):
        raise NsfrcError("give either --facts FILE or --random N")
    compiled = open_program(program)
    if not compiled.targets:
        raise NsfrcError(f"{compiled.name} has no target: add :- target(...). to it")
    worlds = _random(compiled, count, seed) if count else _given(compiled, facts or Path("-"))
    import torch

    for warning in compiled.warnings:
        if not silenced(warning, steps):
            click.echo(str(warning), err=True)
    if (short := compiled.too_few(steps)) is not None:
        click.echo(f"warning: {short}", err=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said above
        reasoner = compiled.reasoner(engine, normalise, steps, gamma, outputs="targets", inputs="neural")
    width = max(6, *(len(t) for t in compiled.targets))
    number = 0
    while batch := list(islice(worlds, batch_size)):
        with torch.no_grad():
            values = reasoner(torch.from_numpy(np.stack(batch))).tolist()
        if not number and not as_json:
            click.echo("world  " + "  ".join(f"{t:>{width}}" for t in compiled.targets))
        for row in values:
            number += 1
            if as_json:
                click.echo(json.dumps({"world": number, **dict(zip(compiled.targets, row, strict=True))}))
            else:
                click.echo(f"{number:>5}  " + "  ".join(f"{v:>{width}.4f}" for v in row))
    if not number:
        raise NsfrcError(f"{_spoken(facts)} holds no facts")


def _random(program: Program, count: int, seed: int) -> Iterator[np.ndarray]:
    """Valuations in which every neural atom is close to 0 or to 1."""
    generator = np.random.default_rng(seed)
    neural = program.ground.neural
    for _ in range(count):
        values = program.initial_valuation()
        values[neural] = generator.beta(0.3, 0.3, int(neural.sum()))
        yield values


def _spoken(path: Path | None) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _given(program: Program, path: Path) -> Iterator[np.ndarray]:
    return iter([_prolog(program, path)]) if path.suffix == ".pl" else _read(program, path)


def _prolog(program: Program, path: Path) -> np.ndarray:
    """A Prolog file of ground facts as V0 [G], each fact with the value 1."""
    found = Diagnostics()
    sentences = [s for s in read(path, found) if not _with_probability(s.term, found)]
    vocabulary = Vocabulary(found)
    facts, clauses = define(sentences, vocabulary)
    others = [s.span for s in sentences if s.kind == QUERY or is_query(s.term, vocabulary)]
    others += [s.span for s in sentences if s.kind == DIRECTIVE and not does_nothing(s.term)]
    for span in (*others, *(clause.span for clause in clauses)):
        found.error(span, "a file of facts has facts only", "as color(obj1, red).")
    values = program.initial_valuation()
    for fact in facts:
        if variable := next(fact.variables(), None):
            found.error(variable.span, "a fact must be ground", "as color(obj1, red).")
            continue
        try:
            values = np.maximum(values, program.valuation({str(fact): 1.0})[0].numpy())
        except NsfrcError as error:
            found.error(fact.span, str(error))
    found.stop()
    if not facts:
        raise NsfrcError(f"{path} holds no facts")
    return values


def _with_probability(term: Term | None, found: Diagnostics) -> bool:
    """Report `0.4::fact`, which only JSON lines can say."""
    if not calls(term, "::", 2):
        return False
    value, fact = term.args
    found.error(term.span, "facts in a Prolog file are crisp", f'in JSON lines they have values: {{"{fact}": {value}}}')
    return True


def _read(program: Program, path: Path) -> Iterator[np.ndarray]:
    name = _spoken(path)
    try:
        with click.open_file(str(path), encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _valuation(program, line, f"{name}:{number}")
    except OSError as error:
        raise NsfrcError(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{name} is not UTF-8 text") from None


def _valuation(program: Program, line: str, place: str) -> np.ndarray:
    """One line of facts as V0 [G]."""
    try:
        facts = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NsfrcError(f"{place}: not JSON ({error}); a line is {EXAMPLE}") from None
    if not isinstance(facts, dict):
        raise NsfrcError(f"{place}: a line must be {EXAMPLE}")
    try:
        return program.valuation(facts)[0].numpy()
    except NsfrcError as error:
        raise NsfrcError(f"{place}: {error}") from None
