"""What a stranger hands in does not run: modules that a program, a folder or an option names."""

from __future__ import annotations

import sys
from functools import partial

import pytest

import nsfrc
from nsfrc.errors import NsfrcError
from tests.cli.support import Run, json_lines
from tests.inference.support import MODULE, ONE, YES, save

STRANGER = "stranger_of_test_trust"


@pytest.fixture
def strange(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A folder d with an image, a program, and the module that it names, which leaves a trace where it is imported."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (STRANGER, f"{STRANGER}_package", f"{STRANGER}_package.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    folder = run.folder / "d"
    save(folder / "a.png", YES)
    (folder / "rules.pl").write_text(ONE + f":- perception('{STRANGER}:Readable').\n")
    trace = f"open({str(run.folder / 'trace')!r}, 'w').close()\n"
    (folder / f"{STRANGER}.py").write_text(trace + MODULE)
    (folder / f"{STRANGER}_package").mkdir()
    for name in ("__init__", "inner"):
        (folder / f"{STRANGER}_package" / f"{name}.py").write_text(trace)
    return run


def ran(run: Run) -> bool:
    return (run.folder / "trace").exists()


FOUND = ("infer", "--images", "d")
NAMED = (*FOUND, "--program", "d/rules.pl")


@pytest.mark.parametrize("suffix", ["pl", "nsfrc"])
def test_a_program_that_was_found_runs_nothing(suffix: str, strange: Run) -> None:
    if suffix == "nsfrc":
        strange.good("compile", "d/rules.pl", "--out", "d/rules.nsfrc")
        (strange.folder / "d" / "rules.pl").unlink()
    for more in ((), ("--trust",)):
        message = strange.refused(*FOUND, *more)
        assert f"d/rules.{suffix} was found there, not named, and its perception {STRANGER}:Readable" in message
        assert f"would run {strange.folder / 'd' / STRANGER}.py; no code is run for a program that was" in message
        assert f"use --program d/rules.{suffix} --trust" in message
        assert not ran(strange)


def test_nor_does_one_in_the_current_folder(strange: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(strange.folder / "d")
    for more in ((), ("--trust",)):
        assert "rules.pl was found there, not named" in strange.refused("infer", "--images", ".", *more)
    assert not ran(strange)


def test_a_program_that_was_named_runs_its_module_where_it_is_trusted(strange: Run) -> None:
    message, file = strange.refused(*NAMED), strange.folder / "d" / f"{STRANGER}.py"
    assert f"the perception {STRANGER}:Readable, which d/rules.pl names, would run {file}: " in message
    assert "allow it with --trust (in Python trust=True)" in message
    assert not ran(strange)
    rows, _ = json_lines(strange.good(*NAMED, "--trust", "--json"))
    assert rows[0]["answer"] == "true" and ran(strange)


def test_a_found_program_may_have_a_perception_that_the_user_names(strange: Run) -> None:
    rows, _ = json_lines(strange.good(*FOUND, "--perception", "yolo", "--json"))
    assert rows[0]["error"] is None and not ran(strange)
    # Where the program was only found, the module is not looked for beside it.
    message = strange.refused(*FOUND, "--perception", f"{STRANGER}:Readable", "--trust")
    assert f"cannot import {STRANGER}" in message and not ran(strange)


@pytest.mark.parametrize(("option", "runs"), [
    (("--perception", f"{STRANGER}:Readable"), f"d/{STRANGER}.py"),
    (("--perception", f"{STRANGER}_package.inner:Net"), f"d/{STRANGER}_package/inner.py"),
    (("--plugin", f"{STRANGER}.py"), f"d/{STRANGER}.py"),
    (("--plugin", STRANGER), f"d/{STRANGER}.py"),
    (("--plugin", f"{STRANGER}_package.inner"), f"d/{STRANGER}_package/inner.py"),
])
def test_options_run_nothing_that_is_not_trusted(
    option: tuple[str, str], runs: str, strange: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(strange.folder / "d")
    message = strange.refused("infer", "--images", "a.png", "--program", "twopairs", *option)
    assert option[1] in message and f"would run {strange.folder / runs}" in message and "--trust" in message
    assert not ran(strange)


def test_a_module_that_is_not_there(strange: Run) -> None:
    message = strange.refused("infer", "--images", "d", "--program", "twopairs", "--perception", "nowhere.at_all:Net")
    assert f"the module nowhere.at_all (there is none in {strange.folder}, nor among installed packages)" in message


@pytest.mark.parametrize("command", [
    ("check",), ("compile", "--out", "out.nsfrc"), ("explain",), ("reason", "--random", "1"),
])
def test_no_other_command_runs_what_a_program_names(command: tuple[str, ...], strange: Run) -> None:
    strange.good(command[0], "d/rules.pl", *command[1:])
    assert not ran(strange)


def test_in_python(strange: Run) -> None:
    for call in (partial(nsfrc.pipeline, "d/rules.pl"), partial(nsfrc.infer, "d", "d/rules.pl")):
        with pytest.raises(NsfrcError, match=r"which d/rules\.pl names, would run .*trust=True"):
            call()
        assert not ran(strange)
        call(trust=True)
        assert ran(strange)
        (strange.folder / "trace").unlink()
        del sys.modules[STRANGER]
    with pytest.raises(NsfrcError, match=r"--plugin own\.py would run .*own\.py"):
        nsfrc.infer("d", "twopairs", plugins=["own.py"])
