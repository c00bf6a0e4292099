"""What `nsfrc compile` tells: sizes before and after every pass, as data and as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.compiler.goal_text import GoalText
from nsfrc.compiler.grounded import GroundProgram
from nsfrc.compiler.ir import CHANCE, COMPARED
from nsfrc.compiler.levels import AnyPlan, LevelPlan
from nsfrc.compiler.passes import ALL
from nsfrc.compiler.stages import Compilation, Stage
from nsfrc.errors import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsfrc.engines.gpu.aot import Compiled

STAGE_NOTES = {
    "dense": "the paper's index tensor",
    "ground": "one row for every substitution",
    **{name: one.note for name, one in ALL.items()},
}


def as_data(done: Compilation, artifact: Path | None, kernels: Sequence[Compiled] = ()) -> dict[str, Any]:
    """The report as plain data, for --json. artifact: the file or folder written; kernels: those compiled."""
    ground, plan, text = done.ground, done.plan, GoalText(done.program)
    return {
        "program": done.program.name,
        "source": str(done.source),
        "C": ground.C, "G": ground.G, "S": ground.S, "L": ground.L,
        "targets": [str(t) for t in done.program.targets],
        "classes": [str(t) for t in done.program.classes],
        "semantics": done.program.settings.semantics,
        "steps": done.steps,
        "levels": levels(plan),
        "depth": done.depth,
        "comparisons": _of_role(done, COMPARED),
        "probabilities": _of_role(done, CHANCE),
        "index_tensor": index_tensor(ground),
        "passes": pass_table(ground, done.stages),
        "clauses": [
            {"clause": text.clause(clause), "rows": rows}
            for clause, rows in zip(ground.clauses, done.rows_by_clause, strict=True)
        ],
        "plan_bytes": plan.nbytes,
        "seconds": {name: round(s, 4) for name, s in done.seconds.items()},
        "kernels": [_kernel(one) for one in kernels],
        "artifact": None if artifact is None else str(artifact),
        "warnings": [w.as_json() for w in done.warnings],
    }


def _of_role(done: Compilation, role: str) -> int:
    return sum(predicate.role == role for predicate in done.program.predicates)


def levels(plan: AnyPlan) -> list[dict[str, int]] | None:
    """What an `anchored` plan computes level by level; rounds: 0 where nothing depends on itself. None for `paper`."""
    if not isinstance(plan, LevelPlan):
        return None
    rows = plan.run_start.astype(int)[plan.pair_start][plan.head_start]
    heads, nodes, choices = (starts.astype(int) for starts in (plan.block_heads, plan.block_nodes, plan.block_choices))
    return [
        {"heads": int(heads[i + 1] - heads[i]), "rows": int(rows[heads[i + 1]] - rows[heads[i]]),
         "nodes": int(nodes[i + 1] - nodes[i]), "choices": int(choices[i + 1] - choices[i]),
         "rounds": int(plan.block_rounds[i])}
        for i in range(plan.blocks)
    ]


def how_it_reasons(semantics: str, steps: int, blocks: Sequence[dict[str, int]] | None) -> str:
    """`paper, 4 steps`, `anchored, 3 levels, 1 of them recursive (up to 6 rounds)`."""
    if blocks is None:
        return f"{semantics}, {count(steps, 'step')}"
    own = sum(block["rounds"] > 0 for block in blocks)
    recursive = f", {own} of them recursive ({count(steps, 'round')} at most)" if own else ""
    return f"{semantics}, {count(len(blocks), 'level')}{recursive}"


def index_tensor(ground: GroundProgram) -> dict[str, Any]:
    """How large the paper's dense index tensor is, and how much of it can ever hold."""
    dense_rows = ground.C * ground.G * ground.S
    return {
        "entries": dense_rows * ground.L,
        "bytes": dense_rows * ground.L * 8,
        "live_rows": ground.rows,
        "live_share": ground.rows / dense_rows,
    }


def pass_table(ground: GroundProgram, stages: Sequence[Stage]) -> list[dict[str, Any]]:
    """Atoms, rows and products of the dense form and after each stage."""
    rows = ground.C * ground.G * ground.S
    table = [{"pass": "dense", "atoms": ground.G, "rows": rows, "products": rows * (ground.L - 1)}]
    return table + [{"pass": s.name, "atoms": s.atoms, "rows": s.rows, "products": s.products} for s in stages]


