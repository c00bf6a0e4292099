"""One picture: its objects, its answer and the reason, and its facts as sliders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from nicegui import ui

from nsfrc.inference.report_card import card
from nsfrc.page.answers import Fact
from nsfrc.page.desk import Desk

OFFERED = 3000  # facts that can be chosen by name
STEP = 0.01


class Prompt(ui.slider):
    """A slider that moves in the browser at once; one that waits for the server loses keys pressed meanwhile."""

    LOOPBACK = False


@dataclass(eq=False)
class Slider:
    """The widgets of a fact."""

    slider: Prompt
    value: ui.label
    pull: ui.label


class DetailView:
    """What is shown of the chosen picture. imagined: called when a fact was given another value."""

    def __init__(self, desk: Desk, imagined: Callable[[], None]) -> None:
        self.desk, self._imagined = desk, imagined
        self.sliders: dict[str, Slider] = {}
        self._shown: tuple[object, ...] = ()
        self.card = ui.html("", sanitize=False).classes("answer")
        with ui.element("section").classes("facts") as self.panel:
            with ui.element("div").classes("toolbar"):
                ui.html("<h2>What if?</h2>", sanitize=False)
                self.choice = ui.select([], label="Another fact", with_input=True).classes("samples")
                self.choice.props("dense outlined options-dense")
                self.choice.on_value_change(lambda event: self._also(event.value))
                self.reset = ui.button("As it was seen", icon="undo", on_click=self._reset).props("flat dense no-caps")
            self.explained = ui.label("").classes("note")
            self.list = ui.element("div").classes("sliders")

    def show(self) -> None:
        """Bring it to what the desk has."""
        desk = self.desk
        row = desk.row()
        self.panel.set_visibility(row is not None and row.V0 is not None)
        if row is None or desk.answers is None:
            self.card.content = _empty(desk)
            self._shown = ()
            return
        self.card.content = card(row, desk.answers.objects)
        self.card.classes(add="stale" if desk.stale else "", remove="" if desk.stale else "stale")
        if row.V0 is None:
            return
        shown = desk.program, desk.selected, desk.question
        if shown != self._shown:
            self._shown = shown
            self._build(desk.facts(row))
            self.choice.set_options(desk.answers.inputs[:OFFERED], value=None)
        for fact in desk.facts(row, list(self.sliders)):
            self._bring(fact)
        self.reset.set_enabled(bool(desk.changes))

    def _build(self, facts: list[Fact]) -> None:
        self.list.clear()
        self.sliders.clear()
        question = self.desk.question
        asked = "" if question is None else question.name
        self.explained.text = "" if not facts else (
            f"The facts that move the score of {asked} most; beside each, by how much per unit."
            if any(fact.pull for fact in facts) else
            f"No fact alone moves the score of {asked} a little; these are what the reason rests on.")
        for fact in facts:
            self._add(fact)

    def _add(self, fact: Fact) -> None:
        with self.list, ui.element("div").classes("fact"):
            ui.html(f"<code>{escape(fact.atom)}</code>", sanitize=False).classes("atom-name")
            slider = Prompt(min=0, max=1, step=STEP, value=round(fact.value, 2)).props("dense")
            slider.props["aria-label"] = fact.atom
            slider.on("update:model-value", lambda event, atom=fact.atom: self._moved(atom, event.args), throttle=0.05)
            self.sliders[fact.atom] = Slider(slider, ui.label("").classes("value"), ui.label("").classes("pull"))

    def _bring(self, fact: Fact) -> None:
        there = self.sliders[fact.atom]
        if fact.atom not in self.desk.changes:
            there.slider.set_value(round(fact.value, 2))
        there.value.text = f"{fact.value:.2f}"
        there.pull.text = f"{fact.pull:+.2f}" if abs(fact.pull) >= 0.005 else "0"
        there.slider.classes(add="moved" if fact.atom in self.desk.changes else "",
                             remove="" if fact.atom in self.desk.changes else "moved")

    def _moved(self, atom: str, value: object) -> None:
        if isinstance(value, int | float):
            self.desk.imagine(atom, value)
            self._imagined()

    def _also(self, atom: str | None) -> None:
        row = self.desk.row()
        if atom is None or row is None:
            return
        self.choice.set_value(None)
        for fact in self.desk.facts(row, [atom]):
            if fact.atom not in self.sliders:  # it may go by the name of one that says the same
                self._add(fact)
                self._bring(fact)

    def _reset(self) -> None:
        self.desk.changes.clear()
        self._imagined()


def _empty(desk: Desk) -> str:
    """What to say where there is no answer."""
    if desk.problem is not None:
        return f'<p class="message bad">{escape(desk.problem)}</p>'
    if not len(desk.pictures):
        return '<p class="message">Drop a picture, or add sample figures.</p>'
    reading = desk.reading
    if desk.stale:
        return '<p class="message">The program has errors: mend them, and the answers are back.</p>'
    if reading is not None and reading.program is not None and not reading.program.targets:
        return '<p class="message">The program asks nothing yet: label pictures and learn a rule, or add a target.</p>'
    return '<p class="message">Looking at the pictures …</p>'
