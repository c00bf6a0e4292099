"""What the kernels did in an earlier version and do now, from two files that `nsfrc bench --parts ptx` wrote.

    git show REVISION:benchmarks/results/ptx.csv > before.csv
    python -m nsfrc.benchmarks.ptx_change before.csv          beside benchmarks/results/ptx.csv

Writes results/ptx_before_after.csv and, with matplotlib, ptx_before_after.png: counts of both and the change as a part
of the first. Counts that one of the files does not have are left out.
"""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

KEY = ("program", "kernel", "arch", "batch")
COUNTS = ("instructions", "special", "global_", "moves", "barriers", "sectors", "loaded_used", "bank_passes")
SHOWN = (("instructions", "instructions of warps"), ("sectors", "sectors"), ("barriers", "barriers"))
BEFORE, AFTER = "#b8bfd0", "#2a4bd7"


@dataclass(frozen=True)
class ChangeRow:
    program: str
    kernel: str
    arch: str
    batch: int
    what: str
    before: float
    after: float
    change: float


def read(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows by what they count; versions differ in their columns."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NsfrcError(f"{path}: cannot be read: {error}") from None
    missing = [name for name in KEY if not rows or name not in rows[0]]
    if missing:
        raise NsfrcError(f"{path}: no column {', '.join(missing)}; give a file that nsfrc bench --parts ptx wrote")
    return {tuple(row[name] for name in KEY): row for row in rows}


def changes(before: Path, after: Path) -> list[ChangeRow]:
    earlier, now = read(before), read(after)
    rows = []
    for key, row in now.items():
        program, kernel, arch, batch = key
        old = earlier.get(key, {})
        for what in (name for name in COUNTS if name in old and name in row):
            first, last = float(old[what]), float(row[what])
            change = last / first - 1 if first else 0.0
            rows.append(ChangeRow(program, kernel, arch, int(batch), what.rstrip("_"), first, last, change))
    return rows


def plot(rows: list[ChangeRow], path: Path, arch: str = "sm_80") -> None:
    """A panel a direction and count, a pair of bars a program."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kernels = ("program_forward", "program_backward")
    figure, axes = plt.subplots(len(kernels), len(SHOWN), figsize=(14, 7), squeeze=False, sharey="row")
    for panels, kernel in zip(axes, kernels, strict=True):
        for axis, (what, label) in zip(panels, SHOWN, strict=True):
            some = [row for row in rows if (row.kernel, row.what, row.arch) == (kernel, what, arch)]
            _bars(axis, some)
            axis.set_title(f"{label}, {kernel.removeprefix('program_')}s", fontsize=10)
    axes[0][0].legend(loc="lower right", fontsize=8)
    figure.suptitle(f"Machine code for {arch}, 32 examples: before and after (counts, not times)", fontsize=11)
    figure.tight_layout()
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, metadata={"Software": None})
    plt.close(figure)
    write_whole(path, picture.getvalue())


def _bars(axis: Any, rows: list[ChangeRow]) -> None:
    from matplotlib.ticker import MaxNLocator

    for place, row in enumerate(rows):
        axis.barh(place - 0.2, row.before, 0.4, color=BEFORE, label="before" if not place else None)
        axis.barh(place + 0.2, row.after, 0.4, color=AFTER, label="after" if not place else None)
        axis.text(max(row.before, row.after), place, f" {row.change:+.0%}", va="center", fontsize=8)
    axis.set_yticks(range(len(rows)), [row.program for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.14)
    axis.tick_params(axis="x", labelsize=8)
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.spines[["top", "right"]].set_visible(False)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="ptx.csv of an earlier version")
    parser.add_argument("after", type=Path, nargs="?", default=RESULTS / "ptx.csv")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    try:
        rows = changes(options.before, options.after)
    except NsfrcError as error:
        parser.error(str(error))
    write_csv(options.out / "ptx_before_after.csv", rows)
    plot(rows, options.out / "ptx_before_after.png")
    for row in rows:
        if row.what == "instructions":
            counts = f"{row.before:9,.0f} → {row.after:9,.0f} {row.change:+.1%}"
            print(f"{row.program:13} {row.kernel:22} {row.arch} {counts}")


if __name__ == "__main__":
    main()
