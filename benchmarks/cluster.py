"""`nsfrc infer` beside `nsfrc infer --ray local` over the same figures: rows, seconds, start-up and memory.

    python -m nsfrc.benchmarks.cluster [--images 2000 20000] [--workers 1 2] [--figures FOLDER]

Everything is a process of its own, one after the other. The times of the processor are of all processes of a run, so
that others on the machine count for less; memory is what these hold at most, sampled.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nsfrc.benchmarks.measure import RESULTS, read_csv, write_csv
from nsfrc.benchmarks.parts import markdown
from nsfrc.errors import NsfrcError

PROGRAM = "twopairs"
EVERY = 0.5  # seconds between two looks at memory
TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
WORKER = "ray::MapWorker"


@dataclass(frozen=True)
class ClusterRow:
    """One run. start_up: seconds until the first rows were there. rate: images a second from then on.

    worker_cpu: seconds of the processor of those that answer, the workers of Ray or the one process, with their start;
    per_image: of it, milliseconds for each image. memory, worker_memory: MB at most, of all processes and of
    the largest worker. equal: whether rows are those of one process in the
    same call; nothing where that was left out. load: of the machine before the run.
    """

    what: str
    images: int
    seconds: float
    start_up: float
    rate: float
    worker_cpu: float
    per_image: float
    memory: float
    worker_memory: float
    rows: int
    equal: bool | None
    load: float


@dataclass
class Watched:
    """What a tree of processes takes."""

    cpu: dict[int, float] = field(default_factory=dict)
    workers: set[int] = field(default_factory=set)
    memory: float = 0.0
    worker_memory: float = 0.0

    def look(self, root: int) -> None:
        tree, names = process_tree(root)
        sizes = {}
        for pid in tree:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                sizes[pid] = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6
            except (OSError, IndexError, ValueError):  # it has just ended
                continue
            self.cpu[pid] = (int(fields[11]) + int(fields[12])) / TICK
            if names.get(pid, "").startswith(WORKER):
                self.workers.add(pid)
        self.memory = max(self.memory, sum(sizes.values()))
        own = [size for pid, size in sizes.items() if pid in self.workers] or [sizes.get(root, 0.0)]
        self.worker_memory = max(self.worker_memory, max(own))


def process_tree(root: int) -> tuple[list[int], dict[int, str]]:
    """A process and all below it, and what they are called."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                names[int(entry.name)] = (entry / "cmdline").read_text().split("\0")[0]
            except (OSError, IndexError, ValueError):
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found, names


def figures(folder: Path, count: int) -> Path:
    """So many figures, made once."""
    here = folder / str(count)
    if not here.exists():
        subprocess.run([sys.executable, "-m", "nsfrc", "data", "kandinsky", PROGRAM, "--out", str(here), "--count",
                        str(count), "--seed", "20"], check=True, stdout=subprocess.DEVNULL)
    return here


def measured(what: str, images: Path, count: int, options: list[str], scratch: Path) -> tuple[ClusterRow, list[str]]:
    """One run and its rows, sorted."""
    ray = "--ray" in options
    out = scratch / ("rows" if ray else "rows.jsonl")
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "nsfrc", "infer", "--images", str(images), "--program", PROGRAM, "--out", str(out),
               "--quiet", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    began, first, at_first, watched = time.perf_counter(), 0.0, 0, Watched()
    told = scratch / "told"
    with told.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        while process.poll() is None:
            watched.look(process.pid)
            if not first and (at_first := _begun(out)):
                first = time.perf_counter() - began
            time.sleep(EVERY)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise NsfrcError(f"{what} failed: {told.read_text()[-500:]}")
    if ray and (found := re.search(r"in ([\d.]+) s with .* there after ([\d.]+) s", told.read_text())):
        first = seconds - float(found[1]) + float(found[2])
        at_first = json.loads((out / "_manifest.json").read_text())["block_size"]
    paths = sorted(out.glob("part-*.jsonl")) if ray else [out]
    rows = sorted(line for path in paths for line in path.read_text().splitlines())
    worker = sum(watched.cpu[pid] for pid in watched.workers) if ray else sum(watched.cpu.values())
    rate = (count - at_first) / max(seconds - first, 1e-9)
    return ClusterRow(what, count, seconds, first, rate, worker,
                      1000 * worker / count, watched.memory, watched.worker_memory, len(rows), False, load), rows


def _begun(out: Path) -> int:
    """How many rows there are of one process."""
    part = out.with_name(f"{out.name}.part")
    return part.read_bytes().count(b"\n") if part.exists() else 0


def runs(count: int, workers: list[int], folder: Path, only: str = "") -> Iterator[ClusterRow]:
    """One machine with one thread and with two, then Ray with each number of workers."""
    images = figures(folder, count)
    kinds = [("one process, one thread", ["--threads", "1"]), ("one process, two threads", ["--threads", "2"])]
    kinds += [(f"--ray local, {n} worker{'s' * (n > 1)}",
               ["--ray", "local", "--workers", str(n), "--format", "jsonl"]) for n in workers]
    expected: list[str] | None = None
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for what, options in (one for one in kinds if only in one[0]):
            row, rows = measured(what, images, count, options, Path(scratch))
            expected = rows if expected is None and "--ray" not in options else expected
            yield ClusterRow(**{**row.__dict__, "equal": None if expected is None else rows == expected})


def tell(rows: list[ClusterRow]) -> str:
    lines = [[f"{row.images:,}", row.what, f"{row.seconds:.0f} s", f"{row.start_up:.1f} s", f"{row.rate:.1f}",
              f"{row.per_image:.1f} ms", f"{row.worker_memory:.0f} MB", f"{row.memory:.0f} MB",
              {True: "yes", False: "NO", None: "–"}[row.equal]] for row in rows]
    return markdown(["images", "run", "seconds", "start-up", "images/s after it", "CPU an image", "a worker's memory",
                     "all memory", "rows equal"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    parser.add_argument("--figures", type=Path, help="where figures are kept; a folder that is removed, otherwise")
    parser.add_argument("--out", type=Path, default=RESULTS / "cluster.csv")
    given = parser.parse_args()
    known = {(row.images, row.what): row for row in read_csv(given.out, ClusterRow)} if given.out.exists() else {}
    with tempfile.TemporaryDirectory() as nowhere:
        for count in given.images:
            for row in runs(count, given.workers, given.figures or Path(nowhere), given.only):
                known[row.images, row.what] = row
                print(tell([row]).splitlines()[-1], flush=True)
                write_csv(given.out, list(known.values()))
    print(tell(list(known.values())))


if __name__ == "__main__":
    main()
