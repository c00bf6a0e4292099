"""`nsfrc learn`: reads options and shows what was found; the work is in nsfrc/learning."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from nsfrc.cli.choices import perceptions, programs
from nsfrc.errors import NsfrcError
from nsfrc.records import dataclass

if TYPE_CHECKING:
    from nsfrc.learning.evidence import Evidence
    from nsfrc.learning.memory import Memory
    from nsfrc.learning.results import Learnt
    from nsfrc.learning.search import Progress
    from nsfrc.learning.source import SourceText
    from nsfrc.program import Program

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "learn",
    epilog="""\b
Examples:
  nsfrc learn rules.pl --images figures/            with folders true/ and false/, or one for each class
  nsfrc learn rules.pl --images photos/ --labels labels.csv --out learnt.pl
  nsfrc learn rules.pl --facts worlds.jsonl --labels labels.csv
                                                    facts as nsfrc reason takes them; labels: world,kp
  nsfrc learn rules.pl --images figures/ --noise 0.1 --seconds 60
                                                    a tenth of the labels may be wrong; the best of a minute
\b
The program says what is to be learnt, with :- learn(kp(image)). or, for classes,
:- learn([kp1(image), kp2(image)]). Ctrl-C gives the best so far.
""",
)
@click.argument("program", shell_complete=programs)
@click.option("--images", type=click.Path(exists=True, path_type=Path), metavar="DIR", multiple=True,
              help="A folder of images, with folders true/ and false/ or one for each class; repeatable.")
@click.option("--facts", type=FILE,
              help="Instead of images: JSON lines, one world per line, as nsfrc reason takes them.")
@click.option("--labels", type=FILE, metavar="FILE.csv",
              help="The labels: a column file (with --facts: world, the number of the line), then one with 1, 0, true, "
                   "false or nothing, or classes with names of classes. [from folders]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("learnt.pl"), show_default=True,
              help="Where to write the learnt program.")
@click.option("--clauses", type=click.IntRange(1, 100), default=5, show_default=True,
              help="The most clauses that a target may have.")
@click.option("--noise", type=click.FloatRange(0, 0.5, max_open=True),
              help="The share of labels that are wrong. [estimated]")
@click.option("--beam", type=click.IntRange(1, 10_000), default=30, show_default=True,
              help="Clauses that are kept at each length and number of variables; more take longer and miss less.")
@click.option("--concepts", is_flag=True,
              help="Then adjust concepts and temperatures to the labels, through the learnt rules; they go beside "
                   "--out.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the labels that are held out to check the rules.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True),
              help="Stop the search after so long. [when it is done]")
@click.option("--perception", metavar="NAME", shell_complete=perceptions,
              help="A registered name, or module:Class with --trust. [from the program, or yolo]")
@click.option("--weights", type=FILE, help="Weights of the perception, a safetensors file. [those that ship]")
@click.option("--trust", is_flag=True, help="Run the Python that --perception or the program names: docs/security.md.")
@click.option("--resume", is_flag=True,
              help="Continue an interrupted run: images that were looked at and searches that were done are not again.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path),
              help="Write an HTML page (.html): the rules, the examples that each covers, and those still wrong.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    program: str, images: tuple[Path, ...], facts: Path | None, labels: Path | None, out: Path, clauses: int,
    noise: float | None, beam: int, concepts: bool, seed: int, seconds: float | None, perception: str | None,
    weights: Path | None, trust: bool, resume: bool, report: Path | None, as_json: bool,
) -> None:
    """Learn the rules of PROGRAM, a .pl file that declares what there is, from labelled images or facts.

    What comes out is a program: nsfrc check accepts it, nsfrc infer runs it, and you can edit it.
    """
    _refuse(images, facts, labels, out, report, concepts)
    from nsfrc.compiler.parse import find_program

    find_program(program)  # raises where there is none, before torch is imported
    from nsfrc.contexts import torch_threads
    from nsfrc.learning.learner import Learner, Options, compile_base
    from nsfrc.learning.results import finish
    from nsfrc.learning.source import SourceText

    source = SourceText.of(program, None)
    if out.resolve() == source.path.resolve():
        raise NsfrcError(f"--out {out} is the program that is learnt from: name another file")
    base = compile_base(source)
    for warning in base.warnings:
        click.echo(str(warning), err=True)
    show = _Shown(not as_json)
    with torch_threads(1):
        given = _Given(base, source, images, facts, labels, out, resume)
        evidence, rows = given.read(perception, weights, trust, show)
        with _stoppable() as stopped:
            options = Options(clauses, noise, beam, seed, seconds)
            learner = Learner(source, evidence, rows, options, show.searching, stopped, given.memory)
            show.remarks(learner.remarks)
            found = learner.run()
        show.done()
        learnt = finish(learner, found)
        show.remarks([remark for remark in learnt.remarks if remark not in learner.remarks])
        learnt.save(out)
        written = [out]
        if concepts:
            written.append(_train_concepts(learnt, out))
        if report is not None:
            from nsfrc.learning.report import write_report

            write_report(learnt, found, report, given.pictures)
            written.append(report)
        given.forget()
    _tell(learnt, written, as_json)


def _refuse(
    images: tuple[Path, ...], facts: Path | None, labels: Path | None, out: Path, report: Path | None, concepts: bool,
) -> None:
    if int(os.environ.get("WORLD_SIZE", "1") or 1) > 1:
        raise NsfrcError("nsfrc learn searches in one process: run it without torchrun; in a script of your own, "
                         "nsfrc.learn within nsfrc.distributed.joined() shares the examples of its soft step")
    if bool(images) == (facts is not None):
        raise NsfrcError("give either --images DIR or --facts FILE")
    if facts is not None and labels is None:
        raise NsfrcError("facts have no labels of their own: give --labels FILE.csv, with the columns world and kp")
    if facts is not None and concepts:
        raise NsfrcError("--concepts adjusts what objects mean that perception saw, and with --facts there are none")
    if out.suffix != ".pl":
        raise NsfrcError(f"--out {out}: a program is a .pl file")
    if report is not None and report.suffix not in (".html", ".htm"):
        raise NsfrcError(f"--report {report}: the report is an .html file")


@dataclass
class _Given:
    """What the user gave: images or facts, and labels."""

    base: Program
    source: SourceText
    images: tuple[Path, ...]
    facts: Path | None
    labels: Path | None
    out: Path
    resume: bool
    pictures: dict[str, Path] = field(default_factory=dict)
    memory: Memory | None = None

    def read(
        self, perception: str | None, weights: Path | None, trust: bool, show: _Shown
    ) -> tuple[Evidence, list[Any]]:
        """The examples and their labels by target."""
        from nsfrc.learning.api import label_rows
        from nsfrc.learning.evidence import FromWorlds
        from nsfrc.learning.memory import mark_of
        from nsfrc.learning.pictures import table_answers

        if self.facts is not None:
            worlds = list(_worlds(self.facts))
            if not worlds:
                raise NsfrcError(f"{self.facts} contains no facts")
            assert self.labels is not None
            names = [str(i + 1) for i in range(len(worlds))]
            answers = table_answers(self.base, self.labels, names)
            self._remember(mark_of([], json.dumps(worlds), self.source.text))
            return FromWorlds(worlds, names), label_rows(self.base, answers, len(names))
        from nsfrc.inference.given import gather
        from nsfrc.inference.labels import from_folders
        from nsfrc.learning import pictures

        listing = gather(self.images)
        items = list(listing)
        if not items:
            raise NsfrcError(f"there are no images in {', '.join(map(str, self.images))}")
        if self.labels is not None:
            found = table_answers(self.base, self.labels, [item.name for item in items])
        else:
            by_folder = from_folders(listing.classes, pictures.asked(self.base))
            found = pictures.answers(self.base, by_folder, items, listing)
        self.pictures = {item.name: item.path for item in items}
        looking = pictures.Looking(perception, weights, None, trust)

        def remember(identity: str) -> Memory:
            return self._remember(mark_of(items, identity, str(len(self.base.source.types)), self.source.text))

        evidence, _ = pictures.perceive(self.base, self.source, items, looking, show.looking, remember)
        return evidence, label_rows(self.base, found, len(items))

    def _remember(self, mark: str) -> Memory:
        from nsfrc.learning.memory import Memory, memory_of

        self.memory = Memory.open(memory_of(self.out), mark, self.resume)
        return self.memory

    def forget(self) -> None:
        """What was seen and found is of no use once the program is written."""
        if self.memory is not None:
            self.memory.remove()


def _worlds(path: Path) -> Iterator[dict[str, float]]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    facts = json.loads(line)
                except (json.JSONDecodeError, RecursionError) as error:
                    raise NsfrcError(f"{path}:{number}: not JSON ({error})") from None
                if not isinstance(facts, dict):
                    raise NsfrcError(f'{path}:{number}: a line must be one object that maps atoms to values, such as '
                                     f'{{"in(obj1,img)": 0.9}}')
                yield facts
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{path} is not UTF-8 text") from None


@contextmanager
def _stoppable() -> Iterator[Any]:
    """Ctrl-C asks the search to stop with what it has; a second one ends everything."""
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: bool(asked)
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


class _Shown:
    """Progress on one line of a terminal; remarks for everybody."""

    def __init__(self, wanted: bool) -> None:
        self.live = wanted and sys.stderr.isatty()
        self.last = 0.0

    def looking(self, done: int, of: int) -> None:
        self._line(f"looking at images: {done} of {of}", done == of)

    def searching(self, target: str, progress: Progress) -> None:
        self._line(f"{target}: {progress.scored:,} clauses tried, {progress.variables} variables")

    def _line(self, text: str, always: bool = False) -> None:
        if self.live and (always or time.monotonic() > self.last + 0.1):
            self.last = time.monotonic()
            click.echo(f"\r\033[K{text}", nl=False, err=True)

    def done(self) -> None:
        if self.live:
            click.echo("\r\033[K", nl=False, err=True)

    def remarks(self, remarks: list[str]) -> None:
        self.done()
        for remark in remarks:
            click.echo(f"note: {remark}", err=True)


def _train_concepts(learnt: Learnt, out: Path) -> Path:
    from nsfrc.learning import soft
    from nsfrc.learning.evidence import FromObjects

    learner = learnt.learner
    assert isinstance(learner.evidence, FromObjects)
    path = out.with_suffix(".concepts.json")
    before, after = soft.train_concepts(learnt.program, learner.evidence, learner.labels, learner.train,
                                        learner.held_out, path, {"seed": learner.options.seed})
    click.echo(f"concepts: loss on labels held out {before:.4f} before, {after:.4f} after", err=True)
    return path


def _tell(learnt: Learnt, written: list[Path], as_json: bool) -> None:
    if as_json:
        rows = [{"target": c.target, "text": c.text, "true": c.true, "false": c.false, "alternatives": c.alternatives,
                 "narrower": c.narrower, "weight": c.weight, "apart": c.apart} for c in learnt.clauses]
        click.echo(json.dumps({"clauses": rows, "scores": learnt.scores, "remarks": learnt.remarks,
                               "complete": learnt.complete, "tried": learnt.learner.scored,
                               "written": [str(path) for path in written]}))
        return
    for clause in learnt.clauses:
        click.echo(f"{clause.text}\n    covers {clause.true} true and {clause.false} false examples")
        for what, others in (("other", clause.alternatives), ("narrower", clause.narrower)):
            if others:
                explain = "s explain" if len(others) > 1 else " explains"
                click.echo(f"    {len(others)} {what} clause{explain} these labels as well, such as")
                click.echo("\n".join(f"      {line}" for line in others[0].split("\n")))
        if clause.apart:
            click.echo(f"    a label of {clause.apart[0]} would tell them apart")
        click.echo()
    for name, value in learnt.scores.items():
        if name.endswith(" validation"):
            target = name.removesuffix(" validation")
            click.echo(f"{target}: {value:.1%} of the labels held out are right with rules found on the others (chance "
                       f"{learnt.scores[target + ' chance']:.1%})")
    if not learnt.complete:
        click.echo("the search was stopped: this is the best so far")
    for path in written:
        click.echo(f"written to {path}")
