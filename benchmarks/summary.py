"""One page on a folder of results: README.md beside the CSV files, so that a code host shows it with the folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nsfrc.artifact import write_whole
from nsfrc.benchmarks.compare import BETTER, GONE, NEW, SAME, WORSE, Change
from nsfrc.benchmarks.measure import made_with
from nsfrc.benchmarks.parts import Part, Results, markdown

FILE = "README.md"


def write(folder: Path, parts: Sequence[tuple[Part, Results]], pictures: Sequence[Path],
          changes: Sequence[Change] = (), against: Path | None = None) -> Path:
    """The page, from rows and pictures that are in the folder already."""
    blocks = ["# Benchmark results", _made_with(folder, parts)]
    if against is not None:
        blocks += [f"## Against {against}", _changes(changes)]
    named = {name for one, _ in parts for name in _pictures(one)}
    blocks += [f"![{path.stem}]({path.name})" for path in pictures if path.stem not in named]
    for one, results in parts:
        files = ", ".join(f"[{t.name}.csv]({t.name}.csv)" for t in one.tables if results[t.name])
        blocks += [f"## {one.name.replace('_', ' ').capitalize()}",
                   f"{_sentence(one.about)} All columns: {files}; `nsfrc bench --parts {one.name}` measures them.",
                   one.tell(results)]
        blocks += [f"![{path.stem}]({path.name})" for path in pictures if path.stem in _pictures(one)]
    write_whole(folder / FILE, ("\n\n".join(blocks) + "\n").encode())
    return folder / FILE


def _pictures(one: Part) -> set[str]:
    """What a part's pictures may be called, without the ending."""
    return {t.name for t in one.tables} | {one.name}


def _made_with(folder: Path, parts: Sequence[tuple[Part, Results]]) -> str:
    """Versions and machine as the rows have them, which need not be those of today."""
    found: dict[str, list[str]] = {}
    for one, results in parts:
        table = next(t for t in one.tables if results[t.name])
        found.setdefault(made_with(folder / f"{table.name}.csv", table.row), []).append(one.name)
    lines = [f"{', '.join(names)}: {about}." for about, names in found.items()]
    gpu = "" if any(", gpu " in about for about in found) else "\n\nNo GPU was there: nothing here ran on one."
    return "Measured with " + (f"{next(iter(found))}." if len(found) == 1 else "\n\n- " + "\n- ".join(lines)) + gpu


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _changes(changes: Sequence[Change]) -> str:
    """How many of each, and every value that got worse."""
    counts = {verdict: sum(c.verdict == verdict for c in changes) for verdict in (WORSE, BETTER, SAME, GONE, NEW)}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    worse = [c for c in changes if c.verdict == WORSE]
    if not worse:
        return f"Values compared: {said}. Nothing got worse."
    lines = [[c.part, c.row, c.column, f"{c.old:,.4g}", f"{c.new:,.4g}"] for c in worse]
    return f"Values compared: {said}. Worse:\n\n" + markdown(["part", "row", "value", "before", "now"], lines)
