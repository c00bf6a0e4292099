"""Which program is taken when none is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference.candidates import candidates, find_candidate
from tests.examples import VOCABULARY, write

RULES = ":- target(kp(img)). kp(X) :- in(O, X), color(O, red)."


def chosen(*folders: Path) -> str:
    return find_candidate(folders).path.name


def age(path: Path, seconds: int) -> None:
    then = path.stat().st_mtime_ns - seconds * 10**9
    os.utime(path, ns=(then, then))


def test_the_only_text_with_a_target(tmp_path: Path) -> None:
    write(tmp_path, RULES)
    (tmp_path / "words.pl").write_text(VOCABULARY)
    (tmp_path / "script.pl").write_text("#!/usr/bin/perl\nmy %x = (a => 1); print $x{a};\n")
    (tmp_path / ".old.pl").write_text(VOCABULARY + RULES)
    assert chosen(tmp_path) == "rules.pl"


@pytest.mark.parametrize("text", ["?- kp(img). kp(X) :- in(O, X).", ":- query(kp(img)). kp(X) :- in(O, X).",
                                  ":- target(kp(img). kp(X) :- in(O, X)."])
def test_every_way_to_ask(text: str, tmp_path: Path) -> None:
    """A text with a mistake is taken too: compiling it will say what is wrong."""
    write(tmp_path, text)
    assert chosen(tmp_path) == "rules.pl"


def test_text_and_compiled_are_one_and_the_newer_is_taken(tmp_path: Path) -> None:
    text = write(tmp_path, RULES)
    nsfrc.compile(text).save(tmp_path / "rules.nsfrc")
    age(text, 10)
    assert chosen(tmp_path) == "rules.nsfrc"
    age(tmp_path / "rules.nsfrc", 20)
    found = find_candidate([tmp_path])
    assert found.path.name == "rules.pl" and found.reason == "changed after rules.nsfrc was compiled"


def test_compiled_ones_go_before_other_texts(tmp_path: Path) -> None:
    write(tmp_path, RULES, "other.pl")
    nsfrc.compile(write(tmp_path, RULES)).save(tmp_path / "rules.nsfrc")
    age(tmp_path / "rules.pl", 10)
    assert chosen(tmp_path) == "rules.nsfrc"


def test_the_first_folder_that_has_one(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    write(there, RULES)
    assert chosen(here, there) == "rules.pl"
    write(here, RULES, "mine.pl")
    assert chosen(here, there) == "mine.pl"
    assert len(candidates(there)) == 1


def test_several_are_listed(tmp_path: Path) -> None:
    write(tmp_path, RULES, "a.pl")
    write(tmp_path, RULES, "b.pl")
    with pytest.raises(NsfrcError) as caught:
        chosen(tmp_path)
    lines = str(caught.value).splitlines()
    assert "there are 2 programs" in lines[0]
    assert lines[1:] == [f"  --program {tmp_path / 'a.pl'}", f"  --program {tmp_path / 'b.pl'}"]


def test_none(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"there is no program .* name one, as in --program twopairs"):
        chosen(tmp_path, tmp_path / "gone")
