"""What stands above and below the cards of the report: the run in numbers, the rules, how good the answers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from nsfrc import __version__
from nsfrc.compiler.goal_text import GoalText
from nsfrc.inference.report_card import ERROR, WRONG, suffix
from nsfrc.program import Program
from nsfrc.questions import Question, short

if TYPE_CHECKING:
    from nsfrc.inference.measures import Measured, Measures

FEW = 3  # classes, from which on the cells of the confusion matrix are narrow
SHOWN = 12  # more rules than this are folded away, and more answers are not to be chosen from
ANSWER = "answer "  # before an answer as a filter, which so is none of the states
PLOT, LEFT, FOOT = 150, 26, 24  # the reliability diagram: side of the frame, room for its labels


@dataclass(frozen=True)
class Summary:
    """header: what to say about the run; counts: cards by state; stopped: whether images are missing at the end.

    thresholds: those of targets. answers: cards by question and answer; wrong: those with a wrong one, by question.
    remarks: warnings about the images.
    """

    program: Program
    header: dict[str, str]
    counts: dict[str, int]
    thresholds: Mapping[str, float]
    measures: Measured | None
    stopped: bool
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    wrong: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def answered(self, question: Question) -> dict[str, int]:
        """Both answers of a target with their counts, or those of classes that were given."""
        given = self.answers.get(question.name, {})
        return {name: given.get(name, 0) for name in question.answers if given.get(name) or not question.of_classes}

    def measures_of(self, question: Question) -> Measures | None:
        """Those of a question, where some labels are known."""
        found = None if self.measures is None else self.measures.by_question[question.name]
        return found if found is not None and found.labelled else None

    @property
    def labelled(self) -> bool:
        return self.measures is not None and self.measures.labelled > 0


def opening(summary: Summary, style: str, policy: str) -> str:
    """The page up to its first card."""
    name = escape(summary.program.name)
    asked = summary.program.questions
    panels = _numbers(summary) + _questions(summary) + _rules(summary.program)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{name}: report</title>
<style>{style}</style>
</head>
<body>
<h1>{name}</h1>
<p class="lead">{_asked(asked)} Each image with its objects, the answer and the reason.</p>
{_stopped(summary)}{_remarks(summary)}<div class="summary">{panels}</div>
{_controls(summary)}
<main class="cards" id="cards">
"""


def ending(script: str) -> str:
    """The page from its last card on."""
    return f"""</main>
<p class="nothing" id="nothing" hidden>No image matches.</p>
<footer>Solid boxes and dots take part in the reason, dashed and hollow ones do not. Point at an atom to see its
objects, or at an object to see its atoms; with the keyboard, Tab and the arrow keys. Written by nsfrc
{escape(__version__)}.</footer>
<script>{script}</script>
</body>
</html>
"""


def _asked(questions: Sequence[Question]) -> str:
    """The questions in words."""
    own = [one.name for one in questions if not one.of_classes]
    parts = [f"{'Is' if len(own) == 1 else 'Are'} {_listed(own, 'and')} true?"] if own else []
    return " ".join([*parts, *(f"Which is it, {_listed(one.atoms, 'or')}?" for one in questions if one.of_classes)])


def _listed(names: Sequence[str], last: str) -> str:
    codes = [f"<code>{escape(name)}</code>" for name in names[:SHOWN]]
    if len(names) > SHOWN:
        codes.append(f"{len(names) - SHOWN} more")
    return f" {last} ".join([", ".join(codes[:-1]), codes[-1]] if len(codes) > 1 else codes)


def _stopped(summary: Summary) -> str:
    if not summary.stopped:
        return ""
    seen = sum(summary.counts.values())
    return f'<p class="stopped">Stopped before the end: this page shows the first {_images(seen)}.</p>\n'


def _remarks(summary: Summary) -> str:
    return "".join(f'<p class="remark">Warning: {escape(text)}.</p>\n' for text in summary.remarks)


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"


def _numbers(summary: Summary) -> str:
    counts, asked = summary.counts, summary.program.questions
    figures = {"images": f"{sum(counts.values()):,}"}
    if len(asked) == 1:
        figures |= _figures(summary, asked[0])
    elif summary.labelled:
        figures["with a wrong answer"] = f"{counts[WRONG]:,}"
    figures["failed"] = f"{counts[ERROR]:,}"
    settings = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in summary.header.items())
    kind = "panel" if len(asked) == 1 else "panel rest"
    return f'<section class="{kind}">{_shown(figures)}<dl class="settings">{settings}</dl></section>'


