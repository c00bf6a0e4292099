"""Help, versions and unknown commands."""

from __future__ import annotations

import pytest

from nsfrc import cli
from tests.cli.support import Run


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_with_an_example(command: str, run: Run) -> None:
    text = run.good(command, "--help")
    assert "Example" in text
    assert f"nsfrc {command}" in text.split("Example")[1]
    assert text == run.good(command, "-h")


def test_help_names_every_command(run: Run) -> None:
    text = run.good("--help")
    assert "Example: nsfrc compile" in text
    for command, (_, summary) in cli.COMMANDS.items():
        assert command in text and summary.split()[0] in text


def test_version(run: Run) -> None:
    assert run.good("--version").startswith("nsfrc, version 0.")


def test_unknown_commands_and_options(run: Run) -> None:
    assert "did you mean compile?" in run.refused("compil", "twopairs")
    assert "see nsfrc --help" in run.refused("xyzzy")
    assert "No such option" in run.refused("compile", "twopairs", "--fast")
    assert "Missing argument" in run.refused("compile")
