"""PNGs that are read without Pillow: the pixels that Pillow gives, and whatever is unusual left to it."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from nsfrc.inference import images, png, png_kernel
from nsfrc.inference.images import ImageError, Picture, read, read_bytes

pytestmark = pytest.mark.skipif(png_kernel.kernel() is None, reason="kernels are Python here")

FILTERS = range(5)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def header(width: int, height: int, channels: int, depth: int = 8, interlaced: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 2 if channels == 3 else 6, 0, 0, interlaced))


def written(width: int, height: int, channels: int, rows: bytes, *more: bytes, parts: int = 1) -> bytes:
    """A PNG of these rows, each with its filter before it; what these mean is for decoders to say."""
    packed = zlib.compress(rows)
    cuts = [len(packed) * i // parts for i in range(parts + 1)]
    middle = [chunk(b"IDAT", packed[a:b]) for a, b in pairwise(cuts)]
    return b"".join([png.SIGNATURE, header(width, height, channels), *more, *middle, chunk(b"IEND", b"")])


def random_rows(rng: np.random.Generator, width: int, height: int, channels: int, filters: list[int]) -> bytes:
    rows = rng.integers(0, 256, (height, 1 + width * channels), dtype=np.uint8)
    rows[:, 0] = rng.choice(filters, height)
    return rows.tobytes()


def as_pillow(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Picture]) -> Picture:
    with monkeypatch.context() as patch:
        patch.setattr(images, "_quick", lambda *_: None)
        return make()


def equal(one: Picture, other: Picture) -> bool:
    return np.array_equal(one.pixels, other.pixels) and (one.width, one.height, one.inner, one.animated, one.frame) == (
        other.width, other.height, other.inner, other.animated, other.frame)


@pytest.mark.parametrize("filters", [[one] for one in FILTERS] + [list(FILTERS)], ids=str)
@pytest.mark.parametrize("blocks", [(2, 2), (3, 1), (1, 4), (4, 4), (5, 7), (16, 3)], ids=str)
def test_means_of_blocks_are_those_of_pillow(filters: list[int], blocks: tuple[int, int]) -> None:
    rng = np.random.default_rng([*filters, *blocks])
    for width, height in ((1, 1), (3, 2), (17, 5), (40, 12)):
        width, height = width * blocks[0], height * blocks[1]
        data = written(width, height, 3, random_rows(rng, width, height, 3, filters), parts=3)
        found = png.opened(data)
        assert found is not None
        means = png.block_means(found, *blocks)
        assert means is not None
        assert np.array_equal(means, np.asarray(Image.open(io.BytesIO(data)).reduce(blocks)))


@pytest.mark.parametrize("seed", range(40))
def test_pictures_are_those_of_pillow(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    width, height = (int(one) for one in rng.integers(1, 12, 2) * rng.integers(1, 40, 2))
    size = tuple(int(one) for one in rng.integers(1, 64, 2))
    fit = ("letterbox", "stretch")[seed % 2]
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if seed % 3 == 0:  # one that compresses, as figures do
        image = np.full_like(image, 215)
        image[height // 3 :, : width // 2] = 42, 75, 215
    Image.fromarray(image).save(tmp_path / "a.png")
    for make in (lambda: read(tmp_path / "a.png", size, fit),  # type: ignore[arg-type]
                 lambda: read_bytes((tmp_path / "a.png").read_bytes(), "a", size, fit)):  # type: ignore[arg-type]
        assert equal(make(), as_pillow(monkeypatch, make))


def quick(data: bytes, factor: int = 2) -> np.ndarray | None:
    found = png.opened(data)
    return None if found is None else png.block_means(found, factor, factor)


def test_it_is_quick_where_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    told = PngImagePlugin.PngInfo()
    told.add_text("Software", "a program")
    Image.new("RGB", (640, 640), (215, 215, 215)).save(buffer, "PNG", pnginfo=told, dpi=(72, 72))
    monkeypatch.setattr(Image, "open", None)
    assert read_bytes(buffer.getvalue(), "a", (160, 160)).pixels.tolist() == [[[215] * 3] * 160] * 160


def test_opaque_pictures_lose_their_fourth_channel_and_others_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (12, 20, 4), dtype=np.uint8)
    for least, is_quick in ((255, True), (254, False)):
        image[..., 3] = 255
        image[7, 13, 3] = least
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        assert (quick(buffer.getvalue()) is not None) == is_quick

        def make(data: bytes = buffer.getvalue()) -> Picture:
            return read_bytes(data, "a", (6, 10))

        assert equal(make(), as_pillow(monkeypatch, make))


def usual(*more: bytes) -> bytes:
    return written(8, 8, 3, random_rows(np.random.default_rng(0), 8, 8, 3, [2]), *more)


ROWS = random_rows(np.random.default_rng(0), 8, 8, 3, [2])


@pytest.mark.parametrize("data", [
    pytest.param(usual(chunk(b"tRNS", bytes(6))), id="a transparent colour"),
    pytest.param(usual(chunk(b"eXIf", b"MM\0*")), id="exif"),
    pytest.param(usual(chunk(b"tEXt", b"Raw profile type exif\0x")), id="exif as text"),
    pytest.param(usual(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x/>")), id="xmp"),
    pytest.param(usual(chunk(b"acTL", struct.pack(">II", 1, 0))), id="animated"),
    pytest.param(usual(chunk(b"QQQQ", b"")), id="an unknown chunk"),
    pytest.param(usual()[:-1], id="cut off"),
    pytest.param(usual()[:-12], id="without an end"),
    pytest.param(usual() + b"more", id="something after the end"),
    pytest.param(usual().replace(b"IDAT", b"IDAt"), id="a wrong checksum"),
    pytest.param(png.SIGNATURE, id="nothing but the signature"),
    pytest.param(png.SIGNATURE + usual()[33:], id="without a header"),
    pytest.param(written(8, 8, 3, ROWS[:-1]), id="too few bytes"),
    pytest.param(written(8, 8, 3, ROWS + b"0"), id="too many bytes"),
    pytest.param(written(8, 8, 3, b"\5" + ROWS[1:]), id="a filter that there is not"),
    pytest.param(png.SIGNATURE + header(8, 8, 3) + chunk(b"IDAT", b"nothing") + chunk(b"IEND", b""), id="no zlib"),
    pytest.param(usual().replace(header(8, 8, 3), header(8, 8, 3, depth=16)), id="16 bits"),
    pytest.param(usual().replace(header(8, 8, 3), header(8, 8, 3, interlaced=1)), id="interlaced"),
    pytest.param(usual().replace(header(8, 8, 3), header(0, 8, 3)), id="no columns"),
    pytest.param(b"GIF89a" + usual()[6:], id="another format"),
])
def test_what_is_unusual_or_wrong_is_left_to_pillow(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert quick(data) is None

    def outcome() -> object:
        try:
            return read_bytes(data, "a", (4, 4)).pixels.tolist()
        except ImageError as error:
            return error.reason

    said = outcome()
    monkeypatch.setattr(images, "_quick", lambda *_: None)
    assert outcome() == said


def test_what_would_grow_too_large_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb, fine = written(8, 8, 3, bytes(200 * png.GROWTH)), usual()
    means = quick(fine)
    monkeypatch.setattr(png, "LARGEST", 1000)
    monkeypatch.setattr(png.zlib, "decompress", None)
    assert png.opened(bomb) is not None and quick(bomb) is None
    assert np.array_equal(quick(fine), means)  # by the way that stops in time
    assert quick(fine.replace(fine[-30:-16], bytes(14))) is None
    monkeypatch.setattr(png, "LARGEST", 8)
    assert quick(fine) is None


def test_long_files_and_other_ones_are_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(usual())
    assert png.content(tmp_path / "a.png") == usual()
    monkeypatch.setattr(png, "LARGEST", 20)
    assert png.content(tmp_path / "a.png") is None
    (tmp_path / "b.png").write_bytes(b"nothing")
    assert png.content(tmp_path / "b.png") is None
    assert images._quick(tmp_path / "none.png", (4, 4), "letterbox") is None


def test_without_a_kernel_pillow_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png_kernel, "kernel", lambda: None)
    assert quick(usual()) is None and read_bytes(usual(), "a", (4, 4)).pixels.shape == (4, 4, 3)


def test_a_kernel_that_cannot_be_made_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmade(name: str) -> None:
        raise RuntimeError(name)

    monkeypatch.setattr(png_kernel.native, "kernel", unmade)
    assert png_kernel.kernel.__wrapped__() is None
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert png_kernel.kernel.__wrapped__() is None
