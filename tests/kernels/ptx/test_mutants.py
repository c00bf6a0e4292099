"""Faults planted in the machine code of a real kernel are seen; `python -m nsfrc.benchmarks.ptx_mutants` plants
more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nsfrc
from nsfrc.benchmarks.ptx_mutants import REASONS
from nsfrc.engines.gpu.launch import PROGRAM
from nsfrc.engines.ptx import findings as kinds
from tests.engines.support import valuations
from tests.kernels.ptx.support import PAPER, executed

pytestmark = pytest.mark.ptx

KERNELS = Path(__file__).parents[3] / "kernels"


@pytest.fixture(scope="module")
def faults():
    """What is found when line `number` of those that match in the forward kernel is changed."""
    program = nsfrc.compile(source=PAPER, name="small")
    V0 = valuations(program, 3)
    texts: dict[str, str] = {}

    def seen(pattern: str, number: int, replacement: str) -> set[str]:
        def change(label: str, ptx: str) -> str:
            if not label.startswith("program_forward"):
                return ptx
            texts[label] = ptx
            found = list(re.finditer(pattern, ptx))[number]
            return ptx[: found.start()] + found.expand(replacement) + ptx[found.end():]

        _, launches = executed(program, V0, shape=PROGRAM, check="collect", change=change, gradients=False)
        return {one.kind for one in launches[0].findings}

    return seen


@pytest.mark.parametrize("pattern, number, replacement, expected", [
    (r"\tbar\.sync \t0;", 1, "", kinds.READ_AFTER_WRITE), (r"\tbar\.sync \t0;", -2, "", kinds.READ_AFTER_WRITE),
    (r"\+ 0 \]", 0, "+ 400000 ]", kinds.OUTSIDE), (r"(ld\.global\.v4\S+ .*)\+ 0 \]", 0, r"\1+ 4 ]", kinds.MISALIGNED),
    (r"@%p\d+ (st\.global)", -1, r"\1", kinds.OUTSIDE),
], ids=["second barrier", "last but one", "far beyond", "a word further", "mask of a store"])
def test_a_planted_fault_is_found(faults, pattern, number, replacement, expected):
    assert expected in faults(pattern, number, replacement)


def test_without_one_there_is_nothing(faults):
    assert faults(r"\tbar\.sync \t0;", 0, r"\g<0>") == set()


def test_reasons_for_barriers_are_about_barriers():
    places = [place for kind, place, _ in REASONS if kind == "barrier removed"]
    assert places
    for place in places:
        file, line = re.fullmatch(r"(\w+)\\\.py:(\d+)\\b", place).groups()
        text = (KERNELS / f"{file}.py").read_text().splitlines()[int(line) - 1]
        assert "tl.debug_barrier()" in text, place
