"""A reason as HTML: a sentence, the rule, and its body atoms with their values, derived ones to be folded out."""

from __future__ import annotations

from html import escape

from nsfrc.inference.report_objects import Objects
from nsfrc.reasons import Reason, found, objects_of

WEAK = 0.5  # an atom below this is what is missing
NAMED = 3  # this many missing atoms are named in the sentence


def reason_html(reason: Reason, objects: Objects, holds: bool) -> str:
    """`kp(img) 0.98 because obj1, obj3` and what it rests on; holds: whether the atom is taken to be true."""
    if not reason.body:
        return f'<section class="reason"><p class="because">{_head(reason)}: no rule derives it.</p></section>'
    rule = ""
    if reason.clause is not None:
        rule = f'<p class="rule">by <a href="#rule-{reason.clause + 1}">rule {reason.clause + 1}</a></p>'
    return (
        f'<section class="reason"><p class="because">{_sentence(reason, objects, holds)}</p>'
        f"{rule}{_atoms(reason.body, objects)}</section>"
    )


def _head(reason: Reason) -> str:
    return f'<code>{escape(reason.atom)}</code> <b class="number">{reason.value:.2f}</b>'


def _sentence(reason: Reason, objects: Objects, holds: bool) -> str:
    names = objects_of(reason)
    numbered = zip(objects.numbers(names), names, strict=True)
    who = ", ".join(f'<span data-o="{number}">{escape(name)}</span>' for number, name in numbered)
    if holds:
        return f"{_head(reason)} because {who}" if who else _head(reason)
    missing = [part for part in reason.body if part.value < WEAK]
    text = f"{_head(reason)}: the nearest is {who}" if who else f"{_head(reason)}"
    if missing:
        named = ", ".join(f"<code>{escape(part.atom)}</code>" for part in missing[:NAMED])
        rest = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        text += f"{';' if who else ':'} missing {named}{rest}"
    return text


def _atoms(reasons: tuple[Reason, ...], objects: Objects) -> str:
    # Tab stops at the first leaf of a list only; the arrow keys go on from there.
    first = next((i for i, one in enumerate(reasons) if not one.body), -1)
    items = (_atom(one, objects, stop=i == first) for i, one in enumerate(reasons))
    return f'<ul class="atoms">{"".join(items)}</ul>'


def _atom(reason: Reason, objects: Objects, stop: bool) -> str:
    # An atom such as has_red_triple(img) names no objects itself: it stands for those below it.
    numbers = objects.numbers(reason.objects or objects_of(reason))
    weak = reason.value < WEAK
    marks = f'class="atom{" weak" if weak else ""}" data-o="{" ".join(map(str, numbers))}"'
    lack = f'<span class="lack">{_lack(reason)}</span>' if weak else ""
    count = f': <span class="count">{escape(found(reason))}</span>' if reason.solutions else ""
    text = f'<span class="text">{escape(reason.atom)}{count}</span>{lack}<span class="values">{reason.value:.2f}</span>'
    if not reason.body:
        return f'<li><div {marks} tabindex="{0 if stop else -1}">{text}</div></li>'
    below = _atoms(reason.body, objects)
    return f"<li><details{' open' if weak else ''}><summary {marks}>{text}</summary>{below}</details></li>"


def _lack(reason: Reason) -> str:
    """A negation is not absent but broken, by what stands below it."""
    return "broken" if reason.body and reason.clause is None and not reason.solutions else "missing"
