"""What a compiled program is and what it costs, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nsfrc.compiler import ir
from nsfrc.compiler.goal_text import GoalText
from nsfrc.compiler.grounded import GroundProgram
from nsfrc.compiler.levels import AnyPlan, LevelPlan
from nsfrc.compiler.plan import Plan
from nsfrc.compiler.reach import NEVER, reach
from nsfrc.compiler.report import STAGE_NOTES, index_tensor, levels, pass_table
from nsfrc.compiler.stages import Compilation, Stage
from nsfrc.describe.phrases import sentence
from nsfrc.program import Program, from_compilation
from nsfrc.records import dataclass

FLOAT_BYTES = 4  # of an entry of V
UNNEEDED = {
    ir.PAPER: "No target needs this clause; its rows stay: what it derives may be the largest value, the divisor Z.",
    ir.ANCHORED: "No target needs this clause, so it is left out when only the targets are asked for.",
}


@dataclass(frozen=True)
class Explained:
    """A program, where it is from, and what its passes left, if known."""

    program: Program
    source: str
    stages: tuple[Stage, ...] = ()


def of_compilation(done: Compilation) -> Explained:
    return Explained(from_compilation(done), str(done.source), done.stages)


def of_artifact(program: Program, source: str) -> Explained:
    """A .nsfrc file has the program and the plan, but not what each pass did."""
    return Explained(program, source)


def account(subject: Explained) -> dict[str, Any]:
    """Everything that `nsfrc explain` says."""
    program = subject.program
    ground = program.ground
    return {
        "program": program.name,
        "source": subject.source,
        "targets": program.targets,
        "classes": program.classes,
        "perception": _perception(program),
        "facts": _facts(program),
        "steps": _steps(program),
        "clauses": _clauses(subject),
        "cost": _cost(program.lowered),
        "semantics": program.settings.semantics,
        "levels": levels(program.lowered),
        "index_tensor": {"shape": [ground.C, ground.G, ground.S, ground.L], **index_tensor(ground)},
        "passes": _passes(subject),
    }


def signature(predicate: ir.Predicate) -> str:
    if predicate.comparison is not None:
        return predicate.name
    return ir.atom_text(predicate.name, [ir.quoted(name) for name in predicate.types])


def _perception(program: Program) -> dict[str, Any]:
    """What perception must value: its neural predicates and how many atoms each has, and comparisons likewise."""
    language = program.ground.herbrand

    def atoms_of(role: str) -> list[dict[str, Any]]:
        return [{"predicate": signature(p), "atoms": last - first} for p in language.predicates if p.role == role
                for first, last in [language.offsets[p.key]]]

    neural = atoms_of(ir.NEURAL)
    return {
        "name": program.settings.perception,
        "atoms": sum(one["atoms"] for one in neural),
        "predicates": neural,
        "comparisons": atoms_of(ir.COMPARED),
        "numbers": [str(number) for number in program.source.numbers],
    }


def _facts(program: Program) -> list[dict[str, Any]]:
    """Facts by predicate: the atoms that start at 1."""
    ground, names = program.ground, program.atoms
    found = []
    for predicate in ground.herbrand.predicates:
        first, last = ground.herbrand.offsets[predicate.key]
        true = np.flatnonzero(ground.initial[first:last] > 0) + first
        if len(true):
            facts = [names[i] for i in true]
            found.append({"predicate": signature(predicate), "atoms": last - first, "facts": facts})
    return found


def _steps(program: Program) -> dict[str, Any]:
    """In which step a predicate can be derived first if all that perception says is true."""
    ground = program.ground
    depth, inner = reach(ground).depth, GoalText(program.source).inner
    first: dict[int, list[str]] = {}
    for predicate in ground.herbrand.predicates:
        start, end = ground.herbrand.offsets[predicate.key]
        reached = depth[start:end][depth[start:end] != NEVER]
        if predicate.role == ir.DERIVED and len(reached) and predicate.key not in inner:
            first.setdefault(int(reached.min()), []).append(f"{ir.quoted(predicate.name)}/{len(predicate.types)}")
    return {
        "taken": program.steps, "needed": program.depth,
        "first": [{"step": step, "predicates": first[step]} for step in sorted(first)],
    }


def _clauses(subject: Explained) -> list[dict[str, Any]]:
    """Every clause in words, with its numbers; they count from 1."""
    ground = subject.program.ground
    needed, text = _needed(subject), GoalText(subject.program.source)
    stands_in = _stands_in(text)
    planned, per_pair = rows_of_plan(subject.program.lowered), np.diff(ground.pair_start)
    found = []
    for index, clause in enumerate(ground.clauses):
        said = sentence(clause, subject.program.source)
        notes = list(said.notes)
        words = stands_in.get(index, said.words)
        if needed and clause.head.key not in needed:
            notes.append(UNNEEDED[subject.program.settings.semantics])
        each = per_pair[ground.pair_clause == index]
        found.append({
            "number": index + 1, "clause": text.clause(clause),
            "words": words, "notes": notes, "counts": _counts(clause, text, ground),
            "heads": len(each),
            "substitutions": {"least": int(each.min(initial=ground.S)), "most": int(each.max(initial=0))},
            "live_rows": int(each.sum()), "plan_rows": planned[index],
            "share": planned[index] / max(1, sum(planned)),
        })
    return found


def _stands_in(text: GoalText) -> dict[int, str]:
    """Clauses of goals within goals, by number, with words that say where each stands."""
    clauses, found = text.program.clauses, {}
    for number, outer in enumerate(clauses, 1):
        for atom in outer.body:
            count = text.count_of(atom)
            for source in (count.of, count.less) if count else ():
                verb = "negates" if text.negated(atom) else "counts"
                if source and source.key in text.inner:
                    inner = (i for i, clause in enumerate(clauses) if clause.head.key == source.key)
                    found.update(dict.fromkeys(inner, f"What clause {number} {verb}."))
    return found


def _counts(clause: ir.Clause, text: GoalText, ground: GroundProgram) -> list[dict[str, Any]]:
    """What the negations and counts of a clause cost: atoms, how many each looks at, and choices in all, at most."""
    found = []
    for atom in dict.fromkeys(atom for atom in clause.body if text.count_of(atom)):
        first, last = ground.herbrand.offsets[atom.key]
        mine = np.flatnonzero((ground.counts.head >= first) & (ground.counts.head < last))
        solutions = np.diff(ground.counts.start)[mine]
        told_apart = np.maximum(np.diff(ground.counts.wanted_start)[mine] - 1, 1)
        found.append({"goal": text.goal(atom), "atoms": len(mine), "solutions": int(solutions.max(initial=0)),
                      "choices": int((solutions * told_apart).sum())})
    return found


def _needed(subject: Explained) -> set[ir.PredicateKey]:
    """Predicates that a target is derived from, targets included."""
    language = subject.program.ground.herbrand
    waiting = [key for key, (first, last) in language.offsets.items()
               if any(first <= target < last for target in subject.program.target_indices)]
    found: set[ir.PredicateKey] = set()
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [atom.key for c in subject.program.source.clauses if c.head.key == key for atom in c.body]
            count = subject.program.source.predicate(key).count
            waiting += [source.key for source in count.sources] if count else []
    return found


def rows_of_plan(plan: AnyPlan) -> list[int]:
    """Rows of each clause that an engine works through in a step."""
    first = np.asarray(plan.run_start, dtype=np.int64)[plan.pair_start]
    rows = np.zeros(plan.C, dtype=np.int64)
    np.add.at(rows, plan.pair_clause, np.diff(first))
    return [int(n) for n in rows]


def _cost(plan: AnyPlan) -> dict[str, int]:
    """What one step takes for one image, or all levels of an `anchored` program, each once."""
    if isinstance(plan, LevelPlan):
        rows = np.diff(plan.run_start.astype(np.int64)[plan.pair_start][plan.head_start])
        several = rows[rows > 1]  # a head with one reason takes it as it is
        return {
            "rows": plan.rows, "products": plan.products, "exponentials": int(several.sum()) + 2 * len(several),
            "choices": plan.choices,
            "V_bytes": plan.G * FLOAT_BYTES, "slots": plan.values, "slots_bytes": plan.values * FLOAT_BYTES,
            "plan_bytes": plan.nbytes,
        }
    return _cost_of_step(plan)


def _cost_of_step(plan: Plan) -> dict[str, int]:
    """Under `paper`.

    Exponentials, as the CPU engine has them: one a row; one a pair for its padding, and one for the soft-or over
    clauses, in which each head and each clause has one too; and one a slot for V' and for all passive slots.
    """
    pairs, heads = len(plan.pair_clause), len(plan.heads)
    return {
        "rows": plan.rows,
        "products": plan.products,
        "exponentials": plan.rows + 2 * pairs + heads + plan.C + plan.active + int(plan.active < plan.slots),
        "V_bytes": plan.G * FLOAT_BYTES,
        "slots": plan.active,
        "slots_bytes": plan.active * FLOAT_BYTES,
        "plan_bytes": plan.nbytes,
    }


def _passes(subject: Explained) -> list[dict[str, Any]]:
    """Numbers after each pass; of a .nsfrc file only those that it still has."""
    program = subject.program
    stages: Sequence[Stage] = subject.stages
    if not stages:
        ground, plan = program.ground, program.lowered
        atoms = plan.active if isinstance(plan, Plan) else plan.inputs + plan.heads
        stages = (Stage("ground" if program.anchored else "live", ground.active, ground.rows, ground.products),
                  Stage("plan", atoms, plan.rows, plan.products))
    table = pass_table(program.ground, stages)
    return [{**row, "note": STAGE_NOTES.get(row["pass"], "all other passes")} for row in table]
