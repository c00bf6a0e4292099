"""What every benchmark shares: timed rows with their versions, CSV files written whole, child processes."""

from __future__ import annotations

import csv
import io
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path

from nsfrc.artifact import write_whole

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs."""

    median: float
    p20: float
    p80: float
    runs: int


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
    times.sort()
    return Timing(statistics.median(times), times[len(times) // 5], times[len(times) * 4 // 5], len(times))


def machine() -> dict[str, str]:
    """Versions and the processor, kept with every row."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = f"{models[0]} × {len(models)}" if models else name
    return {"nsfrc": version("nsfrc"), "torch": version("torch"), "numba": version("numba"), "cpu": name}


def write_csv(path: Path, rows: Iterable[object]) -> None:
    """Dataclass rows as CSV, with the machine's columns added."""
    rows = list(rows)
    text = io.StringIO()
    names = [f.name for f in fields(rows[0])]  # type: ignore[arg-type]
    about = machine()
    writer = csv.DictWriter(text, [*names, *about])
    writer.writeheader()
    for row in rows:
        values = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(row).items()}  # type: ignore[call-overload]
        writer.writerow({**values, **about})
    write_whole(path, text.getvalue().encode())


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
