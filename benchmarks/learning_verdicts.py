"""Why a run of `benchmarks/learning.py` ended in its rule: what the labels say of it and of the true one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsfrc.benchmarks import learning_tasks as tasks
from nsfrc.benchmarks.learning_tasks import Examples
from nsfrc.learning.covering import Cover
from nsfrc.learning.kernels import IGNORED, NEGATIVE, POSITIVE
from nsfrc.learning.learner import Found, Learner
from nsfrc.learning.scoring import Scoring
from nsfrc.learning.search import Clause
from nsfrc.learning.wording import Words
from nsfrc.program import Program, compile

PIECES = 4  # of 500 random worlds, on which what is listed is compared with the true rule
_SAME, _UNLIKE = ("same_color({0}, {1})", "same_shape({0}, {1})"), ("different_color({0}, {1})", "same_shape({0}, {1})")
_LINE = "online({0}, {1}, {2}, {3}, {4})"
# The rules of the patterns as literals; that of nine_circles counts, and is one literal.
TRUTH: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "twopairs": [*((text, (0, 1)) for text in _SAME), *((text, (2, 3)) for text in _UNLIKE)],
    "threepairs": [*((text, (0, 1)) for text in _SAME), *((text, (2, 3)) for text in _UNLIKE),
                   *((text, (4, 5)) for text in _UNLIKE)],
    "closeby": [("closeby({0}, {1})", (0, 1))],
    "red_triangle": [("color({0}, red)", (0,)), ("shape({0}, triangle)", (0,)), ("closeby({0}, {1})", (0, 1)),
                     ("different_color({0}, {1})", (0, 1)), ("different_shape({0}, {1})", (0, 1))],
    "online_pair": [(_LINE, (0, 1, 2, 3, 4)), *((text, (0, 1)) for text in _SAME)],
}
FEWER, SHORTER, LESS, MISSED = ("it gets more labels right", "it gets as many labels right and is shorter",
                                "it takes fewer bits in all", "missed: the true rule takes fewer bits")


@dataclass(frozen=True)
class Verdict:
    """wrong: labels that the learnt rule gets wrong; saved: bits, by the rules; both of the true rule, too.

    why: in words, where it is another rule. listed: whether the true rule is among the clauses listed beside it.
    """

    wrong: int | None = None
    true_wrong: int | None = None
    saved: float | None = None
    true_saved: float | None = None
    why: str | None = None
    listed: bool | None = None


def verdict(pattern: str, slots: int, learner: Learner, found: Found, true: bool) -> Verdict:
    """Of a run on one of the patterns."""
    by_text = {one.text: i for i, one in enumerate(learner.relations)}
    theory, label = found.theory, found.label
    wrong = int(((learner.covered(theory.clauses) != (label == 1)) & np.isfinite(label)).sum())
    if pattern not in TRUTH or any(text not in by_text for text, _ in TRUTH[pattern]):
        return Verdict(wrong, saved=theory.saved)
    marked = np.where(label == 1, POSITIVE, np.where(label == 0, NEGATIVE, IGNORED)).astype(np.int8)
    scoring = Scoring(int((label == 1).sum()), int((label == 0).sum()))
    rule = Cover(learner.tables, marked, learner.limits(None)).judged(
        [(by_text[text], args) for text, args in TRUTH[pattern]], marked, scoring)
    true_wrong = rule.fp + scoring.P - rule.tp
    why = listed = None
    if not true:
        cost = sum(one.cost for one in theory.clauses)
        why = FEWER if wrong < true_wrong else SHORTER if wrong == true_wrong and cost < rule.cost \
            else LESS if theory.saved >= rule.score else MISSED
        listed = _among(learner, [*theory.clauses, *beside(found)], pattern, slots)
    return Verdict(wrong, true_wrong, theory.saved, rule.score, why, listed)


def beside(found: Found) -> list[Clause]:
    """The clauses that are listed beside those that were chosen."""
    return [one for some in (*found.theory.alternatives, *found.theory.narrower) for one in some]


def _program(learner: Learner, clauses: Sequence[Clause], slots: int | None = None) -> Program:
    """A target for each clause."""
    words = Words(learner.relations, learner.seen.has_in, set())
    heads = [f"listed_{i}" for i in range(len(clauses))]
    text = [learner.source.background(), f":- target([{', '.join(f'{head}(img)' for head in heads)}]).",
            *(f":- pred({head}(image))." for head in heads),
            *(words.clause(head, clause) for head, clause in zip(heads, clauses, strict=True)),
            *(helper.text for helper in words.helpers(clauses))]
    whole = "\n".join(text)
    return compile(source=whole if slots is None else whole.replace(f"slots({tasks.SLOTS})", f"slots({slots})"))


def _among(learner: Learner, clauses: Sequence[Clause], pattern: str, slots: int) -> bool:
    """Whether some clause says what the true rule does, in random worlds."""
    if not clauses:
        return False
    mine, theirs = _program(learner, clauses, slots), tasks.true_program(pattern)
    same = np.ones(len(clauses), dtype=bool)
    for _, part in zip(range(PIECES), tasks.random_worlds(slots), strict=False):
        same &= ((tasks.values(mine, part) > 0.5) == (tasks.values(theirs, part)[:, :1] > 0.5)).all(axis=0)
    return bool(same.any())


def confounded(learner: Learner, found: Sequence[Found], unconfounded: Examples) -> int:
    """Classes that list a clause which all their scenes in training follow, and not all where nothing confounds."""
    count = 0
    for i, one in enumerate(found):
        clauses = [each for each in beside(one) if each.tp == int((one.label == 1).sum())]
        if clauses:
            holds = tasks.values(_program(learner, clauses), unconfounded.evidence) > 0.5
            count += bool((~holds[unconfounded.labels == i]).any())
    return count
