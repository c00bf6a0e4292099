"""What was learnt, as a program: text that a person reads and edits, its counts, its alternatives and its threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from nsfrc.compiler import ir
from nsfrc.compiler.findings import findings
from nsfrc.compiler.stages import compile_text
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.learning import soft
from nsfrc.learning.learner import Found, Learner
from nsfrc.learning.search import Clause, covered
from nsfrc.learning.source import SourceText, key_of
from nsfrc.learning.wording import Words
from nsfrc.program import Program, from_compilation

LISTED = 10  # alternatives that the text lists
CRISP = 0.02  # values nearer to 0 or 1 than this are taken as such


class NothingLearnt(NsfrcError):
    """No rule explains the labels better than chance would."""


@dataclass(frozen=True)
class LearntClause:
    """A clause as text with what it covers of the labelled examples; target: whose it is.

    alternatives: clauses that get as many of these right; narrower: such that ask for more than this one does. weight:
    of the clause among its alternatives in the soft step, where values are not all 0 or 1. apart: names of examples
    without label on which some of all these differ.
    """

    target: str
    text: str
    true: int
    false: int
    alternatives: tuple[str, ...] = ()
    weight: float | None = None
    apart: tuple[str, ...] = ()
    narrower: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Learnt:
    """A learnt program. scores: by name, see docs/learning.md; remarks: what the user should know of the examples.

    complete: whether the search came to its end, and was not stopped.
    """

    text: str
    clauses: tuple[LearntClause, ...]
    scores: dict[str, float]
    remarks: tuple[str, ...] = ()
    complete: bool = True
    source: SourceText = field(default=None, repr=False)  # type: ignore[assignment]
    learner: Learner = field(default=None, repr=False)  # type: ignore[assignment]

    @property
    def alternatives(self) -> dict[str, tuple[str, ...]]:
        """Each clause that has any, with those that explain the labels as well."""
        return {clause.text: clause.alternatives for clause in self.clauses if clause.alternatives}

    @cached_property
    def program(self) -> Program:
        """The program, compiled."""
        return from_compilation(compile_text(self.text, str(self.source.path)))

    def save(self, path: str | Path) -> Path:
        """Write the program; files that it includes are found from there, too."""
        path = Path(path)
        write_whole(path, self.source.moved(self.text, path.parent).encode("utf-8", "surrogateescape"))
        return path


def finish(learner: Learner, found: Sequence[Found], made_by: str = "nsfrc learn") -> Learnt:
    """The program of what was found; raises NothingLearnt where nothing was."""
    if lacking := [one for one in found if not one.theory.clauses]:
        raise NothingLearnt(_nothing(lacking, learner))
    return _Writer(learner, list(found), made_by).written()


def _nothing(lacking: Sequence[Found], learner: Learner) -> str:
    one = lacking[0]
    known = int(np.isfinite(one.label).sum())
    names = ", ".join(str(each.target) for each in lacking)
    told = ""
    if one.right is not None and one.chance is not None:
        told = f"; the best that was found gets {one.right:.0%} of the labels held out right, chance {one.chance:.0%}"
    stopped = "" if one.theory.complete else " before the search was stopped"
    limit = f" with up to {learner.progress.variables} variables" if learner.seen.object_type is not None else ""
    return (f"no rule for {names} explains its {known} labels better than chance{stopped}: {learner.scored:,} "
            f"clauses{limit} were tried{told}. Nothing is written. If there should be a rule: give more labels, or "
            f"declare what it speaks of (predicates, numbers, background clauses)")


@dataclass(eq=False)
class _Writer:
    """Chooses among ties by soft values, and writes."""

    learner: Learner
    found: list[Found]
    made_by: str

    def __post_init__(self) -> None:
        taken = {key[0] for key in self.learner.program.ground.herbrand.offsets} | set(self.learner.basis.helpers)
        self.words = Words(self.learner.relations, self.learner.seen.has_in, taken)

    def written(self) -> Learnt:
        weights = [self._weighed(i) for i in range(len(self.found))]
        self.words.invent(clause for one in self.found for clause in one.theory.clauses)
        clauses = [self._clause(one, i, weight) for one, several in zip(self.found, weights, strict=True)
                   for i, weight in enumerate(several)]
        body = self._rules(clauses)
        program = self._compiled(self._trimmed(self._whole(body, [])))
        thresholds, scores = self._judged(program)
        text = self._trimmed(self._whole(body, thresholds))
        learner = self.learner
        complete = all(one.theory.complete for one in self.found)
        remarks = (*learner.remarks, *(_doubt(one) for one in self.found if _no_better(one)))
        return Learnt(text, tuple(clauses), scores, remarks, complete, learner.source, learner)

    def _compiled(self, text: str) -> Program:
        return from_compilation(compile_text(text, str(self.learner.source.path)))

    def _soft(self) -> bool:
        inputs = self.learner.seen.values[:, self.learner.program.ground.neural]
        return bool(((inputs > CRISP) & (inputs < 1 - CRISP)).any())

    def _weighed(self, i: int) -> list[float | None]:
        """The weight of each clause among its alternatives.

        One that soft values prefer takes its place, if it tells the labels in fewer bits, its own length among them.
        """
        one = self.found[i]
        weights: list[float | None] = [None] * len(one.theory.clauses)
        if len(one.theory.clauses) != 1 or not one.theory.alternatives[0] or not self._soft():
            return weights
        candidates = [one.theory.clauses[0], *one.theory.alternatives[0]]
        head = one.target.name
        together = self._candidate_program([head] * len(candidates), candidates, one.target)
        names = [self._free(f"candidate_{n}") for n in range(1, len(candidates) + 1)]
        alone = self._candidate_program(names, candidates, one.target)
        known = np.isfinite(one.label)
        weighed = soft.weigh(together, alone, f"{ir.quoted(head)}/{len(one.target.constants)}", 0,
                             self.learner.evidence, one.label, self.learner.train & known,
                             self.learner.held_out & known, self._noise(one))
        best = int(np.argmin([bits + each.cost for bits, each in zip(weighed.bits, candidates, strict=True)]))
        order = [best, *(n for n in range(len(candidates)) if n != best)]
        chosen = tuple(candidates[n] for n in order)
        narrower = one.theory.narrower if best == 0 else ((),)  # which are those of the first
        theory = replace(one.theory, clauses=chosen[:1], alternatives=(chosen[1:],), narrower=narrower)
        self.found[i] = replace(one, theory=theory)
        return [weighed.weights[best]]

    def _noise(self, one: Found) -> float:
        """The share of wrong labels: as it was given, or what the clauses that were found get wrong."""
        known = np.isfinite(one.label)
        wrong = (self.learner.covered(one.theory.clauses) != (one.label == 1)) & known
        return self.learner.options.noise or min((int(wrong.sum()) + 1) / (int(known.sum()) + 2), 0.49)

    def _free(self, name: str) -> str:
        while name in self.words.taken:
            name += "_"
        return name

    def _candidate_program(self, heads: Sequence[str], clauses: Sequence[Clause], target: ir.Target) -> Program:
        rules = [self.words.clause(head, clause) for head, clause in zip(heads, clauses, strict=True)]
        helpers = [helper.text for helper in self.words.helpers(clauses)]
        asked = [str(replace(target, name=head)) for head in dict.fromkeys(heads)]
        declared = self._declared(target).removeprefix(ir.quoted(target.name))
        directives = [f":- pred({ir.quoted(head)}{declared})." for head in dict.fromkeys(heads)]
        text = "\n".join([self.learner.source.background(), *directives, f":- target([{', '.join(asked)}]).", *rules,
                          *helpers, ""])
        return self._compiled(self._trimmed(text))

    def _declared(self, target: ir.Target) -> str:
        types = self.learner.program.source.predicate(target.key).types
        return f"{ir.quoted(target.name)}({', '.join(map(ir.quoted, types))})" if types else ir.quoted(target.name)

    def _clause(self, one: Found, i: int, weight: float | None) -> LearntClause:
        clause, others, narrower = one.theory.clauses[i], one.theory.alternatives[i], one.theory.narrower[i]
        hit = covered(self.learner.tables, clause.literals)
        unknown = ~np.isfinite(one.label)
        apart = np.zeros(len(hit), dtype=bool)
        for other in (*others, *narrower):
            apart |= (covered(self.learner.tables, other.literals) != hit) & unknown
        names = tuple(self.learner.evidence.names[b] for b in np.flatnonzero(apart).tolist())
        head = one.target.name
        return LearntClause(str(one.target), self.words.clause(head, clause), int((hit & (one.label == 1)).sum()),
                            int((hit & (one.label == 0)).sum()),
                            tuple(self.words.clause(head, other) for other in others), weight, names,
                            tuple(self.words.clause(head, other) for other in narrower))

    def _rules(self, clauses: Sequence[LearntClause]) -> str:
        """The learnt clauses with their comments, then the helpers."""
        parts = []
        label = {str(one.target): one.label for one in self.found}
        for clause in clauses:
            yes, no = (int((label[clause.target] == value).sum()) for value in (1, 0))
            lines = [f"% Covers {clause.true} of {yes} true examples and {clause.false} of {no} false ones."]
            lines += _listed("{} these labels as well:", "other clause explains", "other clauses explain",
                             clause.alternatives)
            lines += _listed("{} these labels as well; what is added, all true examples have:",
                             "narrower clause explains", "narrower clauses explain", clause.narrower)
            if clause.alternatives or clause.narrower:
                lines.append(_told_apart(clause))
            parts.append("\n".join([*lines, clause.text]))
        helpers = self.words.helpers([clause for one in self.found for clause in one.theory.clauses])
        parts += [helper.text for helper in helpers]
        return "\n\n".join(parts) + "\n"

    def _whole(self, rules: str, thresholds: Sequence[str]) -> str:
        learner = self.learner
        source = learner.program.source
        own = learner.source.background()
        targets = [str(one.target) for one in self.found]
        lines = []
        for one in self.found:
            declared = f":- pred({self._declared(one.target)})."
            if declared.replace(" ", "") not in own.replace(" ", ""):
                lines.append(declared)
        lines.append(f":- classes([{', '.join(targets)}])." if source.learning and source.learning.classes
                     else f":- target({targets[0]})." if len(targets) == 1 else f":- target([{', '.join(targets)}]).")
        return "\n".join([*self._head(), own.rstrip("\n"), "", *lines, *thresholds, "", rules])

    def _head(self) -> list[str]:
        learner = self.learner
        lines = [f"% Learnt by {self.made_by} from {learner.source.path.name}, {learner.seen.examples} examples."]
        for one in self.found:
            yes, no = int((one.label == 1).sum()), int((one.label == 0).sum())
            said = f"% {one.target}: {yes} true and {no} false labels"
            if one.right is not None and one.chance is not None:
                said += f"; rules found without {int((learner.held_out & np.isfinite(one.label)).sum())} of them get " \
                    f"{one.right:.1%} of these right (chance {one.chance:.1%})"
            lines.append(said + ".")
        return [*lines, ""]

    def _judged(self, program: Program) -> tuple[list[str], dict[str, float]]:
        """Thresholds for questions that 0.5 does not suit, chosen on labels held out; and how good all is."""
        learner = self.learner
        V0 = learner.evidence.valuation(program).float()
        with torch.no_grad():
            values = program.reasoner("cpu", outputs="targets", inputs="neural")(V0).numpy()
        lines: list[str] = []
        scores: dict[str, float] = {}
        for column, one in enumerate(self.found):
            known = np.isfinite(one.label)
            some = known & learner.held_out if (known & learner.held_out).any() else known
            cut = 0.5
            if not program.classes:
                cut = soft.threshold(values[some, column], one.label[some])
                if cut != 0.5:
                    lines.append(f":- threshold({one.target}, {cut}).  % chosen on labels held out")
            right = float(((values[known, column] >= cut) == (one.label[known] == 1)).mean())
            name = str(one.target)
            scores |= {f"{name} training": right, f"{name} bits": one.theory.saved}
            if one.right is not None and one.chance is not None:
                scores |= {f"{name} validation": one.right, f"{name} chance": one.chance}
        if program.classes:
            truth = np.stack([one.label for one in self.found], axis=1)
            known = np.isfinite(truth).all(axis=1) & (np.nan_to_num(truth).sum(axis=1) == 1)
            right = values[known].argmax(1) == np.nan_to_num(truth[known]).argmax(1)
            scores["classes training"] = float(right.mean())
        return lines, scores

    def _trimmed(self, text: str) -> str:
        """Without background predicates that the learnt clauses do not need."""
        for _ in range(10):
            here = SourceText.of(None, text, str(self.learner.source.path))
            found = findings(self.learner.source.path, text.encode("utf-8", "surrogatepass"))
            warned = {w.span.line for w in found.diagnostics
                      if w.code == "unneeded-predicate" and w.span is not None and w.span.source.included is None}
            keys = frozenset(key for one in here.sentences
                             if one.span.source.included is None and one.span.line in warned
                             and (key := key_of(one)) is not None)
            if not keys:
                return text
            text = here.background(keys)
        return text


def _no_better(one: Found) -> bool:
    return one.right is not None and one.chance is not None and one.right <= one.chance


def _doubt(one: Found) -> str:
    return (f"the rules for {one.target} explain the labels they were found on, but those found without some of them "
            f"get {one.right:.0%} of these right, chance {one.chance:.0%}: give more labels before you rely on them")


def _listed(words: str, one: str, several: str, clauses: Sequence[str]) -> list[str]:
    """Comments with some clauses, none for none."""
    if not clauses:
        return []
    count = len(clauses)
    lines = [f"% {count} {words.format(several if count > 1 else one)}"]
    lines += [f"%   {line}" for clause in clauses[:LISTED] for line in clause.split("\n")]
    return lines + ([f"%   and {count - LISTED} more."] if count > LISTED else [])


def _told_apart(clause: LearntClause) -> str:
    if clause.apart:
        more = f" and {len(clause.apart) - 5} more" if len(clause.apart) > 5 else ""
        return f"% These would tell them apart, and have no label yet: {', '.join(clause.apart[:5])}{more}."
    return "% A picture of which one of them holds and another does not would tell them apart."


