"""How good the answers are, counted row by row: accuracy, confusion matrix, calibration. Only counts are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsfrc.inference.calibration import Best, best_threshold
from nsfrc.inference.folders import FALSE, NONE, TRUE

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Images whose score lies in [low, high): how many, their mean score, and the share that holds."""

    low: float
    high: float
    count: int
    score: float
    share: float


def equals(scores: Sequence[float]) -> tuple[int, ...]:
    """Which of several targets share the highest score, as it is written; none where one is above the others."""
    best = tuple(i for i, score in enumerate(scores) if score == max(scores))
    return best if len(best) > 1 else ()


def short(names: Sequence[str]) -> tuple[str, ...]:
    """Targets by their predicates, kp1 for kp1(img), where these differ: for the heads of tables."""
    found = tuple(name.partition("(")[0] for name in names)
    return found if len(set(found)) == len(found) and all(found) else tuple(names)


class Measures:
    """Counts over images.

    classes: the K possible answers. count: images seen; failed: those without an answer; labelled: those with an
    answer and a known label; right: those of them that are right; tied: those with several highest scores, as
    they are written. confusion [K, K]: rows are labels, columns answers.
    """

    def __init__(self, targets: Sequence[str], none: bool = False) -> None:
        """none: whether "none" is among the answers, where there are several targets."""
        self.one = len(targets) == 1
        self.classes = (TRUE, FALSE) if self.one else (*targets, NONE) if none else tuple(targets)
        self.count = self.failed = self.labelled = self.right = self.tied = 0
        self.answers = np.zeros(len(self.classes), dtype=np.int64)
        self.confusion = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64)
        self._bins = np.zeros((BINS, 3))  # images, sum of scores, how many hold
        self._scores: Counter[tuple[float, bool]] = Counter()  # of one target, with whether it holds

    def add(self, label: str | None, scores: Sequence[float], answer: str | None) -> None:
        """One image; `answer` is None when its file failed, `label` when nothing is known. Scores are finite."""
        self.count += 1
        if answer is None:
            self.failed += 1
            return
        given = self.classes.index(answer)
        self.answers[given] += 1
        self.tied += bool(equals(scores))
        if label is None:
            return
        self.labelled += 1
        self.right += answer == label
        self.confusion[self.classes.index(label), given] += 1
        score = max(scores)
        # What "none" says is that the highest does not hold.
        highest = self.classes[scores.index(score)] if answer == NONE else answer
        holds = label == (TRUE if self.one else highest)
        if self.one:
            self._scores[score, holds] += 1
        self._bins[min(max(int(score * BINS), 0), BINS - 1)] += 1, score, holds

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None

    def reliability(self) -> list[Bin]:
        """The ten bins of the score: of the one target, or the highest where there are several."""
        bins = []
        for i, (count, total, holds) in enumerate(self._bins.tolist()):
            mean, share = (total / count, holds / count) if count else (0.0, 0.0)
            bins.append(Bin(i / BINS, (i + 1) / BINS, int(count), mean, share))
        return bins

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error: how far score and share lie apart, on average over images."""
        if not self.labelled:
            return None
        return sum(b.count * abs(b.score - b.share) for b in self.reliability()) / self.labelled

    @property
    def best(self) -> Best | None:
        """The threshold that would be best for these images; None without images of both labels, or several targets."""
        if len({holds for _, holds in self._scores}) < 2:
            return None
        scores, labels = zip(*self._scores.elements(), strict=True)
        return best_threshold(scores, labels)

    def as_data(self) -> dict[str, Any]:
        """For machines; what needs labels is there only if there are some."""
        answers = {name: int(n) for name, n in zip(self.classes, self.answers, strict=True)}
        data: dict[str, Any] = {"images": self.count, "failed": self.failed, "answers": answers}
        if not self.one:
            data["tied"] = self.tied
        if not self.labelled:
            return data
        return data | {
            "labelled": self.labelled, "right": self.right, "accuracy": self.accuracy,
            "confusion": {label: {answer: int(n) for answer, n in zip(self.classes, row, strict=True)}
                          for label, row in zip(self.classes, self.confusion, strict=True)},
            "calibration_error": self.calibration_error,
            "reliability": [{"low": b.low, "high": b.high, "images": b.count, "score": b.score, "share": b.share}
                            for b in self.reliability() if b.count],
        } | ({} if (best := self.best) is None else {"best_threshold": {
            "threshold": best.threshold, "accuracy": best.accuracy, "above": best.low, "up_to": best.high}})

    def as_text(self) -> str:
        """Accuracy, confusion matrix and calibration in lines; without labels only the counts."""
        counted = ", ".join(f"{n} {name}" for name, n in zip(self.classes, self.answers, strict=True) if n)
        lines = [f"{self.count} image{'s' * (self.count != 1)}" + (f": {counted}" if counted else "")
                 + (f", {self.failed} failed" if self.failed else "")]
        if self.tied:
            lines.append(f"{self.tied} of them {'has' if self.tied == 1 else 'have'} several highest scores that "
                         f"differ in no digit shown")
        if self.labelled:
            lines += [f"accuracy {self.right / self.labelled:.2%} ({self.right} of {self.labelled})", "",
                      *self._confusion_text(), "", *self._calibration_text()]
        return "\n".join(lines)

    def _confusion_text(self) -> list[str]:
        names = short(self.classes)
        width = max(8 if self.one else 5, *map(len, names), len(str(self.labelled)))
        lines = ["label \\ answer".ljust(max(14, width + 8)) + "".join(f"{name:>{width + 2}}" for name in names)]
        for name, row in zip(names, self.confusion.tolist(), strict=True):
            lines.append(f"  {name}".ljust(max(14, width + 8)) + "".join(f"{n:>{width + 2}}" for n in row))
        return lines

    def _calibration_text(self) -> list[str]:
        what = "true" if self.one else "right"
        lines = [f"calibration: expected error {self.calibration_error:.4f}",
                 f"  score          images  mean score  share {what}"]
        for b in self.reliability():
            if b.count:
                lines.append(f"  {b.low:.1f} to {b.high:.1f} {b.count:>11}  {b.score:>10.4f}  {b.share:>10.4f}")
        return [*lines, text] if (text := self.best_text()) else lines

    def best_text(self) -> str | None:
        """Which thresholds would tell these images apart, in words; None where `best` is."""
        if (best := self.best) is None:
            return None
        better = best.accuracy > self.right / self.labelled
        first, last, middle = _digits(best)
        write = f" (write :- threshold({middle}). into the program, or --threshold {middle})" if better else ""
        if best.accuracy == 1:
            return f"any threshold from {first} to {last} separates these{write}"
        if not better:
            return "no other threshold does better on these"
        return f"the best threshold here is {middle}: {best.accuracy:.1%}{write}"


def _digits(best: Best) -> tuple[str, str, str]:
    """The first, the last and a middle threshold that are as good, in two digits if there are such, else in more."""
    low, high = round(best.low * 10_000), round(best.high * 10_000)  # scores have four
    for digits in (2, 3, 4):
        unit = 10 ** (4 - digits)
        first, last = low // unit + 1, high // unit
        if first <= last:
            one, two, three = (f"{n / 10**digits:.{digits}f}" for n in (first, last, (first + last) // 2))
            return one, two, three
    return (f"{best.threshold:g}",) * 3  # 0, where even a score of 0 is true
