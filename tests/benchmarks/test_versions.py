"""`benchmarks.versions`: sources of other versions answer in processes of their own; and what uses it."""

from __future__ import annotations

from pathlib import Path

from nsfrc.benchmarks import calls, end_to_end_change
from nsfrc.benchmarks.measure import read_csv, write_csv
from nsfrc.benchmarks.versions import ROOT, Version

SCRIPT = """
from nsfrc.benchmarks.versions import Version
import nsfrc
def answer(question, other):
    return [nsfrc.__version__, question, other, Version.__module__]
"""


def test_the_other_versions_sources_answer(tmp_path: Path) -> None:
    """Though the other version has neither the script nor the module that asks."""
    (tmp_path / "sources" / "nsfrc" / "benchmarks").mkdir(parents=True)
    (tmp_path / "sources" / "nsfrc" / "__init__.py").write_text("__version__ = 'another'")
    (tmp_path / "sources" / "nsfrc" / "benchmarks" / "__init__.py").touch()
    (tmp_path / "script.py").write_text(SCRIPT)
    version = Version(tmp_path / "sources", str(tmp_path / "script.py"))
    try:
        assert version.ask("one", [2]) == ["another", "one", [2], "nsfrc.benchmarks.versions"]
        assert version.ask("more", None)[1:3] == ["more", None]
    finally:
        version.end()
    assert version.process.returncode == 0


def test_folders_by_two_versions(tmp_path: Path) -> None:
    rows = list(end_to_end_change.measure(ROOT, figures=3, rounds=1, tried=(1,)))
    assert [(row.cores, row.figures, row.of_one_core) for row in rows] == [(1, 3, 1.0)]
    assert rows[0].now > 0 and rows[0].ratio == rows[0].now / rows[0].earlier
    write_csv(tmp_path / "rows.csv", rows)
    (again,) = read_csv(tmp_path / "rows.csv", end_to_end_change.ChangeRow)
    assert again.cores == 1 and "1.00" in end_to_end_change.tell(rows)


def test_calls_by_two_versions() -> None:
    case = next(case for case in calls.CASES if case.what == "one example" and case.semantics == "anchored")
    (row,) = calls.measured((case,), 1, ROOT)
    assert row.program == case.program and 0 < row.least <= row.median
    assert row.earlier_median is not None and row.earlier_ratio == row.earlier_median / row.median
