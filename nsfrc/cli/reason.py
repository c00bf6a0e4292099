"""`nsfrc reason`: a program applied to facts that come from a file or from a random generator."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from nsfrc.cli.choices import programs
from nsfrc.compiler.check.arithmetic import number
from nsfrc.compiler.check.clauses import define
from nsfrc.compiler.check.declare import does_nothing, is_query
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ir import CHANCE, Atom
from nsfrc.compiler.parse import read
from nsfrc.compiler.reach import silenced
from nsfrc.compiler.syntax import DIRECTIVE, QUERY, Term, calls
from nsfrc.engines import NAMES
from nsfrc.errors import Diagnostics, NsfrcError
from nsfrc.program import Program, open_program
from nsfrc.questions import Question

if TYPE_CHECKING:
    from nsfrc.reasoner import Reasoner
    from nsfrc.valuation.worlds import Worlds

EXAMPLE = 'one object that maps atoms to values, such as {"in(obj1,img)": 0.9}'


@click.command(
    "reason",
    epilog="""\b
Examples:
  nsfrc reason twopairs --random 5                five random worlds
  nsfrc reason rules.nsfrc --facts facts.jsonl    one world per line: {"color(obj1,red)": 0.9, ...}
  nsfrc reason rules.pl --facts - --json          from standard input; prints one JSON object per line
  nsfrc reason rules.pl --facts facts.pl          one world of crisp facts, as SWI-Prolog takes them
