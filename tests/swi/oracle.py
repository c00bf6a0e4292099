"""SWI-Prolog's answers, by way of the shim `programs/nsfr.pl`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
DRIVER = Path(__file__).with_name("oracle.pl")

needs_swipl = pytest.mark.skipif(shutil.which("swipl") is None, reason="SWI-Prolog is not installed")


def command(*files: Path, goal: str) -> list[str]:
    """The command line that loads files of the language and then runs a goal."""
    return ["swipl", "-q", "-p", f"library={PROGRAMS}", "-g", goal, "-t", "halt", *map(str, files)]


def run(*files: Path, goal: str = "true", given: str = "") -> subprocess.CompletedProcess[str]:
    """Load files, run a goal with `given` as its standard input, and wait for the end."""
    return subprocess.run(
        command(*files, goal=goal), input=given, capture_output=True, text=True, timeout=120, check=False
    )


def answers(
    program: str | Path, worlds: Iterable[Iterable[str]], targets: Sequence[str]
) -> list[list[bool]]:
    """Whether each target holds in each world: [worlds][targets].

    `program` is a file (Path) or a text (str); a world is the set of its true neural atoms.
    """
    given = "\n".join(f"[{', '.join(atoms)}]." for atoms in (targets, *map(sorted, worlds)))
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(program, str):
            path = Path(folder) / "program.pl"
            path.write_text(program)
        else:
            path = program
        result = run(path, DRIVER, goal="answer_worlds", given=given)
    if result.returncode or result.stderr:
        raise RuntimeError(f"swipl failed with status {result.returncode}:\n{result.stderr}")
    return [[answer == "1" for answer in line] for line in result.stdout.splitlines()]
