"""Images of every kind, good and bad."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nsfrc.inference import images
from nsfrc.inference.images import ImageError, prepare, quietly, read, to_tensor

SIZE = (40, 40)
ORANGE = (240, 120, 30)


def centre(path: Path) -> np.ndarray:
    return read(path, SIZE).pixels[20, 20].astype(int)


def plain(mode: str = "RGB", colour: object = ORANGE, size: tuple[int, int] = (80, 80)) -> Image.Image:
    return Image.new(mode, size, colour)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "tif", "webp", "ppm", "tga", "jp2"])
def test_formats(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"image.{suffix}"
    plain().save(path)
    assert centre(path) == pytest.approx(np.array(ORANGE), abs=6)


def test_reading_leaves_the_filters_of_warnings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They belong to the process, and images are read in threads."""
    plain().save(tmp_path / "a.png")
    opened, during = Image.open, []

    def spying(*arguments: Any, **options: Any) -> Image.Image:
        during.append(list(warnings.filters))
        return opened(*arguments, **options)

    monkeypatch.setattr(Image, "open", spying)
    read(tmp_path / "a.png", SIZE)
    assert during == [list(warnings.filters)]


def test_quietly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain().save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 80 * 80 - 1)
    with pytest.warns(Image.DecompressionBombWarning):
        read(tmp_path / "a.png", SIZE)
    with warnings.catch_warnings(record=True) as said, quietly():
        read(tmp_path / "a.png", SIZE)
        warnings.warn("of others", stacklevel=1)
    assert [str(warning.message) for warning in said] == ["of others"]


@pytest.mark.parametrize(("mode", "colour", "suffix", "seen"), [
    ("L", 77, "png", (77, 77, 77)),
    ("1", 1, "png", (255, 255, 255)),
    ("CMYK", (0, 255, 255, 0), "jpg", (255, 0, 0)),
    ("CMYK", (0, 255, 255, 0), "tif", (255, 0, 0)),
    ("YCbCr", (128, 128, 128), "jpg", (128, 128, 128)),
    ("LAB", (128, 128, 128), "tif", (119, 119, 119)),
    ("I;16", 0x8080, "png", (128, 128, 128)),
    ("I;16", 100, "png", (0, 0, 0)),
    ("I;16", 0xFFFF, "tif", (255, 255, 255)),
    ("I", 200, "tif", (200, 200, 200)),
    ("I", 0x8080, "tif", (128, 128, 128)),
    ("F", 0.5, "tif", (128, 128, 128)),
    ("F", 51.0, "tif", (51, 51, 51)),
    ("F", float("nan"), "tif", (0, 0, 0)),
    ("RGBA", (255, 0, 0, 255), "png", (255, 0, 0)),
    ("RGBA", (255, 0, 0, 0), "png", (255, 255, 255)),
    ("RGBA", (0, 0, 0, 128), "png", (127, 127, 127)),
    ("LA", (0, 128), "png", (127, 127, 127)),
])
def test_modes(mode: str, colour: object, suffix: str, seen: tuple[int, int, int], tmp_path: Path) -> None:
    path = tmp_path / f"image.{suffix}"
    plain(mode, colour).save(path)
    assert centre(path) == pytest.approx(np.array(seen), abs=3)


def test_palettes_and_transparent_colours(tmp_path: Path) -> None:
    plain().quantize(4).save(tmp_path / "palette.png")
    assert centre(tmp_path / "palette.png") == pytest.approx(np.array(ORANGE), abs=3)
    plain().quantize(4).save(tmp_path / "clear.png", transparency=0)
    assert centre(tmp_path / "clear.png").tolist() == [255, 255, 255]
    plain().save(tmp_path / "keyed.png", transparency=ORANGE)
    assert centre(tmp_path / "keyed.png").tolist() == [255, 255, 255]


