"""Runs of `nsfrc infer --ray` on a cluster of three nodes that lose something: is every row there once, and right?

    python -m nsfrc.benchmarks.chaos [--count 20] [--images 400] [--kinds node driver] [--seed 0]

The nodes are processes of this machine (ray.cluster_utils.Cluster), on the loopback address. "node": at random
moments one node is removed and one worker is killed with signal 9. "driver": the command itself is killed with signal
9, on a cluster that goes on, and is run again with --resume.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.cluster import PROGRAM, WORKER, figures, process_tree
from nsfrc.benchmarks.measure import RESULTS, read_csv, write_csv
from nsfrc.benchmarks.parts import markdown
from nsfrc.errors import NsfrcError

LONGEST = 300.0  # seconds of a run
BLOCK = 16


@dataclass(frozen=True)
class ChaosRow:
    """One trial. done: parts that were there when the last thing was lost, of `blocks`. missing, twice, other: rows
    that are not there, there more than once, or not those of the undisturbed run. restarted: runs of the command.
    """

    kind: str
    trial: int
    seconds: float
    done: int
    blocks: int
    rows: int
    missing: int
    twice: int
    other: int
    restarted: int
    good: bool


class Nodes:
    """A head and two nodes with a CPU each; what is removed is put back after a trial."""

    def __init__(self) -> None:
        os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0")
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=self._size() | {"include_dashboard": False})
        self.nodes = [self.cluster.add_node(**self._size()) for _ in range(2)]
        self.cluster.wait_for_nodes()

    def _size(self) -> dict[str, Any]:
        return {"num_cpus": 1, "object_store_memory": 100_000_000}

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def lose(self, which: int) -> None:
        self.cluster.remove_node(self.nodes.pop(which), allow_graceful=False)

    def mend(self) -> None:
        while len(self.nodes) < 2:
            self.nodes.append(self.cluster.add_node(**self._size()))
        self.cluster.wait_for_nodes()

    def stop(self) -> None:
        self.cluster.shutdown()


def workers() -> list[int]:
    """The processes that answer, among those that this script has started."""
    tree, names = process_tree(os.getpid())
    return [pid for pid in tree if names.get(pid, "").startswith(WORKER)]


def command(images: Path, out: Path, address: str, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "nsfrc", "infer", "--ray", address, "--images", str(images), "--program", PROGRAM,
         "--out", str(out), "--format", "jsonl", "--block-size", str(BLOCK), "--workers", "2", "--quiet", *more],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def parts(out: Path) -> int:
    return len(list(out.glob("part-*.jsonl"))) if out.is_dir() else 0


def wait_for(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Until so many parts are there, or the run has ended."""
    end = time.monotonic() + LONGEST
    while parts(out) < count and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def ended(process: subprocess.Popen[bytes]) -> None:
    try:
        _, told = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        raise NsfrcError(f"a run did not end in {LONGEST:.0f} s") from None
    if process.returncode:
        raise NsfrcError(f"a run failed: {told.decode(errors='replace')[-600:]}")


def trial(kind: str, number: int, nodes: Nodes, images: Path, expected: list[str], rng: random.Random,
          scratch: Path) -> ChaosRow:
    out = scratch / "rows"
    shutil.rmtree(out, ignore_errors=True)
    began, restarted = time.perf_counter(), 0
    blocks = -(-len(expected) // BLOCK)
    process = command(images, out, nodes.address)
    if kind == "node":
        moments = sorted(rng.randrange(0, blocks - 1) for _ in range(2))
        steps = [lambda: nodes.lose(rng.randrange(2)), lambda: _kill_one(rng)]
        rng.shuffle(steps)
        for moment, step in zip(moments, steps, strict=True):
            wait_for(process, out, moment)
            time.sleep(rng.random() * 0.5)
            step()
        done = parts(out)
    else:
        wait_for(process, out, rng.randrange(0, blocks - 1))
        time.sleep(rng.random() * 0.5)
        done = parts(out)
        process.send_signal(signal.SIGKILL)
        process.wait()
        restarted = 1
        process = command(images, out, nodes.address, "--resume")
    ended(process)
    nodes.mend()
    return judged(ChaosRow(kind, number, time.perf_counter() - began, done, blocks, 0, 0, 0, 0, restarted, False), out,
                  expected)


def _kill_one(rng: random.Random) -> None:
    """Signal 9 to a worker of the run, if there is one at this moment."""
    if found := workers():
        os.kill(rng.choice(found), signal.SIGKILL)


def judged(row: ChaosRow, out: Path, expected: list[str]) -> ChaosRow:
    """What is in the folder beside what should be."""
    lines = [line for path in out.glob("part-*.jsonl") for line in path.read_text().splitlines()]
    files = Counter(json.loads(line)["file"] for line in lines)
    wanted = {json.loads(line)["file"] for line in expected}
    missing, twice = len(wanted - files.keys()), sum(count - 1 for count in files.values())
    other = sum((Counter(lines) - Counter(expected)).values()) - twice
    good = sorted(lines) == expected
    return ChaosRow(**{**row.__dict__, "rows": len(lines), "missing": missing, "twice": twice, "other": other,
                       "good": good})


def trials(kinds: list[str], count: int, images: Path, scratch: Path, seed: int) -> Iterator[ChaosRow]:
    subprocess.run([sys.executable, "-m", "nsfrc", "infer", "--images", str(images), "--program", PROGRAM, "--out",
                    str(scratch / "one.jsonl"), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    expected = sorted((scratch / "one.jsonl").read_text().splitlines())
    nodes = Nodes()
    try:
        for kind in kinds:
            for number in range(count):
                yield trial(kind, number, nodes, images, expected, random.Random(f"{seed} {kind} {number}"), scratch)
    finally:
        nodes.stop()


def tell(rows: list[ChaosRow]) -> str:
    lines = []
    for kind in dict.fromkeys(row.kind for row in rows):
        same = [row for row in rows if row.kind == kind]
        lines.append([kind, str(len(same)), str(sum(row.good for row in same)), str(sum(row.missing for row in same)),
                      str(sum(row.twice for row in same)), str(sum(row.other for row in same)),
                      f"{min(row.done for row in same)} to {max(row.done for row in same)} of {same[0].blocks}"])
    return markdown(["what is lost", "runs", "all rows once and equal", "missing", "twice", "other",
                     "parts there at that time"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--kinds", nargs="+", choices=["node", "driver"], default=["node", "driver"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "chaos.csv")
    given = parser.parse_args()
    known = {(row.kind, row.trial): row for row in read_csv(given.out, ChaosRow)} if given.out.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        images = figures(Path(scratch), given.images)
        for row in trials(given.kinds, given.count, images, Path(scratch), given.seed):
            known[row.kind, row.trial] = row
            print(row, flush=True)
            write_csv(given.out, list(known.values()))
    print(tell(list(known.values())))


if __name__ == "__main__":
    main()
