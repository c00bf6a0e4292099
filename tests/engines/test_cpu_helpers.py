"""The CPU engine's threads, and where its compiled kernels are kept."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from nsfrc.engines.cpu import cache
from nsfrc.engines.cpu.threads import in_threads


def test_work_is_done_side_by_side():
    """Each waits for the others, so that none could be done before another has begun."""
    together = threading.Barrier(3, timeout=30)
    places = []

    def work():
        together.wait()
        places.append(threading.current_thread().name)

    in_threads([work] * 3)
    assert len(set(places)) == 3 and threading.current_thread().name in places


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_when_all_are_done(failing):
    done = []

    def work(number):
        if number == failing:
            raise ValueError(f"number {number}")
        done.append(number)

    with pytest.raises(ValueError, match=f"number {failing}"):
        in_threads([lambda number=number: work(number) for number in range(3)])
    assert sorted(done) == [number for number in range(3) if number != failing]
    in_threads([lambda: done.append("again"), lambda: done.append("again")])
    assert done.count("again") == 2


def test_kernels_are_kept_where_one_may_write(tmp_path, monkeypatch):
    here = Path(cache.__file__).resolve().parent
    name = cache._folder("").name
    assert cache._folder(str(tmp_path)) == tmp_path / name
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    beside, writable = here / "__pycache__" / name, cache._writable
    monkeypatch.setattr(cache, "_writable", lambda folder: folder != beside and writable(folder))
    assert cache._folder("") == tmp_path / "home" / "nsfrc" / name
    (tmp_path / "file").write_text("")
    last = cache._folder(str(tmp_path / "file"))
    assert last.name == name and last.parent.name == f"nsfrc-{os.getuid()}"


def test_the_folder_is_named_after_what_the_kernels_are(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    names = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "step.py").write_text(text)
        names.append(cache._folder(str(tmp_path)).name)
    assert names[0] == names[2] != names[1]


def test_compiling_is_said_once_and_on_terminals_alone(monkeypatch, capsys):
    ours, other = (SimpleNamespace(data={"dispatcher": SimpleNamespace(__module__=name)})
                   for name in ("nsfrc.engines.cpu.forward", "elsewhere"))
    telling = cache.Telling()
    telling.on_start(ours)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for event in (other, ours, ours):
        telling.on_start(event)
    assert capsys.readouterr().err.splitlines() == ["compiling kernels for this machine, once: up to half a minute"]
