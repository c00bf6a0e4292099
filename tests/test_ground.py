"""Grounding against a slow enumeration, and the refusal of what would not fit."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from nsfrc.compiler import ir
from nsfrc.compiler.ground import components, ground, ground_live, injective, sizes
from nsfrc.compiler.grounded import BLOCK, NOTHING, GroundProgram, over_factors, rows_of
from nsfrc.compiler.herbrand import Herbrand
from nsfrc.compiler.passes.live import live
from nsfrc.compiler.verify import verify_ground
from nsfrc.errors import CompileError, Diagnostics
from nsfrc.program import from_compilation
from tests import slow
from tests.examples import SHIPPED, SMALL, VOCABULARY, grounded, random_typed, shipped, small, typed

# program: C, G, S, L, and the substitution rows that are not padding.
SIZES = {
    "twopairs": (4, 73, 24, 8, 168),
    "threepairs": (4, 141, 720, 12, 1080),
    "closeby": (1, 43, 12, 3, 12),
    "red_triangle": (3, 147, 30, 7, 390),
    "online_pair": (3, 198, 120, 8, 240),
    "nine_circles": (4, 69, 504, 6, 1513),
    "clevr_hans3": (3, 165, 90, 8, 270),
    "clevr_hans7": (10, 281, 5040, 12, 7473),
}


def spelt(program: GroundProgram) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """Rows by clause and head, true written out: what `slow.rows` gives, with padding to L."""
    result = {}
    for pair in range(program.pairs):
        factors = program.factors[program.pair_start[pair]: program.pair_start[pair + 1]]
        key = int(program.pair_clause[pair]), int(program.pair_head[pair])
        result[key] = sorted(tuple(1 if f == NOTHING else int(f) for f in row) for row in factors)
    return result


def check_against_slow(program: GroundProgram, tensor: np.ndarray) -> None:
    verify_ground(program)
    assert tensor.shape == (program.C, program.G, program.S, program.L)
    for (clause, head), rows in spelt(live(program)).items():
        wanted = [tuple(map(int, row)) for row in tensor[clause, head] if row.any()]
        assert rows == sorted(wanted)
    live_pairs = {(int(c), int(g)) for c, g in np.argwhere(tensor.any(axis=(2, 3)))}
    assert live_pairs == set(spelt(live(program)))
    padding = (program.factors == 0).all(axis=1) & (program.power == 0)
    assert int(program.multiplicity[padding].sum()) == int((~tensor.any(axis=3)).sum())


@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name: str) -> None:
    program = small(name)
    check_against_slow(grounded(program), slow.index_tensor(program))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    program = random_typed(seed)
    check_against_slow(grounded(program), slow.index_tensor(program))


@pytest.mark.parametrize("name", SHIPPED)
def test_sizes_of_shipped_programs(name: str) -> None:
    program = shipped(name).ground
    assert (program.C, program.G, program.S, program.L, program.rows) == SIZES[name]


@pytest.mark.parametrize("name", ["twopairs", "closeby", "red_triangle", "clevr_hans3"])
def test_shipped_programs(name: str) -> None:
    done = shipped(name)
    check_against_slow(grounded(done.program), slow.index_tensor(done.program))


@pytest.mark.parametrize("name", ["twopairs", "closeby", "clevr_hans3"])
def test_index_tensor(name: str) -> None:
    done = shipped(name)
    ours, wanted = from_compilation(done).index_tensor(), slow.index_tensor(done.program)
    assert ours.shape == wanted.shape
    order = [np.lexsort(t.reshape(-1, *t.shape[2:])[:, :, ::-1].transpose(2, 0, 1), axis=1) for t in (ours, wanted)]
    flat = [t.reshape(-1, *t.shape[2:]) for t in (ours, wanted)]
    left, right = (np.take_along_axis(f, o[:, :, None], axis=1) for f, o in zip(flat, order, strict=True))
    assert (left == right).all()


def test_rows_stand_in_lexicographic_order_of_the_assignments() -> None:
    program = live(grounded(typed(VOCABULARY + ":- target(kp(img)). kp(X) :- in(O, X), in(P, X), near(O, P).")))
    names = program.herbrand.names()
    assert [names[row[2]] for row in program.factors] == [
        "near(obj1,obj2)", "near(obj1,obj3)", "near(obj2,obj1)", "near(obj2,obj3)", "near(obj3,obj1)",
        "near(obj3,obj2)",
    ]


def test_a_head_constant_may_be_taken_again_and_a_repeated_constant_is_false() -> None:
    program = live(grounded(typed(VOCABULARY + ":- target(p(obj1)). p(X) :- near(X, Y), in(Y, img).")))
    names = program.herbrand.names()
    mine = spelt(program)[0, names.index("p(obj1)")]
    assert [[names[f] for f in row] for row in mine] == [
        ["false", "in(obj1,img)"], ["near(obj1,obj2)", "in(obj2,img)"], ["near(obj1,obj3)", "in(obj3,img)"],
    ]


def test_a_short_body_is_filled_with_true_and_padding_is_false() -> None:
    program = grounded(small("several clauses, one head"))
    assert (program.S, program.L) == (6, 4)
    head = program.herbrand.names().index("kp(img)")
    first = program.pair_of_row[(program.pair_clause[program.pair_of_row] == 0)
                                & (program.pair_head[program.pair_of_row] == head)]
    rows = np.flatnonzero(program.pair_of_row == first[0])
    assert program.power[rows].tolist() == [3, 3, 3, 0]
    assert program.multiplicity[rows].tolist() == [1, 1, 1, 3]
    assert (program.factors[rows[-1]] == 0).all()


def test_filters_shrink_the_rows_and_S() -> None:
    body = ":- target(kp(img)). kp(X) :- in(O, X), size(O, N), size(P, M)"
    whole, fewer = (grounded(typed(VOCABULARY + body + end)) for end in (".", ", N < M."))
    assert whole.S == 6 * 6
    assert fewer.S == 6 * 3


def test_a_filter_that_no_head_passes_leaves_pairs_empty() -> None:
    text = ":- target(p(2)). p(N) :- size(O, N), N > 1. q(N) :- size(O, N), N < 1, N > 2."
    program = grounded(typed(VOCABULARY + text))
    assert {clause for clause, _ in spelt(live(program))} == {0}
    assert program.S == 3


def test_no_arguments() -> None:
    program = live(grounded(small("no arguments")))
    names = program.herbrand.names()
    rows = spelt(program)
    assert [len(rows[0, names.index("alarm")]), len(rows[1, names.index("warm")])] == [6, 3]
    assert program.initial[names.index("warm")] == 1


def test_no_body() -> None:
    checked = small("no arguments")
    empty = ir.Clause(ir.Atom("warm", ()), (), (), ())
    program = live(grounded(replace(checked, clauses=(*checked.clauses, empty))))
    assert spelt(program)[2, program.herbrand.names().index("warm")] == [(1, 1)]
    assert program.power[-1] == program.L == 2


def test_starting_values() -> None:
    program = grounded(small("background and absent facts"))
    names = program.herbrand.names()
    started = {name for name, value in zip(names, program.initial, strict=True) if value}
    assert started == {"true", "likes(red,1)", "likes(red,2)", "likes(blue,3)"}
    neural = {name.split("(")[0] for name, flag in zip(names, program.neural, strict=True) if flag}
    assert neural == {"in", "color", "size", "near"}


@pytest.mark.parametrize(("constants", "variables", "ways"),
                         [(4, 2, 12), (3, 3, 6), (2, 3, 0), (5, 0, 1), (300, 1, 300)])
def test_injective(constants: int, variables: int, ways: int) -> None:
    found = injective(constants, variables)
    assert found.shape == (ways, variables)
    assert len({tuple(row) for row in found.tolist()}) == ways
    assert all(len(set(row)) == variables for row in found.tolist())
    assert found.tolist() == sorted(found.tolist())


def test_more_constants_than_sixteen_bits_count() -> None:
    assert injective(70_000, 1)[:, 0].tolist() == list(range(70_000))


def test_components_are_joined_by_free_variables_only() -> None:
    text = ":- target(kp(img)). kp(X) :- in(O, X), in(P, X), color(O, C), size(P, N), size(Q, M), near(Q, O)."
    clause = typed(VOCABULARY + text).clauses[0]
    parts = components(clause, 7)
    assert parts[0] == parts[2] == parts[4] == parts[5]
    assert parts[1] == parts[3] != parts[0]
    assert parts[6] not in parts[:6]


def test_counting_agrees_with_enumerating() -> None:
    program = shipped("threepairs").program
    herbrand = Herbrand.of(program.types, program.predicates)
    assert [size.rows for size in sizes(program, herbrand)] == [720, 90, 90, 180]


def test_a_program_without_clauses_is_refused() -> None:
    with pytest.raises(CompileError, match="test has no clauses"):
        grounded(typed(VOCABULARY))


def refused(program_text: str, max_rows: int) -> CompileError:
    with pytest.raises(CompileError) as caught:
        ground(typed(VOCABULARY + program_text, object=12), Diagnostics(), max_rows)
    return caught.value


def test_explosion_names_the_clause_its_variables_and_the_count() -> None:
    error = refused(
        ":- target(kp(img)). kp(X) :- in(A, X), in(B, X), in(C, X), in(D, X), size(A, N).\n"
        "two(X) :- in(A, X), color(A, red).",
        max_rows=1000,
    )
    (found,) = (d for d in error.diagnostics if d.severity == "error")
    assert found.span is not None and "kp(X)" in found.span.source.line(found.span.line)
    assert found.message == (
        "this clause grounds to 35,640 rows (1 head × 35,640 assignments of A, B, C, D over 12 constants of "
        "object; N over 3 constants of size); the limit for the program is 1,000"
    )
    assert found.hint is not None and "--slots" in found.hint and "--max-rows" in found.hint


def test_explosion_of_many_small_clauses_is_found_too() -> None:
    clauses = "".join(f"p{i}(X) :- in(A, X), in(B, X).\n" for i in range(10))
    error = refused(":- target(p0(img)).\n" + clauses, max_rows=1000)
    assert len([d for d in error.diagnostics if d.severity == "error"]) == 10


def test_the_limit_is_inclusive() -> None:
    program = typed(VOCABULARY + ":- target(kp(img)). kp(X) :- in(A, X), in(B, X).")
    assert ground(program, Diagnostics(), 6).S == 6
    with pytest.raises(CompileError):
        ground(program, Diagnostics(), 5)


def test_an_astronomic_count_is_refused_at_once() -> None:
    body = ", ".join(f"in(O{i}, X)" for i in range(60))
    with pytest.raises(CompileError, match="assignments of O0, O1"):
        grounded(typed(VOCABULARY + f":- target(kp(img)). kp(X) :- {body}.", object=200))


def test_a_clause_without_heads_is_not_enumerated() -> None:
    body = ", ".join(f"in(O{i}, X)" for i in range(12))
    text = f":- pred(two(image, image)). two(X, Y) :- {body}, in(A, Y). :- target(kp(img)). kp(X) :- in(O, X)."
    program = grounded(typed(VOCABULARY + text, object=40))
    assert program.S == 40


def test_too_many_pairs_of_clauses_and_atoms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsfrc.compiler.ground.MAX_ROWS", 50)
    program = typed(VOCABULARY + ":- target(kp(img)). kp(X) :- in(A, X). kp(X) :- in(A, X), in(B, X).")
    with pytest.raises(CompileError, match="2 clauses × 27 ground atoms are 54 pairs; the limit is 50"):
        ground(program, Diagnostics(), 50)
    ground(program, Diagnostics(), 54)


@pytest.mark.parametrize("name", [*SMALL, "twopairs", "nine_circles", *(f"random {seed}" for seed in range(30))])
def test_live_rows_are_those_of_the_program_that_is_spelt_out(name: str) -> None:
    if name in SHIPPED:
        program = shipped(name).program
    else:
        program = small(name) if name in SMALL else random_typed(int(name.split()[1]))
    whole = grounded(program)
    wanted, (found, counted) = live(whole), ground_live(program, Diagnostics())
    assert counted == (whole.active, whole.rows, whole.products)
    for field in fields(GroundProgram):
        mine, theirs = getattr(found, field.name), getattr(wanted, field.name)
        if isinstance(theirs, np.ndarray):
            assert mine.dtype == theirs.dtype and np.array_equal(mine, theirs), field.name
    assert live(found) is found


def test_rows_are_looked_at_block_by_block() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(NOTHING, 5, (2 * BLOCK + 3, 4)).astype(np.int32)
    table = np.array([3, 5, 7, 11, 13, 0])  # the last one for NOTHING
    assert np.array_equal(over_factors(np.add, table, factors), table[factors].sum(axis=1))
    some = rng.integers(0, len(factors), BLOCK + 1)
    assert np.array_equal(over_factors(np.maximum, table, factors, some), table[factors[some]].max(axis=1))
    assert rows_of(NOTHING, factors).tolist() == np.flatnonzero((factors == NOTHING).all(axis=1)).tolist()
