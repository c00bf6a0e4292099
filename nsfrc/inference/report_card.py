"""One image as a card of the report: the picture with its boxes or dots, the answer, and the reason for it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from nsfrc.explain import explain, objects_of
from nsfrc.inference.folders import NONE, TRUE
from nsfrc.inference.measures import equals
from nsfrc.inference.report_objects import Box, Objects, Spot
from nsfrc.inference.report_reason import WEAK, reason_html
from nsfrc.inference.report_thumbnail import thumbnail

if TYPE_CHECKING:
    from nsfrc.inference.results import Row

ERROR, WRONG, RIGHT, OPEN = "error", "wrong", "right", "open"  # the state of a card, in the order of the page
STATES = (ERROR, WRONG, OPEN, RIGHT)
MARKS = {ERROR: "✗ failed", WRONG: "✗ wrong", RIGHT: "✓ right"}
TINTS = 10  # as many as the style sheet has
KEPT = "Answered in an earlier run, whose objects and reasons were not kept."
DOT, NEAR = 3.5, 10  # radii in pixels of the dot of an object without a box, and of where it can be pointed at
TOP = 0.07  # a box nearer to the top than this has its number below it


def state(row: Row) -> str:
    """Failed, wrong or right; open where there is no label to tell."""
    if row.error is not None:
        return ERROR
    return OPEN if row.right is None else RIGHT if row.right else WRONG


def card(row: Row, objects: Objects, steps: int | None = None) -> str:
    """The <article> of a row. steps: how many V_T was reasoned through, by default as many as the program says."""
    if row.error is not None or not row.scores:
        return f'{_opening(row, None)}<p class="message">{escape(row.error or "no answer")}</p></article>'
    targets = objects.program.targets
    best = targets.index(row.answer) if row.answer in targets else row.scores.index(max(row.scores))
    start = _opening(row, row.scores[best])
    if row.V0 is None or row.V_T is None:
        return f'{start}<p class="message">{KEPT}</p></article>'
    reasons, part = _reasons(row, row.V_T, best, objects, steps)
    why = f'<div class="why">{_scores(row, best, objects)}{reasons}</div>'
    return f"{start}{_side(row, row.V0, objects, part)}{why}</article>"


def _reasons(
    row: Row, valuation: np.ndarray, best: int, objects: Objects, steps: int | None
) -> tuple[str, tuple[int, ...]]:
    """The reason for the best target, and for that of the label where this is another; the objects in the first."""
    targets = objects.program.targets
    asked = [targets[best]]
    if row.label in targets and row.label != targets[best]:
        asked.append(row.label)
    found = [explain(objects.program, valuation, target, row.V0, steps) for target in asked]
    # The highest of several values is an answer even where something is missing.
    holds = row.answer == TRUE if len(targets) == 1 else row.answer != NONE and all(
        part.value >= WEAK for part in found[0].body)
    text = "".join(reason_html(one, objects, holds=i == 0 and holds) for i, one in enumerate(found))
    return text, objects.numbers(objects_of(found[0]))


def _opening(row: Row, score: float | None) -> str:
    """The start tag, with what the page sorts and filters by, and the line on top of the card."""
    entries = {"state": state(row), "file": row.file, "answer": row.answer, "label": row.label}
    data = "".join(f' data-{key}="{escape(value)}"' for key, value in entries.items() if value is not None)
    if score is not None:
        data += f' data-score="{score:.6f}"'
    parts = [("score", None if score is None else f"{score:.2f}"), ("answer", row.answer), ("label", row.label)]
    shown = "".join(f"<span>{name} <b>{escape(value)}</b></span>" for name, value in parts if value is not None)
    mark = MARKS.get(state(row))
    shown += f'<span class="mark">{mark}</span>' if mark else ""
    # The line ends here and not between cards: browsers take seconds to reorder thousands with blanks between them.
    return f'<article class="card {state(row)}"{data}>\n<header><h3>{escape(row.file)}</h3>{shown}</header>'


def _scores(row: Row, best: int, objects: Objects) -> str:
    """All scores, where there are several targets, and which are as high as the answer's."""
    if len(row.scores) < 2:
        return ""
    items = (
        f'<li{" class=top" if i == best else ""}><code>{escape(target)}</code> {score:.2f}</li>'
        for i, (target, score) in enumerate(zip(objects.program.targets, row.scores, strict=True))
    )
    same = [f"<code>{escape(objects.program.targets[i])}</code>" for i in equals(row.scores) if i != best]
    note = f'<p class="equal">{", ".join(same)} {"is" if len(same) == 1 else "are"} as high, ' \
           f"to four digits.</p>" if same else ""
    return f'<ul class="scores">{"".join(items)}</ul>{note}'


def _side(row: Row, valuation: np.ndarray, objects: Objects, part: tuple[int, ...]) -> str:
    """The picture with its boxes or dots, and below it what each object looks like."""
    looks = objects.describe(valuation)
    boxes = objects.boxes(row.objects, row.picture)
    spots = objects.spots(row.objects, row.picture, part)
    picture = ""
    if row.picture is not None:
        address, width, height = thumbnail(row.path, row.picture)
        picture = (
            f'<figure class="picture"><img src="{address}" width="{width}" height="{height}" alt="{escape(row.file)}" '
            f'loading="lazy" decoding="async">{_overlay([*map(_shape, boxes, spots)], looks, part)}</figure>'
        )
    listed = objects.listed(row.objects, boxes, looks, part)
    return f'<div class="side">{picture}{_keys(objects, listed, part)}</div>'


def _overlay(shapes: list[str], looks: list[str], part: tuple[int, ...]) -> str:
    drawn = [(number, shape) for number, shape in enumerate(shapes, 1) if shape]
    # Those that take part are drawn last, on top of the others.
    drawn.sort(key=lambda one: one[0] in part)
    groups = (
        _drawn(number, shape, looks[number - 1], number in part, stop=i == 0)
        for i, (number, shape) in enumerate(drawn)
    )
    return f'<svg role="group" aria-label="objects">{"".join(groups)}</svg>'


def _drawn(number: int, shape: str, look: str, takes_part: bool, stop: bool) -> str:
    """An object in the picture: its shape, and its number where the shape has a place for it."""
    label = f"object {number}" + (f": {look}" if look else "")
    return (
        f'<g class="object t{number % TINTS}{"" if takes_part else " aside"}" data-o="{number}" role="img" '
        f'aria-label="{escape(label)}" tabindex="{0 if stop else -1}">{shape}>{number}</text></g>'
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