def _figures(summary: Summary, question: Question) -> dict[str, str]:
    """How good the answers to a question are, or what they are."""
    if (measures := summary.measures_of(question)) is not None:
        return {"accuracy": f"{measures.accuracy or 0.0:.2%}", "wrong": f"{summary.wrong.get(question.name, 0):,}"}
    answered = summary.answered(question)
    if len(answered) > FEW:
        return {}
    return {name: f"{n:,}" for name, n in zip(short(tuple(answered)), answered.values(), strict=True)}


def _shown(figures: Mapping[str, str]) -> str:
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in figures.items())
    return f'<dl class="figures">{shown}</dl>'


def _questions(summary: Summary) -> str:
    """The panels of every question; those of many are folded away."""
    asked = summary.program.questions
    panels = ""
    for one in asked:
        panels += _heading(summary, one) if len(asked) > 1 else ""
        if (measures := summary.measures_of(one)) is not None:
            panels += _confusion(measures) + _calibration(measures, summary.thresholds.get(one.name))
    if len(asked) <= SHOWN:
        return panels
    return (f'<details class="rest"><summary>{len(asked)} questions</summary><div class="summary">{panels}</div>'
            f"</details>")


def _heading(summary: Summary, question: Question) -> str:
    """What stands before the panels of one question of several."""
    threshold = summary.thresholds.get(question.name) or 0.0
    from_on = f'<p class="note">from {threshold:g} on</p>' if threshold else ""
    first = " first" if summary.measures_of(question) is not None else ""
    return (f'<section class="panel{first}"><h2><code>{escape(question.name)}</code></h2>'
            f"{_shown(_figures(summary, question))}{from_on}</section>")


def _rules(program: Program) -> str:
    inner = GoalText(program.source).inner  # what is negated or counted stands in the rules that do so
    rules = [(i, text) for i, (text, clause) in enumerate(zip(program.clauses, program.source.clauses, strict=True), 1)
             if clause.head.key not in inner]
    items = "".join(f'<li id="rule-{i}" value="{i}"><code>{escape(text)}</code></li>' for i, text in rules)
    listed = f'<ol class="rules">{items}</ol>'
    if len(rules) > SHOWN:
        listed = f"<details><summary>{len(rules)} rules</summary>{listed}</details>"
    return f'<section class="panel rest"><h2>Rules</h2>{listed}</section>'


