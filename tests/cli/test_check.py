"""`nsfrc check`: the findings of `nsfrc compile`, for people, editors and hooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import RULES, Run
from tests.examples import SHIPPED, VOCABULARY, write

BAD = ":- target(kp(img)). kp(X) :- in(O, X), colour(O, red), in(O)."
UNUSED = RULES + " unused(X) :- in(O, X)."


def test_check_says_that_a_program_is_fine(run: Run) -> None:
    assert run.good("check", "twopairs") == "twopairs: fine, 4 clauses, 73 ground atoms\n"
    write(run.folder, RULES)
    assert run.good("check", "rules.pl") == "rules.pl: fine, 1 clause, 27 ground atoms\n"
    assert os.listdir(run.folder) == ["rules.pl"]


def test_check_takes_every_shipped_program(run: Run) -> None:
    lines = run.good("check", "--strict", *SHIPPED).splitlines()
    assert [line.split(": fine, ")[0] for line in lines] == list(SHIPPED)


@pytest.mark.parametrize("text", [
    BAD,
    UNUSED,
    ":- target(kp(img)). kp(X) :- in(O, X), color(O, C), color(P, D), color(Q, E).",  # can never fire
    ":- steps(1). :- target(kp(img)). kp(X) :- p(X). p(X) :- in(_, X).",
    ":- target(kp(img)). kp(X) :- in(O, X",
    ":- include('nothing.pl'). kp(X) :- in(_, X).",
    "kp(X) :- in(_, X).",
])
def test_check_finds_what_compile_finds(text: str, run: Run) -> None:
    write(run.folder, text)
    compiled = run("compile", "rules.pl", "--json", "-o", "x.nsfrc")
    report = json.loads(compiled.out)
    (checked,) = json.loads(run("check", "rules.pl", "--json").out)["files"]
    expected = report["errors"] if compiled.code else report["warnings"]
    assert checked["diagnostics"] == expected and expected
    assert checked["ok"] == (compiled.code == 0)


def test_check_shows_places_and_hints(run: Run) -> None:
    write(run.folder, BAD)
    result = run("check", "rules.pl")
    assert (result.code, result.err) == (1, "")
    assert "rules.pl:10:40: error: unknown predicate colour/2\n" in result.out
    assert "did you mean color/2?" in result.out
    assert result.out.splitlines()[-1].startswith("rules.pl: 2 errors")


def test_check_says_codes_to_machines(run: Run) -> None:
    write(run.folder, BAD)
    (file,) = json.loads(run("check", "rules.pl", "--json").out)["files"]
    assert [d["code"] for d in file["diagnostics"]] == ["unknown-predicate", "wrong-arity"]
    (file,) = json.loads(run("check", "nothing.pl", "--json").out)["files"]
    assert [d["code"] for d in file["diagnostics"]] == ["refused"]


def test_check_lists_a_hundred_errors_and_counts_all(run: Run) -> None:
    write(run.folder, ":- target(kp(img)).\n" + "".join(f"kp(X) :- in(O, X), color(O, c{i}).\n" for i in range(1234)))
    lines = run("check", "rules.pl").out.splitlines()
    assert sum(": error: unknown constant" in line for line in lines) == 100
    assert lines[-2:] == ["rules.pl: error: 1,134 more errors are not listed", "rules.pl: 1,234 errors"]
    assert run("compile", "rules.pl").err.splitlines()[-1] == "error: 1,134 more errors are not listed"


def test_check_warnings_fail_only_when_strict(run: Run) -> None:
    write(run.folder, UNUSED)
    text = run.good("check", "rules.pl")
    assert ": warning: " in text
    assert text.splitlines()[-1].startswith("rules.pl: fine, 2 clauses, 28 ground atoms, ")
    strict = run("check", "rules.pl", "--strict")
    assert strict.code == 1 and "fine" not in strict.out
    (file,) = json.loads(run("check", "rules.pl", "--strict", "--json").out)["files"]
    assert not file["ok"] and {d["severity"] for d in file["diagnostics"]} == {"warning"}


def test_check_goes_on_behind_a_missing_file(run: Run) -> None:
    write(run.folder, RULES)
    run.good("compile", "rules.pl")
    result = run("check", "nothing.pl", "rules.nsfrc", "closeby", "--json")
    missing, compiled, good = json.loads(result.out)["files"]
    assert result.code == 1
    assert "there is no file 'nothing.pl'" in missing["diagnostics"][0]["message"]
    assert missing["diagnostics"][0]["span"] is None and missing["clauses"] is None
    assert "compiled already: check the .pl file" in compiled["diagnostics"][0]["message"]
    assert (good["file"], good["ok"], good["clauses"]) == ("closeby", True, 1)
    assert "\nclosedby: error: there is no file" in run("check", "closeby", "closedby").out


def test_check_names_the_file_where_a_finding_has_no_place(run: Run) -> None:
    (run.folder / "empty.pl").write_text("")
    assert "empty.pl: error: empty has no clauses" in run("check", "empty.pl").out
    (run.folder / "bytes.pl").write_bytes("% ä\n".encode() + b"kp('\xff').")
    assert "bytes.pl:2:5: error: the file is not UTF-8 text\n  hint: byte 10 is 0xff" in run("check", "bytes.pl").out
    (run.folder / "bytes.pl").write_bytes(b"\xef\xbb\xbfkp('\xff').")
    assert "bytes.pl:1:5: error: the file is not UTF-8 text\n  hint: byte 8 is 0xff" in run("check", "bytes.pl").out


def test_check_standard_input(run: Run) -> None:
    assert "<stdin>: fine" in run.good("check", "-", stdin=VOCABULARY + RULES)
    (run.folder / "sub").mkdir()
    write(run.folder / "sub", "", "words.pl")
    unsaved = ":- include('words.pl').\n" + RULES
    assert run.good("check", "-", "--name", "sub/new.pl", stdin=unsaved).startswith("sub/new.pl: fine")
    assert "<stdin>:1:12: error: cannot find the file 'words.pl'" in run("check", "-", stdin=unsaved).out
    (file,) = json.loads(run("check", "-", "--name", "sub/new.pl", "--json", stdin=BAD).out)["files"]
    assert file["file"] == file["diagnostics"][0]["span"]["file"] == "sub/new.pl"
    assert "only be read once" in run.refused("check", "-", "-")
    assert "give - as FILE" in run.refused("check", "a.pl", "--name", "b.pl")


def test_check_closed_standard_input(tmp_path: Path) -> None:
    script = "import sys; sys.stdin = None; from nsfrc.cli import main; main()"  # as Python has it with <&-
    done = subprocess.run([sys.executable, "-c", script, "check", "-", "closeby"], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "<stdin>: error: cannot read standard input: it is closed\n" in done.stdout
    assert "closeby: fine" in done.stdout


def test_check_slots_and_rows(run: Run) -> None:
    assert "closeby: fine, 1 clause, 75 ground atoms" in run.good("check", "closeby", "--slots", "object=6")
    result = run("check", "threepairs", "--slots", "object=12", "--max-rows", "600000")
    assert result.code == 1 and "665,280 rows" in result.out
    assert "slots for unknown type foo" in run("check", "closeby", "--slots", "foo=3").out
    assert "is not TYPE=NUMBER" in run.refused("check", "closeby", "--slots", "foo")
    assert "Missing argument" in run.refused("check")
