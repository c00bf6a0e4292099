"""The language server. It only turns what `nsfrc.editor` answers into the protocol's words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from nsfrc import __version__
from nsfrc.compiler.formatting import formatted
from nsfrc.compiler.stages import Checked
from nsfrc.editor import answers, completion, occurrences
from nsfrc.editor.document import Document
from nsfrc.editor.positions import Lines
from nsfrc.editor.rename import renamed
from nsfrc.errors import ERROR, CompileError, Diagnostic, NsfrcError, Span

PAUSE = 0.2  # seconds without a change before a text is checked, at most; less where checking takes less
SOURCE = "nsfrc"
_SYMBOLS = {occurrences.PREDICATE: lsp.SymbolKind.Function, occurrences.TYPE: lsp.SymbolKind.Enum}
_OFFERS = {
    occurrences.PREDICATE: lsp.CompletionItemKind.Function, occurrences.CONSTANT: lsp.CompletionItemKind.EnumMember,
    occurrences.TYPE: lsp.CompletionItemKind.Enum, completion.DIRECTIVE: lsp.CompletionItemKind.Keyword,
    completion.FILE: lsp.CompletionItemKind.File, completion.BUILT_IN: lsp.CompletionItemKind.Keyword,
}


_AtPlace = lsp.HoverParams | lsp.DefinitionParams | lsp.CompletionParams | lsp.RenameParams


class Open:
    """A text that is open: its last version, what was told of it, and the last program that it made."""

    def __init__(self, document: Document, version: int | None):
        self.document, self.version = document, version
        self.checked: Checked | None = None
        self.told: tuple[Diagnostic, ...] = ()
        self.syntax: list[tuple[str, str]] = []  # codes and messages of syntax errors that were told
        self.took = 0.0  # seconds of the last check
        self.waiting: asyncio.TimerHandle | None = None


class Server(LanguageServer):
    """Syntax errors are told at every change, all findings when there was none for as long as a check takes.

    Checking has a thread of its own: while it runs, names are still completed. What it finds in a text that has
    changed meanwhile is not told.
    """

    def __init__(self) -> None:
        super().__init__("nsfrc", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.open: dict[str, Open] = {}
        self._worker = ThreadPoolExecutor(1, "check")

    def changed(self, uri: str, text: str, version: int | None) -> None:
        """Take in a new version of a text."""
        encoding = str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding) or "utf-16")
        document = Document(_path(uri), text, encoding)
        one = self.open.setdefault(uri, Open(document, version))
        one.document, one.version = document, version
        said = [(finding.code, finding.message) for finding in document.syntax_errors]
        if said != one.syntax:  # otherwise the editor moves the marks that are there
            one.syntax = said
            self.tell(uri, document.syntax_errors)
        if one.waiting is not None:
            one.waiting.cancel()
        one.waiting = asyncio.get_running_loop().call_later(min(PAUSE, one.took), self._check, uri, one, document)

    def _check(self, uri: str, one: Open, document: Document) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()

        def done(future: asyncio.Future[Any]) -> None:
            one.took = loop.time() - start
            if self.open.get(uri) is one and one.document is document and not future.cancelled():
                found, checked = future.result()
                one.checked = checked or one.checked
                self.tell(uri, found.diagnostics)

        one.waiting = None
        loop.run_in_executor(self._worker, document.check).add_done_callback(done)

    def tell(self, uri: str, found: tuple[Diagnostic, ...]) -> None:
        """Publish what is wrong with the last version of a text."""
        one = self.open[uri]
        one.told = found
        listed = [_diagnostic(one.document, finding) for finding in found]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, listed, one.version))

    def closed(self, uri: str) -> None:
        one = self.open.pop(uri, None)
        if one is not None and one.waiting is not None:
            one.waiting.cancel()
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def known(self, text: lsp.TextDocumentIdentifier) -> Open:
        if text.uri not in self.open:
            raise JsonRpcInvalidParams(f"{text.uri} is not open")
        return self.open[text.uri]

    def at(self, params: _AtPlace) -> tuple[Open, int]:
        """The text that is asked about, and the offset."""
        one = self.known(params.text_document)
        return one, one.document.lines.offset(params.position.line, params.position.character)


def _worth_logging(record: logging.LogRecord) -> bool:
    """Refusals are answers: pygls logs their tracebacks too, which editors show."""
    return not (record.exc_info and isinstance(record.exc_info[1], JsonRpcInvalidParams))


def server() -> Server:
    """A server with all that it answers."""
    made = Server()
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_worth_logging)
    for feature, answer in _ANSWERS.items():
        made.feature(feature)(_bound(made, answer))
    options = lsp.CompletionOptions(trigger_characters=["'", "("])
    made.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)(_bound(made, _complete))
    kinds = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    made.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)(_bound(made, _quick_fixes))
    return made


def _bound(made: Server, answer: Callable[[Server, Any], Any]) -> Callable[[Any], Any]:
    def call(params: Any) -> Any:
        return answer(made, params)

    return call


def _opened(made: Server, params: lsp.DidOpenTextDocumentParams) -> None:
    made.changed(params.text_document.uri, params.text_document.text, params.text_document.version)


def _changed(made: Server, params: lsp.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    made.changed(uri, made.workspace.get_text_document(uri).source, params.text_document.version)


def _saved(made: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    """Other open texts may include this one."""
    for uri, one in made.open.items():
        made.changed(uri, one.document.text, one.version)


def _closed(made: Server, params: lsp.DidCloseTextDocumentParams) -> None:
    made.closed(params.text_document.uri)


def _hover(made: Server, params: lsp.HoverParams) -> lsp.Hover | None:
    one, offset = made.at(params)
    text = answers.hover(one.document, offset, one.checked)
    return None if text is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))


def _definition(made: Server, params: lsp.DefinitionParams) -> list[lsp.Location]:
    one, offset = made.at(params)
    found = answers.definitions(one.document, offset)
    if isinstance(found, Path):
        start = lsp.Position(0, 0)
        return [lsp.Location(_uri(found), lsp.Range(start, start))]
    return [_location(one.document, span) for span in found]


def _symbols(made: Server, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    document = made.known(params.text_document).document
    return [lsp.DocumentSymbol(symbol.name, _SYMBOLS[symbol.kind], _range(document, symbol.span),
                               _range(document, symbol.name_span), symbol.detail)
            for symbol in answers.symbols(document)]


def _complete(made: Server, params: lsp.CompletionParams) -> lsp.CompletionList:
    one, offset = made.at(params)
    offers = completion.completions(one.document, offset, one.checked)
    return lsp.CompletionList(False, [lsp.CompletionItem(offer.text, kind=_OFFERS[offer.kind], detail=offer.detail)
                                      for offer in offers])


def _quick_fixes(made: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    one = made.known(params.text_document)
    asked, actions = params.range, []
    for finding in one.told:
        word = answers.replacement(one.document, finding)
        if word is None or finding.span is None:
            continue
        place = _range(one.document, finding.span)
        if _before(place.end, asked.start) or _before(asked.end, place.start):
            continue
        edit = lsp.WorkspaceEdit({params.text_document.uri: [lsp.TextEdit(place, word)]})
        actions.append(lsp.CodeAction(f"Write {word}", lsp.CodeActionKind.QuickFix,
                                      [_diagnostic(one.document, finding)], is_preferred=True, edit=edit))
    return actions


def _rename(made: Server, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    one, offset = made.at(params)
    try:
        edits = renamed(one.document, offset, params.new_name)
    except NsfrcError as refused:
        raise JsonRpcInvalidParams(str(refused)) from None
    listed = [lsp.TextEdit(_between(one.document.lines, start, end), text) for start, end, text in edits]
    return lsp.WorkspaceEdit({params.text_document.uri: listed})


def _format(made: Server, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
    document = made.known(params.text_document).document
    try:
        after = formatted(document.text, document.path.name)
    except CompileError:  # syntax errors, which are told already
        return []
    except NsfrcError as refused:
        raise JsonRpcInvalidParams(str(refused)) from None
    return [] if after == document.text else [lsp.TextEdit(_between(document.lines, 0, len(document.text)), after)]


_ANSWERS: dict[str, Callable[[Server, Any], Any]] = {
    lsp.TEXT_DOCUMENT_DID_OPEN: _opened, lsp.TEXT_DOCUMENT_DID_CHANGE: _changed, lsp.TEXT_DOCUMENT_DID_SAVE: _saved,
    lsp.TEXT_DOCUMENT_DID_CLOSE: _closed, lsp.TEXT_DOCUMENT_HOVER: _hover, lsp.TEXT_DOCUMENT_DEFINITION: _definition,
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: _symbols, lsp.TEXT_DOCUMENT_RENAME: _rename,
    lsp.TEXT_DOCUMENT_FORMATTING: _format,
}


def _path(uri: str) -> Path:
    """Where a text is saved; of one that is nowhere, a name in the folder that the server runs in."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path) if path else Path("unsaved.pl")


