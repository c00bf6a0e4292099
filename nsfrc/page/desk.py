"""All that one client has on the page, and what it can do with it. Nothing here knows of widgets."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from nsfrc.errors import NsfrcError
from nsfrc.inference.labels import from_folders
from nsfrc.inference.rows import Row
from nsfrc.learning.results import Learnt
from nsfrc.learning.search import Progress
from nsfrc.page import link
from nsfrc.page.answers import Answers, Fact, answer
from nsfrc.page.begin import TEMPLATES, Start, plain, shipped_text, suiting
from nsfrc.page.learning import labelled_questions, learn, lesson
from nsfrc.page.pictures import FREE, Pictures
from nsfrc.page.reading import Reading, read_text
from nsfrc.page.seen import Eyes, Looked, Memory
from nsfrc.program import Program
from nsfrc.questions import Question

_NAME = re.compile(r"[\w-]{1,60}")


@dataclass(eq=False)
class Learning:
    """A search that runs. stop: whoever sets it gets what was found so far."""

    told: str = "looking for rules"
    stop: threading.Event = field(default_factory=threading.Event)

    def tell(self, target: str, progress: Progress) -> None:
        self.told = f"{target}: {progress.scored:,} clauses tried, up to {progress.variables} variables"


class Desk:
    """State of one client: a text, pictures, labels, the picture that is looked at, and what is imagined of it.

    `read` and `look` take a while and change nothing but the memory of what was seen, so that they may run in
    threads; their results are put in place by `hold` and `take`.
    """

    def __init__(self, begin: Start, eyes: Eyes) -> None:
        self.eyes, self.begin = eyes, begin
        self.text, self.path = begin.text, begin.path
        self.pictures, self.memory = Pictures(), Memory()
        self.labels: dict[str, dict[str, str]] = {}
        self.selected: str | None = None
        self.changes: dict[str, float] = {}
        self.reading: Reading | None = None
        self.answers: Answers | None = None
        self.looked: Looked | None = None
        self.perception = eyes.perception
        self.asked: str | None = None  # the question that was chosen, of several
        self.stale = False  # whether the text has errors, so that answers are those of the last program without any
        self.program: Program | None = None  # the last one without errors
        self.problem: str | None = None
        self.learnt: Learnt | None = None
        self.left_out, self.seeing = 0, ""
        if begin.images is not None:
            self.add_folder()
        for name in begin.samples:
            self.pictures.samples(name)

    @property
    def name(self) -> str:
        return self.path.stem

    def open(self, name: str) -> str:
        """The text of a shipped program or a template, which is now to be on the page, with figures that suit it."""
        self.text = TEMPLATES[name] if name in TEMPLATES else shipped_text(name)[0]
        self._call(name)
        if self.pictures.samples_only:
            self.clear()
            self.pictures.samples(suiting(name))
        return self.text

    def _call(self, name: str) -> None:
        """Call the program something else; its folder stays, whatever is asked for."""
        if _NAME.fullmatch(name):
            self.path = self.begin.path.parent / f"{name}.pl"

    def read(self, text: str) -> Reading:
        return read_text(text, self.path, self.perception)

    def look(self, reading: Reading) -> tuple[Looked | None, Answers | None, str | None]:
        """What is seen, the answers, and what is wrong; without the last no answers mean that nothing is asked."""
        assert reading.program is not None
        listing = self.pictures.listing()
        try:
            looked = self.eyes.look(reading.program, reading.path.parent, listing.items, self.memory, self.perception,
                                    self._seeing)
            if not reading.program.targets:
                return looked, None, None
            return looked, answer(looked, listing, self._labels(reading), reading.path), None
        except NsfrcError as error:
            return None, None, str(error)

    def _seeing(self, done: int, of: int) -> None:
        self.seeing = f"looking at pictures: {done} of {of}"

    def take(self, looked: Looked | None, answers: Answers | None, problem: str | None) -> None:
        """What `look` found is now what there is."""
        self.looked, self.answers, self.problem, self.seeing = looked, answers, problem, ""
        if self.selected not in self.pictures.items:
            self.selected, self.changes = next(iter(self.pictures.items), None), {}

    def hold(self, reading: Reading) -> bool:
        """What `read` found is now what there is; whether it makes a program to ask."""
        self.reading, self.stale = reading, reading.program is None
        self.program = reading.program or self.program
        return not self.stale

    def update(self, text: str | None = None) -> None:
        """Read the text and ask about the pictures, at once: for tests and for those without a loop of events."""
        self.text = self.text if text is None else text
        reading = self.read(self.text)
        if self.hold(reading):
            self.take(*self.look(reading))

    def see_with(self, perception: str | None) -> None:
        """Choose another perception, of those offered; None is the program's own."""
        if perception is None or perception in self.eyes.offered:
            self.perception = perception

    # Pictures and labels

    def add_folder(self) -> None:
        """The pictures of the folder that the command names."""
        if self.begin.images is not None:
            self.left_out = self.pictures.folder(self.begin.images)

    def clear(self) -> None:
        self.pictures.clear()
        self.memory.clear()
        self.labels.clear()
        self.changes.clear()
        self.answers, self.selected = None, None

    @property
    def questions(self) -> tuple[Question, ...]:
        """What labels can be about."""
        program = self.program
        return () if program is None or not (program.targets or program.source.learning) else \
            labelled_questions(program)

    @property
    def question(self) -> Question | None:
        """What labels are about; None where the text asks nothing."""
        questions = self.questions
        return next((one for one in questions if one.name == self.asked), questions[0] if questions else None)

    def label(self, name: str, answer_: str) -> None:
        """Click a label: it is there, or, if it was, no more."""
        question = self.question
        if question is None or name not in self.pictures.items or answer_ not in question.answers:
            return
        own = self.labels.setdefault(question.name, {})
        if own.get(name) == answer_:
            del own[name]
        else:
            own[name] = answer_

    def labelled(self) -> dict[str, str]:
        """The labels of the question, by picture: what was clicked, else what folders say."""
        question = self.question
        return {} if question is None else self._of_folder(question) | self.labels.get(question.name, {})

    def _of_folder(self, question: Question) -> dict[str, str]:
        listing = self.begin.images
        if listing is None or not listing.classes:
            return {}
        known = from_folders(listing.classes, [question])
        found = {item.name: known.of(item, question.name) for item in list(self.pictures.items.values())}
        return {name: label for name, label in found.items() if label is not None}

    def _labels(self, reading: Reading) -> dict[str, dict[str, str]]:
        assert reading.program is not None
        found = {one: self._of_folder(one) | self.labels.get(one.name, {}) for one in reading.program.questions}
        return {one.name: {name: label for name, label in own.items() if label in one.answers}
                for one, own in found.items()}

    # One picture

    def select(self, name: str) -> None:
        if name in self.pictures.items and name != self.selected:
            self.selected, self.changes = name, {}

    def imagine(self, atom: str, value: float) -> None:
        """Give a fact of the picture that is looked at another value."""
        self.changes[atom] = min(1.0, max(0.0, float(value)))

    def row(self) -> Row | None:
        """The row of the picture that is looked at, as imagined."""
        if self.answers is None or self.selected is None:
            return None
        return self.answers.imagine(self.selected, self.changes)

    def facts(self, row: Row, atoms: Sequence[str] = ()) -> list[Fact]:
        """Some facts of a row, or those that matter most for the question that labels are about, and what is imagined.
        """
        if self.answers is None or self.question is None:
            return []
        question = self.answers.question(self.question.name)
        if not atoms:
            most = [fact.atom for fact in self.answers.facts(row, question)]
            atoms = list(dict.fromkeys([*most, *self.changes]))
        return self.answers.facts(row, question, atoms) if atoms else []

    # Learning

    def learn(self, running: Learning, seconds: float | None = None) -> Learnt:
        """The program that the labels give; it is not put into the editor. Raises NsfrcError."""
        reading, looked = self.reading, self.looked
        if reading is None or reading.program is None:
            raise NsfrcError("mend the program first: what is to be learnt must be said without errors")
        if looked is None:
            raise NsfrcError(self.problem or "the pictures have not been looked at yet")
        question = self.question
        if question is None:
            raise NsfrcError("the program does not say what is to be learnt: add :- learn(kp(image)).")
        made = lesson(reading.text, reading.path, reading.program, question)
        self.learnt = learn(made, looked, self.labelled(), list(looked.known), running.tell, running.stop.is_set,
                            seconds)
        return self.learnt

    # Saving

    def saved_results(self, kind: str) -> bytes:
        """The rows as a file: csv or jsonl; html is the report. Raises NsfrcError where there are none."""
        if self.answers is None or not self.answers.rows or self.stale:
            raise NsfrcError("there are no answers to save: add pictures, and mend the program")
        with tempfile.TemporaryDirectory(prefix="nsfrc-play-") as folder:
            path = Path(folder) / f"{self.name}.{kind}"
            results = self.answers.results()
            if kind == "html":
                results.report(path)
            else:
                results.write(path)
            return path.read_bytes()

    def state(self) -> link.State:
        """What a link to this page says. Pictures that were dropped in are not in it."""
        return link.State(self.text, self.name, tuple(self.pictures.made),
                          {name: dict(one) for name, one in self.labels.items() if one}, self.selected,
                          dict(self.changes), self.perception)

    def reopen(self, found: link.State) -> None:
        """Put in place what a link says; names of sample figures that there are not are left out."""
        self.clear()
        self.text = plain(found.text)
        self._call(found.name)
        self.see_with(found.perception)
        self.add_folder()
        for which in found.samples:
            with suppress(NsfrcError):
                self.pictures.samples(which)
        self.labels = {question: dict(one) for question, one in found.labels.items()}
        there = self.pictures.items
        self.selected = found.selected if found.selected in there else next(iter(there), None)
        self.changes = dict(found.facts) if self.selected == found.selected else {}


def warm_up(begin: Start, eyes: Eyes) -> None:
    """Load perception and have kernels compiled, with figures of our own, so that the first answers come soon."""
    desk = Desk(replace(begin, images=None, samples=(FREE,)), eyes)
    desk.update()
    if (row := desk.row()) is not None:
        desk.facts(row)


def totals(desk: Desk) -> Mapping[str, int]:
    """How many pictures there are, how many have a label, and how many of these the program gets right."""
    rows = () if desk.answers is None else desk.answers.rows
    question = desk.question
    said = [row.answers[question.name] for row in rows if question is not None and question.name in row.answers]
    labelled = desk.labelled()
    return {"pictures": len(desk.pictures), "labelled": len([name for name in desk.pictures.items if name in labelled]),
            "right": sum(one.right is True for one in said), "wrong": sum(one.right is False for one in said)}
