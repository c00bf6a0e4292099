"""Files that are not what they should be, and places that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsfrc import cli, load
from tests.cli.support import RULES, Run
from tests.examples import write


@pytest.mark.parametrize("command", [["compile"], ["reason", "--random", "1", "--engine", "reference"]])
def test_missing_programs(command: list[str], run: Run) -> None:
    message = run.refused(command[0], "twopair", *command[1:])
    assert "there is no file 'twopair'" in message and "did you mean twopairs?" in message
    run.refused(command[0], "", *command[1:])
    run.refused(command[0], "a\0b", *command[1:])
    run.refused(command[0], "x" * 5000, *command[1:])
    assert "there is no file gone.nsfrc" in run.refused("reason", "gone.nsfrc", "--random", "1")


def test_a_folder_as_program(run: Run) -> None:
    (run.folder / "folder.pl").mkdir()
    (run.folder / "folder.nsfrc").mkdir()
    assert "folder.pl" in run.refused("compile", "folder.pl")
    assert "folder.nsfrc is a folder" in run.refused("reason", "folder.nsfrc", "--random", "1")


@pytest.mark.parametrize("data", [bytes(range(256)), b"\0" * 1000, "kp(X).".encode("utf-16"), b"\x7fELF"])
def test_a_binary_file_as_program(data: bytes, run: Run) -> None:
    (run.folder / "binary.pl").write_bytes(data)
    assert "binary.pl:" in run.refused("compile", "binary.pl")


def test_an_artifact_as_program(run: Run) -> None:
    run.good("compile", "closeby")
    assert "closeby.nsfrc is compiled already" in run.refused("compile", "closeby.nsfrc")
    assert load(run.folder / "closeby.nsfrc").name == "closeby"


@pytest.mark.parametrize("name", ["with spaces in it.pl", "größe.pl", "no suffix", "dots.in.name.pl", "-dash.pl"])
def test_unusual_file_names(name: str, run: Run) -> None:
    write(run.folder, RULES, name)
    out = run.good("compile", "--", name)
    artifact = f"{Path(name).stem}.nsfrc"
    assert f"written to {artifact}" in out
    table = run.good("reason", "--random", "1", "--engine", "reference", "--", artifact)
    assert len(table.splitlines()) == 2


def test_the_program_itself_is_not_overwritten(run: Run) -> None:
    path = write(run.folder, RULES)
    text = path.read_text()
    assert "is the program itself" in run.refused("compile", "rules.pl", "--out", "./rules.pl")
    assert "is the program itself" in run.refused("compile", "rules.pl", "--emit", "ir", "--out", path)
    assert path.read_text() == text


def test_output_that_cannot_be_written(run: Run) -> None:
    write(run.folder, RULES)
    assert "cannot write rules.pl/x.nsfrc" in run.refused("compile", "rules.pl", "--out", "rules.pl/x.nsfrc")
    assert "is a directory" in run.refused("compile", "rules.pl", "--out", ".")
    assert "cannot write" in run.refused("compile", "rules.pl", "--out", "/proc/nowhere/x.nsfrc")
    assert "cannot write" in run.refused("compile", "rules.pl", "--emit", "ir", "--out", "/proc/nowhere/x.pl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(run: Run) -> None:
    (run.folder / "locked").mkdir(mode=0o555)
    assert "cannot write" in run.refused("compile", "closeby", "--out", "locked/x.nsfrc")


def test_output_to_a_device(run: Run) -> None:
    run.good("compile", "closeby", "--emit", "ir", "--out", "/dev/null")
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk(run: Run) -> None:
    command = [sys.executable, "-c", "from nsfrc.cli import main; main()", "compile", "closeby", "--emit", "ir"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def test_a_reader_that_stops_reading(run: Run) -> None:
    command = f"{sys.executable} -c 'from nsfrc.cli import main; main()' compile clevr_hans7 --emit index | head -n 1"
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("clause\tatom")
    assert done.stderr == ""