def _confusion(measures: Measures) -> str:
    names = short(measures.classes)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = []
    for i, (name, counts) in enumerate(zip(names, measures.confusion.tolist(), strict=True)):
        cells = "".join(
            f'<td{" class=agree" if i == j else " class=differ" if n else ""}>{n:,}</td>' for j, n in enumerate(counts)
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    kind = "confusion many" if len(names) > FEW else "confusion"
    return (
        f'<section class="panel"><h2>Confusion</h2><div class="scroll"><table class="{kind}">'
        f'<thead><tr><td class="corner"></td>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="note">Rows are labels, columns answers. {measures.right:,} of {_images(measures.labelled)} with a '
        f"label are right.</p></section>"
    )


def _calibration(measures: Measures, threshold: float | None) -> str:
    threshold = threshold if measures.one else None
    what = "that are true" if measures.one else "that are right"
    upright = "" if threshold is None else ", the upright one the threshold"
    return (
        f'<section class="panel"><h2>Calibration</h2>{_diagram(measures, threshold)}'
        f'<p class="note">The share of images {what}, by score. The dashed line is perfect calibration{upright}. '
        f"Expected calibration error {measures.calibration_error or 0.0:.4f}.{_best(measures)}</p></section>"
    )


def _best(measures: Measures) -> str:
    text = measures.best_text()
    return f" {escape(text[0].upper() + text[1:])}." if text else ""


def _diagram(measures: Measures, threshold: float | None) -> str:
    """A reliability diagram: a bar for each bin that has images, a dot at its mean score and share."""
    marks = []
    for one in measures.reliability():
        if not one.count:
            continue
        x, width, high = LEFT + one.low * PLOT, (one.high - one.low) * PLOT, one.share * PLOT
        told = f"{_images(one.count)} with scores {one.low:.1f} to {one.high:.1f}"
        marks.append(
            f"<g><title>{told}: mean score {one.score:.3f}, share {one.share:.3f}</title>"
            f'<rect class="bar" x="{x:.1f}" y="{PLOT - high:.1f}" width="{width:.1f}" height="{high:.1f}"/>'
            f'<circle class="dot" cx="{LEFT + one.score * PLOT:.1f}" cy="{PLOT - high:.1f}" r="2.5"/></g>'
        )
    if threshold is not None and 0 <= threshold <= 1:
        x = LEFT + threshold * PLOT
        marks.append(f'<path class="threshold" d="M{x:.1f} 0V{PLOT}"><title>threshold {threshold:g}</title></path>')
    ticks = "".join(
        f'<text x="{LEFT + v * PLOT}" y="{PLOT + 11}" text-anchor="middle">{v:g}</text>'
        f'<text x="{LEFT - 4}" y="{PLOT - v * PLOT + 3}" text-anchor="end">{v:g}</text>' for v in (0, 0.5, 1)
    )
    return (
        f'<svg class="reliability" viewBox="0 -6 {LEFT + PLOT + 10} {PLOT + FOOT + 6}" role="img" '
        f'aria-label="reliability diagram"><rect class="frame" x="{LEFT}" y="0" width="{PLOT}" height="{PLOT}"/>'
        f'<path class="ideal" d="M{LEFT} {PLOT}L{LEFT + PLOT} 0"/>{"".join(marks)}{ticks}'
        f'<text x="{LEFT + PLOT / 2}" y="{PLOT + 22}" text-anchor="middle">score</text></svg>'
    )


def _controls(summary: Summary) -> str:
    counts, asked = summary.counts, summary.program.questions
    filters = {"all": ("all", sum(counts.values())), WRONG: ("wrong", counts[WRONG]), ERROR: ("errors", counts[ERROR])}
    if not summary.labelled:
        del filters[WRONG]
    if len(asked) == 1:
        filters |= _answers(summary, asked[0])
    groups = _radios("", '<legend class="sr">Show</legend>', filters)
    if len(asked) > 1:
        own = "".join(_question_filters(summary, one, suffix(place, asked)) for place, one in enumerate(asked))
        folded = f"<details><summary>{len(asked)} questions</summary>{own}</details>"
        groups += folded if len(asked) > FEW else own
    options = "".join(f'<option value="{key}">{escape(text)}</option>' for key, text in _orders(summary).items())
    return (
        f'<form class="controls" id="controls" autocomplete="off" hidden>'
        f'<label>Sort by <select name="order">{options}</select></label>{groups}'
        f'<label><span class="sr">File name contains</span><input type="search" name="search" '
        f'placeholder="file name"></label><output name="count" aria-live="polite"></output></form>'
    )


def _orders(summary: Summary) -> dict[str, str]:
    """What cards can be sorted by; for one of several questions it ends in its place."""
    asked = summary.program.questions
    names = [""] if len(asked) == 1 else [f"{name}: " for name in short([one.name for one in asked])]
    orders = {"written": "failures first" if summary.labelled else "as read"}
    for place, whose in enumerate(names):
        end = suffix(place, asked)
        orders |= {f"high{end}": f"{whose}score, high first", f"low{end}": f"{whose}score, low first"}
    orders["file"] = "file"
    for place, (whose, one) in enumerate(zip(names, asked, strict=True)):
        end = suffix(place, asked)
        orders |= {f"answer{end}": f"{whose}answer"}
        orders |= {} if summary.measures_of(one) is None else {f"label{end}": f"{whose}label"}
    return orders


def _answers(summary: Summary, question: Question) -> dict[str, tuple[str, int]]:
    """A filter for every answer, with its words and its count; none where there are too many."""
    answered = summary.answered(question)
    if len(answered) > SHOWN:
        return {}
    words = short(tuple(answered))
    return {f"{ANSWER}{name}": (word, n) for word, (name, n) in zip(words, answered.items(), strict=True)}


def _question_filters(summary: Summary, question: Question, end: str) -> str:
    """The filters of one of several questions."""
    filters = {"all": ("all", sum(summary.counts.values()))}
    if summary.measures_of(question) is not None:
        filters[WRONG] = "wrong", summary.wrong.get(question.name, 0)
    return _radios(end, f"<legend><code>{escape(question.name)}</code></legend>", filters | _answers(summary, question))


def _radios(end: str, legend: str, filters: Mapping[str, tuple[str, int]]) -> str:
    """Filters of which one holds. end: what the entries of cards end in that they are about."""
    radios = "".join(
        f'<label><input type="radio" name="show{end}" value="{escape(key)}"{" checked" if key == "all" else ""}>'
        f"{escape(word)} ({count:,})</label>" for key, (word, count) in filters.items()
    )
    return f'<fieldset data-end="{end}">{legend}{radios}</fieldset>'
