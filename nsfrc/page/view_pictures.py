"""The pictures with their boxes, scores, reasons and labels, and the button that learns from these."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from nicegui import events, ui

from nsfrc.errors import NsfrcError
from nsfrc.inference.report_card import outlines, question_score, takes_part
from nsfrc.inference.rows import Row
from nsfrc.page.desk import Desk, totals
from nsfrc.page.pictures import MAX_BYTES, PATTERNS, example_folders
from nsfrc.questions import Question, short

KEYS = """(event) => {
  if (event.target !== event.currentTarget) return;
  if (["t", "f", "Enter", " "].includes(event.key)) { event.preventDefault(); emit(event.key); }
}"""
STOP = re.compile(r' tabindex="-?[0-9]"')
MARKS = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("open", "")}


@dataclass(eq=False)
class Card:
    """The widgets of one picture that change, and what they show: an element that is set anew is sent anew."""

    frame: ui.element
    image: ui.html
    boxes: ui.html
    caption: ui.html
    labels: ui.element
    offered: tuple[str, ...] = ()
    label: str | None = None
    chosen: bool = False


class PicturesView:
    """A grid of pictures. changed: called when pictures are added or taken away; selected, labelled: when one is."""

    def __init__(self, desk: Desk, changed: Callable[[], None], selected: Callable[[], None],
                 labelled: Callable[[], None]) -> None:
        self.desk, self._changed, self._selected, self._labelled = desk, changed, selected, labelled
        self.cards: dict[str, Card] = {}
        self._toolbar()
        self.note = ui.label("").classes("note")
        self.remarks = ui.label("").classes("note remarks")
        self.grid = ui.element("div").classes("grid").props('role=list aria-label="pictures"')
        self.rebuild()

    def _toolbar(self) -> None:
        with ui.element("div").classes("toolbar"):
            upload = ui.upload(label="Drop pictures here", multiple=True, auto_upload=True, max_file_size=MAX_BYTES,
                               on_upload=self._dropped, on_rejected=self._rejected)
            upload.classes("drop").props('accept="image/*,.tif,.tiff,.bmp,.ppm,.tga,.qoi,.pcx" flat bordered')
            self.upload = upload
            names = {name: f"Figures: {name}" for name in PATTERNS}
            names |= {name: f"Examples: {name.partition('/')[2]}" for name in example_folders()}
            samples = ui.select(names, label="Add samples", with_input=True).classes("samples")
            samples.props("dense outlined options-dense")
            samples.on_value_change(lambda event: self._sample(event.value, samples))
            if self.desk.begin.images is not None:
                ui.button("Folder", icon="folder_open", on_click=self._folder).props("flat dense no-caps")
            self.asked = ui.select([], label="Question").classes("samples").props("dense outlined options-dense")
            self.asked.on_value_change(lambda event: self._ask(event.value))
            ui.button("Clear", icon="delete_sweep", on_click=self._clear).props("flat dense no-caps")

    def _ask(self, name: str | None) -> None:
        if name is not None and name != self.desk.asked:
            self.desk.asked = name
            self._labelled()

    async def _dropped(self, event: events.UploadEventArguments) -> None:
        try:
            self.desk.select(self.desk.pictures.drop(event.file.name, await event.file.read()))
        except NsfrcError as error:
            ui.notify(str(error), type="negative")
            return
        self.upload.run_method("removeUploadedFiles")  # others may still be on their way
        self.rebuild()
        self._changed()

    def _rejected(self) -> None:
        ui.notify(f"only pictures up to {MAX_BYTES // 1_000_000} MB are taken", type="negative")

    def _sample(self, which: str | None, samples: ui.select) -> None:
        if which is None:
            return
        samples.set_value(None)
        self._add(lambda: self.desk.pictures.samples(which))

    def _folder(self) -> None:
        self._add(self.desk.add_folder)

    def _clear(self) -> None:
        self._add(self.desk.clear)

    def _add(self, action: Callable[[], None]) -> None:
        try:
            action()
        except NsfrcError as error:
            ui.notify(str(error), type="negative")
        self.rebuild()
        self._changed()

    def rebuild(self) -> None:
        """A card for each picture that there is; those that there were already stay."""
        names = list(self.desk.pictures.items)
        if list(self.cards) != names[: len(self.cards)]:
            self.grid.clear()
            self.cards.clear()
        with self.grid:
            for name in names:
                if name not in self.cards:
                    self.cards[name] = self._card(name)

    def _card(self, name: str) -> Card:
        frame = ui.element("div").classes("shot").props(f'tabindex=0 role=listitem data-name="{escape(name)}"')
        frame.props["aria-label"] = name
        frame.on("click", lambda: self._select(name))
        frame.on("keydown", lambda event: self._key(name, str(event.args)), js_handler=KEYS)
        with frame:
            with ui.element("div").classes("picture"):
                image = ui.html("", sanitize=False)
                boxes = ui.html("", sanitize=False)
            caption = ui.html(f'<p class="name">{escape(name)}</p>', sanitize=False).classes("caption")
            labels = ui.element("div").classes("labels")
        return Card(frame, image, boxes, caption, labels)

    def _key(self, name: str, key: str) -> None:
        question = self.desk.question
        if key in ("Enter", " "):
            self._select(name)
        elif question is not None and not question.of_classes:
            self._label(name, "true" if key == "t" else "false")

    def _select(self, name: str) -> None:
        self.desk.select(name)
        self._selected()

    def _label(self, name: str, answer: str) -> None:
        self.desk.label(name, answer)
        self._labelled()

    def show(self) -> None:
        """Bring all cards to what the desk has."""
        desk, question = self.desk, self.desk.question
        names = [one.name for one in desk.questions]
        self.asked.set_visibility(len(names) > 1)
        chosen = None if question is None else question.name
        if (names, chosen) != (self.asked.options, self.asked.value):
            self.asked.set_options(names, value=chosen)
        rows = {} if desk.answers is None else desk.answers.by_name
        known = {} if desk.looked is None else desk.looked.known
        labels = desk.labelled()
        for name, card in self.cards.items():
            if card.chosen != (name == desk.selected):
                card.chosen = not card.chosen
                card.frame.classes(toggle="chosen")
            if name in known and (small := known[name].thumbnail) is not None:
                _set(card.image, f'<img src="{small.address}" alt="{escape(name)}">')
            row = rows.get(name)
            _set(card.boxes, "" if row is None else _boxes(row, desk))
            _set(card.caption, _caption(name, row, question, known[name].error if name in known else None))
            self._labels(card, name, question, labels.get(name))
        self.grid.classes(add="stale" if desk.stale else "", remove="" if desk.stale else "stale")
        self.note.text = note(desk)
        self.remarks.text = "" if desk.answers is None else "\n".join(desk.answers.remarks)

    def _labels(self, card: Card, name: str, question: Question | None, label: str | None) -> None:
        """Buttons for the labels, made anew where others are to be offered."""
        offered = () if question is None else question.answers
        if offered != card.offered:
            card.offered, card.label = offered, None
            names = {} if question is None else short_names(question)
            card.labels.clear()
            with card.labels:
                for answer in offered:
                    button = ui.element("button").classes("label")
                    button.on("click.stop", lambda a=answer: self._label(name, a))
                    button.props["aria-label"] = f"{name} is {answer}"
                    button.props("aria-pressed=false")
                    with button:
                        ui.label(names[answer])
        for answer, button in zip(offered, card.labels, strict=True):
            if answer in (label, card.label) and label != card.label:
                on = answer == label
                button.classes(add="on" if on else "", remove="" if on else "on")
                button.props(f'aria-pressed={"true" if on else "false"}')
        card.label = label


def short_names(question: Question) -> dict[str, str]:
    """What answers are called on buttons: classes by their predicates, or by the arguments in which they differ."""
    atoms = question.atoms
    if not question.of_classes:
        return {answer: answer for answer in question.answers}
    names = short(atoms)
    columns = [*zip(*(atom.rstrip(")").replace("(", ",").split(",") for atom in atoms), strict=False)]
    if names == atoms and (differ := [column for column in columns if len(set(column)) > 1]):
        told = tuple(",".join(column[i] for column in differ) for i in range(len(atoms)))
        names = told if len(set(told)) == len(told) else names
    return dict(zip(atoms, names, strict=True)) | {answer: answer for answer in question.answers if answer not in atoms}


def _set(element: ui.html, content: str) -> None:
    if element.content != content:
        element.content = content


def _boxes(row: Row, desk: Desk) -> str:
    if row.V0 is None or desk.answers is None:
        return ""
    drawn = outlines(row, row.V0, desk.answers.objects, takes_part(row, desk.answers.objects))
    return STOP.sub("", drawn)  # Tab goes from picture to picture here


def _caption(name: str, row: Row | None, question: Question | None, error: str | None) -> str:
    """Name, score, answer, whether it is right, and the first line of the reason."""
    lead = f'<p class="name" title="{escape(name)}">{escape(name)}</p>'
    error = error if row is None else row.error
    if error is not None:
        return f'{lead}<p class="failed">{escape(error)}</p>'
    if row is None or question is None or question.name not in row.answers:
        return lead
    said, score = row.answers[question.name], question_score(row, question)
    kind, sign = MARKS[said.right]
    why = (said.reason or "").partition("\n")[0].removeprefix(f"{question.best(row.scores)} {score:.2f}").lstrip(": ")
    return (f'{lead}<p class="score {kind}"><meter min="0" max="1" value="{score:.4f}"></meter><b>{score:.2f}</b> '
            f'<span>{escape(short_names(question).get(said.answer or "", ""))}</span> <i>{sign}</i></p>'
            f'<p class="because" title="{escape(said.reason or "")}">{escape(why)}</p>')


def note(desk: Desk) -> str:
    """How many pictures there are, and what happens with them."""
    if desk.seeing:
        return desk.seeing
    count = totals(desk)
    parts = [f"{count['pictures']} pictures, {count['labelled']} labelled"]
    if count["right"] + count["wrong"]:
        parts.append(f"{count['right']} of {count['right'] + count['wrong']} right")
    if desk.stale:
        parts.append("the text has errors: answers are those of the last version without any")
    if desk.left_out:
        parts.append(f"{desk.left_out} of the folder are left out")
    return " · ".join(parts)


class LearnView:
    """The button that learns from the labels, and what came of it."""

    def __init__(
        self, learn: Callable[[], Awaitable[Any]], stop: Callable[[], None], use: Callable[[str], None]
    ) -> None:
        self._use = use
        with ui.element("div").classes("learn"):
            self.button = ui.button("Learn a rule", icon="school", on_click=learn).props("no-caps dense outline")
            self.stopping = ui.button("Stop", icon="stop", on_click=stop).props("no-caps dense outline")
            self.told = ui.label("").classes("note").props("role=status aria-live=polite")
        self.result = ui.element("div").classes("learnt")
        self.running(False)

    def running(self, on: bool, told: str = "") -> None:
        self.button.set_enabled(not on)
        self.stopping.set_visibility(on)
        self.told.text = told

    def show(self, text: str, rules: str, remarks: list[str]) -> None:
        """A learnt program: its rules, and what to know of them."""
        self.result.clear()
        with self.result:
            ui.html(f"<pre>{escape(rules)}</pre>", sanitize=False)
            for remark in remarks:
                ui.label(remark).classes("note")
            with ui.element("div").classes("learn"):
                use = ui.button("Put it into the editor", icon="edit", on_click=lambda: self._use(text))
                use.props("no-caps dense outline")
                ui.button("Forget it", on_click=self.result.clear).props("no-caps dense flat")
