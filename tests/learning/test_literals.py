"""A literal's bits say what its text says: every literal is compiled as a clause and compared on random worlds."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.learning.covering import renamed, subsumes
from nsfrc.learning.evidence import FromWorlds
from nsfrc.learning.extended import cuts, relations, rounded
from nsfrc.learning.learner import compile_base
from nsfrc.learning.lengths import Length, cost_of, literal_bits, sets_bits
from nsfrc.learning.relations import Basis
from nsfrc.learning.scoring import Scoring
from nsfrc.learning.search import Clause, canonical, covered
from nsfrc.learning.seen import see
from nsfrc.learning.source import SourceText
from nsfrc.learning.tables import Tables
from nsfrc.learning.wording import Words, goals_of
from tests.learning.support import PROGRAM, worlds

BACKGROUND = PROGRAM + """
warm(red). warm(yellow).
beside(square, circle). beside(circle, triangle).
linked(A, B) :- arrow(A, B).
linked(A, B) :- arrow(B, A).
"""


@pytest.fixture(scope="module")
def tables() -> tuple[SourceText, FromWorlds, Basis, Tables]:
    source = SourceText.of(None, BACKGROUND)
    program = compile_base(source)
    evidence = FromWorlds([one.world() for one in worlds(3, 60)], [str(i) for i in range(60)])
    seen = see(program, evidence)
    assert program.source.learning is not None
    basis = Basis(seen, program.source.learning)
    label = np.arange(60) % 2.0
    return source, evidence, basis, Tables(relations(basis, [label]), seen.present)


def _compare(tables: tuple[SourceText, FromWorlds, Basis, Tables], clauses: list[Clause]) -> None:
    source, evidence, _, table = tables
    words = Words(table.relations, True, set())
    heads = [f"t{i}" for i in range(len(clauses))]
    text = [source.background(), f":- target([{', '.join(f'{head}(img)' for head in heads)}]).",
            *(f":- pred({head}(image))." for head in heads),
            *(words.clause(head, clause) for head, clause in zip(heads, clauses, strict=True)),
            *(helper.text for helper in words.helpers(clauses))]
    program = nsfrc.compile(source="\n".join(text))
    with torch.no_grad():
        values = program.reasoner("cpu", outputs="targets", inputs="neural")(evidence.valuation(program).float())
    for i, clause in enumerate(clauses):
        mine = covered(table, clause.literals)
        assert (mine == (values[:, i] > 0.5).numpy()).all(), words.clause("kp", clause)


def test_every_literal_means_what_its_text_says(tables: tuple[SourceText, FromWorlds, Basis, Tables]) -> None:
    table = tables[3]
    kinds = {one.kind for one in table.relations}
    assert kinds == {"plain", "negated", "shared", "number", "count", "chain"}
    chosen, seen = [], {}
    for i, one in enumerate(table.relations):
        seen[one.group, one.kind] = seen.get((one.group, one.kind), 0) + 1
        if seen[one.group, one.kind] <= 3 and not one.parts:
            args = tuple(range(one.arity))
            chosen.append(Clause(((i, args),), one.arity, 0, 0, 0, 0, 0))
    assert len(chosen) > 60
    _compare(tables, chosen)


def test_conjunctions_too(tables: tuple[SourceText, FromWorlds, Basis, Tables]) -> None:
    rng, table = np.random.default_rng(0), tables[3]
    plain = [i for i, one in enumerate(table.relations) if not one.parts]
    chosen = []
    for _ in range(60):
        literals = []
        for i in rng.choice(plain, 3, replace=False).tolist():
            arity = table.relations[i].arity
            places = list(permutations(range(3), arity))
            literals.append((i, places[int(rng.integers(len(places)))]))
        named = renamed(literals, table.relations)
        if all((r, a) in table.table(max(k, 1)).row or not a for r, a in named
               for k in [1 + max([x for _, t in named for x in t], default=-1)]):
            chosen.append(Clause(named, 3, 0, 0, 0, 0, 0))
    assert len(chosen) > 15
    _compare(tables, chosen)


def test_a_symmetric_relation_is_tried_in_one_order(tables: tuple[SourceText, FromWorlds, Basis, Tables]) -> None:
    by_text = {one.text: one for one in tables[3].relations}
    assert by_text["same_color({0}, {1})"].symmetric and by_text["linked({0}, {1})"].symmetric
    assert not by_text["arrow({0}, {1})"].symmetric


def test_clauses_that_differ_in_names_are_one(tables: tuple[SourceText, FromWorlds, Basis, Tables]) -> None:
    found = tables[3].relations
    red = next(i for i, one in enumerate(found) if one.text == "color({0}, red)")
    arrow = next(i for i, one in enumerate(found) if one.text == "arrow({0}, {1})")
    one, two = ((red, (0,)), (arrow, (0, 1))), ((arrow, (1, 0)), (red, (1,)))
    other = ((arrow, (0, 1)), (red, (1,)))
    assert canonical(one, found) == canonical(two, found) != canonical(other, found)
    assert subsumes(one[:1], two, found) and subsumes(one, two, found)
    assert not subsumes(one, other, found) and not subsumes(two, one[:1], found)
    assert renamed(two, found) == ((arrow, (0, 1)), (red, (0,))) and cost_of(one, found) > cost_of(one[:1], found) > 0


def test_the_length_of_a_clause_does_not_depend_on_its_order(
    tables: tuple[SourceText, FromWorlds, Basis, Tables]
) -> None:
    """Nor on names of variables; and the search counts what is counted afterwards."""
    table = tables[3]
    found = table.relations
    by_text = {one.text: i for i, one in enumerate(found)}
    clause = [(by_text["color({0}, red)"], (0,)), (by_text["same_shape({0}, {1})"], (0, 1)),
              (by_text["arrow({0}, {1})"], (1, 0)), (by_text["shape({0}, circle)"], (1,))]
    lengths = {round(cost_of(renamed(order, found), found), 9) for order in permutations(clause)}
    assert len(lengths) == 1
    whole = table.table(2)
    for literal in clause:
        rest = [one for one in clause if one != literal]
        row = np.array([whole.row[literal]])
        own = np.array([literal_bits(found[literal[0]])])
        added = Length.of(rest, found).with_one_more(whole, row, own, np.array([1]))
        assert added[0] == pytest.approx(cost_of(clause, found))


def test_as_probabilities_all_clauses_are_no_more_than_one(
    tables: tuple[SourceText, FromWorlds, Basis, Tables]
) -> None:
    """Or rules would be found in noise: of one literal, and of two about one object or two."""
    found = [one for one in tables[3].relations if not one.parts]
    assert sum(2.0**-one.bits for one in found) == pytest.approx(1)
    single = [((i, args),) for i, one in enumerate(found) for args in permutations(range(one.arity))
              if not one.symmetric or list(args) == sorted(args)]
    total = sum(2 ** -cost_of(one, found) for one in single)
    assert total <= 1 / 3 + 1e-9  # the others go on
    unary = [i for i, one in enumerate(found) if one.arity == 1]
    same = sum(2 ** -cost_of(((i, (0,)), (j, (0,))), found) for i, j in combinations(unary, 2))
    apart = sum(2 ** -cost_of(((i, (0,)), (j, (1,))), found) for i, j in combinations(unary, 2))
    assert total + same + apart < 1 and same > 0 and apart > 0
    assert sets_bits((0b01,)) == sets_bits((0b11,)) == 0 and sets_bits((0b0011, 0b1100)) == 1


def test_goals_are_parted_at_commas_of_their_own() -> None:
    assert goals_of("a(X, 'b,('), \\+ (c, d), N =:= 3") == ["a(X, 'b,(')", "\\+ (c, d)", "N =:= 3"]


def test_numbers_are_cut_where_labels_change() -> None:
    known = np.array([[0.1, 0.2], [0.3, np.nan], [0.71, 0.1], [0.9, 0.8]])
    found = cuts(known, [np.array([0.0, 0.0, 1.0, 1.0])])
    assert any(0.3 < cut < 0.71 for cut in found)
    assert rounded(0.50499, np.array([0.31, 0.7])) == 0.5 and rounded(0.506, np.array([0.501, 0.509])) == 0.506
    assert cuts(np.array([[0.5], [0.5]]), []) == []


def test_a_better_rule_saves_more() -> None:
    scoring = Scoring(50, 50)
    perfect, good, chance, inverse = (float(scoring.gain(tp, fp)) for tp, fp in ((50, 0), (45, 5), (25, 25), (0, 50)))
    assert perfect > good > 0 >= chance > inverse
    assert perfect == pytest.approx(scoring.nothing) and float(scoring.most(50)) == perfect
    later = Scoring(50, 50, tp=30, fp=0)
    assert float(later.gain(20, 0)) == pytest.approx(later.nothing)
    known = Scoring(50, 50, noise=0.1)
    assert float(known.gain(45, 5)) > float(known.gain(40, 10))
