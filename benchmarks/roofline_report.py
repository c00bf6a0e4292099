"""Tables and the plot of `benchmarks.roofline`, from its rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.compiler.plan import Plan
from nsfrc.files import write_whole

if TYPE_CHECKING:
    from nsfrc.benchmarks.roofline import RooflineRow

NAMES = {"mul": "multiplications", "add": "additions", "exp": "exponentials", "log": "logarithms", "div": "divisions"}
FUSED, DENSE = "#2a4bd7", "#b03030"


def describe(plan: Plan, rows: list[RooflineRow]) -> str:
    """A program with one kind of inputs: what an example costs on a full card, then times by batch."""
    first = rows[0]
    lines = [
        f'{first.program}, inputs="{first.inputs}" (MODEL of the {first.card}: nothing here was measured)',
        f"  {plan.rows:,} rows, {plan.nodes:,} shared products, {len(plan.pair_clause):,} pairs of clause and head, "
        f"{plan.slots:,} slots, {first.steps} steps; tables {_bytes(first.tables_bytes)}",
    ]
    return "\n".join([*lines, *_example(rows), *_batches(rows), ""])


def _example(rows: list[RooflineRow]) -> list[str]:
    """Operations, bytes and bounds of an example in the largest batch, whole-program kernels."""
    of = {r.direction: r for r in rows if r.kernels == "program" and r.batch == max(x.batch for x in rows)}
    sides = [of["forward"], of["training"]]
    entries = [("an example, kernels/program.py", ["forward", "training"])]
    for name, text in NAMES.items():
        entries.append((f"{text} (done in tiles)",
                        [f"{getattr(r, name):,} ({getattr(r, name + '_done'):,})" for r in sides]))
    entries += [
        ("bytes, compulsory", [_bytes(r.compulsory_bytes) for r in sides]),
        ("bytes, L1 / L2 / memory",
         [" / ".join(_bytes(b) for b in (r.l1_bytes, r.l2_bytes, r.memory_bytes)) for r in sides]),
        ("workspace of an instance", [f"{_bytes(r.workspace_bytes)}, from {r.level}" for r in sides]),
        ("bound on a full card, by", [f"{r.bound_ns:.2f} ns, {r.limit}" for r in sides]),
        ("one example alone", [_time(r.floor) for r in sides]),
        ("the card is full from batch", [f"{r.full_from:,}" for r in sides]),
        ("dense: bytes", [_bytes(r.dense_bytes) for r in sides]),
        ("dense: operations, exponentials", [f"{r.dense_flops:.3g}, {r.dense_exps:.3g}" for r in sides]),
    ]
    return [f"    {text:34}" + "".join(f"{side:>34}" for side in both) for text, both in entries]


def _batches(rows: list[RooflineRow]) -> list[str]:
    lines = [f"    {'batch':>9}  {'direction':9} {'kernels':8} {'fused':>9} {'the other':>10}"
             f" {'dense':>9} {'dense memory':>14} {'dense/fused':>12}"]
    for direction in ("forward", "training"):
        for row in (r for r in rows if r.chosen and r.direction == direction):
            other = next(r for r in rows if (r.direction, r.batch) == (direction, row.batch) and not r.chosen)
            assert row.dense_seconds is not None and row.dense_over is not None
            memory = _bytes(row.dense_gb * 1e9) + (" " if row.dense_fits else "!")
            lines.append(
                f"    {row.batch:>9,}  {direction:9} {row.kernels:8} {_time(row.seconds):>9} {_time(other.seconds):>10}"
                f" {_time(row.dense_seconds):>9} {memory:>14} {row.dense_over:>11,.0f}×"
            )
    return [*lines, "    ! more than the card has"] if any(not r.dense_fits for r in rows) else lines


def measured_line(row: RooflineRow) -> str:
    assert row.over_model is not None and row.p20 is not None and row.p80 is not None
    dense = f"dense {_time(row.dense_seconds)}, {row.dense_over:,.0f}×" if row.dense_seconds and row.dense_over else ""
    return (
        f"  MEASURED on {row.card}: {row.program:13} inputs={row.inputs:6} {row.direction:8} B={row.batch:<7,} "
        f"{row.kernels:7} {_time(row.seconds):>9} ({_time(row.p20)} to {_time(row.p80)}), "
        f"{row.over_model:.2f}× the model  {dense}"
    )


def plot(rows: list[RooflineRow], path: Path) -> None:
    """Time by batch size, a panel a program: fused and dense, forward and training, for neural inputs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(r.program for r in rows))
    columns = min(4, len(names))
    lines = -(-len(names) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4 * columns, 3.6 * lines + 1), sharex=True, sharey=True,
                                squeeze=False)
    for axis in axes.flat[len(names):]:
        axis.set_visible(False)
    for name, axis in zip(names, axes.flat, strict=False):
        _panel(axis, [r for r in rows if r.program == name and r.inputs == "neural"])
    for axis in axes[-1]:
        axis.set_xlabel("batch size")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds per batch")
    any_measured = any(r.kind == "measured" for r in rows)
    title = f"MODEL of the {rows[0].card} from published figures"
    figure.suptitle(title + ("; dots are measured" if any_measured else ": nothing here was measured"), fontsize=13)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=110)
    plt.close(figure)
    write_whole(path, image.getvalue())


def _panel(axis: Any, rows: list[RooflineRow]) -> None:
    for direction, style in (("forward", "-"), ("training", "--")):
        mine = sorted((r for r in rows if r.kind == "model" and r.chosen and r.direction == direction),
                      key=lambda r: r.batch)
        batches = [r.batch for r in mine]
        axis.plot(batches, [r.seconds for r in mine], style, color=FUSED, label=f"fused, {direction}")
        fits = [r for r in mine if r.dense_fits]
        over = [r for r in mine if not r.dense_fits]
        edge = fits[-1:] + over
        axis.plot([r.batch for r in fits], [r.dense_seconds for r in fits], style, color=DENSE,
                  label=f"dense, {direction}")
        axis.plot([r.batch for r in edge], [r.dense_seconds for r in edge], style, color=DENSE, alpha=0.25)
        axis.plot([r.batch for r in over], [r.dense_seconds for r in over], "x", color=DENSE, ms=5,
                  label="dense, over 40 GB" if direction == "forward" else None)
        dots = [r for r in rows if r.kind == "measured" and r.chosen and r.direction == direction]
        axis.plot([r.batch for r in dots], [r.seconds for r in dots], "o", color=FUSED, ms=4,
                  mfc="none" if direction == "training" else FUSED)
        known = [r for r in dots if r.dense_seconds]
        axis.plot([r.batch for r in known], [r.dense_seconds for r in known], "o", color=DENSE, ms=4,
                  mfc="none" if direction == "training" else DENSE)
    full = next(r.full_from for r in rows if r.kernels == "program" and r.direction == "forward")
    axis.axvline(full, color="#555555", lw=0.8, ls=":", label="card full, forward")
    forward = [r for r in rows if r.kind == "model" and r.chosen and r.direction == "forward" and r.dense_fits]
    best = max(forward, key=lambda r: r.batch, default=None)
    ratio = f"\n{best.dense_over:,.0f}× forward at {best.batch:,}, where dense fits" if best else ""
    axis.set(xscale="log", yscale="log")
    axis.set_title(f"{rows[0].program}{ratio}", fontsize=10)
    axis.grid(alpha=0.3)


def _bytes(n: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"


def _time(seconds: float) -> str:
    if seconds >= 1000:
        return f"{seconds:,.0f} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
