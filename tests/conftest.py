"""The fixture `run`, which runs the command line in a folder of its own, and what kind of test each one is."""

from __future__ import annotations

import os
import signal
import threading

# Before torch is imported. Processes share the cores: threads beside them wait for each other, in loops of tiny
# operators such as finite differences ten times as long as one thread takes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest

from tests.cli.support import Run

HERE = Path(__file__).parent
# By folder or file. What takes longest comes first, so that two processes end at about the same time.
KINDS = {
    "kernels/values": "interpreter",
    "kernels/test_aot.py": "aot",
    "kernels/test_anchored_aot.py": "aot",
    "kernels/test_source.py": "aot",
    "kernels/test_anchored_source.py": "aot",
    "benchmarks/test_baselines.py": "training",
    "perception/test_detector.py": "training",
    "perception/test_slot_training.py": "training",
    "valuation/test_training.py": "training",
    "data/test_blender.py": "training",
    "distributed": "training",
    "test_example_scripts.py": "training",
    "docs/test_blocks.py": "docs",
    "docs/test_runner.py": "docs",
}
MANY = 6  # cases of a test, of which `make quick` takes a third
ORDER = ("aot", "docs", "training", "interpreter", "")


def pytest_configure() -> None:
    """Hear Ctrl-C, which some tests send, also where a shell that runs this in the background has it ignored."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path, monkeypatch, capsys)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if kind := _kind(item.path):
            item.add_marker(kind)
    if os.environ.get("NSFRC_QUICK"):
        left_out = _of_many(items)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: ORDER.index(_kind(item.path)))  # stable: files stay together


def _of_many(items: list[pytest.Item]) -> set[pytest.Item]:
    """What a quick run leaves out: of a test with many cases, all but each third."""
    tests: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        tests.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    return {case for cases in tests.values() if len(cases) >= MANY for i, case in enumerate(cases) if i % 3}


def _kind(path: Path) -> str:
    if not path.is_relative_to(HERE):
        return ""
    place = path.relative_to(HERE).as_posix()
    return next((kind for start, kind in KINDS.items() if place.startswith(start)), "")
