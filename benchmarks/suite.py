"""The benchmark suite: parts that measure one after another, kept as CSV as they go; pictures come after."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from nsfrc.benchmarks.measure import read_csv, write_csv
from nsfrc.benchmarks.parts import Part, Results, Table
from nsfrc.errors import NsfrcError, did_you_mean

# In the order in which they run: name → module.
PARTS = {
    name: f"nsfrc.benchmarks.{module}" for name, module in {
        "reasoning": "reasoning", "compile": "compiling", "memory": "memory", "growth": "growth",
        "end_to_end": "end_to_end", "accuracy": "accuracy", "baselines": "baselines",
    }.items()
}
SLOW = ("baselines",)  # trains for an hour: only where it is asked for by name


def part(name: str) -> Part:
    """A part by name; its module is imported now."""
    if name not in PARTS:
        hint = did_you_mean(name, PARTS) or f"there are {', '.join(PARTS)}"
        raise NsfrcError(f"no part of the benchmark is called {name!r}: {hint}")
    found = importlib.import_module(PARTS[name]).PART
    assert isinstance(found, Part)
    return found


def run(one: Part, folder: Path, quick: bool, say: Callable[[str], None]) -> Results:
    """Measure a part. Its CSV files are rewritten after every row, so that stopping early keeps what there is."""
    results: Results = {table.name: [] for table in one.tables}
    for row in one.measure(quick):
        table = next(t for t in one.tables if t.row is type(row))
        results[table.name].append(row)
        keep(table, results, folder)
        say(str(row))
    for name, rows in (one.derive(results) if one.derive else {}).items():
        results[name] = rows
        keep(next(t for t in one.tables if t.name == name), results, folder)
    return results


def keep(table: Table, results: Results, folder: Path) -> None:
    write_csv(folder / f"{table.name}.csv", results[table.name], first=table.keys)


def load(one: Part, folder: Path) -> Results | None:
    """What a folder has of a part, with derived rows made anew; None where nothing was measured."""
    measured = [t for t in one.tables if (folder / f"{t.name}.csv").is_file()]
    if not measured:
        return None
    results: Results = {t.name: [] for t in one.tables}
    results |= {t.name: read_csv(folder / f"{t.name}.csv", t.row) for t in measured}
    if not any(results.values()):
        return None
    if one.derive is not None:
        results |= one.derive(results)
    return results


def draw(parts: Sequence[tuple[Part, Results]], folder: Path) -> list[Path]:
    """All pictures, from the rows alone; raises ImportError without matplotlib."""
    import matplotlib

    from nsfrc.artifact import write_whole
    from nsfrc.benchmarks import paper_figures_batch
    from nsfrc.benchmarks.paper_figures_base import Wanted, as_png

    matplotlib.use("Agg")
    written: list[Path] = []
    for one, results in parts:
        if one.draw is not None:
            written += one.draw(results, folder)
    with suppress(paper_figures_batch.Missing):  # needs two parts
        picture = folder / "batch.png"
        write_whole(picture, as_png(paper_figures_batch.draw(Wanted(results=folder)).figure))
        written.append(picture)
    return written
