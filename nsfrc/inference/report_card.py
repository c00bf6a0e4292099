"""One image as a card of the report: the picture with its boxes or dots, the answer, and the reason for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from nsfrc.explain import objects_of
from nsfrc.inference.images import SMALL
from nsfrc.inference.measures import equals
from nsfrc.inference.report_objects import Box, Objects, Spot
from nsfrc.inference.report_reason import WEAK, reason_html
from nsfrc.questions import NONE, TRUE, Question

if TYPE_CHECKING:
    from nsfrc.inference.rows import Answered, Row

ERROR, WRONG, RIGHT, OPEN = "error", "wrong", "right", "open"  # the state of a card, in the order of the page
STATES = (ERROR, WRONG, OPEN, RIGHT)
MARKS = {ERROR: "✗ failed", WRONG: "✗ wrong", RIGHT: "✓ right"}
TINTS = 10  # as many as the style sheet has
KEPT = "Answered in an earlier run, whose objects and reasons were not kept."
DOT, NEAR = 3.5, 10  # radii in pixels of the dot of an object without a box, and of where it can be pointed at
TOP = 0.07  # a box nearer to the top than this has its number below it


def state(row: Row) -> str:
    """Failed, wrong, where one of the answers is, or right; open where there is no label to tell."""
    if row.error is not None:
        return ERROR
    return OPEN if row.right is None else RIGHT if row.right else WRONG


def card(row: Row, objects: Objects, folder: Path | None = None) -> str:
    """The <article> of a row. folder: that of the page, from which it leads to the file of the image."""
    asked = objects.program.questions
    start = _opening(row, asked, None if folder is None else address(row.path, folder))
    if row.error is not None or not row.scores:
        return f'{start}<p class="message">{escape(row.error or "no answer")}</p></article>'
    if row.V0 is None or not all(row.answers[one.name].reasons for one in asked):
        return f'{start}<p class="message">{KEPT}</p></article>'
    part = takes_part(row, objects)
    left = f'<p class="message">{_left_out(row.further)}</p>' if row.further else ""
    why = "".join(_question(row, one, objects, alone=len(asked) == 1) for one in asked)
    return f'{start}{left}{_side(row, row.V0, objects, part)}<div class="why">{why}</div></article>'


def _left_out(count: int) -> str:
    are = "1 more object was" if count == 1 else f"{count} more objects were"
    return f"{are} seen than the program speaks of, and left out: the answer may be wrong."


def _question(row: Row, question: Question, objects: Objects, alone: bool) -> str:
    """The scores of classes and the reasons; where there are several questions below a line that has the answer."""
    said = row.answers[question.name]
    shown = _scores(row, question) + _reasons(said, question, objects)
    if alone:
        return shown
    mark = "" if said.right is None else f'<span class="mark">{MARKS[RIGHT if said.right else WRONG]}</span>'
    kind = "question wrong" if said.right is False else "question"
    return (f'<section class="{kind}"><h4><code>{escape(question.name)}</code>{_told(row, question)}{mark}</h4>'
            f"{shown}</section>")


def _best(row: Row, question: Question) -> int:
    """The atom of a question that the answer goes by, or would where the answer is that none of them holds."""
    said, values = row.answers[question.name], question.values(row.scores)
    named = said.reasons[0].atom if said.reasons else said.answer
    return question.atoms.index(named) if named in question.atoms else values.index(max(values))


def _reasons(said: Answered, question: Question, objects: Objects) -> str:
    """The reason for the target, or the best class, and for that of the label where this is another."""
    # The highest of several values is an answer even where something is missing.
    holds = said.answer == TRUE if not question.of_classes else said.answer != NONE and all(
        part.value >= WEAK for part in said.reasons[0].body)
    return "".join(reason_html(one, objects, holds=i == 0 and holds) for i, one in enumerate(said.reasons))


def suffix(place: int, questions: Sequence[Question]) -> str:
    """What the entries of a card that the page sorts and filters by end in, for a question by its place."""
    return "" if len(questions) == 1 else f"-{place}"


def address(path: Path, folder: Path) -> str | None:
    """Where a page in a folder finds a file; None where there is none, as for images in memory and frames."""
    if not path.is_file():
        return None
    try:
        below = os.path.relpath(path.resolve(), folder.resolve())
    except ValueError:  # it is on another drive
        return path.resolve().as_uri()
    # A colon is quoted too, so that no name of a file is taken for another kind of address.
    return quote(os.fsencode(below.replace(os.sep, "/")), safe="/")


def _opening(row: Row, questions: Sequence[Question], original: str | None) -> str:
    """The start tag, with what the page sorts and filters by, and the line on top of the card.

    original: the address of the file, which shows the picture in its full size.
    """
    entries: dict[str, str | None] = {"state": state(row), "file": row.file}
    for place, one in enumerate(questions):
        said, end = row.answers[one.name], suffix(place, questions)
        entries |= {f"answer{end}": said.answer, f"label{end}": said.label}
        if row.scores:
            entries[f"score{end}"] = f"{question_score(row, one):.6f}"
        if end and said.right is not None:
            entries[f"state{end}"] = RIGHT if said.right else WRONG
    data = "".join(f' data-{key}="{escape(value)}"' for key, value in entries.items() if value is not None)
    shown = _told(row, questions[0]) if len(questions) == 1 else ""
    mark = MARKS.get(state(row))
    shown += f'<span class="mark">{mark}</span>' if mark else ""
    # The line ends here and not between cards: browsers take seconds to reorder thousands with blanks between them.
    name = escape(row.file) if original is None else (
        f'<a href="{escape(original)}" target="_blank" rel="noopener">{escape(row.file)}</a>')
    return f'<article class="card {state(row)}"{data}>\n<header><h3>{name}</h3>{shown}</header>'


def question_score(row: Row, question: Question) -> float:
    """The score of the target, or of the best class."""
    return question.values(row.scores)[_best(row, question)]


def _told(row: Row, question: Question) -> str:
    """Score, answer and label."""
    said = row.answers[question.name]
    score = f"{question_score(row, question):.2f}" if row.scores else None
    parts = [("score", score), ("answer", said.answer), ("label", said.label)]
    return "".join(f"<span>{name} <b>{escape(value)}</b></span>" for name, value in parts if value is not None)


def _scores(row: Row, question: Question) -> str:
    """The scores of all classes, and which are as high as the answer's."""
    if not question.of_classes:
        return ""
    best, values = _best(row, question), question.values(row.scores)
    items = (
        f'<li{" class=top" if i == best else ""}><code>{escape(atom)}</code> {score:.2f}</li>'
        for i, (atom, score) in enumerate(zip(question.atoms, values, strict=True))
    )
    told = row.answers[question.name].answer != NONE
    same = [f"<code>{escape(question.atoms[i])}</code>" for i in equals(values) if i != best and told]
    note = f'<p class="equal">{", ".join(same)} {"is" if len(same) == 1 else "are"} as high, ' \
           f"to four digits.</p>" if same else ""
    return f'<ul class="scores">{"".join(items)}</ul>{note}'


