"""Trainings in two processes of torchrun: the losses of one, files by one of them, and another number to go on with."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from nsfrc.training.detector_data import Batch
from nsfrc.training.spread import own
from tests.amount import THOROUGH, sample

CHILD = Path(__file__).with_name("child.py")
ROOT = CHILD.parents[2]
TRAIN = ("train", "perception", "--figures", "20", "--epochs", "4", "--size", "32", "--batch-size", "8", "--out",
         "net.safetensors")
LONGEST = 240


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    """The command for two processes on the loopback address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", str(restarts),
            "--master-addr", "127.0.0.1", "--master-port", str(port), *arguments]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=LONGEST,
                          check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_losses_are_those_of_one_process(tmp_path: Path) -> None:
    what, steps = "clauses,concept,detector", str(sample(12, 50))
    run([sys.executable, str(CHILD), what, steps, "one.json"], tmp_path)
    run(torchrun(str(CHILD), what, steps, "two.json"), tmp_path)
    one, two = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("one", "two"))
    for name in what.split(","):
        assert len(one[name]) == int(steps) and one[name][0] != one[name][-1]
        assert two[name] == pytest.approx(one[name], abs=1e-5, rel=0), name


def children(process: subprocess.Popen[bytes]) -> list[int]:
    return list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def kill(process: subprocess.Popen[bytes]) -> None:
    """torchrun and what it has started, at once; these are in sessions of their own."""
    for pid in [process.pid, *children(process)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + LONGEST
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end, f"{path} was not written"
        time.sleep(0.02)


def test_killed_and_gone_on_with_by_one_process(tmp_path: Path) -> None:
    checkpoint = tmp_path / "net.safetensors.checkpoint"
    process = subprocess.Popen(torchrun("-m", "nsfrc", *TRAIN), cwd=tmp_path, env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(checkpoint, process)
    finally:
        kill(process)
    assert not (tmp_path / "net.safetensors").exists()
    told = run([sys.executable, "-m", "nsfrc", *TRAIN, "--resume"], tmp_path)
    assert "continuing after epoch" in told and told.count("epoch 4/4") == 1
    assert (tmp_path / "net.safetensors").exists() and not checkpoint.exists()


@pytest.mark.skipif(not THOROUGH, reason="a minute; NSFRC_THOROUGH=1 runs it")
def test_torchrun_starts_again_what_was_killed(tmp_path: Path) -> None:
    process = subprocess.Popen(torchrun("-m", "nsfrc", *TRAIN, restarts=2), cwd=tmp_path, env=environment(),
                               stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        wait_for(tmp_path / "net.safetensors.checkpoint", process)
        os.kill(children(process)[-1], signal.SIGKILL)
        out, told = process.communicate(timeout=LONGEST)
    finally:
        if process.poll() is None:
            kill(process)
    assert process.returncode == 0, told[-2000:]
    assert b"continuing after epoch" in told and out.count(b"written to net.safetensors") == 1


def test_a_mistake_is_told_once(tmp_path: Path) -> None:
    bad = [one if one != "32" else "33" for one in TRAIN]
    done = subprocess.run(torchrun("-m", "nsfrc", *bad), cwd=tmp_path, env=environment(), capture_output=True,
                          text=True, timeout=LONGEST, check=False)
    assert done.returncode != 0
    assert done.stderr.count("each side of the pictures must be a multiple of 32") == 1


def test_a_share_of_a_batch_keeps_its_boxes() -> None:
    batch = Batch(torch.arange(5.0)[:, None, None, None].expand(5, 3, 2, 2), torch.tensor([0.0, 1, 1, 3, 4]),
                  torch.arange(5.0), torch.arange(20.0).reshape(5, 4))
    part = own(batch, slice(1, None, 2))
    assert part.images[:, 0, 0, 0].tolist() == [1, 3]
    assert part.owner.tolist() == [0, 0, 1] and part.classes.tolist() == [1, 2, 3]
    assert part.boxes[0].tolist() == [4, 5, 6, 7]
