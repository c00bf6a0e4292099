"""`nsfrc compile`: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
import os

import pytest

from nsfrc import load
from nsfrc.compiler.passes import PIPELINES
from tests.cli.support import RULES, Run
from tests.examples import SHIPPED, write


def test_compile_writes_beside_you_and_reports(run: Run) -> None:
    text = run.good("compile", "twopairs")
    assert load(run.folder / "twopairs.nsfrc").targets == ["kp(img)"]
    for part in ("4 clauses (C)", "73 ground atoms (G)", "24 substitutions (S)", "8 atoms (L)",
                 "4 × 73 × 24 × 8", "168 rows", "costliest clause", "written to twopairs.nsfrc"):
        assert part in text
    for name in ("dense", "ground", "live", "multiset", "merge_equal", "needed", "share"):
        assert f"\n  {name} " in text


@pytest.mark.parametrize("name", SHIPPED)
def test_compile_finds_every_shipped_program(name: str, run: Run) -> None:
    run.good("compile", f"{name}.pl", "--out", "here.nsfrc")
    assert load(run.folder / "here.nsfrc").name == name


def test_compile_out_in_a_new_folder(run: Run) -> None:
    assert "written to new/deep/x.nsfrc" in run.good("compile", "closeby", "-o", "new/deep/x.nsfrc")
    assert os.listdir(run.folder / "new" / "deep") == ["x.nsfrc"]


def test_compile_slots(run: Run) -> None:
    run.good("compile", "closeby", "--slots", "object=6")
    assert load(run.folder / "closeby.nsfrc").ground.S == 30
    assert "is not TYPE=NUMBER" in run.refused("compile", "closeby", "--slots", "object")
    assert "is not TYPE=NUMBER" in run.refused("compile", "closeby", "--slots", "object=0")
    assert "is not TYPE=NUMBER" in run.refused("compile", "closeby", "--slots", "object=²")
    assert "is not TYPE=NUMBER" in run.refused("compile", "closeby", "--slots", f"object={'9' * 5000}")
    assert "did you mean object?" in run.refused("compile", "closeby", "--slots", "objet=3")
    assert "not declared with slots" in run.refused("compile", "closeby", "--slots", "color=3")


def test_compile_json(run: Run) -> None:
    data = json.loads(run.good("compile", "twopairs", "--json"))
    assert data.keys() >= {"program", "source", "C", "G", "S", "L", "targets", "steps", "depth", "index_tensor",
                           "passes", "clauses", "plan_bytes", "seconds", "kernels", "artifact", "warnings"}
    assert (data["C"], data["G"], data["S"], data["L"]) == (4, 73, 24, 8)
    assert data["index_tensor"] == {"entries": 56064, "bytes": 448512, "live_rows": 168, "live_share": 168 / 7008}
    assert [p["pass"] for p in data["passes"]] == ["dense", "ground", *(one.name for one in PIPELINES["paper"])]
    assert data["passes"][-1]["rows"] == sum(c["rows"] for c in data["clauses"]) == 78
    assert data["artifact"] == "twopairs.nsfrc" and data["kernels"] == []


def test_compile_json_errors(run: Run) -> None:
    write(run.folder, ":- target(kp(img)). kp(X) :- in(O, X), colour(O, red), in(O).")
    result = run("compile", "rules.pl", "--json")
    assert result.code == 1 and not result.err
    errors = json.loads(result.out)["errors"]
    assert [e["severity"] for e in errors].count("error") == 2
    assert errors[0]["span"]["file"] == "rules.pl" and errors[0]["span"]["line"] == 10
    missing = run("compile", "nothing.pl", "--json")
    assert missing.code == 1 and not missing.err
    (error,) = json.loads(missing.out)["errors"]
    assert error["span"] is None and "there is no file" in error["message"]
    assert not (run.folder / "rules.nsfrc").exists()


def test_compile_errors_go_to_standard_error(run: Run) -> None:
    write(run.folder, ":- target(kp(img)). kp(X) :- in(O, X), colour(O, red), in(O).")
    result = run("compile", "rules.pl")
    assert (result.code, result.out) == (1, "")
    assert result.err.count(": error: ") == 2
    assert "rules.pl:10:40: error: unknown predicate colour/2" in result.err
    assert "did you mean color/2?" in result.err
    assert os.listdir(run.folder) == ["rules.pl"]


def test_compile_warnings_go_to_standard_error(run: Run) -> None:
    write(run.folder, RULES + " unused(X) :- in(O, X).")
    result = run("compile", "rules.pl")
    assert result.code == 0
    assert "warning" in result.err and "warning" not in result.out
    data = run("compile", "rules.pl", "--json")
    assert data.err == ""
    assert json.loads(data.out)["warnings"][0]["severity"] == "warning"


def test_compile_skip(run: Run) -> None:
    data = json.loads(run.good("compile", "twopairs", "--json", "--skip", "merge_equal", "--skip", "share"))
    assert [p["pass"] for p in data["passes"]] == ["dense", "ground", "live", "multiset", "needed"]
    assert "did you mean share?" in run.refused("compile", "twopairs", "--skip", "shar")


def test_compile_explosion(run: Run) -> None:
    message = run.refused("compile", "threepairs", "--slots", "object=12", "--max-rows", "600000")
    assert "665,280 rows" in message and "O1, O2, O3, O4, O5, O6 over 12 constants of object" in message
    assert "--max-rows" in message and os.listdir(run.folder) == []


def test_compile_nothing(run: Run) -> None:
    (run.folder / "empty.pl").write_text("")
    assert "empty has no clauses" in run.refused("compile", "empty.pl")
