"""From examples with labels to clauses: what can be said, the search for each target, and how well it went."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.stages import compile_text
from nsfrc.errors import NsfrcError
from nsfrc.learning.covering import Cover, Theory
from nsfrc.learning.evidence import Evidence
from nsfrc.learning.extended import relations
from nsfrc.learning.kernels import IGNORED, NEGATIVE, POSITIVE
from nsfrc.learning.relations import Basis
from nsfrc.learning.search import Clause, Limits, Progress, covered
from nsfrc.learning.searched import Kept, restored, search_mark, stored
from nsfrc.learning.seen import Seen, see
from nsfrc.learning.source import SourceText
from nsfrc.learning.tables import Tables
from nsfrc.program import Program, from_compilation

HELD_OUT = 0.2  # of the labels of each class, to see whether rules found on the others hold
ENOUGH = 10  # labels of each class from which on some are held out
LEAST = 2  # labels of each class without which there is nothing to learn


@dataclass(frozen=True)
class Options:
    """How to learn. clauses: of a target, at most. noise: the share of wrong labels, None to estimate it.

    seconds: for the search, None for as long as it takes. seed: of the labels that are held out. weight: as how many
    each label counts; above 1 a rule is found from few labels too, and chance may have made it.
    """

    clauses: int = 5
    noise: float | None = None
    beam: int = 30
    seed: int = 0
    seconds: float | None = None
    weight: float = 1.0

    def refuse(self) -> None:
        for name, fine, what in (
            ("clauses", self.clauses >= 1, "a whole number, 1 or more"),
            ("beam", self.beam >= 1, "a whole number, 1 or more"),
            ("noise", self.noise is None or 0 <= self.noise < 0.5, "a share from 0 to below 0.5"),
            ("seconds", self.seconds is None or self.seconds > 0, "a number above 0"),
            ("weight", self.weight > 0, "a number above 0"),
        ):
            if not fine:
                raise NsfrcError(f"{name} must be {what}, not {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class Found:
    """What was learnt of one target. label [B]: NaN where it is not known.

    trial: what was found without the labels held out, and right: the share of these that it gets right, beside chance;
    None where none were.
    """

    target: ir.Target
    label: np.ndarray
    theory: Theory
    trial: Theory | None = None
    right: float | None = None
    chance: float | None = None


@dataclass(eq=False)
class Learner:
    """Everything that a program and its examples offer to a search. labels: [B] for each target, NaN for unknown."""

    source: SourceText
    evidence: Evidence
    labels: Sequence[np.ndarray]
    options: Options = field(default_factory=Options)
    tell: Callable[[str, Progress], None] = lambda what, progress: None
    stopped: Callable[[], bool] = lambda: False
    kept: Kept | None = None

    def __post_init__(self) -> None:
        self.options.refuse()
        self.program = compile_base(self.source)
        learning = self.program.source.learning
        assert learning is not None
        self.learning = learning
        self.remarks: list[str] = []
        self.progress, self.scored, self.seconds = Progress(), 0, 0.0
        self._check_types()
        self._check_labels()
        self.train, self.held_out = self._split()
        self.seen: Seen = see(self.program, self.evidence)
        self._check_examples()
        self.basis = Basis(self.seen, learning)
        known = [np.where(self.train, label, np.nan) for label in self.labels]
        self.relations = relations(self.basis, known)
        self.tables = Tables(self.relations, self.seen.present)
        if self.kept is not None:
            self.kept.begin(search_mark(self.relations, self.seen.present, self.labels, self.learning,
                                    replace(self.options, seconds=None)))

    def _check_types(self) -> None:
        """A rule is about a whole example; without a type of objects it has no variables."""
        source = self.program.source
        for target in self.learning.targets:
            for name, constant in zip(source.predicate(target.key).types, target.constants, strict=True):
                if source.type(name).role != ir.INPUT:
                    raise NsfrcError(
                        f"{self.source.path}: {target} is about {ir.quoted(name)}, and rules are learnt for whole "
                        f"examples, whose type is called image: write :- type(image, [{ir.quoted(constant)}]). "
                        f"instead, and image wherever {ir.quoted(name)} is named")
        if not any(one.role == ir.OBJECT for one in source.types):
            self.remarks.append("no type is one of objects, so that clauses have no variables: if examples have "
                                "several things each, declare their type with slots, as in :- type(object, slots(4)).")

    def _check_labels(self) -> None:
        for target, label in zip(self.learning.targets, self.labels, strict=True):
            yes, no = int((label == 1).sum()), int((label == 0).sum())
            if not yes and not no:
                raise NsfrcError(f"no example has a label for {target}: name folders true and false, or give --labels")
            if yes < LEAST or no < LEAST:
                which = "true" if no < LEAST else "false"
                other = "false" if which == "true" else "true"
                few = min(yes, no)
                raise NsfrcError(
                    f"{'all' if not few else 'all but ' + str(few)} of the {yes + no} labels of {target} are {which}: "
                    f"a rule tells the true from the false, so give at least {LEAST} examples that are {other}")
            if min(yes, no) < ENOUGH:
                self.remarks.append(f"{target} has {yes} true and {no} false labels only: several rules will fit, and "
                                    f"none are held out to check them; {2 * ENOUGH} of each tell more")

    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """Which labels rules are found on first, and which are held out, as many of each class."""
        whole = np.stack(self.labels)
        known = np.isfinite(whole).any(axis=0)
        held_out = np.zeros(whole.shape[1], dtype=bool)
        rng = np.random.default_rng(self.options.seed)
        numbers = np.arange(1, len(whole) + 1)[:, None]
        classes = np.where(known, (np.nan_to_num(whole) * numbers).sum(axis=0), -1)
        for one in np.unique(classes[known]):
            members = rng.permutation(np.flatnonzero(classes == one))
            if len(members) >= ENOUGH:
                held_out[members[: round(HELD_OUT * len(members))]] = True
        return known & ~held_out, held_out

    def _check_examples(self) -> None:
        """Say what the labels cannot all be right about, and what nothing can be said of."""
        objects = self.seen.object_type is not None
        empty = np.flatnonzero(~self.seen.present.any(axis=1)) if objects else np.zeros(0, int)
        if objects and len(empty) == self.seen.examples:
            raise NsfrcError("no example has any object: perception sees nothing in them, or the facts name no object "
                             "that is in the image; nsfrc infer --report shows what is seen")
        if len(empty):
            self.remarks.append(f"{_some(self._named(empty))} without any object")
        neural = self.seen.holds[:, self.program.ground.neural]
        numbers = [np.nan_to_num(table, nan=-1e30) for table in self.seen.numbers.values()]
        for target, label in zip(self.learning.targets, self.labels, strict=True):
            groups: dict[bytes, list[int]] = {}
            for b in np.flatnonzero(np.isfinite(label)).tolist():
                key = np.packbits(neural[b]).tobytes() + b"".join(table[b].tobytes() for table in numbers)
                groups.setdefault(key, []).append(b)
            torn = [some for some in groups.values() if len({float(label[b]) for b in some}) > 1]
            if torn:
                shown = " and ".join(self._named(np.array(torn[0][:2])))
                self.remarks.append(
                    f"{sum(map(len, torn))} examples look the same as another with the other label of {target}, such "
                    f"as {shown}: no rule can get all of them right")

    def _named(self, some: np.ndarray) -> list[str]:
        names = [self.evidence.names[int(b)] for b in some[:3]]
        more = [f"{len(some) - 3} more"] * (len(some) > 3)
        return [f"world {name}" if name.isdigit() else name for name in names] + more

    def limits(self, until: float | None) -> Limits:
        variables = dict(self.learning.variables)
        kind = self.seen.object_type
        most = variables.get(kind.name) if kind is not None else 0
        return Limits(self.options.beam, variables=most, until=until, stopped=self.stopped)

    def run(self) -> list[Found]:
        """What is found for each target: with all labels, then, while there is time, without those held out."""
        started, seconds, several = time.monotonic(), self.options.seconds, len(self.labels)
        found = []
        for i, (target, label) in enumerate(zip(self.learning.targets, self.labels, strict=True), 1):
            until = None if seconds is None else started + seconds * i / several
            found.append(self._one(target, label, self.limits(until)))
        return found

    def _one(self, target: ir.Target, label: np.ndarray, limits: Limits) -> Found:
        theory = self._searched(f"{target} of all", target, label, np.isfinite(label), limits)
        if not self.held_out.any() or limits.over():
            return Found(target, label, theory)
        trial = self._searched(f"{target} of some", target, label, self.train, limits)
        checked = self.held_out & np.isfinite(label)
        truth = label[checked] == 1
        said = self.covered(trial.clauses or ((trial.best,) if trial.best else ()))[checked]
        return Found(target, label, theory, trial, float((said == truth).mean()),
                     float(max(truth.mean(), 1 - truth.mean())))

    def _searched(
        self, name: str, target: ir.Target, label: np.ndarray, known: np.ndarray, limits: Limits
    ) -> Theory:
        """The clauses that `known` labels give, found now or by an earlier run. name: of the search."""
        self.progress = Progress(tell=lambda progress: self.tell(str(target), progress))
        there = None if self.kept is None else self.kept.recall(name)
        if there is not None:
            try:
                theory = restored(there, self.tables, self.seen.numbers, self.progress)
            except ValueError as error:
                raise NsfrcError(f"the checkpoint has what this version did not write ({error}): delete it and start "
                                 f"without --resume") from None
        else:
            before = len(self.tables.relations)
            theory = self._cover(label, known, limits)
            if self.kept is not None and theory.complete:
                self.kept.keep(name, stored(theory, self.progress, self.tables.relations[before:]))
        self.scored += self.progress.scored
        self.seconds += self.progress.seconds
        return theory

    def _cover(self, label: np.ndarray, known: np.ndarray, limits: Limits) -> Theory:
        marked = np.where(label == 1, POSITIVE, NEGATIVE)
        marked = np.where(known & np.isfinite(label), marked, IGNORED).astype(np.int8)
        most, like = self._most()
        return Cover(self.tables, marked, limits, self.options.noise, self.options.clauses, self.seen.numbers, most,
                     like, self.progress, weight=self.options.weight).run()

    def _most(self) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
        """What `max(N)` of body says: relation → how often, and which ones count for it."""
        most: dict[int, int] = {}
        like: dict[int, frozenset[int]] = {}
        for one in self.learning.allowed:
            if one.most is not None:
                members = frozenset(i for i, relation in enumerate(self.relations) if one.key in relation.uses)
                for i in members:
                    most[i] = min(one.most, most.get(i, one.most))
                    like[i] = like.get(i, members)
        return most, like

    def covered(self, clauses: Sequence[Clause]) -> np.ndarray:
        """[B]: which examples some clause covers."""
        found = np.zeros(self.seen.examples, dtype=bool)
        for clause in clauses:
            found |= covered(self.tables, clause.literals)
        return found


def compile_base(source: SourceText) -> Program:
    """The program with its background, whose targets are still to be learnt."""
    program = from_compilation(compile_text(source.text, str(source.path)))
    if program.source.learning is None:
        raise NsfrcError(f"{source.path} does not say what is to be learnt: add :- learn(kp(image)).")
    if program.targets:
        raise NsfrcError(f"{source.path} has the target {program.targets[0]}: leave it out, as what is learnt becomes "
                         f"the target")
    return program


def _some(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
