"""`benchmarks.end_to_end_folder`: every way answers for all figures, and rows say what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsfrc.benchmarks import end_to_end_folder
from nsfrc.benchmarks.measure import read_csv, write_csv


def test_all_ways_are_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(end_to_end_folder, "QUICK_FIGURES", 3)
    monkeypatch.setattr(end_to_end_folder, "QUICK_ROUNDS", 1)
    monkeypatch.setattr(end_to_end_folder, "cores", lambda: 3)
    rows = list(end_to_end_folder.measure(quick=True))
    assert [row.threads for row in rows] == [1, 2, 3] and {row.figures for row in rows} == {3}
    assert rows[0].of_one_thread == 1 and all(row.images_per_second > 0 and row.busy > 0 for row in rows)
    write_csv(tmp_path / "rows.csv", rows)
    again = read_csv(tmp_path / "rows.csv", end_to_end_folder.FolderRow)
    assert [row.busy for row in again] == [pytest.approx(row.busy, rel=1e-5) for row in rows]
    table = end_to_end_folder.tell({"end_to_end_folder": rows})
    assert "without ONNX Runtime" in table and table.splitlines()[4].startswith("| 3 | ")
