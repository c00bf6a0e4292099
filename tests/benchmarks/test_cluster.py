"""What the benchmarks of clusters say of rows that are not as they should be, and of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsfrc.benchmarks import chaos, cluster, cluster_stages
from nsfrc.benchmarks.chaos import ChaosRow
from nsfrc.benchmarks.cluster import ClusterRow, Watched
from nsfrc.benchmarks.measure import read_csv, write_csv


def line(file: int, score: float = 0.5) -> str:
    return json.dumps({"file": f"{file}.png", "score": score})


@pytest.mark.parametrize(("lines", "missing", "twice", "other"), [
    ([line(i) for i in range(4)], 0, 0, 0), ([line(i) for i in range(3)], 1, 0, 0),
    ([*(line(i) for i in range(4)), line(2)], 0, 1, 0), ([*(line(i) for i in range(3)), line(3, 0.6)], 0, 0, 1),
])
def test_rows_are_judged(tmp_path: Path, lines: list[str], missing: int, twice: int, other: int) -> None:
    (tmp_path / "part-000000.jsonl").write_text("".join(f"{one}\n" for one in lines[:2]))
    (tmp_path / "part-000001.jsonl").write_text("".join(f"{one}\n" for one in lines[2:]))
    row = chaos.judged(ChaosRow("node", 0, 1.0, 1, 2, 0, 0, 0, 0, 0, False), tmp_path, sorted(map(line, range(4))))
    assert (row.missing, row.twice, row.other) == (missing, twice, other)
    assert row.good == (not missing and not twice and not other)
    assert "| node | 1 |" in chaos.tell([row])


def test_processes_are_watched() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        tree, _ = cluster.process_tree(os.getpid())
        assert {os.getpid(), child.pid} <= set(tree)
        watched = Watched()
        watched.look(os.getpid())
        assert watched.memory > watched.worker_memory > 1 and set(tree) & set(watched.cpu)
    finally:
        child.communicate(b"\n")
    assert child.pid not in cluster.process_tree(os.getpid())[0]


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    row = ClusterRow("--ray local, 1 worker", 10, 2.0, 1.0, 10.0, 1.0, 100.0, 300.0, 200.0, 10, None, 0.5)
    write_csv(tmp_path / "rows.csv", [row])
    assert read_csv(tmp_path / "rows.csv", ClusterRow) == [row]
    assert "| 10 | --ray local, 1 worker |" in cluster.tell([row])


def test_stages_of_a_worker(tmp_path: Path) -> None:
    rows = cluster_stages.measured(tmp_path, 4)
    assert [row.stage for row in rows] == list(cluster_stages.STAGES)
    assert sum(row.share for row in rows) == pytest.approx(1) and all(row.images == 4 for row in rows)
