"""docs/language.md is complete: every directive, refused predicate, comparison and limit of the compiler is in it."""

from __future__ import annotations

import re

import pytest

from nsfrc.compiler.check import builtin, goals
from nsfrc.compiler.check.alternatives import MAX_ALTERNATIVES, MAX_BODY
from nsfrc.compiler.check.declare import _IGNORED, MAX_ARGUMENTS, MAX_SLOTS, _Directives
from nsfrc.compiler.check.targets import MAX_TARGETS
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.ground import MAX_ROWS
from nsfrc.compiler.herbrand import MAX_CELLS
from nsfrc.compiler.ir import MAX_STEPS, OPERATIONS
from nsfrc.compiler.parse.build import MAX_DEPTH, MAX_DIGITS
from nsfrc.compiler.parse.files import MAX_BYTES, MAX_INCLUDES
from nsfrc.compiler.parse.plain import MAX_NAME
from nsfrc.compiler.parse.sentences import MAX_SYNTAX_ERRORS
from nsfrc.errors import MAX_SHOWN, Diagnostics
from tests.docs.blocks import ROOT, Page

PAGE = Page(ROOT / "docs" / "language.md")
SPANS = [span for _, span in PAGE.spans()]
DIRECTIVES = {name for name, _ in _Directives(Vocabulary(Diagnostics()))._readers}
REFUSED = {name for name, _ in builtin._keys(builtin._LATER)} | set(builtin._LIBRARY_LATER.split())
COMPUTED = {name for name, _ in goals._COMPUTED}
GOALS = {*goals._SAME, *goals._NUMERIC, *COMPUTED, *OPERATIONS, "=", "true", "fail", "false"}
LIMITS = {
    "slots": MAX_SLOTS, "steps": MAX_STEPS, "targets": MAX_TARGETS,
    "alternatives": MAX_ALTERNATIVES, "rows": MAX_ROWS, "atoms": MAX_CELLS, "nesting": MAX_DEPTH,
    "digits": MAX_DIGITS, "syntax errors": MAX_SYNTAX_ERRORS, "arguments": MAX_ARGUMENTS, "goals": MAX_BODY,
    "names": MAX_NAME, "bytes": MAX_BYTES, "includes": MAX_INCLUDES, "errors": MAX_SHOWN,
}


def mentions(name: str) -> bool:
    """Whether `code` on the page is the name, or begins or goes on with it as a word of its own."""
    edge = r"\w" if name[0].isalpha() else r"[-+*/\\<>=:.@!{}]"
    return any(re.search(rf"(?<!{edge}){re.escape(name)}(?!{edge})", span) for span in SPANS)


@pytest.mark.parametrize("name", sorted({*DIRECTIVES, *_IGNORED, "include", "op"}))
def test_every_directive_is_there(name: str) -> None:
    assert mentions(name)


@pytest.mark.parametrize("name", sorted(REFUSED | set(builtin._WHY_NEVER) - {"{}", ":"}))
def test_everything_refused_is_there(name: str) -> None:
    assert mentions(name)


@pytest.mark.parametrize("name", sorted(GOALS))
def test_every_goal_is_there(name: str) -> None:
    assert mentions(name)


@pytest.mark.parametrize("what", LIMITS)
def test_every_limit_is_there(what: str) -> None:
    limits = PAGE.lines[PAGE.lines.index("## Limits"):]
    table = [line for line in limits if line.startswith("|")]
    assert any(re.search(rf"(?<![\d,]){LIMITS[what]:,}(?!,?\d)", line) for line in table)


def test_a_name_is_found_as_a_word_only() -> None:
    assert mentions("steps") and not mentions("step") and not mentions("nothing_of_that_name")
