"""Runs the command line as a user does."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nsfrc import cli
from tests.inference.support import PERCEPTION

RULES = ":- target(kp(img)). kp(X) :- in(O, X), color(O, red)."


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


class Run:
    """Runs `nsfrc ARGUMENTS` as the entry point does, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.patch, self.capsys = folder, monkeypatch, capsys
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str | Path, stdin: str = "") -> Result:
        self.capsys.readouterr()
        self.patch.setattr(sys, "argv", ["nsfrc", *map(str, arguments)])
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = self.capsys.readouterr()
        code = stopped.value.code
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)

    def good(self, *arguments: str | Path, stdin: str = "") -> str:
        result = self(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        return result.out

    def refused(self, *arguments: str | Path, stdin: str = "") -> str:
        """The message of a command that must fail, on standard error and without a traceback."""
        result = self(*arguments, stdin=stdin)
        assert result.code == 1
        assert "Traceback" not in result.err
        assert "rror: " in result.err and "error: error:" not in result.err
        return result.err


def arguments(*more: str) -> tuple[str, ...]:
    return "infer", "--images", "d", *PERCEPTION, *more


def csv_rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def json_lines(text: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    *rows, last = map(json.loads, text.splitlines())
    return rows, last["summary"]