def as_text(data: dict[str, Any]) -> str:
    """The report for people."""
    shape = " × ".join(str(data[k]) for k in "CGSL")
    index = data["index_tensor"]
    lines = [
        f"{data['program']}: {count(data['C'], 'clause')} (C), {count(data['G'], 'ground atom')} (G), "
        f"up to {count(data['S'], 'substitution')} (S), bodies up to {count(data['L'], 'atom')} (L)",
        f"{asked(data['targets'], data['classes'])}; "
        f"{how_it_reasons(data['semantics'], data['steps'], data['levels'])}",
        *_measured(data),
        "",
        f"dense index tensor {shape}: {index['entries']:,} entries, {size(index['bytes'])} as int64; "
        f"{index['live_rows']:,} rows of it are live ({percent(index['live_share'])})",
        "",
        *_table(data["passes"]),
        "",
        *_costliest(data["clauses"]),
        *_choices(data["levels"]),
        f"plan: {size(data['plan_bytes'])}, compiled in {sum(data['seconds'].values()):.2f} s",
    ]
    if data["kernels"]:
        lines += ["", *_kernel_table(data["kernels"]), ""]
    if data["artifact"]:
        lines.append(f"written to {data['artifact']}")
    return "\n".join(lines)


def asked(targets: Sequence[str], classes: Sequence[str]) -> str:
    """`targets: red(img); classes: kp1(img), kp2(img)`; the classes are the last of the targets."""
    own = targets[: len(targets) - len(classes)]
    parts = [f"targets: {', '.join(own) or 'none'}"] if own or not classes else []
    return "; ".join([*parts, f"classes: {', '.join(classes)}"] if classes else parts)
def _measured(data: dict[str, Any]) -> list[str]:
    """A line of comparisons and probabilities, where there are any."""
    parts = [f"{data[kind]:,} {one if data[kind] == 1 else several}" for kind, one, several in (
        ("comparisons", "comparison of numbers", "comparisons of numbers"),
        ("probabilities", "probability", "probabilities"),
    ) if data[kind]]
    return [" and ".join(parts) + " among its inputs"] if parts else []


def _table(stages: list[dict[str, Any]]) -> list[str]:
    lines = [f"  {'pass':<12} {'atoms':>7} {'rows':>12} {'products':>13}"]
    for stage in stages:
        note = STAGE_NOTES.get(stage["pass"], "")
        lines.append(
            f"  {stage['pass']:<12} {stage['atoms']:>7,} {stage['rows']:>12,} {stage['products']:>13,}   {note}"
        )
    return lines


def _kernel(one: Compiled) -> dict[str, Any]:
    return {
        "kernel": one.name, "variant": one.variant, "arch": one.arch, "registers": one.registers,
        "spill_bytes": one.spill_bytes, "stack_bytes": one.stack_bytes, "shared_bytes": one.shared,
        "ptx_bytes": len(one.ptx), "cubin_bytes": len(one.cubin),
    }


def _kernel_table(kernels: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"kernels for {kernels[0]['arch']}, compiled and not run:",
        f"  {'kernel':<17} {'variant':<16} {'registers':>9} {'spills':>7} {'shared':>9} {'PTX':>9} {'cubin':>9}",
    ]
    for one in kernels:
        spilt, shared, ptx, cubin = (size(one[f"{name}_bytes"]) for name in ("spill", "shared", "ptx", "cubin"))
        lines.append(
            f"  {one['kernel']:<17} {one['variant']:<16} {one['registers']:>9} "
            f"{spilt if one['spill_bytes'] else 'none':>7} {shared:>9} {ptx:>9} {cubin:>9}"
        )
    return lines


def _costliest(clauses: list[dict[str, Any]]) -> list[str]:
    total = sum(c["rows"] for c in clauses)
    if not total:
        return []
    most = max(clauses, key=lambda c: c["rows"])
    text = most["clause"] if len(most["clause"]) <= 90 else most["clause"][:87] + "..."
    return [f"costliest clause: {most['rows']:,} of {total:,} rows ({percent(most['rows'] / total)})", f"  {text}"]


def _choices(blocks: Sequence[dict[str, int]] | None) -> list[str]:
    """What negations and counts take, level by level."""
    choices = [block["choices"] for block in blocks or ()]
    if not sum(choices):
        return []
    by_level = ", ".join(f"{number:,} in level {i}" for i, number in enumerate(choices, 1) if number)
    return [f"negations and counts: {count(sum(choices), 'choice')} between two values ({by_level})"]


def percent(share: float) -> str:
    """A share of 1 in per cent; small ones keep two digits."""
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"


def size(nbytes: int) -> str:
    """Bytes as people say them: `981 bytes`, `448.5 kB`."""
    number = float(nbytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError
