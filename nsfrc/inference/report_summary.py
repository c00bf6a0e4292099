"""What stands above and below the cards of the report: the run in numbers, the rules, how good the answers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from nsfrc import __version__
from nsfrc.inference.folders import FALSE, NONE, TRUE
from nsfrc.inference.measures import short
from nsfrc.inference.report_card import ERROR, WRONG
from nsfrc.program import Program

if TYPE_CHECKING:
    from nsfrc.inference.measures import Measures

FEW = 3  # classes, from which on the cells of the confusion matrix are narrow
SHOWN = 12  # more rules than this are folded away, and more answers are not to be chosen from
ANSWER = "answer "  # before an answer as a filter, which so is none of the states
PLOT, LEFT, FOOT = 150, 26, 24  # the reliability diagram: side of the frame, room for its labels


@dataclass(frozen=True)
class Summary:
    """header: what to say about the run; counts: cards by state; stopped: whether images are missing at the end.

    answers: cards by answer. remarks: warnings about the images.
    """

    program: Program
    header: dict[str, str]
    counts: dict[str, int]
    threshold: float | None
    measures: Measures | None
    stopped: bool
    answers: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def answered(self) -> dict[str, int]:
        """Both answers of one target with their counts, or those of several that were given."""
        if len(self.program.targets) == 1:
            return {name: self.answers.get(name, 0) for name in (TRUE, FALSE)}
        return {name: self.answers[name] for name in (*self.program.targets, NONE) if self.answers.get(name)}


def opening(summary: Summary, style: str, policy: str) -> str:
    """The page up to its first card."""
    name = escape(summary.program.name)
    panels = _numbers(summary)
    if summary.measures is not None and summary.measures.labelled:
        panels += _confusion(summary.measures) + _calibration(summary.measures, summary.threshold)
    panels += _rules(summary.program)
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
<p class="lead">Is {_targets(summary.program)} true? Each image with its objects, the answer and the reason.</p>
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


def _targets(program: Program) -> str:
    names = [f"<code>{escape(name)}</code>" for name in program.targets]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


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
    measures, counts = summary.measures, summary.counts
    figures = {"images": f"{sum(counts.values()):,}"}
    if measures is not None and measures.accuracy is not None:
        figures["accuracy"] = f"{measures.accuracy:.2%}"
        figures["wrong"] = f"{counts[WRONG]:,}"
    elif len(summary.answered) <= FEW:
        names = short(tuple(summary.answered))
        figures |= {name: f"{count:,}" for name, count in zip(names, summary.answered.values(), strict=True)}
    figures["failed"] = f"{counts[ERROR]:,}"
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in figures.items())
    settings = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in summary.header.items())
    return f'<section class="panel"><dl class="figures">{shown}</dl><dl class="settings">{settings}</dl></section>'


def _rules(program: Program) -> str:
    items = "".join(f'<li id="rule-{i}"><code>{escape(text)}</code></li>' for i, text in enumerate(program.clauses, 1))
    listed = f'<ol class="rules">{items}</ol>'
    if len(program.clauses) > SHOWN:
        listed = f"<details><summary>{len(program.clauses)} rules</summary>{listed}</details>"
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
    counts = summary.counts
    labelled = summary.measures is not None and summary.measures.labelled > 0
    orders = {"written": "failures first" if labelled else "as read", "high": "score, high first",
              "low": "score, low first", "file": "file", "answer": "answer", "label": "label"}
    filters = {"all": sum(counts.values()), WRONG: counts[WRONG], ERROR: counts[ERROR]}
    words = {"all": "all", WRONG: "wrong", ERROR: "errors"}
    if not labelled:
        del orders["label"], filters[WRONG]
    if len(summary.answered) <= SHOWN:
        answers = {f"{ANSWER}{name}": name for name in summary.answered}
        filters |= {key: summary.answered[name] for key, name in answers.items()}
        words |= dict(zip(answers, short(tuple(answers.values())), strict=True))
    options = "".join(f'<option value="{key}">{text}</option>' for key, text in orders.items())
    radios = "".join(
        f'<label><input type="radio" name="show" value="{escape(key)}"{" checked" if key == "all" else ""}>'
        f"{escape(words[key])} "
        f"({count:,})</label>" for key, count in filters.items()
    )
    return (
        f'<form class="controls" id="controls" autocomplete="off" hidden>'
        f'<label>Sort by <select name="order">{options}</select></label>'
        f'<fieldset><legend class="sr">Show</legend>{radios}</fieldset>'
        f'<label><span class="sr">File name contains</span><input type="search" name="search" '
        f'placeholder="file name"></label><output name="count" aria-live="polite"></output></form>'
    )
