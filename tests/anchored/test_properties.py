"""What `anchored` promises: crisp facts stay crisp, nothing drifts, a reason counts once, gradients pass the cut."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

import nsfrc
from nsfrc.compiler import ir
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from tests.anchored.programs import INNER, RULES, VOCABULARY, text
from tests.anchored.support import GAMMAS, compiled, mixtures, random_typed, valuations
from tests.swi import crisp
from tests.swi.worlds import random_world

ENGINES = ("cpu", "reference")
RANDOM = range(25)
# Programs with targets that hold where nothing is seen.
FROM_FACTS = ("what follows from facts", "nothing but facts", *INNER)


def crisp_valuations(program: Program, count: int, seed: int = 0) -> torch.Tensor:
    rng = random.Random(seed)
    worlds = [random_world(program.source, rng) for _ in range(count)]
    return program.valuation(*(dict.fromkeys(world, 1.0) for world in worlds))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", RANDOM)
def test_crisp_inputs_give_zero_or_one_as_datalog_does(seed: int, engine: str) -> None:
    program = compiled(seed)
    V0 = crisp_valuations(program, 7, seed)
    rows = crisp.rows(program.source)
    models = [crisp.derive(program.source, rows, [a for a, v in zip(program.atoms, world, strict=True) if v])
              for world in V0.tolist()]
    expected = torch.tensor([[atom in model or atom == "true" for atom in program.atoms] for model in models]).float()
    for gamma in GAMMAS:
        assert torch.equal(program.reasoner(engine, gamma=gamma)(V0), expected)
        assert torch.equal(program.reasoner(engine, gamma=gamma)(V0[:2]), expected[:2])  # one at a time


@pytest.mark.parametrize("name", [*RULES, *range(10)])
def test_more_steps_than_needed_change_no_bit_of_crisp_answers(name: str | int) -> None:
    program = compiled(name)
    V0 = crisp_valuations(program, 7)
    for gamma in GAMMAS:
        expected = program.reasoner("cpu", gamma=gamma)(V0)
        for steps in (program.ground.rounds, program.ground.rounds + 1, 50):
            assert torch.equal(program.reasoner("cpu", gamma=gamma, steps=steps)(V0), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_do_not_matter_where_nothing_depends_on_itself(engine: str) -> None:
    program = compiled("levels")
    V0 = valuations(program, 7).float()
    expected = program.reasoner(engine)(V0)
    for steps in (0, 1, 50):
        assert torch.equal(program.reasoner(engine, steps=steps)(V0), expected)


IDLE = """
    :- pred(idle(object)). :- pred(lazy(color)).
    idle(O) :- near(O, P), near(P, O), color(P, red).
    lazy(C) :- goes(C, D), lazy(D).
    lazy(C) :- color(O, C), idle(O).
