"""`nsfrc learn`: from facts or images and labels to a program that the other commands take."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.amount import sample
from tests.cli.support import Run
from tests.learning.support import PROGRAM, balanced

RULE = "kp(X) :- in(A, X), color(A, red), shape(A, triangle)."


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    examples, labels = balanced(1, 80, lambda one: one.has("red", "triangle") > 0)
    (tmp_path / "rules.pl").write_text(PROGRAM)
    (tmp_path / "worlds.jsonl").write_text("".join(json.dumps(world) + "\n" for world in examples))
    rows = [f"{i},{int(label)}\n" for i, label in enumerate(labels, 1)]
    (tmp_path / "labels.csv").write_text("world,kp\n" + "".join(rows))
    return tmp_path


FACTS = ("learn", "rules.pl", "--beam", "8", "--facts", "worlds.jsonl", "--labels", "labels.csv")


def test_from_facts_to_a_program_that_runs(facts: Path, run: Run) -> None:
    out = run.good(*FACTS, "--report", "r.html")
    assert RULE in out and "covers 40 true and 0 false examples" in out and "written to learnt.pl" in out
    text = Path("learnt.pl").read_text()
    assert RULE in text and "Covers 40 of 40 true examples and 0 of 40 false ones." in text
    assert "fine" in run.good("check", "learnt.pl")
    answers = run.good("reason", "learnt.pl", "--facts", "worlds.jsonl", "--json")
    rows = [json.loads(line) for line in answers.split("\n") if line]
    assert [row["kp(img)"] > 0.5 for row in rows] == [True, False] * 40
    page = Path("r.html").read_text()
    assert "Still wrong: 0" in page and "color(A, red)" in page and "http" not in page.replace("http-equiv", "")


def test_json(facts: Path, run: Run) -> None:
    told = json.loads(run.good(*FACTS, "--json", "--out", "other.pl"))
    assert told["clauses"][0]["text"] == RULE and told["complete"] and told["written"] == ["other.pl"]
    assert told["scores"]["kp(img) validation"] == 1.0 and told["tried"] > 0


def test_what_is_refused(facts: Path, run: Run) -> None:
    assert "either --images DIR or --facts FILE" in run.refused("learn", "rules.pl")
    assert "give --labels FILE.csv" in run.refused("learn", "rules.pl", "--facts", "worlds.jsonl")
    assert "--concepts" in run.refused(*FACTS, "--concepts")
    assert "a program is a .pl file" in run.refused(*FACTS, "--out", "learnt.txt")
    assert "is the program that is learnt from" in run.refused(*FACTS, "--out", "rules.pl")
    assert "the report is an .html file" in run.refused(*FACTS, "--report", "r.txt")
    Path("none.csv").write_text("world,kp\n900,1\n")
    assert "no label for any of the examples" in run.refused(*FACTS[:-1], "none.csv")
    Path("all.csv").write_text("world,kp\n" + "".join(f"{i},1\n" for i in range(1, 80)))
    assert "all of the 79 labels of kp(img) are true" in run.refused(*FACTS[:-1], "all.csv")
    Path("worlds.jsonl").write_text('{"in(obj1,img)": 1}\n[1]\n')
    assert "worlds.jsonl:2: a line must be one object" in run.refused(*FACTS)
    assert not Path("learnt.pl").exists()


def test_random_labels_write_nothing(facts: Path, run: Run) -> None:
    Path("labels.csv").write_text("world,kp\n" + "".join(f"{i},{(i // 2) % 2}\n" for i in range(1, 81)))
    message = run.refused(*FACTS)
    assert re.search(r"no rule for kp\(img\) explains its 80 labels better than chance", message)
    assert "Nothing is written" in message and not Path("learnt.pl").exists()


def test_from_images_interrupted_and_resumed(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends while perception looks goes on to the same program."""
    from nsfrc.learning import pictures

    Path("closeby.pl").write_text(CLOSEBY)
    run.good("data", "kandinsky", "closeby", "--out", "figures", "--count", "40")
    learn = ("learn", "closeby.pl", "--images", "figures")
    run.good(*learn, "--out", "whole.pl")
    real, calls = pictures.decode, []

    def stops(*given: object) -> object:
        calls.append(given)
        if len(calls) > 36:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(pictures, "decode", stops)
    assert run(*learn).code == 130
    assert Path("learnt.pl.checkpoint").exists() and not Path("learnt.pl").exists()
    monkeypatch.setattr(pictures, "decode", real)
    assert "continue with --resume" in run.refused(*learn)
    run.good(*learn, "--resume", "--concepts", "--report", "r.html")
    assert Path("learnt.pl").read_text() == Path("whole.pl").read_text()
    assert "kp(X) :- in(A, X), in(B, X), closeby(A, B)." in Path("learnt.pl").read_text()
    assert not Path("learnt.pl.checkpoint").exists() and "closeby" in Path("learnt.concepts.json").read_text()
    assert "data:image/png;base64" in Path("r.html").read_text()
    Path("learnt.pl.checkpoint").write_bytes(b"nothing")
    assert "is not a checkpoint" in run.refused(*learn, "--resume")