""",
)
@click.argument("program", shell_complete=programs)
@click.option("--facts", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
              help="JSON lines: each maps neural atoms to values in [0, 1], and numbers to what they are; atoms that "
                   "it does not name are 0. A .pl file of facts is one world, in which these facts are 1.")
@click.option("--concepts", type=click.Path(dir_okay=False, path_type=Path),
              help="Learnt temperatures of comparisons, and probabilities: a file that save_concepts wrote.")
@click.option("--random", "count", type=click.IntRange(min=1), help="Make this many random worlds instead.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of --random.")
@click.option("--engine", type=click.Choice(NAMES), default="auto", show_default=True,
              help="auto: gpu where there is a CUDA device, else cpu. reference: the paper's dense tensors, slow. "
                   "ptx: the GPU's machine code, executed and checked on the CPU, slow.")
@click.option("--arch", type=click.Choice(["sm_80", "sm_90"]), help="With --engine ptx: the card. [sm_80]")
@click.option("--normalise", type=click.Choice(["example", "batch"]),
              help="Under semantics(paper): whether Z is the maximum of one world or of the whole batch. [example]")
@click.option("--steps", type=click.IntRange(min=0), help="Steps of reasoning. [from the program]")
@click.option("--gamma", type=float, help="Softness of the soft-or. [from the program, else 0.01]")
@click.option("--batch-size", type=click.IntRange(min=1), default=256, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def command(
    program: str, facts: Path | None, concepts: Path | None, count: int | None, seed: int, engine: str,
    arch: str | None, normalise: str | None, steps: int | None, gamma: float | None, batch_size: int, as_json: bool,
) -> None:
    """Apply PROGRAM (.pl, .nsfrc or a shipped name) to facts and print the value of its targets.

    Of classes there is the answer too, in a column, or in JSON an entry, that is called classes.
    """
    if (facts is None) == (count is None):
        raise NsfrcError("give either --facts FILE or --random N")
    if arch is not None and engine != "ptx":
        raise click.UsageError(f"--arch {arch} is for --engine ptx only")
    compiled = open_program(program)
    if not compiled.targets:
        raise NsfrcError(f"{compiled.name} has no target: add :- target(...). to it")
    from nsfrc.valuation.worlds import Worlds

    given = Worlds(compiled, concepts)
    worlds = _random(compiled, given, count, seed) if count else _given(compiled, given, facts or Path("-"))
    import torch

    for warning in compiled.warnings:
        if not silenced(warning, steps):
            click.echo(str(warning), err=True)
    if (short := compiled.too_few(steps)) is not None:
        click.echo(f"warning: {short}", err=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said above
        reasoner = compiled.reasoner(engine, normalise, steps, gamma, outputs="targets", inputs="neural", arch=arch)
    device = "cuda" if engine in ("auto", "gpu") and torch.cuda.is_available() else "cpu"
    width = max(6, *(len(t) for t in compiled.targets))
    which, level = _classes(compiled, reasoner, device)
    done = 0
    while batch := list(islice(worlds, batch_size)):
        with torch.no_grad():
            values = reasoner(torch.from_numpy(np.stack(batch)).to(device)).tolist()
        if not done and not as_json:
            heads = [*compiled.targets, *(one.name for one in which)]
            click.echo("world  " + "  ".join(f"{head:>{width}}" for head in heads))
        for row in values:
            done += 1
            if as_json:
                data = {"world": done, **dict(zip(compiled.targets, row, strict=True))}
                click.echo(json.dumps(data | {one.name: one.answer(row, 0.0, level) for one in which}))
            else:
                answers = [f"{one.answer(row, 0.0, level):>{width}}" for one in which]
                click.echo(f"{done:>5}  " + "  ".join([*(f"{v:>{width}.4f}" for v in row), *answers]))
    if not done:
        raise NsfrcError(f"{_spoken(facts)} contains no facts")


def _classes(program: Program, reasoner: Reasoner, device: str) -> tuple[list[Question], Sequence[float]]:
    """The question that classes are, if there are any, and the level at which the answer is none."""
    from nsfrc.reasoner import empty_values

    which = [one for one in program.questions if one.of_classes]
    return which, empty_values(reasoner, device) if which else ()


def _random(program: Program, given: Worlds, count: int, seed: int) -> Iterator[np.ndarray]:
    """Valuations in which every neural atom, and every comparison, is close to 0 or to 1."""
    generator = np.random.default_rng(seed)
    language, open_ = program.ground.herbrand, program.ground.neural.copy()
    for predicate in language.predicates:
        if predicate.role == CHANCE:
            open_[slice(*language.offsets[predicate.key])] = False
    for _ in range(count):
        values = given(program, [{}])[0].numpy()
        values[open_] = generator.beta(0.3, 0.3, int(open_.sum()))
        yield values


def _spoken(path: Path | None) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _given(program: Program, given: Worlds, path: Path) -> Iterator[np.ndarray]:
    return iter([_prolog(program, given, path)]) if path.suffix == ".pl" else _read(program, given, path)


def _prolog(program: Program, given: Worlds, path: Path) -> np.ndarray:
    """A Prolog file of ground facts as V0 [G], each fact with the value 1; area(obj1, 0.3) is a number of obj1."""
    found = Diagnostics()
    sentences = [s for s in read(path, found) if not _with_probability(s.term, found)]
    vocabulary = Vocabulary(found)
    facts, clauses = define(sentences, vocabulary)
    others = [s.span for s in sentences if s.kind == QUERY or is_query(s.term, vocabulary)]
    others += [s.span for s in sentences if s.kind == DIRECTIVE and not does_nothing(s.term)]
    for span in (*others, *(clause.span for clause in clauses)):
        found.error("not-a-fact", span, "a file of facts must contain only facts", "such as color(obj1, red).")
    world: dict[str, float] = {}
    for fact in facts:
        if variable := next(fact.variables(), None):
            found.error("fact-not-ground", variable.span, "a fact must be ground", "such as color(obj1, red).")
            continue
        atom, value = _as_number(program, given, fact) or (str(fact), 1.0)
        try:
            given(program, [{atom: value}])
            world[atom] = value
        except NsfrcError as error:
            found.error("bad-fact", fact.span, str(error))
    found.stop()
    if not facts:
        raise NsfrcError(f"{path} contains no facts")
    return given(program, [world])[0].numpy()


def _as_number(program: Program, given: Worlds, fact: Atom) -> tuple[str, float] | None:
    """area(obj1, 0.3) as the number area(obj1) and what it is; None for a fact that is an atom of the program."""
    numbers = {number.key for number in given.numbers}
    if (fact.name, len(fact.args) - 1) not in numbers or fact.key in program.ground.herbrand.offsets:
        return None
    *things, value = fact.args
    size = number(value.name)
    return None if size is None else (str(Atom(fact.name, tuple(things))), float(size))


def _with_probability(term: Term | None, found: Diagnostics) -> bool:
    """Report `0.4::fact`, which only JSON lines can say."""
    if not calls(term, "::", 2):
        return False
    value, fact = term.args
    hint = f'in JSON lines facts can have values: {{"{fact}": {value}}}'
    found.error("bad-fact", term.span, "facts in a Prolog file are crisp", hint)
    return True


def _read(program: Program, given: Worlds, path: Path) -> Iterator[np.ndarray]:
    name = _spoken(path)
    try:
        with click.open_file(str(path), encoding="utf-8-sig") as file:
            for count, line in enumerate(file, 1):
                if line.strip():
                    yield _valuation(program, given, line, f"{name}:{count}")
    except OSError as error:
        raise NsfrcError(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{name} is not UTF-8 text") from None


def _valuation(program: Program, given: Worlds, line: str, place: str) -> np.ndarray:
    """One line of facts as V0 [G]."""
    try:
        facts = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NsfrcError(f"{place}: not JSON ({error}); a line is {EXAMPLE}") from None
    if not isinstance(facts, dict):
        raise NsfrcError(f"{place}: a line must be {EXAMPLE}")
    try:
        return given(program, [facts])[0].numpy()
    except NsfrcError as error:
        raise NsfrcError(f"{place}: {error}") from None
