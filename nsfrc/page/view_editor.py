"""The program in an editor, what is wrong with it, and what it says in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

from nicegui import ui

from nsfrc.describe import as_text
from nsfrc.errors import ERROR
from nsfrc.page.reading import Mark, Reading, in_words, units

SHOWN = 30  # findings that are listed


class EditorView:
    """The editor. The browser's text is the true one: it is changed there, and marks are sent beside it.

    Whatever is set as a property of the editor would send the server's text along, and destroy what was typed since.
    """

    def __init__(self, text: str, typed: Callable[[str], None], save: Callable[[], None]) -> None:
        self._marks: tuple[Mark, ...] = ()
        self._text = text
        keys: dict[str, Any] = {"Mod-s": lambda: save(), "Mod-Enter": self._fix_first, "F8": self._next}
        self.editor = ui.codemirror(text, on_change=lambda event: typed(event.value), language="Erlang", keymap=keys,
                                    line_wrapping=True)
        self.editor.classes("editor").props('aria-label="program"')
        self._at = -1

    def findings(self) -> None:
        """Make the list of findings, where it is to be."""
        self.status = ui.label("").classes("status").props('role=status aria-live=polite')
        self._list = ui.element("ul").classes("findings")

    def words(self) -> None:
        """Make the place for the program in words."""
        self._words = ui.html("", sanitize=False).classes("words")

    def put(self, text: str) -> None:
        """Another text in the place of all; it can be undone."""
        self._run(f"nsfrcPlay.put({self.editor.id}, {json.dumps(text)})")

    def show(self, reading: Reading) -> None:
        """Mark what is wrong with the text that is in the editor, and list it."""
        self._marks, self._text, self._at = reading.marks, reading.text, -1
        self.editor.run_method("setDecorations", [spec for mark in reading.marks for spec in _decorations(mark)])
        self.editor.run_method("setLineTooltips", _tooltips(reading))
        self.status.text = _summary(reading)
        self.status.classes(replace=f"status {'bad' if reading.errors else 'good'}")
        self._list.clear()
        with self._list:
            for mark in reading.marks[:SHOWN]:
                self._finding(mark)
            if len(reading.marks) > SHOWN:
                ui.element("li").props(f'data-more="{len(reading.marks) - SHOWN}"').classes("more")
        if reading.program is not None:
            self._words.content = words_html(reading)

    def _finding(self, mark: Mark) -> None:
        with ui.element("li").classes(f"finding {mark.severity}"):
            place = ui.element("button").classes("place").on("click", lambda: self._go(mark))
            with place:
                ui.label(f"{mark.line}:{mark.column}" if mark.end else "–")
            with ui.element("div").classes("said"):
                ui.label(mark.message)
                if mark.hint and not mark.fix:
                    ui.label(mark.hint).classes("hint")
            if mark.fix is not None:
                ui.button(f"Write {mark.fix}", on_click=lambda: self._fix(mark)).props("dense no-caps outline size=sm")

    def _go(self, mark: Mark) -> None:
        self._run(f"nsfrcPlay.go({self.editor.id}, {units(self._text, mark.start)})")

    def _fix(self, mark: Mark) -> None:
        start, end = units(self._text, mark.start), units(self._text, mark.end)
        was = self._text[mark.start : mark.end]
        self._run(f"nsfrcPlay.mend({self.editor.id}, {start}, {end}, {json.dumps(was)}, {json.dumps(mark.fix)})")

    def _fix_first(self) -> None:
        if (mark := next((mark for mark in self._marks if mark.fix is not None), None)) is not None:
            self._fix(mark)

    def _next(self) -> None:
        """On to the next finding."""
        if self._marks:
            self._at = (self._at + 1) % len(self._marks)
            self._go(self._marks[self._at])

    def _run(self, script: str) -> None:
        self.editor.client.run_javascript(script)


def _decorations(mark: Mark) -> list[dict[str, object]]:
    line: dict[str, object] = {"kind": "line", "line": mark.line, "class": f"line-{mark.severity}"}
    if mark.end <= mark.start:
        return [line]
    return [line, {"kind": "mark", "from": mark.start, "to": mark.end, "class": f"mark-{mark.severity}"}]


def _tooltips(reading: Reading) -> dict[int, str]:
    found: dict[int, str] = {}
    for mark in reading.marks:
        said = mark.message if mark.hint is None else f"{mark.message}; {mark.hint}"
        found[mark.line] = f"{found[mark.line]}\n{said}" if mark.line in found else said
    return found


def _summary(reading: Reading) -> str:
    errors = reading.errors
    warnings = len(reading.marks) - errors
    parts = [f"{count} {what}{'s' * (count > 1)}" for count, what in ((errors, ERROR), (warnings, "warning")) if count]
    if reading.program is None:
        return ", ".join(parts) or "no program"
    clauses, atoms = len(reading.told["clauses"]), reading.program.ground.G
    fine = f"{reading.path.name}: fine, {clauses} clause{'s' * (clauses != 1)}, {atoms:,} ground atoms"
    return ", ".join([fine, *parts])


def words_html(reading: Reading) -> str:
    """The program in words, and what else `nsfrc explain` says."""
    learning = None if reading.program is None else reading.program.source.learning
    asked = ", ".join(reading.told["targets"]) or "nothing yet"
    if learning is not None:
        asked = f"{', '.join(map(str, learning.targets))}, of which a rule is to be learnt"
    items = [f'<li id="rule-{number}"><p>{escape(words)}</p><code>{escape(clause)}</code>'
             f'<span class="cost">{escape(notes)}</span></li>' for number, clause, words, notes in in_words(reading)]
    more = escape(as_text(reading.told))
    return (f'<p class="asked">Asked: <code>{escape(asked)}</code></p><ol>{"".join(items)}</ol>'
            f"<details><summary>All that nsfrc explain says</summary><pre>{more}</pre></details>")
