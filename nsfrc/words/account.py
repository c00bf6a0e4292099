"""What a compiled program is and what it costs, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsfrc import ir
from nsfrc.compiler import Compilation, Stage
from nsfrc.plan import Plan
from nsfrc.program import Program, from_compilation
from nsfrc.reach import NEVER, reach
from nsfrc.report import PASS_NOTES, index_tensor, pass_table
from nsfrc.words.again import read_back
from nsfrc.words.phrases import sentence

FLOAT_BYTES = 4  # of an entry of V
UNNEEDED = "No target needs this clause; its rows stay, as what it derives may be the largest value, the divisor Z."


@dataclass(frozen=True)
class Explained:
    """A program with its clauses (None where a text cannot be read back) and what its passes left, if known."""

    program: Program
    source: str
    clauses: tuple[ir.Clause | None, ...]
    stages: tuple[Stage, ...] = ()


def of_compilation(done: Compilation) -> Explained:
    return Explained(from_compilation(done), str(done.source), done.program.clauses, done.stages)


def of_artifact(program: Program, source: str) -> Explained:
    """A .nsfrc file has the texts of its clauses and the plan, but not what each pass did."""
    clauses = tuple(read_back(text, program.ground.herbrand) for text in program.clauses)
    return Explained(program, source, clauses)


def account(subject: Explained) -> dict[str, Any]:
    """Everything that `nsfrc explain` says."""
    program = subject.program
    ground = program.ground
    return {
        "program": program.name,
        "source": subject.source,
        "targets": program.targets,
        "perception": _perception(program),
        "facts": _facts(program),
        "steps": _steps(program),
        "clauses": _clauses(subject),
        "cost": _cost(program.plan),
        "index_tensor": {"shape": [ground.C, ground.G, ground.S, ground.L], **index_tensor(ground)},
        "passes": _passes(subject),
    }


def signature(predicate: ir.Predicate) -> str:
    return ir.atom_text(predicate.name, [ir.quoted(name) for name in predicate.types])


def _perception(program: Program) -> dict[str, Any]:
    """What perception must value: its neural predicates and how many atoms each has."""
    language = program.ground.herbrand
    neural = [p for p in language.predicates if p.role == ir.NEURAL]
    counts = [language.offsets[p.key][1] - language.offsets[p.key][0] for p in neural]
    return {
        "name": program.settings.perception,
        "atoms": sum(counts),
        "predicates": [{"predicate": signature(p), "atoms": n} for p, n in zip(neural, counts, strict=True)],
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
    """In which step a predicate can be derived first, were all that perception says true."""
    ground = program.ground
    depth = reach(ground).depth
    first: dict[int, list[str]] = {}
    for predicate in ground.herbrand.predicates:
        start, end = ground.herbrand.offsets[predicate.key]
        reached = depth[start:end][depth[start:end] != NEVER]
        if predicate.role == ir.DERIVED and len(reached):
            first.setdefault(int(reached.min()), []).append(f"{ir.quoted(predicate.name)}/{len(predicate.types)}")
    return {
        "taken": program.steps, "needed": program.depth,
        "first": [{"step": step, "predicates": first[step]} for step in sorted(first)],
    }


def _clauses(subject: Explained) -> list[dict[str, Any]]:
    """Every clause in words, with its numbers; they count from 1."""
    ground = subject.program.ground
    predicates = {p.key: p for p in ground.herbrand.predicates}
    roles = {t.name: t.role for t in ground.herbrand.types}
    needed = _needed(subject)
    planned, per_pair = rows_of_plan(subject.program.plan), np.diff(ground.pair_start)
    found = []
    for index, (text, clause) in enumerate(zip(ground.clauses, subject.clauses, strict=True)):
        said = sentence(clause, predicates, roles) if clause else None
        notes = list(said.notes) if said else []
        if clause and needed and clause.head.key not in needed:
            notes.append(UNNEEDED)
        each = per_pair[ground.pair_clause == index]
        found.append({
            "number": index + 1, "clause": text,
            "words": said.words if said else None, "notes": notes,
            "heads": len(each),
            "substitutions": {"least": int(each.min(initial=ground.S)), "most": int(each.max(initial=0))},
            "live_rows": int(each.sum()), "plan_rows": planned[index],
            "share": planned[index] / max(1, sum(planned)),
        })
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
            waiting += [atom.key for c in subject.clauses if c and c.head.key == key for atom in c.body]
    return found


def rows_of_plan(plan: Plan) -> list[int]:
    """Rows of each clause that an engine works through in a step."""
    first = np.asarray(plan.run_start, dtype=np.int64)[plan.pair_start]
    rows = np.zeros(plan.C, dtype=np.int64)
    np.add.at(rows, plan.pair_clause, np.diff(first))
    return [int(n) for n in rows]


def _cost(plan: Plan) -> dict[str, int]:
    """What one step takes for one image.

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
        ground, plan = program.ground, program.plan
        stages = (Stage("live", ground.active, ground.rows, ground.products),
                  Stage("plan", plan.active, plan.rows, plan.products))
    table = pass_table(program.ground, stages)
    return [{**row, "note": PASS_NOTES.get(row["pass"], "all other passes")} for row in table]
