"""Random programs: SWI-Prolog and naive forward chaining agree about random worlds."""

from __future__ import annotations

import random

import pytest

from nsfrc.compiler.check import check
from nsfrc.compiler.parse import parse
from nsfrc.errors import Diagnostics, Source
from tests.amount import sample
from tests.random_programs import random_program
from tests.swi import crisp, oracle
from tests.swi.worlds import random_world


@oracle.needs_swipl
@pytest.mark.parametrize("seed", range(sample(15, 40)))
def test_agree(seed: int) -> None:
    text, found = random_program(random.Random(seed)), Diagnostics()
    program = check(parse(Source(f"random{seed}.pl", text), found), "random", found)
    rng = random.Random(seed)
    worlds = [random_world(program, rng) for _ in range(30)]
    derived = sorted({head for head, _ in crisp.rows(program)})
    targets = derived if len(derived) < 40 else rng.sample(derived, 40)
    assert oracle.answers(text, worlds, targets) == crisp.answers(program, worlds, targets), text


@pytest.mark.parametrize("recursion", [False, True])
@pytest.mark.parametrize("filters", [False, True])
def test_generator(recursion: bool, filters: bool) -> None:
    """Programs are valid and differ; without filters there are none."""
    texts = [random_program(random.Random(seed), recursion=recursion, filters=filters, max_objects=3)
             for seed in range(25)]
    assert len(set(texts)) == len(texts)
    for text in texts:
        found = Diagnostics()
        program = check(parse(Source("random.pl", text), found), "random", found)
        assert filters or not any(clause.filters for clause in program.clauses)
        assert 0 < len(crisp.rows(program)) <= 3000