def test_the_first_frame_of_an_animation(tmp_path: Path) -> None:
    plain(colour=(255, 0, 0)).save(tmp_path / "a.gif", save_all=True, append_images=[plain(colour=(0, 0, 255))])
    assert centre(tmp_path / "a.gif").tolist() == [255, 0, 0]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation: int, tmp_path: Path) -> None:
    """However a camera stored it, red is left and the picture is 80 × 40."""
    upright = Image.new("RGB", (80, 40), (0, 0, 255))
    upright.paste((255, 0, 0), (0, 0, 40, 40))
    undo = {6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
    stored = upright
    if orientation in images.UPRIGHT:
        stored = upright.transpose(undo.get(orientation, images.UPRIGHT[orientation]))
    exif = Image.Exif()
    exif[images.ORIENTATION] = orientation
    stored.save(tmp_path / "a.jpg", exif=exif, quality=95)
    picture = read(tmp_path / "a.jpg", SIZE)
    assert (picture.width, picture.height) == (80, 40)
    assert picture.pixels[20, 5].tolist() == pytest.approx([254, 0, 0], abs=6)
    assert picture.pixels[20, 35].tolist() == pytest.approx([0, 0, 254], abs=6)


@pytest.mark.parametrize("turn", [None, Image.Transpose.TRANSPOSE])
def test_each_bar_has_the_colour_of_its_edge(turn: Image.Transpose | None) -> None:
    """Bars above and below a wide image, or beside a tall one; what only touches an edge does not colour its bar."""
    pixels = np.empty((20, 40, 3), np.uint8)
    pixels[:10], pixels[10:] = ORANGE, (20, 30, 40)
    pixels[0, :15] = pixels[-1, 30:] = 255
    image = Image.fromarray(pixels)
    seen = prepare(image if turn is None else image.transpose(turn), SIZE)
    upright = seen if turn is None else seen.transpose(1, 0, 2)
    assert (upright[:10] == ORANGE).all() and (upright[30:] == (20, 30, 40)).all()
    assert (upright[10:30] == pixels).all()


def test_an_image_of_the_right_proportions_has_no_bars() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    assert (prepare(Image.fromarray(pixels), SIZE) == pixels).all()


@pytest.mark.parametrize(("width", "height"), [(80, 40), (40, 80), (33, 90), (7, 5), (1, 200), (300, 1), (40, 40)])
def test_proportions_are_kept(width: int, height: int) -> None:
    picture = images.framed(plain(size=(width, height)), SIZE)
    assert (picture.pixels.shape, picture.pixels.dtype) == ((40, 40, 3), np.uint8)
    assert (picture.pixels == ORANGE).all()  # bars are of the colour beside them, so that there is no edge
    x1, y1, x2, y2 = (np.array(picture.inner) * 40).round().astype(int)
    assert max(x2 - x1, y2 - y1) == 40
    assert (x2 - x1) / (y2 - y1) == pytest.approx(width / height, rel=0.1) or min(x2 - x1, y2 - y1) <= 3


def test_boxes_are_mapped_back() -> None:
    picture = images.framed(plain(size=(80, 40)), SIZE)
    assert picture.inner == (0, 0.25, 1, 0.75)
    assert picture.box(0.5, 0.25, 1, 0.5) == (0.5, 0, 1, 0.5)


def test_a_frame_that_is_not_square() -> None:
    assert prepare(plain(size=(80, 40)), (20, 60)).shape == (20, 60, 3)


def test_averages_over_areas() -> None:
    """A fine chequerboard becomes grey, at whole and broken factors; nothing is picked out."""
    board = np.indices((640, 640)).sum(axis=0) % 2 * 255
    image = Image.fromarray(board.astype(np.uint8)).convert("RGB")
    assert (np.abs(prepare(image, (160, 160)).astype(int) - 128) <= 1).all()
    assert (np.abs(prepare(image, (150, 150)).astype(int) - 128) <= 8).all()


def test_pixels_of_the_right_size_stay_as_they_are() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    assert (prepare(Image.fromarray(noise), SIZE) == noise).all()


def test_large_jpegs_are_decoded_small(tmp_path: Path) -> None:
    image = Image.new("RGB", (3200, 1600), ORANGE)
    image.paste((0, 0, 0), (0, 0, 1600, 1600))
    image.save(tmp_path / "a.jpg")
    picture = read(tmp_path / "a.jpg", SIZE)
    assert (picture.width, picture.height, picture.inner) == (3200, 1600, (0, 0.25, 1, 0.75))
    assert picture.pixels[20, 10].tolist() == [0, 0, 0]
    assert picture.pixels[20, 30].tolist() == pytest.approx(ORANGE, abs=6)


def test_to_tensor() -> None:
    tensor = to_tensor([prepare(plain(), SIZE), np.zeros((40, 40, 3), np.uint8)])
    assert list(tensor.shape) == [2, 3, 40, 40]
    assert tensor[0, :, 3, 4].tolist() == pytest.approx([c / 255 for c in ORANGE])
    assert tensor.min() == 0 and tensor.is_contiguous()


def refused(path: Path) -> str:
    with pytest.raises(ImageError) as caught:
        read(path, SIZE)
    assert str(path) in str(caught.value)
    assert "\n" not in caught.value.reason and caught.value.reason
    return caught.value.reason


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    assert "empty" in refused(tmp_path / "empty.png")
    (tmp_path / "text.png").write_text("a letter")
    assert "convert it to PNG" in refused(tmp_path / "text.png")
    (tmp_path / "folder.png").mkdir()
    assert "a folder" in refused(tmp_path / "folder.png")
    assert "No such file" in refused(tmp_path / "gone.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert "not a plain file" in refused(tmp_path / "pipe.png")
    (tmp_path / "circle.png").symlink_to(tmp_path / "circle.png")
    assert "cannot be read" in refused(tmp_path / "circle.png")


def test_programs_are_not_run_for_a_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")
    assert "not an image" in refused(tmp_path / "a.png")


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "tif", "webp"])
def test_cut_off_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    noise = np.random.default_rng(0).integers(0, 256, (80, 80, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    data = path.read_bytes()
    for length in (1, 10, 30, len(data) // 2):
        path.write_bytes(data[:length])
        assert refused(path)


def test_damaged_files_never_raise_anything_else(tmp_path: Path) -> None:
    """Random bytes overwritten: a picture or an ImageError."""
    generator = np.random.default_rng(1)
    for suffix in ("png", "jpg", "gif", "tif", "webp", "bmp"):
        path = tmp_path / f"a.{suffix}"
        plain(size=(30, 20)).save(path)
        data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        for _ in range(30):
            spoilt = data.copy()
            spoilt[generator.integers(0, len(data), 4)] = generator.integers(0, 256, 4)
            path.write_bytes(spoilt.tobytes())
            try:
                assert read(path, SIZE).pixels.shape == (40, 40, 3)
            except ImageError as error:
                assert "\n" not in error.reason


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain().save(tmp_path / "a.png")

    def refuse(*_: object, **__: object) -> None:  # a superuser may read everything, so no file shows it
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", refuse)
    assert refused(tmp_path / "a.png") == "cannot be read: Permission denied"


def bomb(path: Path, width: int, height: int) -> Path:
    """A bitmap of a few bytes that claims a size."""
    plain(size=(1, 1)).save(path)
    data = bytearray(path.read_bytes())
    data[18:26] = width.to_bytes(4, "little") + height.to_bytes(4, "little")
    path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize(("width", "height"), [(10_001, 10_000), (20_000, 20_000), (2_000_000, 2_000_000)])
def test_huge_images_are_refused_before_they_are_decoded(width: int, height: int, tmp_path: Path) -> None:
    assert "100 megapixels; make it smaller" in refused(bomb(tmp_path / "a.bmp", width, height))
