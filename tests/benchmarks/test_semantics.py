"""The parts of the suite in which both semantics stand side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsfrc.benchmarks import semantics, semantics_figures
from nsfrc.benchmarks.measure import read_csv, write_csv
from nsfrc.benchmarks.semantics_figures import BothWays, FiguresRow
from nsfrc.compiler import ir
from nsfrc.data.kandinsky import figure
from nsfrc.data.render import render


def test_a_program_both_ways() -> None:
    anchored, paper = (semantics.as_semantics("closeby", one) for one in (ir.ANCHORED, ir.PAPER))
    assert anchored.anchored and not paper.anchored
    assert anchored.clauses == paper.clauses and anchored.targets == paper.targets


def test_perception_looks_once_and_both_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = semantics_figures.measured("closeby", 4)
    assert (row.differ, row.differing, row.anchored_wrong, row.paper_wrong) == (0, "", 0, 0)
    assert row.anchored_empty == 0 < row.paper_empty
    assert row.anchored_false_mean <= row.anchored_false_p95 <= row.anchored_false_most < row.anchored_threshold
    assert row.anchored_threshold <= row.anchored_lowest_true

    both = BothWays("closeby")
    pictures = [render(figure("closeby", 5_000_000, i).figure) for i in range(4)]
    apart = [[pipe.predict([one]).scores[0, 0].item() for one in pictures] for pipe in both.pipes]
    assert both.scores(pictures) == pytest.approx(np.array(apart), abs=1e-4)

    # Thresholds that call everything true make the two differ on the false ones, which are the odd ones.
    monkeypatch.setattr(BothWays, "thresholds", lambda self, count: [0.0, 0.5])
    other = semantics_figures.measured("closeby", 4)
    assert (other.differ, other.differing, other.anchored_wrong, other.paper_wrong) == (2, "1 3", 2, 0)
    write_csv(tmp_path / "rows.csv", [row, replace(other, pattern="twopairs")])
    told = semantics_figures.tell({"semantics_figures": read_csv(tmp_path / "rows.csv", FiguresRow)})
    assert "| closeby | 4 | 0 | 0 / 0 |" in told
    assert "Answered differently: twopairs 1, 3 of seed 8000000." in told
