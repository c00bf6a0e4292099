"""What is too long, too deep or too much ends in a diagnostic, and takes no more time and memory than it should."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import nsfrc
from nsfrc.compiler.check import unify, vocabulary
from nsfrc.compiler.check.alternatives import MAX_BODY
from nsfrc.compiler.parse import files, find_program, parse, read
from nsfrc.compiler.parse.positions import Positions
from nsfrc.errors import MAX_COMPARISONS, MAX_SHOWN, CompileError, Diagnostic, Diagnostics, NsfrcError, Source
from tests.frontend.support import VOCABULARY, compile_text

RULES = VOCABULARY + ":- target(kp(img)).\nkp(X) :- in(O, X), color(O, red).\n"


def refused(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    return caught.value.diagnostics


def peak(work: Callable[[], object]) -> int:
    """The most bytes that something holds at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["'" + "a" * 300_000 + "'", "'" + "''" * 150_000 + "'", "'" + "a" * 300_000,
                                  '"' + "\\n" * 150_000 + '"', "a" * 300_000])
def test_long_names_take_no_memory(text: str) -> None:
    found = Diagnostics()
    source = Source("x.pl", f"p({text}).")
    parse(Source("x.pl", "a :- !."), Diagnostics())  # builds the grammar
    assert peak(lambda: parse(source, found)) < 10 * len(source.text)
    assert found.found[0].code == ("unterminated" if text == "'" + "a" * 300_000 else "long-name")


def test_blank_lines_take_no_memory() -> None:
    source = Source("x.pl", "a.\n" + "\n" * 1_000_000 + "p(a b).\n")
    parse(Source("x.pl", "a :- !."), Diagnostics())
    found = Diagnostics()
    assert peak(lambda: (parse(source, found), str(found.found[0]))) < 1_000_000
    assert str(found.found[0]).startswith("x.pl:1000002:5: error: expected ',' or ')' before 'b'\n  p(a b).\n      ^")


def test_lines_of_long_texts_are_found() -> None:
    lines = [f"line {i} " + "x" * (i % 300) for i in range(3000)]
    source = Source("x.pl", "\r\n".join(lines))
    for number in (1, 2, 77, 1500, 2999, 3000):
        assert source.line(number) == lines[number - 1]
    assert source.line(0) == source.line(3001) == source.line(10**9) == ""


def test_places_do_not_depend_on_the_order_of_asking() -> None:
    text = "a\nbc\n\n  d\nlast"
    straight = [(text.count("\n", 0, i) + 1, i - text.rfind("\n", 0, i)) for i in range(len(text) + 1)]
    for order in (range(len(text) + 1), reversed(range(len(text) + 1)), [7, 0, 9, 3, 12, 1, 5, 13, 2]):
        positions = Positions(Source("x.pl", text))
        assert all(positions.place(i) == straight[i] for i in order)


def test_at_most_a_hundred_errors_are_listed() -> None:
    text = VOCABULARY + ":- target(kp(img)).\n" + "".join(f"kp(X) :- in(O, X), color(O, c{i}).\n" for i in range(250))
    listed = refused(text)
    assert [d.code for d in listed] == ["unknown-constant"] * MAX_SHOWN + ["not-listed"]
    assert str(listed[-1]) == "error: 150 more errors are not listed"
    assert str(listed[0]).startswith("test.pl:11:29: ")
    assert refused(text.replace("c249", "red").replace("c100).", "c100"))[-1].code == "not-listed"


def test_at_most_a_hundred_warnings_are_listed() -> None:
    found = Diagnostics()
    compile_text(RULES + "".join(f"kp(X) :- in(O, X), color(P{i}, red).\n" for i in range(101)), found)
    warnings = found.warnings()
    assert (found.warned, len(warnings), warnings[-1].code) == (202, MAX_SHOWN + 1, "not-listed")
    assert str(warnings[-1]) == "warning: 102 more warnings are not listed"


def test_an_error_too_many_is_one() -> None:
    found = Diagnostics()
    for line in range(MAX_SHOWN + 1):
        found.error("refused", None, f"{line}")
        found.error("refused", None, f"{line}")
    with pytest.raises(CompileError, match="1 more error is not listed"):
        found.stop()


def test_hints_look_through_so_many_names_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr("nsfrc.errors.did_you_mean", lambda word, known: looked.append(len(list(known))))
    text = RULES + "".join(f"p{i}(X) :- in(O, X), q{i}(O).\n" for i in range(400))
    assert len(refused(text)) == MAX_SHOWN + 1
    assert 0 < sum(looked) <= MAX_COMPARISONS


