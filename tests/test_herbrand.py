"""Ground atoms: which there are and in what order."""

from __future__ import annotations

import pytest

from nsfrc.compiler import ir
from nsfrc.compiler.herbrand import MAX_CELLS, Herbrand, reading_order
from nsfrc.errors import NsfrcError
from tests import slow
from tests.examples import SHIPPED, SMALL, random_typed, shipped, small


def language(types: dict[str, tuple[str, ...]], **predicates: tuple[str, ...]) -> Herbrand:
    return Herbrand.of(
        tuple(ir.DataType(name, constants, ir.ATTRIBUTE) for name, constants in types.items()),
        tuple(ir.Predicate(name, arguments, ir.NEURAL) for name, arguments in predicates.items()),
    )


def spelt(program: ir.Program) -> list[str]:
    return ["false", "true", *(ir.atom_text(n, [ir.quoted(c) for c in args]) for n, args in slow.atoms(program))]


@pytest.mark.parametrize("name", SHIPPED)
def test_atoms_of_shipped_programs(name: str) -> None:
    done = shipped(name)
    assert done.ground.herbrand.names() == spelt(done.program)


@pytest.mark.parametrize("name", SMALL)
def test_atoms_of_small_programs(name: str) -> None:
    program = small(name)
    assert Herbrand.of(program.types, program.predicates).names() == spelt(program)


@pytest.mark.parametrize("seed", range(20))
def test_atoms_of_random_programs(seed: int) -> None:
    program = random_typed(seed)
    assert Herbrand.of(program.types, program.predicates).names() == spelt(program)


@pytest.mark.parametrize(("name", "atoms"), [("twopairs", 73), ("threepairs", 141), ("online_pair", 198),
                                             ("clevr_hans3", 165), ("clevr_hans7", 281)])
def test_number_of_atoms(name: str, atoms: int) -> None:
    assert atoms == shipped(name).ground.G


def test_every_atom_is_found_by_name() -> None:
    program = small("constants in heads")
    herbrand = Herbrand.of(program.types, program.predicates)
    assert [herbrand.index(name, args) for name, args in slow.atoms(program)] == list(range(2, herbrand.size))


def test_what_is_not_an_atom() -> None:
    herbrand = language({"t": ("a", "b")}, p=("t", "t"))
    assert herbrand.index("p", ("a", "a")) is None
    assert herbrand.index("p", ("a", "c")) is None
    assert herbrand.index("p", ("a",)) is None
    assert herbrand.index("q", ("a", "b")) is None


def test_constants_of_two_types_are_different_whatever_their_names() -> None:
    herbrand = language({"t": ("a", "b"), "u": ("b", "c")}, p=("t", "u"), q=("u", "t", "t"))
    assert herbrand.names()[2:] == [
        "p(a,b)", "p(a,c)", "p(b,b)", "p(b,c)", "q(b,a,b)", "q(b,b,a)", "q(c,a,b)", "q(c,b,a)",
    ]
    assert herbrand.index("p", ("b", "b")) == 4


def test_too_few_constants_leave_a_predicate_without_atoms() -> None:
    herbrand = language({"t": ("a",)}, p=("t", "t"), q=("t",), r=())
    assert herbrand.names()[2:] == ["q(a)", "r"]
    assert herbrand.arguments(("p", 2)).shape == (0, 2)
    assert herbrand.arguments(("r", 0)).shape == (1, 0)


def test_order_does_not_depend_on_the_order_of_declarations() -> None:
    first = language({"t": ("obj10", "obj9", "obj1")}, q=("t",), p=("t",))
    second = language({"t": ("obj1", "obj9", "obj10")}, p=("t",), q=("t",))
    assert first.names() == second.names()
    assert first.names()[2:5] == ["p(obj1)", "p(obj9)", "p(obj10)"]


def test_same_name_with_two_arities() -> None:
    herbrand = Herbrand.of(
        (ir.DataType("t", ("a", "b"), ir.ATTRIBUTE),),
        (ir.Predicate("p", ("t", "t"), ir.NEURAL), ir.Predicate("p", (), ir.NEURAL)),
    )
    assert herbrand.names()[2:] == ["p", "p(a,b)", "p(b,a)"]


def test_names_are_quoted_where_prolog_needs_it() -> None:
    herbrand = language({"t": ("big box", "It's", "3")}, p=("t",))
    assert set(herbrand.names()[2:]) == {"p('big box')", "p('It\\'s')", "p(3)"}


def test_reading_order() -> None:
    names = ["obj10", "obj9", "obj", "a2b10", "a2b9", "10", "9", "obj09", "a" + "1" * 6000]
    assert sorted(names, key=reading_order) == [
        "9", "10", "a2b9", "a2b10", "a" + "1" * 6000, "obj", "obj09", "obj9", "obj10",
    ]


def test_too_many_atoms_are_refused() -> None:
    constants = {"t": tuple(f"c{i}" for i in range(60))}
    with pytest.raises(NsfrcError, match=f"p/5 has 777,600,000 argument combinations, more than {MAX_CELLS:,}"):
        language(constants, p=("t",) * 5)


def test_too_many_atoms_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsfrc.compiler.herbrand.MAX_CELLS", 100)
    with pytest.raises(NsfrcError, match="the predicates up to q/2 have 182 ground atoms, more than 100"):
        language({"t": tuple("abcdefghij")}, p=("t", "t"), q=("t", "t"))
