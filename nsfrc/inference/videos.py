"""Frames of video files, where opencv reads them: each N-th frame is an image of its own, called clip.mp4#120."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nsfrc.errors import NsfrcError

SUFFIXES = frozenset(".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .wmv".split())
EVERY = 30  # frames from one that is answered for to the next, unless somebody says otherwise


def is_video(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


class Video:
    """A video file that frames are read from in their order; going back starts anew. Safe to use from threads."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self._open: Any = None
        self._next = 0

    def read(self, number: int) -> np.ndarray:
        """A frame, uint8 [H, W, 3]. Raises NsfrcError."""
        import cv2

        with self._lock:
            if self._open is None or number < self._next:
                self._open, self._next = _opened(self.path), 0
            while self._next < number and self._open.grab():
                self._next += 1
            there, frame = self._open.read() if self._next == number else (False, None)
            if not there or frame is None:
                raise NsfrcError(f"{self.path}: frame {number} cannot be read")
            self._next = number + 1
            return np.ascontiguousarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))

    def __reduce__(self) -> tuple[Any, ...]:
        return Video, (self.path,)


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of a video, read when it is wanted."""

    video: Video = field(repr=False)
    number: int

    def pixels(self) -> np.ndarray:
        return self.video.read(self.number)


def frames(path: Path, every: int = EVERY) -> dict[str, Frame]:
    """Every so many frames of a video by their names, the first of them frame 0."""
    opened, count = _opened(path), 0
    while opened.grab():
        count += 1
    if not count:
        raise NsfrcError(f"{path} has no frames that can be read: convert it to MP4 (H.264)")
    video = Video(path)
    width = len(str(count - 1))
    return {f"{path.name}#{number:0{width}}": Frame(video, number) for number in range(0, count, every)}


def _opened(path: Path) -> Any:
    try:
        import cv2
    except ImportError:
        raise NsfrcError(f"{path} is a video, which opencv reads: pip install opencv-python-headless") from None
    if not path.is_file():
        raise NsfrcError(f"there is no video {path}")
    # Files alone: opencv takes addresses and devices too, and a name must not make it reach for either.
    found = cv2.VideoCapture(str(path.resolve()), cv2.CAP_FFMPEG)
    if not found.isOpened():
        raise NsfrcError(f"{path} is not a video, or opencv does not read its format: convert it to MP4 (H.264)")
    return found
