"""How good the answers to a question are, counted row by row: accuracy, confusion matrix, calibration.

Only counts are kept. `Measured` has those of every question of a program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nsfrc.errors import NsfrcError
from nsfrc.inference.calibration import Best, best_threshold
from nsfrc.questions import FALSE, NONE, TRUE, Question, short

if TYPE_CHECKING:
    from nsfrc.inference.rows import Row

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
    """Which of several classes share the highest score, as it is written; none where one is above the others."""
    best = tuple(i for i, score in enumerate(scores) if score == max(scores))
    return best if len(best) > 1 else ()


class Measures:
    """Counts over images, for one question.

    one: whether it is about a target, and not about classes. count: images seen; failed: those without an answer;
    labelled: those with an answer and a known label; right: those of them that are right; tied: those with several
    highest classes, as their scores are written.
    """

    def __init__(self, targets: Sequence[str], named: str | None = None) -> None:
        """targets: a target, or the classes. named: what the user calls it, where the program asks more than this."""
        self.targets, self.named, self.one = tuple(targets), named, len(targets) == 1
        self._all = (TRUE, FALSE) if self.one else (*targets, NONE)
        self.count = self.failed = self.labelled = self.right = self.tied = 0
        self._answers = np.zeros(len(self._all), dtype=np.int64)
        self._confusion = np.zeros((len(self._all), len(self._all)), dtype=np.int64)
        self._bins = np.zeros((BINS, 3))  # images, sum of scores, how many hold
        self._scores: Counter[tuple[float, bool]] = Counter()  # of one target, with whether it holds

    def add(self, label: str | None, scores: Sequence[float], answer: str | None, times: int = 1) -> None:
        """One image; `answer` is None when its file failed, `label` when nothing is known. Scores are finite.

        times: how many images this is said of.
        """
        self.count += times
        if answer is None:
            self.failed += times
            return
        given = self._all.index(answer)
        self._answers[given] += times
        self.tied += times * (not self.one and answer != NONE and bool(equals(scores)))
        if label is None:
            return
        self.labelled += times
        self.right += times * (answer == label)
        self._confusion[self._all.index(label), given] += times
        score = max(scores)
        # What "none" says is that the highest does not hold.
        highest = self._all[scores.index(score)] if answer == NONE else answer
        holds = label == (TRUE if self.one else highest)
        if self.one:
            self._scores[score, holds] += times
        self._bins[min(max(int(score * BINS), 0), BINS - 1)] += times, times * score, times * holds

    @property
    def classes(self) -> tuple[str, ...]:
        """The K possible answers; "none" is among them where some image has it, as its answer or as its label."""
        unused = not self.one and not self._answers[-1] and not self._confusion[-1].any()
        return self._all[:-1] if unused else self._all

    @property
    def answers(self) -> np.ndarray:
        """How often each was given, [K]."""
        return self._answers[: len(self.classes)]

    @property
    def confusion(self) -> np.ndarray:
        """[K, K]: rows are labels, columns answers."""
        return self._confusion[: len(self.classes), : len(self.classes)]

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None

    def reliability(self) -> list[Bin]:
        """The ten bins of the score: of the target, or of the highest class."""
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
        """The threshold that would be best for these images; None without images of both labels, or for classes."""
        if len({holds for _, holds in self._scores}) < 2:
            return None
        scores, labels = zip(*self._scores, strict=True)
        return best_threshold(scores, labels, list(self._scores.values()))

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
        lines = [images_text(self.count) + (f": {self.counted()}" if self.counted() else "")
                 + (f", {self.failed} failed" if self.failed else "")]
        return "\n".join([*lines, *self.details()])

    def counted(self) -> str:
        """How often each answer was given: `3 true, 1 false`."""
        return ", ".join(f"{n} {name}" for name, n in zip(self.classes, self.answers, strict=True) if n)

    def details(self) -> list[str]:
        """What stands below the counts."""
        lines = []
        if self.tied:
            lines.append(f"{self.tied} of them {'has' if self.tied == 1 else 'have'} several highest scores that "
                         f"are equal in all digits shown")
        if self.labelled:
            lines += [f"accuracy {self.right / self.labelled:.2%} ({self.right} of {self.labelled})", "",
                      *self._confusion_text(), "", *self._calibration_text()]
        return lines

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
        write = f" (write {self._threshold_text(middle)})" if better else ""
        if best.accuracy == 1:
            return f"any threshold from {first} to {last} separates these{write}"
        if not better:
            return "no other threshold does better on these"
        return f"the best threshold here is {middle}: {best.accuracy:.1%}{write}"

    def fitted(self) -> str | None:
        """The best threshold as a directive, and how many of the images it answers rightly; None where `best` is."""
        if (best := self.best) is None:
            return None
        middle = _digits(best)[2]
        directive = f":- threshold({middle})." if self.named is None else f":- threshold({self.targets[0]}, {middle})."
        return f"{directive}  % {best.accuracy:.1%} of {self.labelled} labelled images"

    def _threshold_text(self, value: str) -> str:
        """How to set the threshold, in the program and on the command line."""
        if self.named is None:
            return f":- threshold({value}). into the program, or --threshold {value}"
        option = f"{self.named}={value}"
        option = f'"{option}"' if "(" in option else option  # a shell reads brackets
        return f":- threshold({self.targets[0]}, {value}). into the program, or --threshold {option}"


class Measured:
    """The measures of all questions of a program, by their names. count: images seen; failed: those without answers."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = tuple(questions)
        names = short([one.name for one in questions]) if len(questions) > 1 else (None,)
        self.by_question = {one.name: Measures(one.atoms, name) for one, name in zip(questions, names, strict=True)}
        self.count = self.failed = self.labelled = 0

    def add(self, row: Row, times: int = 1) -> None:
        """One image, or `times` of which the same is said."""
        self.count += times
        self.failed += times * (not row.scores)
        self.labelled += times * (row.right is not None)
        for one in self.questions:
            said = row.answers[one.name]
            self.by_question[one.name].add(said.label, one.values(row.scores), said.answer, times)

    def fitted(self) -> str:
        """The best threshold of every target as directives for the program. Raises NsfrcError without labels."""
        lines = [text for one in self.by_question.values() if (text := one.fitted()) is not None]
        if not lines:
            raise NsfrcError(_no_labels())
        return "\n".join(lines)

    @property
    def only(self) -> Measures:
        """Those of the only question."""
        if len(self.questions) > 1:
            names = ", ".join(repr(one.name) for one in self.questions)
            raise NsfrcError(f"there are several questions, each with measures of its own: by_question[NAME] has those "
                             f"of one of {names}")
        return self.by_question[self.questions[0].name]

    def as_data(self) -> dict[str, Any]:
        """For machines: `Measures.as_data` of one question; of several in an object by their names."""
        if len(self.questions) == 1:
            return self.only.as_data()
        own = {name: {key: value for key, value in one.as_data().items() if key not in ("images", "failed")}
               for name, one in self.by_question.items()}
        return {"images": self.count, "failed": self.failed, "questions": own}

    def as_text(self) -> str:
        """In lines, a part for each question."""
        if len(self.questions) == 1:
            return self.only.as_text()
        lines = [images_text(self.count) + (f", {self.failed} failed" if self.failed else "")]
        for name, one in self.by_question.items():
            lines += ["", f"{name}: {one.counted() or 'no answers'}", *one.details()]
        return "\n".join(lines)


def _no_labels() -> str:
    return ("--fit-threshold needs images of both labels: put them into folders true/ and false/, or give a table with "
            "--labels")


def images_text(count: int) -> str:
    return f"{count} image{'s' * (count != 1)}"


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