"""


@pytest.mark.parametrize("name", [name for name in RULES if "idle" not in RULES[name]])
def test_a_clause_that_nothing_needs_changes_no_bit(name: str) -> None:
    plain, longer = compiled(name), nsfrc.compile(source=text(name) + IDLE)
    V0 = valuations(plain, 9).float()
    more = torch.from_numpy(longer.initial_valuation()).repeat(9, 1)
    more[:, [longer.index(atom) for atom in plain.atoms]] = V0
    for gamma in GAMMAS:
        for batch in (9, 1):
            one, other = (program.reasoner("cpu", gamma=gamma, outputs="targets")(start[:batch])
                          for program, start in ((plain, V0), (longer, more)))
            assert torch.equal(one, other)


@pytest.mark.parametrize("seed", RANDOM)
def test_nor_do_those_of_random_programs(seed: int) -> None:
    program = compiled(seed)
    needed = set(program.level_plan(declared_start=False, targets_only=True).pair_clause.tolist())
    clauses = tuple(clause for i, clause in enumerate(program.source.clauses) if i in needed)
    shorter = nsfrc.compile(replace(program.source, clauses=clauses))
    V0 = valuations(program, 9).float()
    for batch in (9, 1):
        one, other = (p.reasoner("cpu", gamma=0.1, outputs="targets")(V0[:batch]) for p in (program, shorter))
        assert torch.equal(one, other)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in RULES if name not in FROM_FACTS])
def test_an_empty_picture_scores_nothing(name: str, engine: str) -> None:
    program = compiled(name)
    V0 = program.valuation({}).repeat(7, 1)
    for gamma in GAMMAS:
        for weights in ("hard", mixtures(program, 3).float()):
            values = program.reasoner(engine, gamma=gamma, outputs="targets", clause_weights=weights)(V0)
            assert not values.any()


def simple(rules: str) -> Program:
    return nsfrc.compile(source=VOCABULARY + rules)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_reason_is_the_value_to_the_bit(engine: str, gamma: float) -> None:
    program = simple(":- target(kp(img)). kp(X) :- in(O, X), color(O, red), goes(red, red).")
    chosen = {"in(obj2,img)": 0.7, "color(obj2,red)": 0.9, "goes(red,red)": 0.6, "in(obj1,img)": 0.4}
    value = program.reasoner(engine, gamma=gamma, outputs="targets")(program.valuation(chosen).repeat(5, 1))
    product = torch.tensor(0.7) * torch.tensor(0.9) * torch.tensor(0.6)
    assert (value - product).abs().max() <= 6e-8  # the order of the factors is the compiler's
    assert torch.equal(value, value[:1].expand(5, 1))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reason_counts_once(engine: str) -> None:
    """However many steps are taken, and whatever is derived from what it derives."""
    program = simple("""
        :- target(p(red)). :- target(q(red)).
        p(C) :- color(_O, C).
        p(C) :- q(C).
        q(C) :- p(C), goes(C, C).
    """)
    assert program.ground.rounds == 2
    V0 = program.valuation({"color(obj1,red)": 0.4, "goes(red,red)": 0.25}).repeat(5, 1)
    for steps in (2, 3, 10, 200):
        values = program.reasoner(engine, outputs="targets", steps=steps)(V0)
        assert values[:, 0] == pytest.approx(torch.full((5,), 0.4), abs=1e-6)
        assert values[:, 1] == pytest.approx(torch.full((5,), 0.1), abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_pass_through_the_cut(engine: str) -> None:
    """An answer that is surely wrong can still be corrected."""
    program = simple(":- target(kp(img)). kp(X) :- in(O, X), color(O, red).")
    V0 = program.valuation({f"{p}(obj{i},{c})": 1.0 for i in (1, 2) for p, c in (("in", "img"), ("color", "red"))})
    V0 = V0.repeat(6, 1).requires_grad_()
    for gamma in GAMMAS:
        value = program.reasoner(engine, gamma=gamma, outputs="targets")(V0)
        assert torch.equal(value, torch.ones(6, 1))
        (gradient,) = torch.autograd.grad(value.sum(), V0)
        for atom in ("in(obj1,img)", "color(obj2,red)"):
            # Two equal reasons share what there is, so that below the cut the value would be the same.
            share = 1 / (2 - torch.exp(torch.tensor(-1 / gamma)))
            assert gradient[:, program.index(atom)] == pytest.approx(share.expand(6), rel=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_gamma_can_be_changed_on_a_reasoner(engine: str) -> None:
    program = compiled("paths")
    V0 = valuations(program, 7).float()
    reasoner = program.reasoner(engine, gamma=0.3)
    before = reasoner(V0)
    for gamma in (0.01, 5, 1e-3, 0.3):
        reasoner.gamma = gamma
        assert reasoner.gamma == gamma
        assert torch.equal(reasoner(V0), program.reasoner(engine, gamma=gamma)(V0))
    assert torch.equal(reasoner(V0), before)
    with pytest.raises(NsfrcError, match="gamma must be a number from"):
        reasoner.gamma = 0
    assert reasoner.gamma == 0.3


@pytest.mark.parametrize("normalise", ["example", "batch"])
def test_normalise_is_refused_with_the_remedy(normalise: str) -> None:
    remedy = r"normalise is for semantics\(paper\).*Leave it out, or write :- semantics\(paper\)"
    with pytest.raises(NsfrcError, match=remedy):
        compiled("levels").reasoner("cpu", normalise=normalise)


def test_an_example_does_not_depend_on_its_batch() -> None:
    program = compiled("paths")
    V0 = valuations(program, 64).float()
    reasoner = program.reasoner("cpu", gamma=0.5)
    whole = reasoner(V0)
    V0[1:] = 1.0
    assert torch.equal(reasoner(V0)[0], whole[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_training_reaches_every_input_that_matters(engine: str) -> None:
    """A sum is learnt through digits that are all unlikely at first."""
    program = nsfrc.compile(source="""
        :- type(object, slots(2)). :- type(digit, 0..2). :- type(total, 0..4).
        :- neural(digit(object, digit)). :- pred(sum(total)). :- target(sum(2)).
        sum(N) :- digit(_A, X), digit(_B, Y), N is X + Y.
    """)
    neural = torch.from_numpy(program.ground.neural)
    V0 = torch.where(neural, 0.1, torch.from_numpy(program.initial_valuation())).repeat(5, 1).requires_grad_()
    program.reasoner(engine, outputs="targets", gamma=0.1)(V0).sum().backward()
    assert (V0.grad[:, neural] > 0).all()


def test_random_programs_are_what_they_are_for() -> None:
    """The generator makes all that these tests are about."""
    typed = [random_typed(seed) for seed in range(60)]
    atoms = [atom for program in typed for clause in program.clauses for atom in (clause.head, *clause.body)]
    assert any(len(set(atom.args)) < len(atom.args) for atom in atoms)
    programs = [nsfrc.compile(program, skip=("share",)) for program in typed]
    assert sum(program.ground.rounds > 1 for program in programs) >= 10
    assert any(program.ground.rounds > 0 for program in programs)
    derived = {(id(program), p.key) for program in typed for p in program.predicates if p.role == ir.DERIVED}
    assert any((id(program), fact.key) in derived for program in typed for fact in program.facts)
    assert any(sum(t.role == ir.OBJECT for t in program.types) > 1 for program in typed)
    needed = [{clause for clause in range(p.ground.C) if clause in p.lowered.pair_clause} for p in programs]
    assert any(len(found) < p.ground.C for found, p in zip(needed, programs, strict=True))
