"""The language server, spoken to as an editor does."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")
pytest_lsp = pytest.importorskip("pytest_lsp")

from lsprotocol import types as lsp  # noqa: E402
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams  # noqa: E402
from pytest_lsp import LanguageClient  # noqa: E402

from nsfrc.compiler.findings import findings  # noqa: E402
from nsfrc.editor.server import server  # noqa: E402
from nsfrc.errors import Diagnostic  # noqa: E402
from tests.frontend.test_errors import ERRORS  # noqa: E402
from tests.frontend.test_format import PROGRAMS  # noqa: E402

COMMAND = [sys.executable, "-c", "from nsfrc.cli import main; main()", "lsp"]
here = pytest.mark.asyncio(loop_scope="module")
RULES = """\
:- use_module(library(nsfr)).
:- include('kandinsky.pl').
:- type(object, slots(4)).
:- type(mood, ['𝒳 calm', angry]).
:- target(kp(img)).
/* 𝒳𝒳 */ kp(X) :- in(O, X), feels(O, '𝒳 calm'), colour(O, red). % 𝒳
feels(O, M) :- color(O, C), mood_of(C, M).
mood_of(red, angry). mood_of(blue, '𝒳 calm').
"""
GOOD = RULES.replace("colour", "color")


@pytest_lsp.fixture(config=pytest_lsp.ClientServerConfig(server_command=COMMAND, server_env=dict(os.environ)),
                    scope="module")
async def client(lsp_client: LanguageClient) -> Any:
    await lsp_client.initialize_session(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
    yield
    await lsp_client.shutdown_session()


def opened(client: Any, path: Path, text: str) -> str:
    uri = path.resolve().as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "prolog", 1, text)))
    return uri


def changed(client: Any, uri: str, text: str, version: int) -> None:
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(
        lsp.VersionedTextDocumentIdentifier(version, uri), [lsp.TextDocumentContentChangeWholeDocument(text)]))


async def told(client: Any, uri: str, version: int = 1) -> list[lsp.Diagnostic]:
    """What is told of a text when it has been checked: the last findings within a while of the first."""
    seen = client.diagnostics.get(uri)
    for _ in range(2400):
        await asyncio.sleep(0.05)
        if uri in client.diagnostics and client.diagnostics[uri] is not seen:
            break
    await asyncio.sleep(0.1)
    return list(client.diagnostics[uri])


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def place(text: str, words: str, inside: int = 0) -> lsp.Position:
    """The position of the first such words, by another way than the server's."""
    before = text[: text.index(words) + inside]
    return lsp.Position(before.count("\n"), units(before.rpartition("\n")[2]))


def inserted(text: str, edits: list[lsp.TextEdit]) -> str:
    """A text after edits, taken from the last to the first."""
    lines = text.split("\n")
    starts = [sum(units(line) + 1 for line in lines[:n]) for n in range(len(lines) + 1)]
    data = text.encode("utf-16-le")
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        start, end = (2 * (starts[p.line] + p.character) for p in (edit.range.start, edit.range.end))
        data = data[:start] + edit.new_text.encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


def expected(path: Path, finding: Diagnostic) -> tuple[Any, ...]:
    span = finding.span
    if span is not None and span.source.name != str(path):
        span = span.in_own_file()
    line = 0 if span is None else span.line - 1
    text = "" if span is None else span.source.line(span.line)[: span.column - 1]
    return line, units(text), finding.code, finding.severity == "error"


@here
async def test_the_same_findings_as_check(client: Any) -> None:
    """All shipped programs and golden error files, open at once."""
    paths = [p.resolve() for p in (*PROGRAMS, *sorted(ERRORS.glob("*.pl")))]
    wanted = {}
    for path in paths:
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:  # no editor opens it as it is
            continue
        wanted[opened(client, path, text)] = [expected(path, d) for d in findings(path).diagnostics]
    found: dict[str, list[tuple[Any, ...]]] = {}
    for _ in range(1200):
        await asyncio.sleep(0.1)
        found = {uri: [(d.range.start.line, d.range.start.character, d.code, d.severity == lsp.DiagnosticSeverity.Error)
                       for d in client.diagnostics.get(uri, ())] for uri in wanted}
        if found == wanted and all(uri in client.diagnostics for uri in wanted):
            break
    assert found == wanted and sum(map(len, wanted.values())) > 100
    for uri in wanted:
        client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))


@here
async def test_quick_fix_behind_wide_characters(client: Any, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "rules.pl", RULES)
    finding, = [d for d in await told(client, uri) if d.severity == lsp.DiagnosticSeverity.Error]
    assert (finding.code, finding.source) == ("unknown-predicate", "nsfrc")
    assert "did you mean color/2?" in finding.message
    assert finding.range == lsp.Range(place(RULES, "colour"), place(RULES, "colour", 6))
    asked = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), finding.range, lsp.CodeActionContext([finding]))
    action, = await client.text_document_code_action_async(asked)
    assert action.title == "Write color" and inserted(RULES, action.edit.changes[uri]) == GOOD
    changed(client, uri, GOOD, 2)
    assert await told(client, uri) == []
    changed(client, uri, GOOD.replace("in(O, X)", "in(O X)"), 3)
    assert "syntax-error" in [d.code for d in await told(client, uri)]


