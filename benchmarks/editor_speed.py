"""How long an editor waits for the language server after a change to a long program.

    python -m nsfrc.benchmarks.editor_speed --clauses 1000 --edits 20

For each edit: a syntax error until it is told, and mended until it is gone; a name that is asked about right after a
change; and a wrong name until it is told, which takes the whole check and the pause before it. Wall time as the editor
sees it, and the processor time of the server for it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-c", "from nsfrc.cli import main; main()", "lsp"]
_TICKS = os.sysconf("SC_CLK_TCK")


def program(clauses: int) -> str:
    """A program whose target needs all of its clauses."""
    colors, shapes = ("red", "yellow", "blue"), ("square", "circle", "triangle")
    lines = [":- use_module(library(nsfr)).", ":- include('kandinsky.pl').", ":- type(object, slots(4)).",
             ":- target(kp(img))."]
    for number in range(clauses // 2):
        lines += [f"kp(X) :- in(O, X), part{number}(O).",
                  f"part{number}(O) :- color(O, {colors[number % 3]}), shape(O, {shapes[number // 3 % 3]})."]
    return "\n".join(lines) + "\n"


class Editor:
    """A client with one text."""

    def __init__(self, client: Any, uri: str, text: str):
        self.client, self.uri, self.text, self.version = client, uri, text, 1

    def change(self, text: str) -> None:
        from lsprotocol import types as lsp

        self.version += 1
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(self.version, self.uri),
            [lsp.TextDocumentContentChangeWholeDocument(text)]))

    async def until(self, holds: Callable[[list[str]], bool]) -> None:
        while not holds([str(found.code) for found in self.client.diagnostics.get(self.uri, ())]):
            await asyncio.sleep(0.002)

    async def hover(self) -> None:
        from lsprotocol import types as lsp

        line = self.text.count("\n") // 2
        await self.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(self.uri), lsp.Position(line, 1)))


async def measure(clauses: int, edits: int) -> dict[str, list[tuple[float, float]]]:
    """(wall seconds, processor seconds of the server) of each edit, by what was waited for."""
    from lsprotocol import types as lsp
    from pytest_lsp import ClientServerConfig

    client: Any = await ClientServerConfig(COMMAND, server_env=dict(os.environ)).start()
    await client.initialize_session(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
    text, folder = program(clauses), tempfile.mkdtemp()
    uri = (Path(folder) / "long.pl").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "prolog", 1, text)))
    editor, server = Editor(client, uri, text), client._server.pid
    while uri not in client.diagnostics:
        await asyncio.sleep(0.01)
    result: dict[str, list[tuple[float, float]]] = {}

    async def timed(what: str, text: str, done: Callable[[], Awaitable[None]]) -> None:
        start, before = time.perf_counter(), _spent(server)
        editor.change(text)
        await done()
        result.setdefault(what, []).append((time.perf_counter() - start, _spent(server) - before))
        await asyncio.sleep(clauses / 1000)  # no check of an older text runs into the next measurement
        await editor.until(lambda codes: True)

    for edit in range(edits):
        old = f"part{edit}(O) :- color(O,"
        await timed("syntax error told", text.replace(old, f"part{edit}(O) :- color(O"),
                    lambda: editor.until(lambda codes: "syntax-error" in codes))
        await timed("mended, no error left", text, lambda: editor.until(lambda codes: not codes))
        await timed("hover after a change", text + f"% {edit}\n", editor.hover)
        await timed("wrong name told", text.replace(old, f"part{edit}(O) :- colour(O,"),
                    lambda: editor.until(lambda codes: "unknown-predicate" in codes))
        editor.change(text)
        await editor.until(lambda codes: not codes)
    await client.shutdown_session()
    await client.stop()
    return result


def _spent(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clauses", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=10)
    options = parser.parse_args()
    for what, times in asyncio.run(measure(options.clauses, options.edits)).items():
        wall, spent = ([1000 * pair[part] for pair in times] for part in (0, 1))
        print(f"{what:24} wall {statistics.median(wall):6.0f} ms (most {max(wall):6.0f})   "
              f"processor {statistics.median(spent):6.0f} ms   of {len(times)}")


if __name__ == "__main__":
    main()
