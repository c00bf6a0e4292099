"""What editors are answered, without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nsfrc.compiler.check.declare import _Directives
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.compiler.syntax import variables
from nsfrc.editor.answers import replacement
from nsfrc.editor.completion import DIRECTIVES
from nsfrc.editor.document import Document
from nsfrc.editor.occurrences import PREDICATE, VARIABLE, occurrences
from nsfrc.editor.positions import Lines
from nsfrc.editor.rename import renamed
from nsfrc.errors import Diagnostics, NsfrcError
from tests.cli.support import Run
from tests.frontend.support import sentences
from tests.frontend.test_errors import ERRORS
from tests.frontend.test_format import PROGRAMS


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 10), ("utf-16", 5), ("utf-32", 4)])
def test_columns(encoding: str, column: int) -> None:
    text = "ab\r\n\u2028𝒳é\x0cx\rlast\n"
    lines = Lines(text, encoding)
    assert lines.position(text.index("x")) == (1, column)
    assert lines.position(text.index("last")) == (2, 0)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] != "\r\n":
            assert lines.offset(*lines.position(offset)) == offset
    assert lines.offset(0, 99) == 2 and lines.offset(99, 0) == len(text)
    assert Lines("𝒳a").offset(0, 1) == 0


def test_spans_are_found_in_the_text() -> None:
    for path in PROGRAMS:
        document = Document(path, path.read_text("utf-8"))
        for name in document.names:
            if document.is_own(name.span):
                start, end = document.lines.offsets(name.span)
                assert document.text[start:end] == name.name
                assert document.at(start) == name


def test_every_variable_is_an_occurrence() -> None:
    for path in PROGRAMS:
        for sentence in Document(path, path.read_text("utf-8")).sentences:
            if sentence.term is not None and sentence.kind == "clause":
                said = [found.name for found in occurrences(sentence) if found.kind == VARIABLE]
                assert said == [variable.name for variable in variables(sentence.term)]


@pytest.mark.parametrize(("text", "names"), [
    ("a :- \\+ (b(X), c), forall(d(X), e).", "a/0 b/1 c/0 d/1 e/0"),
    ("a(X) :- aggregate_all(count, b(_, X), N), N > area(X) + 1.", "a/1 b/2 area/1"),
    ("0.5::a ; t(_)::b(c) :- d ; e.", "a/0 b/1 d/0 e/0"),
    (":- learn([a(t), b(t)]). :- body(c(t), [max(1)]). :- dynamic d/1, e/2.", "a/1 b/1 c/1 d/1 e/2"),
    (":- target(a(b)). :- classes([c, d(e)]). :- threshold(f(_), 0.5). ?- g. query(h).", "a/1 c/0 d/1 f/1 g/0 h/0"),
])
def test_predicates_that_are_named(text: str, names: str) -> None:
    found = [o for sentence in sentences(text) for o in occurrences(sentence) if o.kind == PREDICATE]
    assert " ".join(f"{o.name}/{o.arity}" for o in found) == names


def test_quick_fixes_mend_golden_errors() -> None:
    """Each hint that says what was meant, put into the text, ends the finding."""
    mended = 0
    for path in sorted(ERRORS.glob("*.pl")):
        try:
            document = Document(path, path.read_text("utf-8"))
        except UnicodeDecodeError:
            continue
        for finding in document.check()[0].diagnostics:
            word = replacement(document, finding)
            if word is None or finding.span is None:
                continue
            start, end = document.lines.offsets(finding.span)
            after = Document(path, document.text[:start] + word + document.text[end:])
            again = [(d.code, d.message, d.span.line) for d in after.check()[0].diagnostics if d.span is not None]
            assert (finding.code, finding.message, finding.span.line) not in again, (path.name, finding, word)
            mended += 1
    assert mended > 5


def test_renamed_programs_say_the_same() -> None:
    for path in PROGRAMS:
        document = Document(path, path.read_text("utf-8"))
        for name in {(o.kind, o.name, o.arity): o for o in document.names if document.is_own(o.span)}.values():
            start = document.lines.offsets(name.span)[0]
            try:
                edits = renamed(document, start, "Fresh" if name.kind == VARIABLE else "fresh one")
            except NsfrcError:
                continue
            text = document.text
            for left, right, word in sorted(edits, reverse=True):
                text = text[:left] + word + text[right:]
            after = Document(path, text)
            assert len(after.names) == len(document.names) and not after.syntax_errors
            if name.kind != VARIABLE:
                assert not any((o.kind, o.name, o.arity) == (name.kind, name.name, name.arity) for o in after.names)


def test_completion_knows_all_directives() -> None:
    known = {name for name, _ in _Directives(Vocabulary(Diagnostics()))._readers}
    assert known | {"include", "use_module"} == set(DIRECTIVES)


def test_without_pygls(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    assert "pip install 'nsfrc[lsp]'" in run.refused("lsp")


def test_findings_of_unsaved_text_beside_its_file(tmp_path: Path) -> None:
    own = ":- type(object, slots(2)). :- type(image, [img]). :- neural(in(object, image))."
    (tmp_path / "own.pl").write_text(own)
    text = ":- include('own.pl').\n:- target(kp(img)).\nkp(X) :- in(_, X).\n"
    found, checked = Document(tmp_path / "rules.pl", text).check()
    assert found.diagnostics == () and checked is not None
