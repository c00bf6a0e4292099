"""Whatever is sent is answered, and nothing in it is opened, imported or run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from nsfrc.benchmarks.service_fuzz import OF_CLASSES, Watch, fuzz
from nsfrc.service.settings import Settings
from tests.amount import sample
from tests.service.support import asked, form, opened, told

WATCH = Watch()  # an audit hook stays for ever, so there is one


def test_the_watch_sees(tmp_path: Path) -> None:
    """What the fuzzing relies on: opening, running and importing are seen."""
    (tmp_path / "net.py").write_text("")
    with WATCH.watching():
        (tmp_path / "x").write_text("")
        (tmp_path / "net.py").read_bytes()
        subprocess.run([sys.executable, "-c", ""], check=True)
        sys.path.insert(0, str(tmp_path))
        try:
            import net  # type: ignore[import-not-found]  # noqa: F401
        finally:
            sys.path.remove(str(tmp_path))
            del sys.modules["net"]
    seen = "\n".join(WATCH.seen)
    WATCH.seen.clear()
    opened_ones = [f"open {str(tmp_path / name)!r}" for name in ("x", "net.py")]
    for text in (*opened_ones, "subprocess.Popen", "import net"):
        assert text in seen


@pytest.mark.parametrize("program", ["twopairs", "classes"])
def test_fuzzed_requests(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings({"program": program}, log=False)
    if program == "classes":
        (tmp_path / "classes.pl").write_text(OF_CLASSES)
        settings = Settings({"program": tmp_path / "classes.pl"}, ("detections", "facts"), log=False)
    count = sample(250, 5000)
    row, wrong = fuzz(count, 11, WATCH, settings)
    assert wrong == []
    assert row.count == count and row.rows > count / 50 and "200: " in row.statuses and "422: " in row.statuses


def test_paths_in_names_are_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even whether a file is there can be told from an answer."""
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (64, 48)).save(tmp_path / "seen.png")
    (tmp_path / "classes.pl").write_text(OF_CLASSES)
    service = opened(tmp_path / "classes.pl", takes=("detections",))
    box = {"detections": [{"class": "car", "box": [10, 10, 40, 40]}]}
    names = [str(tmp_path / "seen.png"), "seen.png", str(tmp_path / "none.png"), "../../etc/passwd", "half \ud83d"]
    with WATCH.watching():
        found = asked(service, *(told({"detections": [{"file": name, **box}]}) for name in names))
    assert WATCH.seen == []
    assert {status for status, _ in found} == {422}
    assert len({answer["error"].replace(name, "") for name, (_, answer) in zip(names, found, strict=True)}) == 1


def test_pictures_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.inference.support import ONE, YES, install, save

    install(tmp_path, monkeypatch)
    (tmp_path / "rules.pl").write_text(ONE)
    data = save(tmp_path / "a.png", YES).read_bytes()
    monkeypatch.chdir(tmp_path)
    service = opened("rules.pl", wanted={"perception": "readable:Readable", "trust": True})
    before = sorted(os.listdir())
    asked(service, form(("warm.png", data)))
    names = ("../up.png", str(tmp_path / "over.png"), "x.png\0.py", "a/../../b.png", "a" * 1000)
    with WATCH.watching():
        ((status, answer),) = asked(service, form(*((name, data) for name in names)))
    assert WATCH.seen == [] and status == 200 and sorted(os.listdir()) == before
    assert [row["answer"] for row in answer["rows"]] == ["true"] * 5
    assert answer["rows"][0]["file"] == "../up.png" and len(answer["rows"][4]["file"]) == 255
