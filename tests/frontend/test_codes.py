"""Every finding has a code, and docs/language.md lists exactly those that there are, with what they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nsfrc
from nsfrc.compiler.parse import read
from nsfrc.compiler.stages import compile_sentences
from nsfrc.errors import CompileError, Diagnostic, Diagnostics
from tests.frontend.test_errors import ERRORS, NAMES

ROOT = Path(nsfrc.__file__).parent
PAGE = ROOT.parent / "docs" / "language.md"
# Calls that make a finding, and which argument its code is.
CALLS = {"error": 0, "warn": 0, "Fault": 0, "_fault": 0, "Refusal": 0, "Diagnostic": 4}
SEVERITIES = {"error": {"error"}, "warn": {"warning"}}


def codes() -> Iterator[tuple[str, set[str]]]:
    """The codes in the source, each with the severities that it may have."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = CALLS.get(called)
            if place is None or len(node.args) <= place or not _is_finding(node):
                continue
            code = node.args[place]
            if isinstance(code, ast.Constant):
                assert isinstance(code.value, str) and re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", code.value), path
                yield code.value, SEVERITIES.get(called, {"error"} if called != "Diagnostic" else {"error", "warning"})
            else:  # what was made elsewhere is handed on
                assert ast.unparse(code) in ("code", "fault.code", "why.code", "reason.code"), (path, node.lineno)


def _is_finding(node: ast.Call) -> bool:
    """`warnings.warn` and `parser.error` are other things."""
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else "found"
    return re.search("found|remarks|self$", owner) is not None


def used() -> dict[str, set[str]]:
    result: dict[str, set[str]] = {"refused": {"error"}}  # the code of what is no finding in a text
    for code, severities in codes():
        result.setdefault(code, set()).update(severities)
    return result


def documented() -> dict[str, set[str]]:
    section = PAGE.read_text("utf-8").split("### Codes")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (error|warning|either) \| \S.* \|$", section, re.MULTILINE)
    assert len({code for code, _ in rows}) == len(rows)
    return {code: {"error", "warning"} if severity == "either" else {severity} for code, severity in rows}


def test_the_page_has_the_codes_of_the_source() -> None:
    assert documented() == used()


def test_findings_have_documented_codes() -> None:
    known, seen = documented(), set()
    for name in NAMES:
        for finding in findings(name):
            assert finding.severity in known[finding.code], finding
            assert finding.as_json()["code"] == finding.code
            seen.add(finding.code)
    # The others need a folder, bytes, many lines or another command; their tests are elsewhere.
    assert set(known) - seen == {
        "bad-fact", "bad-line", "include-outside", "include-too-deep", "include-unreadable", "long-body", "not-a-fact",
        "not-listed", "not-utf8", "refused", "too-many-syntax-errors", "too-much-text", "unused-predicate",
    }


def findings(name: str) -> tuple[Diagnostic, ...]:
    found = Diagnostics()
    try:
        compile_sentences(read(ERRORS / f"{name}.pl", found), ERRORS / f"{name}.pl", found)
    except CompileError as refused:
        return refused.diagnostics
    return tuple(found.found)