def test_folders_without_labels(run: Run) -> None:
    Path("rules.pl").write_text(PROGRAM)
    run.good("data", "kandinsky", "free", "--out", "figures", "--count", "2")
    message = run.refused("learn", "rules.pl", "--images", "figures/images")
    assert "have no labels" in message and "folders true and false" in message


IMAGES = ("learn", "closeby.pl", "--images", "figures", "--beam", "8")
CLOSEBY = """:- include('kandinsky.pl').
:- type(object, slots(4)).
:- neural(closeby(object, object)).
:- learn(kp(image)).
:- vars(object, 2).
"""


@pytest.mark.parametrize("learn", [FACTS, IMAGES], ids=["facts", "images"])
def test_killed_at_any_moment_and_resumed(facts: Path, run: Run, learn: tuple[str, ...]) -> None:
    """However often a process is killed, from its start to its end, the last one writes the same program."""
    Path("closeby.pl").write_text(CLOSEBY)
    run.good("data", "kandinsky", "closeby", "--out", "figures", "--count", "64")
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "tests.cli.killed", str(sample(3, 20)), *learn]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root})
    ends = [line.split()[1] for line in done.stdout.splitlines()]
    assert len(ends) == sample(3, 20) + 3 and set(ends) == {"0", "killed"}, done.stderr
    assert Path("learnt.pl").read_bytes() == Path("whole.pl").read_bytes()
    assert not Path("learnt.pl.checkpoint").exists()


def test_a_search_that_is_done_is_not_done_again(facts: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same labels and options, that is; and what it cost is told as if it had been."""
    from nsfrc.learning.covering import Cover

    whole = json.loads(run.good(*FACTS, "--json", "--out", "whole.pl"))
    real, calls = Cover.run, [0]

    def counted(self: Cover) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(Cover, "run", counted)
    assert run(*FACTS).code == 130
    assert "continue with --resume" in run.refused(*FACTS)
    again = json.loads(run.good(*FACTS, "--json", "--resume"))
    assert calls[0] == 3 and {**again, "written": 0} == {**whole, "written": 0}
    assert Path("learnt.pl").read_bytes() == Path("whole.pl").read_bytes()
    for other in (("--seed", "1"), ("--noise", "0.1")):
        calls[0] = 0
        run(*FACTS)
        assert run.good(*FACTS, "--resume", *other) and calls[0] == 4
    calls[0] = 0
    run(*FACTS)
    Path("worlds.jsonl").write_text(Path("worlds.jsonl").read_text() + '{"in(obj1,img)": 1}\n')
    assert "is from a run with other examples" in run.refused(*FACTS, "--resume")


def test_ctrl_c_gives_the_best_so_far(facts: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from nsfrc.learning.search import Search

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a parent may have set to be ignored
    real, calls = Search._longer, [0]

    def interrupted(self: Search, *given: Any) -> bool:
        calls[0] += 1
        if calls[0] == 4:  # short clauses are done with
            signal.raise_signal(signal.SIGINT)
        return real(self, *given)

    monkeypatch.setattr(Search, "_longer", interrupted)
    try:
        out = run.good(*FACTS)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the search was stopped: this is the best so far" in out
    assert RULE in Path("learnt.pl").read_text()
