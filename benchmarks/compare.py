"""Two folders of results side by side: what got worse, better, or is missing.

Ratios to a baseline of the same run are compared, and not seconds, so that a slower machine is not taken for slower
code. A timed ratio is said to have changed only where the ranges from p20 to p80 of both runs leave no doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nsfrc.benchmarks import suite
from nsfrc.benchmarks.measure import Compared
from nsfrc.benchmarks.parts import Judged, Part, Results, Table
from nsfrc.errors import NsfrcError

# One or two runs say nothing of how far others would have been from them.
ENOUGH_RUNS, UNSURE = 3, 1.4
WORSE, BETTER, SAME, GONE, NEW = "worse", "better", "same", "gone", "new"


@dataclass(frozen=True)
class Change:
    """One judged value of one row. old or new is None where only the other folder has a value."""

    part: str
    row: str
    column: str
    old: float | None
    new: float | None
    verdict: str

    def __str__(self) -> str:
        old, new = ("–" if value is None else f"{value:,.4g}" for value in (self.old, self.new))
        return f"{self.verdict:<7} {self.part}: {self.row}: {self.column} {old} → {new}"

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def compare(new: Path, old: Path, say: Callable[[str], None] = print) -> list[Change]:
    """All judged values of the parts that both folders have. say: is told which parts cannot be read."""
    if not old.is_dir():
        raise NsfrcError(f"there is no folder {old}: --against takes one that `nsfrc bench --out` wrote")
    found: list[Change] = []
    in_common = False
    for name in suite.PARTS:
        one = suite.part(name)
        mine, theirs = suite.load(one, new, say), suite.load(one, old, say)
        if mine is not None and theirs is not None:
            in_common = True
            found += _part(one, mine, theirs)
    if not in_common:
        raise NsfrcError(f"{new} and {old} have no part in common: run the same parts in both (nsfrc bench --parts)")
    return found


def _part(one: Part, new: Results, old: Results) -> Iterator[Change]:
    for table in one.tables:
        mine, theirs = _by_key(table, new), _by_key(table, old)
        for key in dict.fromkeys([*theirs, *mine]):
            for judged in table.judged:
                yield _change(one, table, key, judged, mine.get(key), theirs.get(key))


def _by_key(table: Table, results: Results) -> dict[tuple[Any, ...], Any]:
    return {tuple(getattr(row, key) for key in table.keys): row for row in results[table.name]}


def _change(one: Part, table: Table, key: tuple[Any, ...], judged: Judged, new: Any, old: Any) -> Change:
    row = ", ".join(f"{name} {value}" for name, value in zip(table.keys, key, strict=True))
    values = [None if row is None else getattr(row, judged.column) for row in (new, old)]
    if values[0] is None or values[1] is None:
        verdict = SAME if values[0] is values[1] else GONE if values[0] is None else NEW
    else:
        verdict = _verdict(judged, new, old)
    return Change(one.name, row, judged.column, values[1], values[0], verdict)


def _verdict(judged: Judged, new: Any, old: Any) -> str:
    sign = 1 if judged.higher_is_better else -1
    (low, high), (old_low, old_high) = _range(judged, new, sign), _range(judged, old, sign)
    before = sign * getattr(old, judged.column)
    now = sign * getattr(new, judged.column)
    slack = judged.slack if judged.absolute else judged.slack * abs(before)
    if now < before - slack and high < old_low:
        return WORSE
    if now > before + slack and low > old_high:
        return BETTER
    return SAME


def _range(judged: Judged, row: Any, sign: int) -> tuple[float, float]:
    """Where a value may as well have been: a timed ratio from its percentiles, anything else exactly there."""
    value = sign * getattr(row, judged.column)
    timed = judged.column == "ratio" and isinstance(row, Compared)
    if not timed or row.baseline_p20 is None or row.baseline_p80 is None:
        return value, value
    doubt = UNSURE if min(row.runs, row.baseline_runs) < ENOUGH_RUNS else 1.0
    return row.baseline_p20 / row.p80 / doubt, row.baseline_p80 / row.p20 * doubt
