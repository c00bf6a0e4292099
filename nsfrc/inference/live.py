"""Cameras and addresses as images: frames that come as long as nobody stops them, each answered for when it is there.

    --images camera:0        the first camera of this machine
    --images rtsp://…        a stream that opencv reads, as are rtsps, http and https

Only what the user names is opened: a list of paths, a program or a file never leads to a camera or an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, Listing, printable
from nsfrc.inference.videos import EVERY

CAMERA = re.compile(r"camera:([0-9]{1,3})")
ADDRESS = re.compile(r"(rtsps?|https?)://(?:[^/@]*@)?(.+)", re.IGNORECASE)


def is_live(text: object) -> bool:
    """Whether this names a camera or an address."""
    return isinstance(text, str) and bool(CAMERA.fullmatch(text) or ADDRESS.fullmatch(text))


def shown(text: str) -> str:
    """What a camera or an address is called: an address without its user and password."""
    address = ADDRESS.fullmatch(text)
    return printable(text if address is None else f"{address[1].lower()}://{address[2]}")


@dataclass(frozen=True, eq=False)
class Live(Listing):
    """The frames of a camera or an address: how many there are nobody knows, and each is there once.

    name: what it is called, see `shown`. every: each so many-th frame is taken.
    """

    name: str = ""
    capture: Any = field(default=None, repr=False)
    every: int = EVERY
    live = True

    @property
    def called(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Item]:
        import cv2

        try:
            for number in count(step=self.every):
                there, frame = self.capture.read()
                if not there:
                    break
                pixels = np.ascontiguousarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))
                yield Item(Path(f"{self.name}#{number}"), f"{self.name}#{number}", image=pixels)
                if not all(self.capture.grab() for _ in range(self.every - 1)):
                    return
        finally:
            self.capture.release()
        if not number:
            raise NsfrcError(f"{self.name} gives no frames: {_remedy(self.name)}")


def open_live(text: str, every: int = EVERY) -> Live:
    """Open a camera or an address. Raises NsfrcError."""
    camera, name = CAMERA.fullmatch(text), shown(text)
    try:
        import cv2
    except ImportError:
        raise NsfrcError(f"{name} is read by opencv, which is not installed: pip install opencv-python-headless") \
            from None
    with suppress(AttributeError):  # what it cannot open it tells on standard error, too, with the password
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    capture = cv2.VideoCapture(int(camera[1])) if camera else cv2.VideoCapture(text, cv2.CAP_FFMPEG)
    if not capture.isOpened():
        raise NsfrcError(f"{name} cannot be opened: {_remedy(name)}")
    return Live(Path(), {}, name=name, capture=capture, every=every)


def _remedy(name: str) -> str:
    if CAMERA.fullmatch(name):
        return "see that the camera is there and no other program uses it, or name another, such as camera:1"
    return "see that the address is right and reachable, and that a player shows it"
