"""The README's tables are those of benchmarks/results."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsfrc.benchmarks import readme
from nsfrc.errors import NsfrcError
from tests.docs.blocks import ROOT

PAGE = (ROOT / "README.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"


def test_the_tables_are_what_was_measured() -> None:
    assert readme.filled(PAGE, RESULTS) == PAGE


def test_other_figures_are_put_right() -> None:
    changed = PAGE.replace("| twopairs | 2,000 |", "| twopairs | 3,000 |")
    assert changed != PAGE and readme.filled(changed, RESULTS) == PAGE


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(NsfrcError, match="no place for the table speed"):
        readme.filled(PAGE.replace("<!-- /speed -->", ""), RESULTS)


def test_results_that_are_not_there_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="has no results of baselines: measure them with"):
        readme.filled(PAGE, tmp_path)
