"""The page as a whole: a desk for each client, its widgets, and when they are brought up to date."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any

from nicegui import ui

from nsfrc.compiler.parse import shipped_programs
from nsfrc.errors import NsfrcError
from nsfrc.page import link
from nsfrc.page.begin import TEMPLATES, Start
from nsfrc.page.desk import Desk, Learning
from nsfrc.page.seen import Eyes
from nsfrc.page.view_detail import DetailView
from nsfrc.page.view_editor import EditorView
from nsfrc.page.view_pictures import LearnView, PicturesView

PAUSE = 0.2  # seconds without a change before a text is checked
TICK = 0.05
MEDIA = {"csv": "text/csv", "jsonl": "application/jsonl", "html": "text/html"}
CARDS = "/* Cards */"  # where the part of the report's style begins that the page uses, too

_reading = ThreadPoolExecutor(1, "read")
_looking = ThreadPoolExecutor(1, "look")
_learning = ThreadPoolExecutor(1, "learn")
_searches: set[Learning] = set()


async def _in(pool: ThreadPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


def in_background(work: Callable[[], Any]) -> None:
    """Do something in the thread that looks at pictures, before what comes later."""
    _looking.submit(work)


def stop_all() -> None:
    """Ask every search to end, as the server does."""
    for search in list(_searches):
        search.stop.set()


class PageView:
    """One client's page. What changes sets a flag; timers look at the flags, so that nothing waits for anything."""

    def __init__(self, begin: Start, eyes: Eyes, address: str | None) -> None:
        self.desk = Desk(begin, eyes)
        self._notice = self._reopened(address)
        self._typed_at, self._unread = 0.0, True
        self._unanswered = self._unshown = self._unsaved = False
        self._search: Learning | None = None
        self._build()
        ui.timer(TICK, self._read)
        ui.timer(TICK, self._answer)
        ui.timer(TICK, self._show)
        ui.context.client.on_delete(self._stop)

    def _reopened(self, address: str | None) -> str | None:
        """Put what a link says on the desk; what is wrong with it, if anything."""
        if not address:
            return None
        try:
            self.desk.reopen(link.decode(address))
        except NsfrcError as error:
            return str(error)
        return None

    def _build(self) -> None:
        self.dark = ui.dark_mode(None)
        ui.add_head_html(f"<style>{style()}</style><script>{_resource('page.js')}</script>")
        with ui.element("header").classes("bar"):
            self._header()
        with ui.element("main").classes("columns"):
            with ui.element("section").classes("left").props('aria-label="program"'):
                with ui.element("div").classes("editor-part"):
                    self.editor = EditorView(self.desk.text, self._typed, self._save_program)
                    self.editor.findings()
                with ui.element("div").classes("words-part"):
                    ui.html("<h2>In words</h2>", sanitize=False)
                    self.editor.words()
            with ui.element("section").classes("right").props('aria-label="pictures and answers"'):
                self.pictures = PicturesView(self.desk, self._changed, self._chosen, self._labelled)
                self.learning = LearnView(self._learn, self._stop, self._use)
                self.detail = DetailView(self.desk, self._imagined)
        ui.run_javascript(f"nsfrcPlay.begin({self.editor.editor.id}, {self.pictures.upload.id})")
        if self._notice is not None:
            ui.notify(self._notice, type="negative", timeout=0, close_button="Close")

    def _header(self) -> None:
        ui.html("<h1>nsfrc play</h1>", sanitize=False)
        names = {name: f"new: {name.replace('_', ' ')}" for name in TEMPLATES} | {n: n for n in shipped_programs()}
        self.choice = ui.select(names, label="Start from", with_input=True).props("dense outlined options-dense")
        self.choice.classes("samples").on_value_change(lambda event: self._open(event.value))
        seen = {"": "the program's own"} | {name: name for name in self.desk.eyes.offered}
        perception = ui.select(seen, label="Perception", value=self.desk.perception or "").classes("samples")
        perception.props("dense outlined options-dense").on_value_change(lambda event: self._see_with(event.value))
        ui.element("div").classes("gap")
        with ui.button("Save", icon="save").props("flat dense no-caps"), ui.menu():
            ui.menu_item("Program (.pl)", self._save_program)
            ui.menu_item("Results (.csv)", lambda: self._save("csv"))
            ui.menu_item("Results (.jsonl)", lambda: self._save("jsonl"))
            ui.menu_item("Report (.html)", lambda: self._save("html"))
        ui.button("Link", icon="link", on_click=self._copy_link).props("flat dense no-caps")
        dark = ui.button(icon="contrast", on_click=self._turn).props('flat dense round aria-label="light or dark"')
        with dark:
            ui.tooltip("light or dark")

    # What the user does

    def _typed(self, text: str) -> None:
        self.desk.text, self._typed_at, self._unread = text, time.monotonic(), True

    def _open(self, name: str | None) -> None:
        if name is None:
            return
        self.choice.set_value(None)
        self.editor.put(self.desk.open(name))
        self.pictures.rebuild()
        self._unread = True

    def _see_with(self, perception: str) -> None:
        self.desk.see_with(perception or None)
        self._unread = True

    def _use(self, text: str) -> None:
        self.editor.put(text)

    def _changed(self) -> None:
        self._unanswered = True

    def _chosen(self) -> None:
        self._unshown = True

    def _imagined(self) -> None:
        self._unshown = True

    def _labelled(self) -> None:
        self._unanswered = self._unshown = True

    async def _turn(self) -> None:
        now = await ui.run_javascript("document.body.classList.contains('body--dark')", timeout=5)
        self.dark.value = not now

    # What follows from it, by timers

    async def _read(self) -> None:
        """Check the text when nobody has typed for a moment."""
        if not self._unread or time.monotonic() < self._typed_at + PAUSE:
            return
        text, self._unread = self.desk.text, False
        reading = await _in(_reading, self.desk.read, text)
        if text != self.desk.text:
            return
        fine = self.desk.hold(reading)
        self.editor.show(reading)
        self._unanswered = self._unanswered or fine
        self._unshown = True

    async def _answer(self) -> None:
        """Ask the program about the pictures."""
        reading = self.desk.reading
        if not self._unanswered or reading is None or reading.program is None:
            return
        self._unanswered = False
        found = await _in(_looking, self.desk.look, reading)
        if reading is self.desk.reading and not self._unanswered:
            self.desk.take(*found)
            self.pictures.rebuild()
            self._unshown = True

    async def _show(self) -> None:
        """Bring the widgets up to date."""
        if self._search is not None:
            self.learning.running(True, self._search.told)
        if self.desk.seeing:
            self.pictures.note.text = self.desk.seeing
        if not self._unshown:
            return
        self._unshown = False
        self.pictures.show()
        self.detail.show()
        if (address := link.encode(self.desk.state())) is not None:
            ui.navigate.history.replace(f"?s={address}")

    # Learning, saving

    async def _learn(self) -> None:
        if self._search is not None:
            return
        self._search = search = Learning()
        _searches.add(search)
        try:
            learnt = await _in(_learning, self.desk.learn, search)
        except NsfrcError as error:
            ui.notify(str(error), type="warning", multi_line=True, timeout=0, close_button="Close")
        else:
            rules = "\n\n".join(f"{one.text}\n% covers {one.true} true and {one.false} false pictures"
                                for one in learnt.clauses)
            stopped = [] if learnt.complete else ["the search was stopped: this is the best so far"]
            self.learning.show(learnt.text, rules, [*learnt.remarks, *stopped])
        finally:
            _searches.discard(search)
            self._search = None
            self.learning.running(False)

    def _stop(self) -> None:
        if self._search is not None:
            self._search.stop.set()

    def _save_program(self) -> None:
        ui.download.content(self.desk.text.encode("utf-8", "surrogatepass"), f"{self.desk.name}.pl", "text/plain")

    async def _save(self, kind: str) -> None:
        try:
            data = await _in(_looking, self.desk.saved_results, kind)
        except NsfrcError as error:
            ui.notify(str(error), type="warning")
            return
        ui.download.content(data, f"{self.desk.name}.{kind}", MEDIA[kind])

    def _copy_link(self) -> None:
        address = link.encode(self.desk.state())
        if address is None:
            ui.notify("the program is too long for a link: save it as a file", type="warning")
            return
        ui.run_javascript(f"nsfrcPlay.copy('?s={address}')")
        own = len(self.desk.pictures) and not self.desk.pictures.samples_only
        ui.notify("link copied" + ("; it names pictures of your own, but does not hold them" if own else ""))


def _resource(name: str) -> str:
    return (resources.files("nsfrc.page") / name).read_text(encoding="utf-8")


def style() -> str:
    """The page's own style, and that of the report's cards, for the reason."""
    report = (resources.files("nsfrc.inference") / "report.css").read_text(encoding="utf-8")
    cards = report[report.index(CARDS) : report.index("footer {")]
    return f".answer, .shot {{\n{cards}\n}}\n{_resource('page.css')}"
