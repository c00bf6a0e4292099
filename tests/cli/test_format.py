"""`nsfrc format`."""

from __future__ import annotations

import os

from tests.cli.support import Run

MESSY, NEAT = "kp(X):-in(O,X). % why\n", "kp(X) :- in(O, X). % why\n"


def test_files_are_written_only_if_they_change(run: Run) -> None:
    messy, neat = run.folder / "messy.pl", run.folder / "neat.pl"
    messy.write_text(MESSY)
    neat.write_text(NEAT)
    messy.chmod(0o600)
    os.utime(neat, ns=(1, 1))
    result = run("format", "messy.pl", "neat.pl")
    assert (result.code, result.out, result.err) == (0, "", "formatted messy.pl\n")
    assert messy.read_text() == NEAT and messy.stat().st_mode & 0o777 == 0o600
    assert neat.stat().st_mtime_ns == 1
    assert sorted(os.listdir(run.folder)) == ["messy.pl", "neat.pl"]


def test_check_and_diff_write_nothing(run: Run) -> None:
    path = run.folder / "rules.pl"
    path.write_text(MESSY)
    checked = run("format", "--check", "rules.pl")
    assert checked.code == 1 and "rules.pl would be laid out differently: nsfrc format rules.pl" in checked.err
    shown = run("format", "--diff", "rules.pl")
    assert shown.code == 0 and "-kp(X):-in(O,X). % why\n+kp(X) :- in(O, X). % why\n" in shown.out
    both = run("format", "--check", "--diff", "rules.pl")
    assert both.code == 1 and both.out == shown.out
    assert path.read_text() == MESSY
    path.write_text(NEAT)
    assert run("format", "--check", "--diff", "rules.pl") == type(shown)(0, "", "")


def test_standard_input(run: Run) -> None:
    assert run.good("format", "-", stdin=MESSY) == NEAT
    assert run("format", "-", "--check", stdin=MESSY).code == 1
    refused = run("format", "-", stdin="kp(X) :- .")
    assert refused.code == 1 and refused.out == "" and refused.err.startswith("<stdin>:1:10: error: expected a term")
    assert "only be read once" in run.refused("format", "-", "-")


def test_what_cannot_be_formatted_is_left_and_told_of(run: Run) -> None:
    bad, good = run.folder / "bad.pl", run.folder / "good.pl"
    bad.write_text("kp(X):-in(O X).\na:-b.\n")
    good.write_text(MESSY)
    (run.folder / "latin.pl").write_bytes(b"a.\n% caf\xe9\n")
    result = run("format", "bad.pl", "latin.pl", "nosuch.pl", ".", "good.pl")
    assert result.code == 1
    for message in ("bad.pl:1:13: error: expected ',' or ')' before 'X'",
                    "latin.pl:2:6: error: the file is not UTF-8 text", "error: cannot read nosuch.pl: No such file",
                    "error: . is a folder: name the programs in it"):
        assert message in result.err
    assert bad.read_text() == "kp(X):-in(O X).\na:-b.\n" and good.read_text() == NEAT


def test_links_stay_links(run: Run) -> None:
    (run.folder / "rules.pl").write_text(MESSY)
    (run.folder / "link.pl").symlink_to("rules.pl")
    run.good("format", "link.pl")
    assert (run.folder / "link.pl").is_symlink() and (run.folder / "rules.pl").read_text() == NEAT
