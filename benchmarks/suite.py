"""The benchmark suite: parts that measure one after another, kept as CSV as they go; pictures come after."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.measure import read_csv, write_csv
from nsfrc.benchmarks.parts import Part, Results, Table
from nsfrc.errors import NsfrcError, did_you_mean

# In the order in which they run: name → module.
PARTS = {
    name: f"nsfrc.benchmarks.{module}" for name, module in {
        "reasoning": "reasoning", "semantics": "semantics", "compile": "compiling", "memory": "memory",
        "growth": "growth", "scaling": "scaling", "language": "language", "end_to_end": "end_to_end",
        "accuracy": "accuracy", "semantics_figures": "semantics_figures", "ptx": "ptx", "learning": "learning",
        "baselines": "baselines",
    }.items()
}
SLOW = ("ptx", "learning", "baselines")  # these take up to an hour: only where they are asked for by name


def part(name: str) -> Part:
    """A part by name; its module is imported now."""
    if name not in PARTS:
        hint = did_you_mean(name, PARTS) or f"there are {', '.join(PARTS)}"
        raise NsfrcError(f"no part of the benchmark is called {name!r}: {hint}")
    found = importlib.import_module(PARTS[name]).PART
    assert isinstance(found, Part)
    return found


def run(one: Part, folder: Path, quick: bool, say: Callable[[str], None]) -> None:
    """Measure a part again. Its files are rewritten after every row, so that stopping at any time loses none.

    Until the part has come to its end, earlier rows stay that were not measured again; then they go.
    """
    earlier = load(one, folder, say) or {table.name: [] for table in one.tables}
    results: Results = {table.name: [] for table in one.tables}
    try:
        for row in one.measure(quick, folder):
            table = next(t for t in one.tables if t.row is type(row))
            results[table.name].append(row)
            _keep(table, _merged(table, results[table.name], earlier[table.name]), folder)
            say(str(row))
    except BaseException:
        if any(results.values()):
            results = {t.name: _merged(t, results[t.name], earlier[t.name]) for t in one.tables}
            _keep_all(one, results, folder)
        raise
    _keep_all(one, results, folder)


def _merged(table: Table, new: list[Any], earlier: list[Any]) -> list[Any]:
    measured = {_key(table, row) for row in new}
    return new + [row for row in earlier if _key(table, row) not in measured]


def _key(table: Table, row: Any) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in table.keys)


def _keep_all(one: Part, results: Results, folder: Path) -> None:
    for table in one.tables:
        rows = _derived(one, results)[table.name]
        if rows:
            _keep(table, rows, folder)


def _keep(table: Table, rows: list[Any], folder: Path) -> None:
    write_csv(folder / f"{table.name}.csv", rows, first=table.keys)


def _derived(one: Part, results: Results) -> Results:
    return results | (one.derive(results) if one.derive else {})


def load(one: Part, folder: Path, say: Callable[[str], None]) -> Results | None:
    """What a folder has of a part, with derived rows made again.

    None where nothing was measured, or by another version, which is said.
    """
    measured = [t for t in one.tables if (folder / f"{t.name}.csv").is_file()]
    try:
        results = {t.name: read_csv(folder / f"{t.name}.csv", t.row) if t in measured else [] for t in one.tables}
    except NsfrcError as error:
        say(f"left out: {error}")
        return None
    return _derived(one, results) if any(results.values()) else None


def draw(parts: Sequence[tuple[Part, Results]], folder: Path) -> list[Path]:
    """All pictures, from the rows alone; raises ImportError without matplotlib."""
    import matplotlib

    from nsfrc.benchmarks import paper_figures_batch
    from nsfrc.benchmarks.paper_figures_base import LETTERS, Wanted, as_png
    from nsfrc.files import write_whole

    matplotlib.use("Agg")
    written: list[Path] = []
    with matplotlib.rc_context(LETTERS):
        for one, results in parts:
            if one.draw is not None:
                written += one.draw(results, folder)
        with suppress(paper_figures_batch.Missing):  # needs two parts
            picture = folder / "batch.png"
            write_whole(picture, as_png(paper_figures_batch.draw(Wanted(results=folder)).figure))
            written.append(picture)
    return written
