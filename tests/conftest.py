"""The fixture `run`, which runs the command line in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path, monkeypatch, capsys)