@here
async def test_hover_definition_symbols(client: Any, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "hover.pl", GOOD)
    assert await told(client, uri) == []

    async def hover(words: str, inside: int = 0) -> str:
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), place(GOOD, words, inside))
        shown = await client.text_document_hover_async(params)
        return "" if shown is None else shown.contents.value

    assert "`feels(object,mood)` · derived" in await hover("feels(O, '") and " row" in await hover("feels(O, '")
    assert "neural" in await hover("color(O, red)") and "2 facts" in await hover("mood_of(C")
    assert "`red` of `color`" in await hover("red). %") and "constant `𝒳 calm`" in await hover("'𝒳 calm'), c", 3)
    assert await hover("% 𝒳") == ""

    async def definitions(words: str) -> list[lsp.Location]:
        params = lsp.DefinitionParams(lsp.TextDocumentIdentifier(uri), place(GOOD, words))
        return await client.text_document_definition_async(params) or []

    one, = await definitions("feels(O, '")
    assert one.uri == uri and one.range.start == place(GOOD, "feels(O, M)")
    shipped, = await definitions("color(O, red)")
    assert shipped.uri.endswith("kandinsky/kandinsky.pl")
    file, = await definitions("'kandinsky.pl'")
    assert file.uri == shipped.uri and shipped.range.start.line > 5
    constant, = await definitions("'𝒳 calm'), c")
    assert constant.range == lsp.Range(place(GOOD, "'𝒳 calm', a"), place(GOOD, ", angry]"))
    variable, = await definitions("O, red")
    assert variable.range.start == place(GOOD, "O, X), feels")

    symbols = await client.text_document_document_symbol_async(
        lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri)))
    assert [s.name for s in symbols] == ["object", "mood", "kp/1", "feels/2", "mood_of/2", "mood_of/2"]
    assert symbols[2].selection_range.start == place(GOOD, "kp(X)")


@here
async def test_completion(client: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.pl").write_text(":- type(own, [a]).\n")
    text = GOOD + ":- \n:- include('\n:- pred(p(\nq(X) :- \n"
    uri = opened(client, tmp_path / "complete.pl", text)
    await told(client, uri)

    async def offers(words: str) -> set[str]:
        at = place(text, words, len(words))
        found = await client.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), at))
        return {item.label for item in found.items}

    assert {"type", "target", "include", "learn"} <= await offers("calm').\n:- ")
    files = await offers(":- \n:- include('")
    assert {"kandinsky.pl", "mine.pl", "boxes.pl"} <= files and "complete.pl" not in files
    assert {"mood", "object", "color"} == (await offers(":- pred(p(")) - {"image", "shape"}
    goals = await offers("q(X) :- ")
    assert {"feels", "color", "red", "'𝒳 calm'", "aggregate_all", "mood_of"} <= goals and "colour" not in goals


@here
async def test_rename(client: Any, tmp_path: Path) -> None:
    uri = opened(client, tmp_path / "rename.pl", GOOD)
    await told(client, uri)

    async def rename(words: str, new: str) -> str:
        params = lsp.RenameParams(lsp.TextDocumentIdentifier(uri), place(GOOD, words), new)
        edit = await client.text_document_rename_async(params)
        return inserted(GOOD, edit.changes[uri])

    assert await rename("mood_of(C", "suits") == GOOD.replace("mood_of", "suits")
    assert await rename("mood_of(C", "it's") == GOOD.replace("mood_of", r"'it\'s'")
    assert await rename("'𝒳 calm'), c", "calm") == GOOD.replace("'𝒳 calm'", "calm")
    assert await rename("O, red", "Thing") == re.sub(r"\bO\b", "Thing", GOOD.split("\nfeels")[0]) + "\nfeels" + \
        GOOD.split("\nfeels")[1]
    assert await rename("mood, [", "temper") == GOOD.replace("type(mood,", "type(temper,")
    for words, new, why in (("mood_of(C", "feels", "predicate feels already"), ("mood_of(C", "Suits", "is a variable"),
                            ("color(O, red)", "tint", "kandinsky.pl"), ("red). %", "rouge", "kandinsky.pl"),
                            ("angry]", "red", "constant red already"), ("O, red", "X", "variable X already"),
                            ("O, red", "thing", "not a variable"), ("mood_of(C", "closeby", "means something"),
                            ("% 𝒳", "y", "no name here")):
        with pytest.raises(JsonRpcException, match=why):
            await rename(words, new)


def test_refusals_are_not_logged_as_failures() -> None:
    server()
    log = logging.getLogger("pygls.protocol.json_rpc")
    for error, logged in ((JsonRpcInvalidParams("no name here"), False), (ValueError("a mistake of ours"), True)):
        record = log.makeRecord(log.name, logging.ERROR, "", 0, "", (), (type(error), error, None))
        assert bool(log.filter(record)) is logged


@here
async def test_formatting(client: Any, tmp_path: Path) -> None:
    messy = "kp(X):-in(O,'𝒳').  % 𝒳\n"
    uri = opened(client, tmp_path / "format.pl", messy)
    asked = lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), lsp.FormattingOptions(4, True))
    edits = await client.text_document_formatting_async(asked)
    assert inserted(messy, edits) == "kp(X) :- in(O, '𝒳'). % 𝒳\n"
    changed(client, uri, "kp(X :- .", 2)
    assert not await client.text_document_formatting_async(asked)
