"""`nsfrc bench`: the benchmark suite, its pictures, its summary, and what got worse."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsfrc.benchmarks.compare import Change
    from nsfrc.benchmarks.parts import Part, Results


ENDED, STOPPED, FAILED = "ended", "stopped", "failed"
BUSY = 1.0  # processes that want to run beside this one


@click.command(
    "bench",
    epilog="""\b
Examples:
  nsfrc bench --quick                        a look at everything, in two minutes
  nsfrc bench --out results                  everything but the trained baselines, about 25 minutes
  nsfrc bench --parts reasoning,growth       these parts only
  nsfrc bench --quick --against results      what got worse since results were measured
  nsfrc bench --from new --against old       compare two folders, measure nothing
  nsfrc bench --list                         the parts
""",
)
@click.option("--quick", is_flag=True, help="Few sizes and short runs: about two minutes.")
@click.option("--parts", metavar="A,B,…", help="Which parts to run. [all but baselines, which trains for an hour]")
@click.option("--out", "-o", type=click.Path(file_okay=False, path_type=Path), default="bench-results",
              show_default=True, help="Folder for CSV files, pictures and the summary.")
@click.option("--from", "source", type=click.Path(file_okay=False, path_type=Path),
              help="Measure nothing: draw, summarise and compare what this folder has.")
@click.option("--against", type=click.Path(file_okay=False, path_type=Path),
              help="Another folder of results: marks what got worse.")
@click.option("--fail-on-worse", is_flag=True, help="Exit with 1 where --against finds something worse.")
@click.option("--list", "listing", is_flag=True, help="List the parts and stop.")
@click.option("--json", "as_json", is_flag=True, help="What was written, and what --against found, as JSON.")
@click.pass_context
def command(
    context: click.Context, quick: bool, parts: str | None, out: Path, source: Path | None, against: Path | None,
    fail_on_worse: bool, listing: bool, as_json: bool,
) -> None:
    """Measure reasoning, compiling, memory, growth, images per second and accuracy on this machine.

    Every timing is beside a baseline of the same run, with median, 20th and 80th percentile, versions and the names
    of the processor and the card. Rows are kept as CSV while they are measured: Ctrl-C loses nothing, and earlier
    results of a part are replaced only when it was measured to its end. Pictures (with the extra nsfrc[bench]) and the
    summary README.md are made from the CSV files.
    """
    from nsfrc.benchmarks import compare, suite, summary

    if listing:
        return _list(as_json)
    names = _names(parts)
    if source is not None and (quick or context.get_parameter_source("out") is not ParameterSource.DEFAULT):
        raise click.UsageError("--from measures nothing: leave out --quick and --out")
    if fail_on_worse and against is None:
        raise click.UsageError("--fail-on-worse needs --against FOLDER")
    if against is not None and not against.is_dir():  # before the minutes that measuring takes
        raise NsfrcError(f"there is no folder {against}: --against takes one that `nsfrc bench --out` wrote")
    folder = source or out
    summary.refuse_foreign(folder)
    if against is not None and folder.exists() and folder.samefile(against):
        raise click.UsageError(f"--against {against} is the folder itself: name another with --out")
    say = _Say(as_json)
    ended = ENDED if source is not None else _measure(names, folder, quick, say)
    found = [(part, results) for part in map(suite.part, suite.PARTS) if (results := suite.load(part, folder, say))]
    if not found:
        raise NsfrcError(f"{folder} has no results: `nsfrc bench --out {folder}` measures some")
    changes = [] if against is None else compare.compare(folder, against, say)
    pictures = _draw(found, folder, say)
    page = summary.write(folder, found, pictures, changes, against)
    _tell(page, pictures, changes, against, as_json)
    if ended == STOPPED:
        raise click.Abort
    if ended == FAILED:
        raise SystemExit(1)
    if fail_on_worse and any(change.verdict == compare.WORSE for change in changes):
        raise SystemExit(1)


class _Say:
    """Progress: on standard output, or beside it where that is for machines."""

    def __init__(self, as_json: bool) -> None:
        self.aside = as_json

    def __call__(self, text: str) -> None:
        click.echo(text, err=self.aside)


def _names(parts: str | None) -> list[str] | None:
    """The parts asked for, each checked; None for the usual ones."""
    from nsfrc.benchmarks import suite

    if parts is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in parts.split(",") if name.strip()))
    if not names:
        raise NsfrcError(f"--parts is empty: the parts are {', '.join(suite.PARTS)}")
    for name in names:
        suite.part(name)
    return names


def _measure(names: list[str] | None, folder: Path, quick: bool, say: _Say) -> str:
    """Run the parts; how that ended. A part that cannot be measured here does not keep the others from it."""
    from nsfrc.benchmarks import suite

    chosen = names if names is not None else [name for name in suite.PARTS if name not in suite.SLOW]
    _make(folder)
    if (load := os.getloadavg()[0]) > BUSY:
        say(f"the machine is busy (load {load:.1f}): it slows short and long runs differently and distorts the ratios")
    ended = ENDED
    for number, name in enumerate(chosen, 1):
        part, start = suite.part(name), time.perf_counter()
        say(f"\n{number}/{len(chosen)} {part.name}: {part.about}")
        try:
            suite.run(part, folder, quick, say)
        except KeyboardInterrupt:
            say(f"stopped; what was measured is in {folder}")
            return STOPPED
        except NsfrcError as error:
            click.echo(f"error: {part.name}: {error}", err=True)
            ended = FAILED
        say(f"{part.name} took {time.perf_counter() - start:.0f} s")
    return ended


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NsfrcError(f"{folder}: cannot be created: {error.strerror}; name another folder with --out") from None


def _draw(found: Sequence[tuple[Part, Results]], folder: Path, say: _Say) -> list[Path]:
    from nsfrc.benchmarks import suite

    try:
        return suite.draw(found, folder)
    except ImportError:
        say("\nno pictures without matplotlib: pip install 'nsfrc[bench]', then nsfrc bench --from " + str(folder))
        return []


def _tell(page: Path, pictures: Sequence[Path], changes: Sequence[Change], against: Path | None, as_json: bool) -> None:
    from nsfrc.benchmarks.compare import BETTER, WORSE

    if as_json:
        data = {"summary": str(page), "pictures": list(map(str, pictures)), "changes": [c.as_json() for c in changes]}
        click.echo(json.dumps(data, indent=1))
        return
    if against is not None:
        click.echo(f"\nagainst {against}:")
        told = [change for change in changes if change.verdict in (WORSE, BETTER)]
        for change in sorted(told, key=lambda c: c.verdict != WORSE):
            click.echo(f"  {change}")
        both = [change for change in changes if change.old is not None and change.new is not None]
        worse = sum(change.verdict == WORSE for change in both)
        click.echo(f"  {worse} of the {len(both)} values in both folders got worse{_only_one(changes)}")
    click.echo(f"\nwritten to {page.parent}: CSV files, {', '.join([page.name, *(path.name for path in pictures)])}")


def _only_one(changes: Sequence[Change]) -> str:
    """How many values one of the two folders alone has."""
    from nsfrc.benchmarks.compare import GONE, NEW

    counts = {where: sum(change.verdict == verdict for change in changes)
              for where, verdict in (("only there", GONE), ("only here", NEW))}
    return "".join(f", {count} {where}" for where, count in counts.items() if count)


def _list(as_json: bool) -> None:
    from nsfrc.benchmarks import suite

    if as_json:
        click.echo(json.dumps({name: suite.part(name).about for name in suite.PARTS}, indent=1))
        return
    for name in suite.PARTS:
        slow = " (only by name: it takes up to an hour)" if name in suite.SLOW else ""
        click.echo(f"{name:<12} {suite.part(name).about}{slow}")
