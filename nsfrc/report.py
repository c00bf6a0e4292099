"""What `nsfrc compile` tells: sizes before and after every pass, as data and as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.compiler import Compilation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsfrc.engines.gpu.aot import Compiled

_PASS_NOTES = {
    "dense": "the paper's index tensor",
    "ground": "equal padding rows written once",
    "live": "only rows that can hold",
    "multiset": "equal rows counted",
    "number": "equal atoms merged",
    "goal": "only what the targets need",
    "share": "common products computed once",
}


def as_data(done: Compilation, artifact: Path | None, kernels: Sequence[Compiled] = ()) -> dict[str, Any]:
    """The report as plain data, for --json. artifact: the file or folder written; kernels: those compiled."""
    ground, plan = done.ground, done.plan
    dense_rows = ground.C * ground.G * ground.S
    stages = [{"pass": "dense", "atoms": ground.G, "rows": dense_rows, "products": dense_rows * (ground.L - 1)}]
    stages += [{"pass": s.name, "atoms": s.atoms, "rows": s.rows, "products": s.products} for s in done.stages]
    return {
        "program": done.program.name,
        "source": str(done.source),
        "C": ground.C, "G": ground.G, "S": ground.S, "L": ground.L,
        "targets": [str(t) for t in done.program.targets],
        "steps": done.steps,
        "depth": done.depth,
        "index_tensor": {
            "entries": dense_rows * ground.L,
            "bytes": dense_rows * ground.L * 8,
            "live_rows": ground.rows,
            "live_share": ground.rows / dense_rows,
        },
        "passes": stages,
        "clauses": [
            {"clause": text, "rows": rows} for text, rows in zip(ground.clauses, done.rows_by_clause, strict=True)
        ],
        "plan_bytes": plan.nbytes,
        "seconds": {name: round(s, 4) for name, s in done.seconds.items()},
        "kernels": [_kernel(one) for one in kernels],
        "artifact": None if artifact is None else str(artifact),
        "warnings": [w.as_json() for w in done.warnings],
    }


def as_text(data: dict[str, Any]) -> str:
    """The report for people."""
    shape = " × ".join(str(data[k]) for k in "CGSL")
    index = data["index_tensor"]
    lines = [
        f"{data['program']}: {_count(data['C'], 'clause')} (C), {_count(data['G'], 'ground atom')} (G), "
        f"up to {_count(data['S'], 'substitution')} (S), bodies up to {_count(data['L'], 'atom')} (L)",
        f"targets: {', '.join(data['targets']) or 'none'}; {_count(data['steps'], 'step')}",
        "",
        f"dense index tensor {shape}: {index['entries']:,} entries, {_size(index['bytes'])} as int64; "
        f"{index['live_rows']:,} rows of it are live ({_percent(index['live_share'])})",
        "",
        *_table(data["passes"]),
        "",
        *_costliest(data["clauses"]),
        f"plan: {_size(data['plan_bytes'])}, compiled in {sum(data['seconds'].values()):.2f} s",
    ]
    if data["kernels"]:
        lines += ["", *_kernel_table(data["kernels"]), ""]
    if data["artifact"]:
        lines.append(f"written to {data['artifact']}")
    return "\n".join(lines)


def _table(stages: list[dict[str, Any]]) -> list[str]:
    lines = [f"  {'pass':<9} {'atoms':>7} {'rows':>12} {'products':>13}"]
    for stage in stages:
        note = _PASS_NOTES.get(stage["pass"], "")
        lines.append(
            f"  {stage['pass']:<9} {stage['atoms']:>7,} {stage['rows']:>12,} {stage['products']:>13,}   {note}"
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
        spilt, shared, ptx, cubin = (_size(one[f"{name}_bytes"]) for name in ("spill", "shared", "ptx", "cubin"))
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
    return [f"costliest clause: {most['rows']:,} of {total:,} rows ({_percent(most['rows'] / total)})", f"  {text}"]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError
