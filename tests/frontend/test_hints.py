"""Hints that come from tables: nothing is missing in them, and they agree with what they speak of."""

from __future__ import annotations

import pytest

from nsfrc import vocabulary
from nsfrc.compiler.check import builtin, shipped
from nsfrc.compiler.ir import NEURAL
from nsfrc.compiler.parse import find_program, read
from nsfrc.errors import WIDTH, Diagnostic, Diagnostics, Source, Span
from tests.frontend.support import compile_text, messages


@pytest.mark.parametrize("name", sorted(builtin._LATER_NAMES | set(builtin._WHY_NEVER)))
def test_everything_refused_has_a_remedy(name: str) -> None:
    assert builtin.remedy(name)


def test_no_remedy_is_for_nothing() -> None:
    assert set(builtin._REMEDY) == builtin._LATER_NAMES | set(builtin._WHY_NEVER)


def test_shipped_predicates_are_those_with_a_function() -> None:
    valuation = pytest.importorskip("nsfrc.valuation.predicates")
    from nsfrc.valuation import registry

    ours = {name for name in registry.names() if registry._registered[name].function.__module__ == valuation.__name__}
    assert ours == set(vocabulary.BY_NAME)
    for name in vocabulary.BY_NAME:
        arity = next(n for n in range(1, 6) if shipped.types((name, n)))
        registry._registered[name].refuse_arity(arity)


@pytest.mark.parametrize(("file", "names", "types"), shipped._FILES)
def test_shipped_files_declare_what_hints_say(file: str, names: tuple[str, ...], types: tuple[str, ...]) -> None:
    found = Diagnostics()
    text = "".join(f"{sentence}\n" for sentence in read(find_program(file), found))
    known = set(types)
    for name in types:
        assert f":- type({name}," in text
    if "object" not in known:
        assert ":- type(object" not in text
        text += ":- type(object, slots(2)).\n"
    program = compile_text(text + ":- target(t(img)). t(X) :- in(_, X).")
    declared = {p.name: p.types for p in program.predicates if p.role == NEURAL}
    assert declared == {name: shipped.types((name, 2)) for name in names}


def test_a_hint_makes_the_predicate_known() -> None:
    rules = ":- target(kp(img)). kp(X) :- in(O, X), online(O, _, _), leftside(O), material(O, rubber)."
    assert sum(message.startswith("unknown predicate") for message in messages(rules)) == 3
    types = {"object", "image", "color", "size", "material"}
    hints = [shipped.hint(key, types) or "" for key in (("online", 3), ("leftside", 1), ("material", 2))]
    declarations = "".join(hint[hint.index(":- neural"):] + "\n" for hint in hints)
    assert messages(f":- type(material, [rubber]). {declarations}{rules}") == []


def test_other_arities_are_not_ours() -> None:
    assert shipped.types(("closeby", 3)) is None and shipped.types(("online", 2)) is None
    assert shipped.hint(("near", 2), ()) is None


def test_a_predicate_is_unknown_once() -> None:
    rules = ":- target(kp(img)). kp(X) :- in(O, X), odd(O), odd(_). kp(X) :- in(O, X), odd(O), size(O, 1), even(O)."
    assert messages(rules) == ["unknown predicate odd/1 (and 2 more places)", "unknown predicate even/1"]


@pytest.mark.parametrize(("column", "left", "right"), [(1, False, True), (150, True, True), (300, True, False)])
def test_long_lines_are_cut_with_dots(column: int, left: bool, right: bool) -> None:
    line = "".join(chr(ord("a") + i % 26) for i in range(300))
    source = Source("long.pl", f"x.\n{line}\n")
    _, shown, caret = str(Diagnostic(Span(source, 2, column, 2, column + 1), "here")).split("\n")
    assert (shown[2] == "…", shown[-1] == "…", len(shown)) == (left, right, WIDTH + 2)
    assert shown[caret.index("^")] == line[column - 1]


def test_facts_with_variables_have_one_finding() -> None:
    found = messages(":- target(kp(img)). near(O, _). kp(X) :- in(O, X), near(O, obj1).")
    assert found == ["a fact must be ground, but O and _ are variables"]
