"""Every kind of error and warning, word for word.

`errors/NAME.pl` must be refused (or warned about) with exactly the text in `errors/NAME.err`. After a
wanted change of a message, rewrite the files with

    NSFRC_UPDATE_GOLDEN=1 python -m pytest tests/frontend/test_errors.py

and read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nsfrc.compiler.parse import read
from nsfrc.compiler.stages import compile_sentences
from nsfrc.errors import CompileError, Diagnostics

ERRORS = Path(__file__).parent / "errors"
NAMES = sorted(path.stem for path in ERRORS.glob("*.pl") if path.stem != "vocabulary")


def rendered(name: str) -> str:
    """The diagnostics of one file, with bare file names."""
    found = Diagnostics()
    try:
        path = ERRORS / f"{name}.pl"
        compile_sentences(read(path, found), path, found)
        diagnostics = tuple(found.found)
    except CompileError as refused:
        diagnostics = refused.diagnostics
    return "".join(f"{diagnostic}\n" for diagnostic in diagnostics).replace(f"{ERRORS}{os.sep}", "")


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    golden = ERRORS / f"{name}.err"
    text = rendered(name)
    if os.environ.get("NSFRC_UPDATE_GOLDEN"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


def test_every_golden_reports_something() -> None:
    assert all((ERRORS / f"{name}.err").read_text("utf-8").strip() for name in NAMES)
