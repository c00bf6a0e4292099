"""What every benchmark shares: timed rows beside their baseline, typed CSV files written whole, child processes."""

from __future__ import annotations

import csv
import io
import json
import platform
import statistics
import subprocess
import sys
import time
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nsfrc.artifact import write_whole
from nsfrc.errors import NsfrcError

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs."""

    median: float
    p20: float
    p80: float
    runs: int


@dataclass(frozen=True)
class Compared:
    """Seconds of repeated runs beside those of a baseline in the same run; the base of every timed row.

    ratio: how many times as fast as the baseline; empty, like the baseline's columns, where that could not be run.
    """

    median: float
    p20: float
    p80: float
    runs: int
    baseline: str
    baseline_median: float | None
    baseline_p20: float | None
    baseline_p80: float | None
    baseline_runs: int
    ratio: float | None


def compared(mine: Timing, name: str, base: Timing | None) -> dict[str, Any]:
    """The fields of `Compared`, to build a row that extends it: Row(**compared(…), program=…)."""
    return {
        **asdict(mine), "baseline": name, "baseline_median": base and base.median, "baseline_p20": base and base.p20,
        "baseline_p80": base and base.p80, "baseline_runs": base.runs if base else 0,
        "ratio": base and base.median / mine.median,
    }


def timing(seconds: Iterable[float]) -> Timing:
    """Median and percentiles of runs that were timed elsewhere."""
    times = sorted(seconds)
    return Timing(statistics.median(times), times[len(times) // 5], times[len(times) * 4 // 5], len(times))


def timed(work: Callable[[], object], budget: float = 0.5, most: int = 200, least: int = 3) -> Timing:
    """Run once to warm up, then until the budget (seconds) is spent; what takes longer than that runs once only."""
    start = time.perf_counter()
    work()
    first = time.perf_counter() - start
    if first > budget:
        return Timing(first, first, first, 1)
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < most and (len(times) < least or time.perf_counter() - start < budget):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return timing(times)


@cache
def machine() -> dict[str, str]:
    """Versions, the processor and the card, kept with every row."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = f"{models[0]} × {len(models)}" if models else name
    versions = {library: _version(library) for library in ("nsfrc", "torch", "numba", "triton")}
    return {**versions, "python": platform.python_version(), "cpu": name, "gpu": _gpu()}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"


def write_csv(path: Path, rows: Iterable[object], first: Sequence[str] = ()) -> None:
    """Dataclass rows as CSV, with the machine's columns added. first: the columns to begin with."""
    rows = list(rows)
    text = io.StringIO()
    names = [f.name for f in fields(rows[0])]  # type: ignore[arg-type]
    about = machine()
    writer = csv.DictWriter(text, [*first, *(name for name in names if name not in first), *about])
    writer.writeheader()
    for row in rows:
        values = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(row).items()}  # type: ignore[call-overload]
        writer.writerow({**values, **about})
    write_whole(path, text.getvalue().encode())


def read_csv(path: Path, row: type) -> list[Any]:
    """Rows that `write_csv` wrote, as their dataclass again; the machine's columns are left out."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NsfrcError(f"{path}: cannot be read: {error}") from None
    kinds = typing.get_type_hints(row)
    found = []
    for number, line in enumerate(lines, 2):
        try:
            found.append(row(**{f.name: _value(line[f.name], kinds[f.name]) for f in fields(row)}))
        except (KeyError, ValueError, TypeError) as error:
            what = f"has no column {error}" if isinstance(error, KeyError) else f"line {number}: {error}"
            raise NsfrcError(f"{path} {what}: it was not written by this version; measure it again") from None
    return found


def made_with(path: Path, row: type) -> str:
    """The machine's columns of a CSV file's first row, in words."""
    with path.open(newline="", encoding="utf-8") as file:
        line = next(csv.DictReader(file))
    mine = {f.name for f in fields(row)}
    return ", ".join(f"{name} {value}" for name, value in line.items() if name not in mine and value != "none")


def _value(text: str, kind: Any) -> Any:
    if isinstance(kind, types.UnionType):
        if not text:
            return None
        kind = next(one for one in typing.get_args(kind) if one is not type(None))
    return text == "True" if kind is bool else kind(text)


def in_child(code: str) -> dict[str, float]:
    """Run Python code that fills a dict `result`; adds the child's peak memory in GB."""
    # VmHWM and not getrusage: the latter starts from the parent's memory.
    script = f"import json, re\nresult = {{}}\n{code}\n" \
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())\n" \
        "result['peak_gb'] = int(peak[1]) / 1e6\nprint(json.dumps(result))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer
