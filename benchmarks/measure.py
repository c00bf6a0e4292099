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

from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

RESULTS = Path(__file__).parent / "results"
MEASURED_WITH = "measured_with"


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


LEAST, PATIENCE = 3, 4.0  # what takes long runs so often, within so many seconds, but once at least
TURNS = 4


def timed(work: Callable[[], object], budget: float = 0.5) -> Timing:
    """Run once to warm up, then until the budget (seconds) is spent; what is longer than that runs as LEAST says."""
    first = _seconds(work)
    if first <= budget:
        return timing(_runs(work, budget, LEAST))
    times = [first]
    while _again(times):
        times.append(_seconds(work))
    return timing(times)


def timed_beside(
    work: Callable[[], object], baseline: Callable[[], object] | None, budget: float = 0.5
) -> tuple[Timing, Timing | None]:
    """Work and its baseline in turns, so that both meet the same moods of a shared machine, whose clock wanders.

    budget: seconds for each of the two; a baseline that is longer runs as LEAST says. None: work alone.
    """
    if baseline is None:
        return timed(work, budget), None
    _seconds(work)  # warms up
    part = budget / (TURNS + 1)
    mine, first = _runs(work, part), _seconds(baseline)
    slow = [first]
    quick: list[float] = []
    for _ in range(TURNS):
        mine += _runs(work, part)
        if first <= budget:
            quick += _runs(baseline, budget / TURNS)
        elif _again(slow):
            slow.append(_seconds(baseline))
    return timing(mine), timing(quick or slow)


def _again(times: Sequence[float]) -> bool:
    """Whether something long is run once more."""
    return len(times) < LEAST and sum(times) + times[0] < PATIENCE


def _runs(work: Callable[[], object], budget: float, least: int = 1) -> list[float]:
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < least or time.perf_counter() - start < budget:
        times.append(_seconds(work))
    return times


def _seconds(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


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
    """Dataclass rows as CSV, with the machine's columns added. first: the columns to begin with.

    Rows that `read_csv` gave keep the machine's columns that they had.
    """
    rows = list(rows)
    text = io.StringIO()
    names = [f.name for f in fields(rows[0])]  # type: ignore[arg-type]
    writer = csv.DictWriter(text, [*first, *(name for name in names if name not in first), *machine()])
    writer.writeheader()
    for row in rows:
        values = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(row).items()}  # type: ignore[call-overload]
        writer.writerow({**values, **getattr(row, MEASURED_WITH, machine())})
    write_whole(path, text.getvalue().encode())


def read_csv(path: Path, row: type) -> list[Any]:
    """Rows that `write_csv` wrote, as their dataclass again; each remembers the machine it was measured on."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NsfrcError(f"{path}: cannot be read: {error}") from None
    kinds = typing.get_type_hints(row)
    found = []
    for number, line in enumerate(lines, 2):
        try:
            made = row(**{f.name: _value(line[f.name], kinds[f.name]) for f in fields(row)})
        except (KeyError, ValueError, TypeError) as error:
            what = f"has no column {error}" if isinstance(error, KeyError) else f"line {number}: {error}"
            raise NsfrcError(f"{path} {what}: it was not written by this version; measure it again") from None
        # Beside the fields: it takes no part in comparing rows. The rows are frozen, hence this way.
        object.__setattr__(made, MEASURED_WITH, {name: line.get(name) or "unknown" for name in machine()})
        found.append(made)
    return found


def measured_with(row: Any) -> str:
    """The machine of a row, in words."""
    return ", ".join(f"{name} {value}" for name, value in getattr(row, MEASURED_WITH, machine()).items()
                     if value != "none")


def _value(text: str, kind: Any) -> Any:
    if isinstance(kind, types.UnionType):
        if not text:
            return None
        kind = next(one for one in typing.get_args(kind) if one is not type(None))
    return text == "True" if kind is bool else kind(text)


def memory_mb(entry: str) -> float:
    """What Linux says of this process: VmRSS is what it holds, VmHWM the most it held."""
    # Not getrusage: its peak starts from the parent's memory.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(f"{entry}:")) / 1e3


def in_child(code: str) -> dict[str, float]:
    """Run Python code that fills a dict `result`; adds the child's peak memory in GB."""
    script = f"import json\nfrom nsfrc.benchmarks.measure import memory_mb\nresult = {{}}\n{code}\n" \
        "result['peak_gb'] = memory_mb('VmHWM') / 1e3\nprint(json.dumps(result))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise NsfrcError(f"a process that measures failed: {last}")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer
