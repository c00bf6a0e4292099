"""A small share of `benchmarks/fuzz.py`: a program or diagnostics, never anything else."""

from __future__ import annotations

from nsfrc.benchmarks import fuzz
from tests.amount import sample


def test_fuzz() -> None:
    outcomes, failures = fuzz.run(sample(700, 1500), seed=1, progress=False)
    assert not failures, f"{failures[0][0]}\n{failures[0][1]!r}"
    assert outcomes["program"] and outcomes["refused"]
