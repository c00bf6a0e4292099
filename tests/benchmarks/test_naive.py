"""The baseline grounder finds what the compiler's grounding finds."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from nsfrc.benchmarks import naive
from nsfrc.compiler import ir
from nsfrc.compiler.grounded import NOTHING
from nsfrc.compiler.herbrand import TRUE
from nsfrc.compiler.passes.live import live
from nsfrc.errors import NsfrcError
from tests.examples import SMALL, VOCABULARY, grounded, shipped, small, typed
from tests.random_programs import random_program


def compiled_rows(program: ir.Program) -> Counter[naive.Row]:
    """The live rows of nsfrc.compiler.ground as (clause, head, body atoms padded with true)."""
    ground = live(grounded(program))
    pair = ground.pair_of_row
    return Counter(
        (int(clause), int(head), tuple(TRUE if f == NOTHING else int(f) for f in factors))
        for clause, head, factors in zip(ground.pair_clause[pair], ground.pair_head[pair], ground.factors, strict=True)
    )


@pytest.mark.parametrize("name", ["twopairs", "closeby", "red_triangle", "online_pair", "clevr_hans3"])
def test_shipped_programs(name: str) -> None:
    done = shipped(name)
    found = naive.rows(done.program)
    assert len(found) == done.ground.rows
    assert Counter(found) == compiled_rows(done.program)


@pytest.mark.parametrize("name", sorted(n for n in SMALL if not any(c.filters for c in small(n).clauses)))
def test_small_programs(name: str) -> None:
    assert Counter(naive.rows(small(name))) == compiled_rows(small(name))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    program = typed(random_program(random.Random(seed), filters=False))
    assert Counter(naive.rows(program)) == compiled_rows(program)


def test_more_than_nine_objects_are_numbered_as_people_read_them() -> None:
    program = typed(VOCABULARY + ":- target(kp(img)). kp(X) :- in(O, X), near(O, obj10).", object=11)
    assert Counter(naive.rows(program)) == compiled_rows(program)


def test_tests_on_constants_are_refused() -> None:
    with pytest.raises(NsfrcError, match="tests on constants are not part of the baseline"):
        naive.rows(small("filters"))