def test_calls_look_at_clauses_with_their_constant_only(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = [f"c{i}" for i in range(300)]
    text = RULES + f":- type(tone, [{', '.join(constants)}]).\n:- neural(is_tone(object, tone)).\n"
    text += "".join(f"tone(O, {c}) :- is_tone(O, {c}).\nkp(X) :- in(O, X), tone(O, {c}).\n" for c in constants)
    text += "".join(f":- target(tone(obj1, {c})).\n" for c in constants)
    compared: list[None] = []
    unifiable = unify.unifiable
    monkeypatch.setattr(unify, "unifiable", lambda first, second: compared.append(None) or unifiable(first, second))
    compile_text(text)
    assert len(compared) < 20 * len(constants)


def test_a_program_without_types_says_so_once() -> None:
    found = refused(":- neural(in(object, image)).\n:- target(kp(img)).\nkp(X) :- in(_, X), w(a, b).\n"
                    + "".join(f"w(a{i}, b{i}).\n" for i in range(50)))
    assert [d.code for d in found] == ["no-types"]
    assert found[0].span is not None and found[0].span.line == 1
    assert compile_text(":- target(a).\na :- b, c.\nb.\nc.\n").types == ()  # which needs none


def test_a_long_list_of_types_is_cut() -> None:
    types = "".join(f":- type(t{i}, [a]).\n" for i in range(40))
    found = refused(f"{RULES}{types}odd(a).\nkp(X) :- in(_, X), odd(a).\n")
    assert "it could be t0 or t1 or t2 or t3 or t4 or ... (40 in all)" in found[0].message
    assert vocabulary.either(["t"]) == "t"


def test_goals_of_a_body() -> None:
    goals = ", ".join(["color(O, red)"] * (MAX_BODY - 1))
    assert len(compile_text(RULES + f"kp(X) :- in(O, X), {goals}.").clauses[1].body) == MAX_BODY
    (found,) = refused(RULES + f"kp(X) :- in(O, X), true, {goals}.")
    assert (found.code, found.message) == ("long-body", "this body has 1,001 goals (the limit is 1,000)")


def test_bytes_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 100)
    path = tmp_path / "a.pl"
    path.write_text("% " + "x" * 98)
    found = Diagnostics()
    assert read(path, found) == () and not found.found
    path.write_text("% " + "x" * 99)
    read(path, found)
    assert [(d.code, d.message) for d in found.found] == [("too-much-text", "the file is longer than 100 bytes")]
    for name in ("b", "c"):
        (tmp_path / f"{name}.pl").write_text("% " + "x" * 58)
    path.write_text("\n:- include(b).\n:- include(c).\n")
    read(path, found := Diagnostics())
    (only,) = found.found
    assert only.message == "with the files that it includes, the program is longer than 100 bytes"
    assert only.span is not None and str(only.span) == f"{path}:3:1"
    assert [d.code for d in nsfrc.check("x" * 101)] == ["too-much-text"]


def test_files_that_never_end_are_not_read_whole() -> None:
    endless = Path("/dev/zero")
    if endless.exists():
        found = Diagnostics()
        assert peak(lambda: read(endless, found)) < 3 * files.MAX_BYTES
        assert [d.code for d in found.found] == ["too-much-text"]


@pytest.mark.parametrize("deep", [files.MAX_INCLUDES, 500])
def test_includes_in_includes(deep: int, tmp_path: Path) -> None:
    for number in range(deep):
        (tmp_path / f"f{number}.pl").write_text(f":- include('f{number + 1}.pl').\n")
    (tmp_path / f"f{deep}.pl").write_text("a.\n")
    found = Diagnostics()
    sentences = read(tmp_path / "f0.pl", found)
    if deep == files.MAX_INCLUDES:
        assert [str(s) for s in sentences] == ["a."] and not found.found
    else:
        assert [(d.code, d.message) for d in found.found] == [
            ("include-too-deep", f"files include each other more than {files.MAX_INCLUDES} deep"),
        ]
        assert found.found[0].span and found.found[0].span.source.name == str(tmp_path / f"f{files.MAX_INCLUDES}.pl")


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    """A link to itself was found under its own name: did you mean loop.pl?"""
    (tmp_path / "loop.pl").symlink_to("loop.pl")
    (tmp_path / "gone.pl").symlink_to("nothing.pl")
    (tmp_path / "twopairs.pl").symlink_to("nothing.pl")
    for name in ("loop.pl", "gone.pl", "twopairs.pl"):
        with pytest.raises(NsfrcError) as caught:
            find_program(str(tmp_path / name))
        assert str(caught.value) == f"cannot read {tmp_path / name}: it is a broken link"
    (tmp_path / "main.pl").write_text(":- include('loop.pl').\n:- include('folder').\n")
    (tmp_path / "folder").mkdir()
    read(tmp_path / "main.pl", found := Diagnostics())
    assert [(d.code, d.hint) for d in found.found] == [("include-unreadable", None)] * 2
    assert found.found[0].message == f"cannot read {tmp_path / 'loop.pl'}: it is a broken link"
    assert found.found[1].message == f"cannot read {tmp_path / 'folder'}: it is a folder"
