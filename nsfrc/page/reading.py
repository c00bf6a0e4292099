"""The text in the editor: what is wrong with it and where, the program that it makes, and that program in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nsfrc.compiler.stages import Checked, Options, complete
from nsfrc.describe import account, of_compilation
from nsfrc.editor.answers import replacement
from nsfrc.editor.document import Document
from nsfrc.errors import ERROR, Diagnostic, NsfrcError
from nsfrc.models.outside import Outside
from nsfrc.program import Program, from_compilation

MAX_TEXT = 500_000  # characters that the editor takes


@dataclass(frozen=True)
class Mark:
    """A finding at its place in the text. start, end: offsets; line, column: from 1. fix: what to write instead."""

    start: int
    end: int
    line: int
    column: int
    severity: str
    code: str
    message: str
    hint: str | None = None
    fix: str | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """What a text says. program: where it has no errors. told: all of `nsfrc explain`, of a program."""

    text: str
    path: Path
    marks: tuple[Mark, ...] = ()
    program: Program | None = field(default=None, repr=False)
    told: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def errors(self) -> int:
        return sum(mark.severity == ERROR for mark in self.marks)


def read_text(text: str, path: Path, perception: str | None = None) -> Reading:
    """Check and compile a text. path: where it is or would be saved. perception: what is named in place of its own."""
    if len(text) > MAX_TEXT:
        return Reading(text, path, (_nowhere(f"the text is longer than {MAX_TEXT:,} characters"),))
    document = Document(path, text, "utf-32", within=[path.parent])  # texts may come from links
    options = Options(outside=Outside(perception))
    found, checked = document.check(options)
    marks = tuple(_mark(document, one) for one in found.diagnostics)
    if checked is None:
        return Reading(text, path, marks)
    try:
        return _whole(text, path, marks, checked, options)
    except NsfrcError as error:
        return Reading(text, path, (*marks, _nowhere(str(error))))


def _whole(text: str, path: Path, marks: tuple[Mark, ...], checked: Checked, options: Options) -> Reading:
    done = complete(checked, options)
    return Reading(text, path, marks, from_compilation(done), account(of_compilation(done)))


def _nowhere(message: str) -> Mark:
    return Mark(0, 0, 1, 1, ERROR, "refused", message)


def _mark(document: Document, finding: Diagnostic) -> Mark:
    """A finding at its place; one of an included file where the text asks for that file."""
    span, message = finding.span, finding.message
    if span is not None and not document.is_own(span):
        message, span = f"{Path(span.source.name).name}:{span.line}: {message}", span.in_own_file()
    if span is None or not document.is_own(span):
        return Mark(0, 0, 1, 1, finding.severity, finding.code, message, finding.hint)
    start, end = document.lines.offsets(span)
    return Mark(start, end, span.line, span.column, finding.severity, finding.code, message, finding.hint,
                replacement(document, finding))


def units(text: str, offset: int) -> int:
    """An offset as browsers count, in units of UTF-16."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2


def in_words(reading: Reading) -> Iterator[tuple[int, str, str, str]]:
    """The clauses of a program: number, text, words, and what it costs and what to know of it.

    What is to be learnt has a clause in the place of those that are not known yet, which is left out.
    """
    if reading.program is None:
        return
    source = reading.program.source
    unknown = set() if source.learning is None else {target.key for target in source.learning.targets}
    for clause in reading.told["clauses"]:
        if source.clauses[clause["number"] - 1].head.key in unknown:
            continue
        rows = clause["plan_rows"]
        costs = f"{rows:,} row{'s' * (rows != 1)}, {clause['share']:.0%} of all"
        yield clause["number"], clause["clause"], clause["words"], " ".join([*clause["notes"], costs])
