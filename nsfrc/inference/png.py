"""PNGs that are to become smaller, read in half of Pillow's time and with the same pixels.

They are averaged over whole blocks of pixels while they are read, which is what Pillow does first, too, on the way to a
smaller size. Whatever is unusual in a file, or wrong with it, is left to Pillow.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nsfrc.inference import png_kernel

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST = 64_000_000  # bytes of a file, and of what may come of its compressed part
GROWTH = 1032  # zlib makes at most so many bytes of one
CHANNELS = {2: 3, 6: 4}  # by the kind of colours: RGB, and RGB with how opaque
MOST = 256  # columns or rows of a block; their sums have 16 bits
# Chunks that change no pixel for Pillow, and that tell nothing of which side is up.
PLAIN = (b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"pHYs", b"tIME", b"hIST", b"tEXt")
TURNING = (b"Raw profile type", b"XML:")  # of a text that may hold an orientation


@dataclass(frozen=True)
class Png:
    """What a file says. channels: 3 or 4; packed: its pixels, as zlib has them."""

    width: int
    height: int
    channels: int
    packed: bytes


def content(path: Path) -> bytes | None:
    """The bytes of a file, if it is a PNG of no unusual size. Raises OSError."""
    with open(path, "rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            return None
        data = SIGNATURE + file.read(LARGEST)
    return data if len(data) < LARGEST else None


def opened(data: bytes | None) -> Png | None:
    """A file's parts, all of them sound; None where there is anything that is left to Pillow."""
    if data is None or not data.startswith(SIGNATURE):
        return None
    place, packed, header = len(SIGNATURE), list[bytes](), b""
    view = memoryview(data)
    while True:
        length, kind = int.from_bytes(data[place : place + 4]), data[place + 4 : place + 8]
        end = place + 12 + length
        if end > len(data) or zlib.crc32(view[place + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            return None
        if not header:
            if kind != b"IHDR" or length != 13:
                return None
            header = data[place + 8 : end - 4]
        elif kind == b"IDAT":
            packed.append(data[place + 8 : end - 4])
        elif kind == b"IEND":
            return None if end < len(data) else _opened(header, b"".join(packed))
        elif kind not in PLAIN or (kind == b"tEXt" and data.startswith(TURNING, place + 8)):
            return None
        place = end


def _opened(header: bytes, packed: bytes) -> Png | None:
    width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
    depth, colours, *rest = header[8:]
    if depth != 8 or colours not in CHANNELS or any(rest) or not width or not height:  # the last of rest: interlaced
        return None
    return Png(width, height, CHANNELS[colours], packed)


def _inflated(packed: bytes, size: int) -> bytes | None:
    """What zlib makes of it, if that has this size."""
    if size > LARGEST:
        return None
    try:
        if GROWTH * len(packed) <= LARGEST:  # into one piece of memory, which it may not outgrow by much
            rows = zlib.decompress(packed, bufsize=size)
        else:
            inflating = zlib.decompressobj()
            rows = inflating.decompress(packed, size + 1)
            if not inflating.eof:
                return None
    except zlib.error:
        return None
    return rows if len(rows) == size else None


def block_means(png: Png, across: int, down: int) -> np.ndarray | None:
    """Means of blocks of so many columns and rows, as Pillow's `reduce` has them: uint8 [h, w, 3].

    None where a block is a pixel or blocks do not fill the picture, where one is transparent, or something is wrong.
    """
    kernel, count = png_kernel.kernel(), png.width * png.channels
    size = png.height * (count + 1)
    if kernel is None or across * down == 1 or png.width % across or png.height % down or max(across, down) > MOST:
        return None
    rows = _inflated(png.packed, size)
    if rows is None:
        return None
    given, work = np.frombuffer(rows, np.uint8), np.zeros(2 * (png_kernel.MARGIN + count), np.uint8)
    sums, found = np.zeros(count, np.uint16), np.empty((png.height // down, png.width // across, 3), np.uint8)
    arrays = (one.ctypes.data for one in (given, work, sums, found))
    multiplier = (1 << 24) // (across * down)  # Pillow's
    said = kernel(png_kernel.RECORD.pack(*arrays, count, png.height, png.channels, across, down, multiplier))
    return found if said == png_kernel.FINE else None
