"""What a part of the benchmark suite is: it measures rows, and tells and draws them from the CSV files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Judged:
    """A column by which two results are compared.

    slack: what may change without a remark, as a share of the old value; or in the column's own unit if absolute.
    """

    column: str
    higher_is_better: bool = True
    slack: float = 0.15
    absolute: bool = False


RATIO = Judged("ratio")
KANDINSKY = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles")
PROGRAMS = (*KANDINSKY, "clevr_hans3", "clevr_hans7")


@dataclass(frozen=True)
class Table:
    """One CSV file. keys: the columns that name a row; row: its dataclass; judged: what `--against` looks at."""

    name: str
    row: type
    keys: tuple[str, ...]
    judged: tuple[Judged, ...] = (RATIO,)


# The rows of every table of a part, by the table's name.
Results = dict[str, list[Any]]


@dataclass(frozen=True)
class Part:
    """A part of the suite.

    measure: quick or not, and the folder of results, which may have rows already → rows of any of its tables, as they
    come; the first of `tables` whose `row` is the row's type takes it. derive: further rows from those measured (means
    over sets). draw: results and a folder → the pictures written there, drawn from the results only. tell: results →
    Markdown for the summary, without a heading.
    """

    name: str
    about: str
    tables: tuple[Table, ...]
    measure: Callable[[bool, Path], Iterator[Any]]
    tell: Callable[[Results], str]
    draw: Callable[[Results, Path], Sequence[Path]] | None = None
    derive: Callable[[Results], Results] | None = None


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are set to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, marks, *lines])


def seconds(value: float | None) -> str:
    """1.2e-5 → 12 µs."""
    if value is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def times(ratio: float | None) -> str:
    """1423.4 → 1,423×; small ratios keep a digit."""
    return "–" if ratio is None else f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"