def _uri(path: Path) -> str:
    return uris.from_fs_path(str(path.resolve())) or ""


def _diagnostic(document: Document, finding: Diagnostic) -> lsp.Diagnostic:
    """A finding at its place; one of an included file where the text asks for that file."""
    span = finding.span
    message = finding.message if finding.hint is None else f"{finding.message}\n{finding.hint}"
    related = None
    if span is not None and not document.is_own(span):
        message = f"{span}: {message}"
        related = [lsp.DiagnosticRelatedInformation(_location(document, span), finding.message)]
        span = span.in_own_file()
    start = lsp.Position(0, 0)
    place = _range(document, span) if span is not None and document.is_own(span) else lsp.Range(start, start)
    severity = lsp.DiagnosticSeverity.Error if finding.severity == ERROR else lsp.DiagnosticSeverity.Warning
    return lsp.Diagnostic(place, message, severity, finding.code, source=SOURCE, related_information=related)


def _location(document: Document, span: Span) -> lsp.Location:
    """A place in the text or in a file that it includes."""
    if document.is_own(span):
        return lsp.Location(_uri(document.path), _range(document, span))
    lines = Lines(span.source.text, document.encoding)
    return lsp.Location(_uri(Path(span.source.name)), _between(lines, *lines.offsets(span)))


def _range(document: Document, span: Span) -> lsp.Range:
    return _between(document.lines, *document.lines.offsets(span))


def _between(lines: Lines, start: int, end: int) -> lsp.Range:
    return lsp.Range(lsp.Position(*lines.position(start)), lsp.Position(*lines.position(end)))


def _before(left: lsp.Position, right: lsp.Position) -> bool:
    return (left.line, left.character) < (right.line, right.character)
