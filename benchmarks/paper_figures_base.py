"""What the figures of `nsfrc figures` share: what is asked, what comes out, colours and letters."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which every kind of sight tells apart.
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
GREY = "#555555"
LETTERS: dict[Any, Any] = {
    "font.size": 10.5, "axes.titlesize": 11.5, "axes.labelsize": 10.5, "legend.fontsize": 9.5, "figure.titlesize": 14,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "grid.alpha": 0.3,
}


@dataclass(frozen=True)
class Wanted:
    """gamma: of soft-or. results: folder of the benchmark's files. count: how many figures, None for the usual
    number. seed: which figures. quiet: no progress on standard error."""

    gamma: float = 0.01
    results: Path | None = None
    count: int | None = None
    seed: int = 0
    quiet: bool = True


@dataclass(frozen=True, eq=False)
class Drawn:
    """A picture, and the numbers that it was drawn from: dataclass rows of one kind."""

    figure: Figure
    rows: Sequence[Any]


class Missing(NsfrcError):
    """What a figure is drawn from is not there."""


def canvas(width: float, height: float) -> Figure:
    """An empty picture, in inches; without pyplot, so that no window and no state is involved."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height))
    made.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
    return made


def thousands(value: float, _: object = None) -> str:
    """1000 → 1,000 and 0.1 → 0.1, for the numbers along an axis."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def as_png(figure: Figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return data.getvalue()


def as_csv(rows: Sequence[Any]) -> bytes:
    """One line per row, numbers with six digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(rows[0])])
    for row in rows:
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in asdict(row).values()])
    return text.getvalue().encode()
