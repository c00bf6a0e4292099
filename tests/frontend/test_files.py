"""Reading files, includes and shipped programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nsfrc.compiler.check import check
from nsfrc.compiler.parse import find_program, read, shipped_programs
from nsfrc.errors import CompileError, Diagnostics, NsfrcError


def texts(path: Path) -> list[str]:
    found = Diagnostics()
    result = [str(sentence) for sentence in read(path, found)]
    found.stop()
    return result


def test_include_stands_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.pl").write_text("a.\n:- include('sub/b.pl').\nd.\n")
    (tmp_path / "sub" / "b.pl").write_text("b.\n:- include(c).\n")
    (tmp_path / "sub" / "c.pl").write_text("c.\n")
    assert texts(tmp_path / "main.pl") == ["a.", "b.", "c.", "d."]


def test_a_file_is_included_once(tmp_path: Path) -> None:
    (tmp_path / "main.pl").write_text(":- include('b.pl').\n:- include('c.pl').\n:- include('c').\n")
    (tmp_path / "b.pl").write_text(":- include('c.pl').\nb.\n")
    (tmp_path / "c.pl").write_text("c.\n")
    assert texts(tmp_path / "main.pl") == ["c.", "b."]


def test_include_finds_shipped_files(tmp_path: Path) -> None:
    (tmp_path / "main.pl").write_text(":- include('kandinsky.pl').\n")
    assert any("neural(in(object,image))" in text for text in texts(tmp_path / "main.pl"))


def test_include_cycle_over_two_files(tmp_path: Path) -> None:
    (tmp_path / "a.pl").write_text(":- include('b.pl').\n")
    (tmp_path / "b.pl").write_text(":- include('a.pl').\n")
    with pytest.raises(CompileError, match=r"'a\.pl' includes itself"):
        texts(tmp_path / "a.pl")


def test_unused_clauses_of_included_files_are_not_warned_of(tmp_path: Path) -> None:
    helpers = "red(O) :- color(O, red). round(O) :- shape(O, circle). tone(O, red) :- red(O). tone(O, blue) :- red(O)."
    (tmp_path / "helpers.pl").write_text(f":- include('kandinsky.pl').\n{helpers}\n")
    rules = "kp(X) :- in(O, X), tone(O, red). blue(O) :- color(O, blue)."
    (tmp_path / "main.pl").write_text(f":- include(helpers).\n:- type(object, slots(2)). :- target(kp(img)). {rules}\n")
    found = Diagnostics()
    check(read(tmp_path / "main.pl", found), "main", found)
    assert [d.message for d in found.found] == ["no target needs blue/1"]


def test_a_type_that_is_missing_below_is_asked_for_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "words.pl").write_text("% words\n:- include('kandinsky.pl').\n")
    (tmp_path / "main.pl").write_text("% main\n\n  :- include(words).\n:- target(kp(img)). kp(X) :- in(_, X).\n")
    found = Diagnostics()
    with pytest.raises(CompileError) as caught:
        check(read(tmp_path / "main.pl", found), "main", found)
    (only,) = caught.value.diagnostics
    assert only.span is not None and str(only.span) == f"{tmp_path / 'main.pl'}:3:3"
    assert only.message == "type object is not declared, and in/2 in this file needs it"


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    (tmp_path / "a.pl").write_bytes(b"\xef\xbb\xbfa :-\r\n  b.\r\nc.\r\n")
    assert texts(tmp_path / "a.pl") == ["a :-\n    b.", "c."]


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.pl").write_bytes(b"a.\nb('\xff').\n")
    with pytest.raises(CompileError, match=r"a\.pl:2:4: error: the file is not UTF-8"):
        texts(tmp_path / "a.pl")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="cannot read"):
        texts(tmp_path / "none.pl")
    with pytest.raises(NsfrcError, match="cannot read"):
        texts(tmp_path)


@pytest.mark.parametrize("name", ["twopairs", "twopairs.pl", "kandinsky/twopairs.pl", "kandinsky/twopairs"])
def test_shipped_program_by_name(name: str) -> None:
    assert find_program(name).name == "twopairs.pl"


def test_an_existing_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "twopairs.pl").write_text("a.\n")
    monkeypatch.chdir(tmp_path)
    assert find_program("twopairs.pl") == Path("twopairs.pl")


@pytest.mark.parametrize("name", ["twopair", "nowhere/twopairs.pl", "\0", ""])
def test_unknown_program(name: str) -> None:
    with pytest.raises(NsfrcError, match=r"shipped programs: .*twopairs"):
        find_program(name)


def test_unknown_program_hint() -> None:
    with pytest.raises(NsfrcError, match="did you mean twopairs"):
        find_program("twopair.pl")


def test_files_beside_it_are_offered(tmp_path: Path) -> None:
    (tmp_path / "beside.pl").write_text("")
    (tmp_path / "rules.pl").mkdir()
    for name in ("besid.pl", "beside"):
        with pytest.raises(NsfrcError, match=r"did you mean .*beside\.pl\?"):
            find_program(str(tmp_path / name))
    with pytest.raises(NsfrcError, match=r"rules\.pl is a folder: name a program in it"):
        find_program(str(tmp_path / "rules.pl"))


@pytest.mark.parametrize("name", shipped_programs())
def test_shipped_programs_have_no_findings(name: str) -> None:
    found = Diagnostics()
    program = check(read(find_program(name), found), name, found)
    assert program.targets and not found.found


def test_import_is_light() -> None:
    code = (
        "import sys, nsfrc.compiler.parse, nsfrc.compiler.parse.grammar as g, nsfrc.compiler.check;"
        "assert g._lark.cache_info().currsize == 0;"
        "assert not {'torch', 'numba', 'triton', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