def takes_part(row: Row, objects: Objects) -> tuple[int, ...]:
    """The numbers of the objects that the first reason of a question names."""
    reasons = [said.reasons[0] for said in row.answers.values() if said.reasons]
    return objects.numbers(dict.fromkeys(name for reason in reasons for name in objects_of(reason)))


def outlines(row: Row, valuation: np.ndarray, objects: Objects, part: tuple[int, ...]) -> str:
    """The boxes or dots of the objects, as what lies over the picture."""
    boxes = objects.boxes(row.objects, row.thumbnail)
    spots = objects.spots(row.objects, row.thumbnail, part)
    return _overlay([*map(_shape, boxes, spots)], objects.describe(valuation), part, objects.named)


def _side(row: Row, valuation: np.ndarray, objects: Objects, part: tuple[int, ...]) -> str:
    """The picture with its boxes or dots, and below it what each object looks like."""
    boxes = objects.boxes(row.objects, row.thumbnail)
    picture = ""
    if row.thumbnail is not None:
        shown = row.thumbnail
        scale = min(1.0, SMALL / max(shown.width, shown.height))  # a large photograph has more pixels to be enlarged
        size = f'width="{max(1, round(shown.width * scale))}" height="{max(1, round(shown.height * scale))}"'
        picture = (
            f'<figure class="picture"><img src="{shown.address}" {size} '
            f'alt="{escape(row.file)}" loading="lazy" decoding="async">'
            f"{outlines(row, valuation, objects, part)}</figure>"
        )
    listed = objects.listed(row.objects, boxes, objects.describe(valuation), part)
    return f'<div class="side">{picture}{_keys(objects, listed, part)}</div>'


