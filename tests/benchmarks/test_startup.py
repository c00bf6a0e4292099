"""What `benchmarks.startup` measures, with commands that take no time."""

from __future__ import annotations

import pytest

from nsfrc.benchmarks import startup
from nsfrc.benchmarks.startup import STARTS, Start, measured
from nsfrc.errors import NsfrcError

WORK = "import sys; sum(range(int(sys.argv[1])))"
# Says by its end whether kernels of an earlier process are there, and leaves one.
LEAVES = """
import os, pathlib, sys
place = pathlib.Path(os.environ["NUMBA_CACHE_DIR"])
place.mkdir(exist_ok=True)
found = (place / "kernel").exists()
(place / "kernel").touch()
sys.exit(f"a kernel was {found}" if str(found) != sys.argv[1] else 0)
"""


def test_names_are_unique_and_baselines_exist():
    names = [start.what for start in STARTS]
    assert len(set(names)) == len(names)
    assert all(start.beside in names for start in STARTS if start.beside)
    assert startup.PICTURE.is_file()


def test_a_row_has_its_baseline_and_the_other_version(monkeypatch):
    little, much = Start("little", WORK, ("10",)), Start("much", WORK, ("9000000",), beside="little")
    monkeypatch.setattr(startup, "STARTS", (little, much))
    first, second = measured([little, much], 2, startup.ROOT)
    assert first.beside_median is None and first.ratio is None and first.runs == 2
    assert first.earlier_median is not None and first.earlier_ratio == first.earlier_median / first.median
    assert second.ratio == second.median / second.beside_median and second.over == second.median - second.beside_median
    assert "much" in startup.tell([first, second])


def test_first_means_with_nothing_kept():
    for start in (Start("first", LEAVES, ("False",), first=True), Start("later", LEAVES, ("True",))):
        if start.first:
            assert list(measured([start], 2, None))
        else:  # the process before those that are measured finds nothing yet
            with pytest.raises(NsfrcError, match=r"'later' failed in .*: a kernel was False"):
                list(measured([start], 1, None))
