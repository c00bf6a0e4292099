"""One page on a folder of results: README.md beside the CSV files, so that a code host shows it with the folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nsfrc.benchmarks.compare import BETTER, GONE, NEW, SAME, WORSE, Change
from nsfrc.benchmarks.measure import measured_with
from nsfrc.benchmarks.parts import Part, Results, markdown
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

FILE, TITLE = "README.md", "# Benchmark results"


def write(folder: Path, parts: Sequence[tuple[Part, Results]], pictures: Sequence[Path],
          changes: Sequence[Change] = (), against: Path | None = None) -> Path:
    """The page, from rows and pictures that are in the folder already."""
    blocks = [TITLE, _made_with(parts)]
    if against is not None:
        blocks += [f"## Against {against}", _changes(changes)]
    named = {name for one, _ in parts for name in _pictures(one)}
    blocks += [f"![Time by batch size, mean and standard deviation over the Kandinsky sets]({path.name})"
               for path in pictures if path.stem not in named]
    for one, results in parts:
        files = ", ".join(f"[{t.name}.csv]({t.name}.csv)" for t in one.tables if results[t.name])
        blocks += [f"## {one.name.replace('_', ' ').capitalize()}",
                   f"{_sentence(one.about)} All columns: {files}; `nsfrc bench --parts {one.name}` measures them.",
                   one.tell(results)]
        blocks += [f"![{_sentence(one.about)}]({path.name})" for path in pictures if path.stem in _pictures(one)]
    write_whole(folder / FILE, ("\n\n".join(blocks) + "\n").encode())
    return folder / FILE


def _pictures(one: Part) -> set[str]:
    """What a part's pictures may be called, without the ending."""
    return {t.name for t in one.tables} | {one.name}


def refuse_foreign(folder: Path) -> None:
    """A page of that name which is not ours is not written over."""
    page = folder / FILE
    if page.exists() and not page.read_bytes().startswith(TITLE.encode()):
        raise NsfrcError(f"{page} is not a summary of results: name a folder of its own with --out")


def _made_with(parts: Sequence[tuple[Part, Results]]) -> str:
    """Versions and machine as the rows have them, which need not be those of today."""
    found: dict[str, list[str]] = {}
    for one, results in parts:
        for about in dict.fromkeys(measured_with(row) for table in one.tables for row in results[table.name]):
            found.setdefault(about, []).append(one.name)
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