def _overlay(shapes: list[str], looks: list[str], part: tuple[int, ...], named: bool = False) -> str:
    drawn = [(number, shape) for number, shape in enumerate(shapes, 1) if shape]
    # Those that take part are drawn last, on top of the others.
    drawn.sort(key=lambda one: one[0] in part)
    groups = (
        _drawn(number, shape, looks[number - 1], number in part, stop=i == 0, named=named)
        for i, (number, shape) in enumerate(drawn)
    )
    return f'<svg role="group" aria-label="objects">{"".join(groups)}</svg>'


def _drawn(number: int, shape: str, look: str, takes_part: bool, stop: bool, named: bool = False) -> str:
    """An object in the picture: its shape, and its number where the shape has a place for it; named: with its class."""
    label = f"object {number}" + (f": {look}" if look else "")
    said = f"{number} {escape(look)}" if named and look else str(number)
    return (
        f'<g class="object t{number % TINTS}{"" if takes_part else " aside"}" data-o="{number}" role="img" '
        f'aria-label="{escape(label)}" tabindex="{0 if stop else -1}">{shape}>{said}</text></g>'
    )


def _shape(box: Box | None, spot: Spot | None) -> str:
    """A box or a dot, and the start of its text; percentages are fractions of the image at whatever size."""
    if box is not None:
        x1, y1, x2, y2 = (100 * value for value in box)
        place = f'y="{y1:.2f}%" dy="-3"' if y1 > 100 * TOP else f'y="{y2:.2f}%" dy="12"'
        size = f'width="{x2 - x1:.2f}%" height="{y2 - y1:.2f}%"'
        return f'<rect x="{x1:.2f}%" y="{y1:.2f}%" {size}/><text x="{x1:.2f}%" {place}'
    if spot is not None:
        x, y = (f"{100 * value:.2f}%" for value in spot)
        # The wider circle is there to be pointed at.
        return (f'<circle class="near" cx="{x}" cy="{y}" r="{NEAR}"/><circle class="spot" cx="{x}" cy="{y}" r="{DOT}"/>'
                f'<text x="{x}" y="{y}" dx="5" dy="-4"')
    return ""


def _keys(objects: Objects, listed: list[str | None], part: tuple[int, ...]) -> str:
    """What is said of each object; those of which nothing is said are one entry at the end."""
    items = []
    for number, (name, said) in enumerate(zip(objects.names, listed, strict=True), 1):
        if said is not None:
            own = "" if name == f"obj{number}" else f"{name}: "
            items.append(_key(str(number), str(number), own + said, number in part, f" t{number % TINTS}"))
    if empty := [number for number, said in enumerate(listed, 1) if said is None]:
        told = f"{len(empty)} slot{'s' * (len(empty) > 1)} empty"
        items.append(_key(" ".join(map(str, empty)), "–", told, takes_part=False, tint=""))
    return f'<ul class="keys">{"".join(items)}</ul>' if items else ""


def _key(numbers: str, sign: str, text: str, takes_part: bool, tint: str) -> str:
    return (
        f'<li class="key{tint}{"" if takes_part else " aside"}" data-o="{numbers}" tabindex="-1">'
        f"<i>{sign}</i><span>{escape(text)}</span></li>"
    )
