"""Cameras and addresses on the command line, with a capture that gives frames of its own."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import nsfrc
from nsfrc.benchmarks.tiny_detector import write_tiny
from nsfrc.errors import NsfrcError
from nsfrc.inference.live import is_live, shown
from tests.cli.support import Run
from tests.perception.test_model_file import PROGRAM, paint

cv2 = pytest.importorskip("cv2")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


class Capture:
    """What opencv would open. frames: those that there are; then `end` is called, which may be Ctrl-C."""

    made: ClassVar[list[Capture]] = []
    frames: ClassVar[list[np.ndarray]] = []
    opens = True
    end: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *given: Any) -> None:
        self.given, self.place, self.released = given, 0, False
        self.made.append(self)

    def isOpened(self) -> bool:
        return self.opens

    def grab(self) -> bool:
        self.place += 1
        return self.place <= len(self.frames)

    def read(self) -> tuple[bool, np.ndarray | None]:
        if not self.grab():
            type(self).end()
            return False, None
        return True, self.frames[self.place - 1]

    def release(self) -> None:
        self.released = True


@pytest.fixture
def capture(run: Run, monkeypatch: pytest.MonkeyPatch) -> type[Capture]:
    """Nine frames, of which those from the third on have what the program asks for."""
    write_tiny(run.folder / "tiny.onnx")
    Path("rules.pl").write_text(PROGRAM)
    paint("full.png", {(1, 1): "red", (3, 3): "blue"})
    full = cv2.imread("full.png")
    Path("full.png").unlink()

    class Fake(Capture):
        made: ClassVar[list[Capture]] = []
        frames: ClassVar[list[np.ndarray]] = [full * 0, full * 0, *[full] * 7]

    monkeypatch.setattr(cv2, "VideoCapture", Fake)
    return Fake


def interrupt() -> None:
    raise KeyboardInterrupt


def test_frames_of_a_camera_are_answered_for_until_ctrl_c(capture: type[Capture], run: Run) -> None:
    capture.end = staticmethod(interrupt)
    shown = run.good("infer", "--images", "camera:2", "--every", "2", "--program", "rules.pl", "--out", "seen.csv",
                     "--report", "seen.html")
    assert [one.given for one in capture.made] == [(2,)] and capture.made[0].released
    assert "5 images: 4 true, 1 false" in shown and "written to seen.csv" in shown
    with open("seen.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"camera:2#{number}" for number in (0, 2, 4, 6, 8)]
    assert [row["answer"] for row in rows] == ["false", "true", "true", "true", "true"]
    page = Path("seen.html").read_text()
    assert page.count("<article") == 5 and 'class="stopped"' not in page


def test_a_stream_that_ends_by_itself(capture: type[Capture], run: Run) -> None:
    address = "rtsp://anna:secret@cam.example/one"
    shown = run.good("infer", "--images", address, "--every", "4", "--program", "rules.pl")
    assert capture.made[0].given == (address, cv2.CAP_FFMPEG) and capture.made[0].released
    assert "rtsp://cam.example/one#8" in shown and "3 images: 2 true, 1 false" in shown
    assert "secret" not in shown and "anna" not in shown


def test_as_many_objects_as_slots_auto_has_without_images(capture: type[Capture], run: Run) -> None:
    shown = run.good("infer", "--images", "camera:0", "--program", "rules.pl")
    assert "as nobody knows what is to come (slots(auto))" in shown


def test_what_gives_no_frames_is_refused(capture: type[Capture], run: Run) -> None:
    capture.opens = False
    refused = run.refused("infer", "--images", "http://u:secret@h/x.mjpg", "--program", "rules.pl")
    assert "http://h/x.mjpg cannot be opened: see that the address" in refused and "secret" not in refused
    assert "camera:7 cannot be opened" in run.refused("infer", "--images", "camera:7", "--program", "rules.pl")
    capture.opens, capture.frames = True, []
    assert "camera:0 gives no frames" in run.refused("infer", "--images", "camera:0", "--program", "rules.pl")


@pytest.mark.parametrize(("options", "named"), [
    (("--images", "."), "another --images"), (("--fit-threshold",), "--fit-threshold"),
    (("--resume", "--out", "a.csv"), "--resume"), (("--labels", "rules.pl"), "--labels"),
])
def test_options_that_need_all_images(capture: type[Capture], run: Run, options: tuple[str, ...], named: str) -> None:
    refused = run.refused("infer", "--images", "camera:0", "--program", "rules.pl", *options)
    assert f"the frames of camera:0 are not known before they come: leave out {named}" in refused
    assert not capture.made


def test_only_what_the_user_names_is_opened(capture: type[Capture], run: Run) -> None:
    Path("list.txt").write_text("camera:0\nrtsp://h/x\n")
    run.refused("infer", "--images", "list.txt", "--program", "rules.pl")
    with pytest.raises(NsfrcError, match="on the command line"):
        nsfrc.infer("camera:0", "rules.pl")
    assert not capture.made


def test_names() -> None:
    assert is_live("camera:0") and is_live("https://h/x") and is_live("RTSPS://h/x")
    assert not any(map(is_live, ("camera:", "camera:x", "camera:0/a.png", "file:///x", "photos", Path("camera:0"))))
    assert shown("HTTP://a:b@h:80/x@y") == "http://h:80/x@y" and shown("rtsp://h/x") == "rtsp://h/x"
