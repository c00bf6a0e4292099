"""`nsfrc learn --report`: one HTML file with the rules, the examples that each covers, and those still wrong."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nsfrc.files import write_whole
from nsfrc.learning.learner import Found
from nsfrc.learning.results import Learnt

SHOWN, SIDE = 12, 120  # pictures of a rule, and pixels of their longer side

STYLE = """body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
pre { background: #f4f4f4; padding: .7em 1em; overflow-x: auto } figure { display: inline-block; margin: .3em }
figcaption { font-size: 12px; text-align: center } .wrong { color: #a00 }
td, th { text-align: right; padding: 0 .8em }"""


def write_report(learnt: Learnt, found: Sequence[Found], path: Path, pictures: Mapping[str, Path]) -> None:
    """Write the page; pictures: the files of examples, by name, as far as they have any."""
    parts = [f"<h1>{html.escape(learnt.source.path.name)}: what was learnt</h1>"]
    if not learnt.complete:
        parts.append("<p class=wrong>The search was stopped: this is the best so far.</p>")
    parts += [f"<p>{html.escape(remark)}</p>" for remark in learnt.remarks]
    clauses = iter(learnt.clauses)
    for one in found:
        parts.append(f"<h2>{html.escape(str(one.target))}</h2>" + _scores(learnt, str(one.target)))
        left = one.label == 1
        for clause in one.theory.clauses:
            text = next(clauses)
            hit = learnt.learner.covered([clause])
            parts.append(f"<pre>{html.escape(text.text)}</pre><p>Covers {text.true} true examples, "
                         f"{int((hit & left).sum())} of them not covered before, and {text.false} false ones.</p>")
            parts.append(_shown(learnt, hit & (one.label == 1), pictures))
            left &= ~hit
            for what, others in (("others", text.alternatives), ("narrower ones", text.narrower)):
                if others:
                    listed = html.escape("\n".join(others))
                    parts.append(f"<details><summary>{len(others)} {what} explain these labels as well</summary>"
                                 f"<pre>{listed}</pre></details>")
        said = learnt.learner.covered(one.theory.clauses)
        wrong = np.isfinite(one.label) & (said != (one.label == 1))
        parts.append(f"<h3>Still wrong: {int(wrong.sum())}</h3>" + _shown(learnt, wrong, pictures))
    parts.append(_search(learnt))
    parts.append(f"<h2>The program</h2><pre>{html.escape(learnt.text)}</pre>")
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(learnt.source.path.name)}</title>" \
        f"<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    write_whole(path, page.encode("utf-8", "replace"))


def _scores(learnt: Learnt, target: str) -> str:
    rows = "".join(f"<tr><td>{html.escape(name.removeprefix(target).strip())}</td><td>"
                   f"{f'{value:.1f}' if name.endswith('bits') else f'{value:.1%}'}</td></tr>"
                   for name, value in learnt.scores.items() if name.startswith(target))
    return f"<table>{rows}</table>"


def _search(learnt: Learnt) -> str:
    learner = learnt.learner
    counts: dict[str, int] = {}
    for one in learner.relations:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    return f"<h2>The search</h2><p>{learner.scored:,} clauses were tried with up to {learner.progress.variables} " \
        f"variables on {learner.seen.examples} examples; literals: {html.escape(kinds)}.</p>"


def _shown(learnt: Learnt, some: np.ndarray, pictures: Mapping[str, Path]) -> str:
    names = [learnt.learner.evidence.names[b] for b in np.flatnonzero(some).tolist()]
    parts = []
    for name in names[:SHOWN]:
        data = _thumbnail(pictures[name]) if name in pictures else None
        image = "" if data is None else f"<img alt='' src='data:image/png;base64,{data}'>"
        parts.append(f"<figure>{image}<figcaption>{html.escape(name)}</figcaption></figure>")
    return "<div>" + "".join(parts) + (f"<p>and {len(names) - SHOWN} more</p>" if len(names) > SHOWN else "") + "</div>"


def _thumbnail(path: Path) -> str | None:
    from nsfrc.inference.images import ImageError, read

    try:
        picture = read(path, (SIDE, SIDE), "letterbox", 0)
    except ImageError:
        return None
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture.pixels).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()
