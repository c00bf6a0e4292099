"""Rows for the pictures on the page, the facts that move a score, and what if one of them were different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.inference.known import Known
from nsfrc.inference.labels import Labels
from nsfrc.inference.notes import Notes
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.report_objects import Objects
from nsfrc.inference.results import Results
from nsfrc.inference.rows import Row
from nsfrc.inference.session import Session, Wanted, open_session
from nsfrc.page.pictures import Held
from nsfrc.page.seen import Looked
from nsfrc.pipelines import Pipeline, pipeline
from nsfrc.prediction import Prediction
from nsfrc.program import Program
from nsfrc.questions import Question
from nsfrc.reasons import Reason
from nsfrc.vocabulary import find

FACTS = 12  # that are shown as sliders
STILL = 1e-6  # a fact that moves a score by less does not move it


@dataclass(frozen=True)
class Fact:
    """A ground atom that perception values. pull: how much the score grows with it, per unit. named: by the reason."""

    atom: str
    value: float
    pull: float
    named: bool = False


@dataclass(frozen=True, eq=False)
class Answers:
    """A program's rows for pictures whose objects are known. remarks: what to know before one trusts them."""

    session: Session
    listing: Held
    rows: tuple[Row, ...] = field(repr=False)
    remarks: tuple[str, ...] = ()

    @property
    def pipe(self) -> Pipeline:
        return self.session.pipe

    @property
    def program(self) -> Program:
        return self.pipe.program

    @cached_property
    def objects(self) -> Objects:
        return Objects(self.program, tuple(self.pipe.perception.dimensions), self.pipe.perception.places)

    @cached_property
    def by_name(self) -> dict[str, Row]:
        return {row.file: row for row in self.rows}

    @property
    def _predictor(self) -> Predictor:
        return Predictor(self.pipe, self.session.asked(reasons=True, pictures=True), self.session.known)

    def imagine(self, name: str, changes: Mapping[str, float]) -> Row | None:
        """The row of a picture where some facts have other values; None where the picture has no answer."""
        row = self.by_name.get(name)
        if row is None or row.V0 is None or row.objects is None:
            return None
        if not (moved := self._moved(row.V0, changes)):
            return row
        V0 = torch.from_numpy(row.V0.copy())[None]
        for place, value in moved.items():
            V0[0, place] = value
        with torch.no_grad():
            found = Prediction(torch.from_numpy(row.objects)[None], V0, self.pipe.reasoner(V0), self.pipe.all_atoms(V0),
                               torch.tensor([row.further]), self.pipe).cpu()
        predictor = self._predictor
        item = next(item for item in self.listing if item.name == name)
        return predictor.answered(predictor.decode(item), None, found, 0)

    def _moved(self, V0: np.ndarray, changes: Mapping[str, float]) -> dict[int, float]:
        """Values by their places: what an object is more of, it is less of otherwise, unless that is changed too."""
        wanted = {same: min(1.0, max(0.0, value)) for atom, value in changes.items()
                  for place in self.program.positions(atom) if self.program.ground.neural[place]
                  for same in self._alike(place)}
        moved = dict(wanted)
        for row in {row for place in wanted if (row := self._attribute(place))}:
            others = [place for place in row if place not in wanted]
            left, there = max(0.0, 1 - sum(wanted.get(place, 0.0) for place in row)), float(V0[others].sum())
            if there > left:
                moved |= {place: float(V0[place]) * left / there for place in others}
        return moved

    def _attribute(self, place: int) -> tuple[int, ...]:
        """All values of the attribute of an object that an atom such as color(obj1,red) gives one of; () for others."""
        herbrand = self.program.ground.herbrand
        predicate = herbrand.predicate_of(place)
        roles = [herbrand.type_by_name[name].role for name in predicate.types]
        if predicate.role != ir.NEURAL or roles != [ir.OBJECT, ir.ATTRIBUTE]:
            return ()
        table = herbrand.tables[predicate.key]
        return tuple(next(row for row in table.tolist() if place in row))

    def _alike(self, place: int) -> tuple[int, ...]:
        """The atoms that say the same as one: closeby(obj1,obj2) and closeby(obj2,obj1). The first stands for all."""
        herbrand = self.program.ground.herbrand
        predicate = herbrand.predicate_of(place)
        known = find(predicate.name, len(predicate.types))
        if predicate.role != ir.NEURAL or known is None or not known.symmetric:
            return (place,)
        first, _ = herbrand.offsets[predicate.key]
        arguments = np.sort(herbrand.arguments(predicate.key), axis=1)
        return tuple((first + np.flatnonzero((arguments == arguments[place - first]).all(axis=1))).tolist())

    def question(self, name: str | None = None) -> Question:
        """A question by its name; the first by default."""
        asked = self.session.questions
        return next((one for one in asked if one.name == name), asked[0])

    def facts(self, row: Row, question: Question, atoms: Sequence[str] = ()) -> list[Fact]:
        """Some facts of a row; without their names those that move a score most, then those that its reason rests on.
        """
        if row.V0 is None or not row.scores:
            return []
        V0 = torch.from_numpy(row.V0.copy())[None].requires_grad_()
        best = question.first + question.atoms.index(question.best(row.scores))
        (pull,) = torch.autograd.grad(self.pipe.reasoner(V0)[0, best], V0)
        pulls = np.where(self.program.ground.neural, pull[0].numpy(), 0.0)
        named = [place for reason in row.answers[question.name].reasons for place in self._leaves(reason)]
        strong = np.argsort(-np.abs(pulls), kind="stable")
        chosen = [*(int(place) for place in strong[: 4 * FACTS] if abs(pulls[place]) > STILL), *named]
        if atoms:
            chosen = [place for atom in atoms for place in self.program.positions(atom)[:1]]
        groups = dict.fromkeys(self._alike(place) for place in chosen if self.program.ground.neural[place])
        return [Fact(self.program.atoms[group[0]], float(row.V0[group[0]]), float(pulls[list(group)].sum()),
                     bool(set(group) & set(named))) for group in list(groups)[: max(FACTS, len(atoms))]]

    def _leaves(self, reason: Reason) -> list[int]:
        """Where the inputs stand that a reason rests on."""
        below = [place for part in reason.body for place in self._leaves(part)]
        own = self.program.positions(reason.atom)[:1]
        return [place for place in (*own, *below) if self.program.ground.neural[place]]

    @cached_property
    def inputs(self) -> list[str]:
        """All atoms that perception values."""
        return [self.program.atoms[place] for place in np.flatnonzero(self.program.ground.neural).tolist()]

    def results(self) -> Results:
        """The same rows as `nsfrc.infer` gives them: they write files and reports."""
        return Results(self.session, self.listing)


def answer(looked: Looked, listing: Held, labels: Mapping[str, Mapping[str, str]], beside: Path) -> Answers:
    """Ask a program about pictures. labels: question → picture → the right answer. Raises NsfrcError."""
    pipe = pipeline(looked.program, looked.perception, beside=beside)
    session = open_session(Wanted((), pipe), listing)
    known: Mapping[str, Known] = looked.known
    session = replace(session, known=known, labels=Labels(of_file=labels), perception=looked.name)
    made = Answers(session, listing, ())
    predictor = made._predictor
    rows = tuple(predictor([predictor.decode(item) for item in listing])) if len(listing) else ()
    notes = Notes(session)
    notes.rows(rows)
    return replace(made, rows=rows, remarks=(*notes.remarks(), *([] if looked.remark is None else [looked.remark])))
