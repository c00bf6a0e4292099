"""The part of the suite about growth of time and memory: points in processes of their own, slopes, picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsfrc.benchmarks import scaling
from nsfrc.benchmarks.measure import in_child, read_csv, write_csv
from nsfrc.compiler.stages import compile_text


def rows(power: float) -> list[scaling.ScalingRow]:
    return [scaling.ScalingRow("clauses", "some", n, 1e-3 * n**power, float(n)) for n in (10, 100, 1000, 10_000)]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_slope_is_the_power(power: float) -> None:
    found = scaling.slope(rows(power))
    assert found is not None and abs(found - power) < 1e-9
    assert scaling.slope(rows(power)[:1]) is None


def test_it_is_told_and_drawn_from_the_csv_file(tmp_path: Path) -> None:
    write_csv(tmp_path / "scaling.csv", rows(1.0), first=("axis", "what", "n"))
    results = {"scaling": read_csv(tmp_path / "scaling.csv", scaling.ScalingRow)}
    assert "| clauses: some | 10 … 10,000 | 10 ms | 10 s | 1.00 | 10,000 MB |" in scaling.tell(results)
    (picture,) = scaling.draw(results, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert scaling.draw({}, tmp_path) == []


@pytest.mark.parametrize("name", ["clauses", "levels"])
def test_points_are_measured(name: str) -> None:
    axis = next(axis for axis in scaling.AXES if axis.name == name)
    found = in_child(axis.code.format(n=axis.quick[-1], figures="") + scaling.MEASURED)
    assert found["seconds"] > 0 and found["mb"] >= 0


def test_a_chain_has_as_many_levels_as_it_says() -> None:
    assert [compile_text(scaling.chain(n), "chain.pl").depth for n in (1, 3, 8)] == [2, 4, 9]
