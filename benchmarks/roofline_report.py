"""Lines and the picture of `benchmarks.roofline`, from its rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.benchmarks.parts import seconds, times
from nsfrc.files import write_whole

if TYPE_CHECKING:
    from nsfrc.benchmarks.roofline import RooflineRow

# Columns, with what the picture calls and how it shows them.
RESOURCES = (
    ("issue_ns", "issue slots", "o", "#2a4bd7"), ("special_ns", "special functions", "^", "#2f8f4e"),
    ("l2_ns", "second cache", "s", "#c77d00"), ("memory_ns", "memory", "D", "#8a3fb0"),
)
DENSE = "#b03030"


def describe(row: RooflineRow) -> str:
    """What an example costs on a full card."""
    beside = ""
    if row.dense_seconds is not None and row.dense_over is not None:
        fits = "" if row.dense_fits else " (more than the card's memory)"
        beside = f"; dense {seconds(row.dense_seconds / row.batch)}, {times(row.dense_over)}{fits}"
    return (
        f"{_what(row)} MODEL of the {row.card}, not measured: {row.instructions:,.0f} instructions, "
        f"{row.sectors:,.0f} sectors, {row.missed_bytes:,.0f} bytes of memory → {seconds(row.bound_ns / 1e9)} "
        f"an example by {row.limit}, {row.of_roofline:.0%} of the roofline{beside}"
    )


def measured_line(row: RooflineRow) -> str:
    assert row.over_model is not None
    dense = f"; dense {seconds(row.dense_seconds)}, {times(row.dense_over)}" if row.dense_seconds else ""
    return (
        f"{_what(row)} MEASURED on {row.card}, batch {row.batch:,}: {seconds(row.seconds)} "
        f"({seconds(row.p20)} to {seconds(row.p80)}), {times(row.over_model)} the bound{dense}"
    )


def _what(row: RooflineRow) -> str:
    return f"{row.program:13} {row.semantics:8} {row.objects} objects {row.direction:8} {row.kernels:8}"


def plot(rows: list[RooflineRow], path: Path) -> None:
    """Time of an example by resource, a panel a direction, with the kernels that a full card is given."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [row for row in rows if row.chosen]
    names = list(dict.fromkeys(_label(row) for row in shown))
    figure, axes = plt.subplots(1, 2, figsize=(13, 0.34 * len(names) + 2.4), sharex=True, sharey=True, squeeze=False)
    for direction, axis in zip(("forward", "training"), axes[0], strict=True):
        _panel(axis, [row for row in shown if row.direction == direction], names)
        axis.set(title=direction, xscale="log", xlabel="nanoseconds an example on a full card")
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    any_measured = any(row.kind == "measured" for row in rows)
    card = next(row.card for row in rows if row.kind == "model")
    figure.suptitle(f"MODEL of the {card}: counted work over published rates, the largest is the bound"
                    + ("; + is measured" if any_measured else "; nothing here was measured"), fontsize=12)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=110)
    plt.close(figure)
    write_whole(path, image.getvalue())


def _label(row: RooflineRow) -> str:
    return f"{row.program}, {row.semantics}, {row.objects} objects"


def _panel(axis: Any, rows: list[RooflineRow], names: list[str]) -> None:
    models = [row for row in rows if row.kind == "model"]
    at = [names.index(_label(row)) for row in models]
    axis.hlines(at, [min(getattr(row, column) for column, *_ in RESOURCES) for row in models],
                [row.bound_ns for row in models], color="#bbbbbb", lw=1, zorder=0)
    for column, text, mark, colour in RESOURCES:
        axis.plot([getattr(row, column) for row in models], at, mark, color=colour, ms=5, label=text)
    for fits, mark in ((True, "x"), (False, "1")):
        known = [row for row in models if row.dense_seconds and row.dense_fits is fits]
        axis.plot([(row.dense_seconds or 0.0) / row.batch * 1e9 for row in known],
                  [names.index(_label(row)) for row in known], mark, color=DENSE, ms=7,
                  label="dense PyTorch" + ("" if fits else f", not within memory at {models[0].batch:,}"))
    dots = [row for row in rows if row.kind == "measured"]
    axis.plot([row.seconds / row.batch * 1e9 for row in dots], [names.index(_label(row)) for row in dots], "k+", ms=7)
    axis.grid(alpha=0.3)
