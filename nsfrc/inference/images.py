"""Images as perception wants them: whatever Pillow reads → upright RGB pixels in a frame of a given size.

With the fit "letterbox" proportions are kept: the picture fills the frame in one direction and is centred in the
other, between bars of the colour of its edges. With "stretch" it fills the frame. "grey_bars" and "filled" are the same
as ultralytics does it, to the pixel: bars of grey, and bilinear from four neighbours.
"""

from __future__ import annotations

import io
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, UnidentifiedImageError

from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    import torch

    from nsfrc.perception.base import Fit

PAPER = (255, 255, 255)  # what shows through transparent images
MAX_PIXELS = 100_000_000
SMALL = 240  # pixels of the longer side of a copy for reports, at most
LARGE = 960  # the same of photographs, which people enlarge
# Whole pixels are averaged first, down to so many times the wanted size, and the rest interpolated. For 640 → 160 by 1
# that is a quarter of the time of a filter over everything, and with the same anti-aliasing; 3 is hardly to be told
# from such a filter, which the published slot attention was trained with.
GAP = {"letterbox": 1.0, "stretch": 3.0}

# Formats that are decoded here. Others that Pillow knows, such as EPS, start other programs or are no pictures.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "PPM", "TIFF", "WEBP", "TGA", "DIB", "ICO", "JPEG2000", "PCX", "QOI", "AVIF")

ANIMATED = ("GIF", "PNG", "WEBP", "AVIF")

GREY = 114  # of the bars of "grey_bars"
ORIENTATION = 0x0112  # the EXIF tag
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = (5, 6, 7, 8)  # orientations that exchange width and height


class ImageError(NsfrcError):
    """A file that gives no picture; `reason` is one line without the file's name."""

    def __init__(self, name: Path | str, reason: str) -> None:
        self.reason = " ".join(reason.split())
        super().__init__(f"{name}: {self.reason}")


@dataclass(frozen=True, eq=False)
class Placed:
    """An image in the frame that perception was given: where in it the original lies.

    width, height: in pixels. inner: (x1, y1, x2, y2) as fractions of the frame.
    """

    width: int
    height: int
    inner: tuple[float, float, float, float]

    def box(self, x1: float, y1: float, x2: float, y2: float) -> tuple[float, float, float, float]:
        """A box in fractions of the frame → the same box in fractions of the original."""
        left, top, right, bottom = self.inner
        across, down = right - left, bottom - top
        return (x1 - left) / across, (y1 - top) / down, (x2 - left) / across, (y2 - top) / down


@dataclass(frozen=True, eq=False)
class Picture(Placed):
    """What perception is given. width, height: of the upright original. pixels: uint8 [H, W, 3].

    frame: where the picture lies in the pixels, as fractions, for perceptions whose boxes are fractions of the picture;
    `inner` is then everything. animated: whether the file has more frames than this one. small: a copy of the original
    for people to look at, uint8 [h, w, 3], if asked for.
    """

    pixels: np.ndarray = field(repr=False)
    animated: bool = False
    small: np.ndarray | None = field(default=None, repr=False)
    frame: tuple[float, float, float, float] | None = None


@contextmanager
def quietly() -> Iterator[None]:
    """Without Pillow's warnings about metadata and sizes, which MAX_PIXELS limits, and numpy's about numbers.

    Whether numbers are finite is looked at where it matters. For the main thread, around all reading: filters belong to
    the whole process, so a thread must not change them; what numpy says belongs to each thread.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def read(path: str | Path, size: tuple[int, int], fit: Fit = "letterbox", side: int = 0) -> Picture:
    """The first frame of a file, brought to `size` (H, W). Raises ImageError with a one-line reason.

    side: where above 0, also a small copy of the original, whose longer side has at most so many pixels.
    """
    path = Path(path)
    _check_file(path)
    return _decoded(path, path, size, fit, side)


def read_bytes(data: bytes, name: str, size: tuple[int, int], fit: Fit = "letterbox", side: int = 0) -> Picture:
    """The same for the content of a file; `name` is what messages call it."""
    if not data:
        raise ImageError(name, "there are no bytes")
    return _decoded(io.BytesIO(data), name, size, fit, side)


def _decoded(source: Path | io.BytesIO, name: Path | str, size: tuple[int, int], fit: Fit, side: int) -> Picture:
    try:
        with Image.open(source, formats=_formats()) as image:
            _check_pixels(name, image)
            return replace(_picture(image, size, fit, side, draft=True), animated=_animated(image))
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise ImageError(name, "not an image, or in an unsupported format; convert it to PNG or JPEG") from None
    except Image.DecompressionBombError:
        raise ImageError(name, f"more than {MAX_PIXELS // 1_000_000} megapixels; make it smaller first") from None
    except MemoryError:
        raise ImageError(name, "too large for the memory of this machine; make it smaller first") from None
    except Exception as error:  # a damaged file makes decoders raise almost anything
        if isinstance(error, OSError) and error.errno is not None:  # from the system, not from a decoder
            raise ImageError(name, f"cannot be read: {error.strerror}") from None
        raise ImageError(name, f"damaged or cut off ({str(error) or type(error).__name__}); get a fresh copy") from None


def framed(image: Image.Image, size: tuple[int, int], fit: Fit = "letterbox", side: int = 0) -> Picture:
    """An opened image as a picture, as `read` does it; the image itself stays as it is."""
    _check_pixels("the image", image)
    return _picture(image, size, fit, side, draft=False)


def prepare(image: Image.Image, size: tuple[int, int], fit: Fit = "letterbox") -> np.ndarray:
    """An opened image → uint8 [H, W, 3], as `read` does it."""
    return _picture(image, size, fit, 0, draft=True).pixels


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height of the upright picture in a file, without decoding it. Raises ImageError."""
    _check_file(path)
    try:
        with Image.open(path, formats=_formats()) as image:
            turned = image.getexif().get(ORIENTATION, 1) in SIDEWAYS
            return (image.height, image.width) if turned else (image.width, image.height)
    except ImageError:
        raise
    except Exception as error:  # a damaged file makes decoders raise almost anything
        raise ImageError(path, f"not an image, or damaged ({error or type(error).__name__})") from None


def to_tensor(pixels: Sequence[np.ndarray]) -> torch.Tensor:
    """uint8 [H, W, 3] each → float32 [B, 3, H, W] with values 0 … 1."""
    import torch

    return torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous().float().div_(255)


def _animated(image: Image.Image) -> bool:
    """Whether an image that has been decoded is followed by others in time.

    Pages of a TIFF and the second view of a camera's JPEG are not that, and often small copies of the first.
    """
    try:
        return image.format in ANIMATED and bool(getattr(image, "is_animated", False))
    except Exception:  # what follows the first frame may be damaged, and is not needed
        return False


def _formats() -> list[str]:
    Image.init()  # a build of Pillow may lack some
    return [name for name in FORMATS if name in Image.OPEN]


def _check_file(path: Path) -> None:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise ImageError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(status.st_mode):
        raise ImageError(path, "a folder, not an image")
    if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
        raise ImageError(path, "not a plain file")
    if not status.st_size:
        raise ImageError(path, "the file is empty; get a fresh copy")


def _check_pixels(name: Path | str, image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(
            name, f"{image.width} × {image.height} is more than {MAX_PIXELS // 1_000_000} megapixels; "
                  f"make it smaller first"
        )


def _picture(image: Image.Image, size: tuple[int, int], fit: Fit, side: int, draft: bool) -> Picture:
    orientation = image.getexif().get(ORIENTATION, 1)
    turned = orientation in SIDEWAYS
    width, height = image.size[::-1] if turned else image.size
    if fit in ("grey_bars", "filled"):
        return _as_ultralytics(_plain(image), (width, height), size, orientation, fit, side)
    rows, columns = size
    inner = columns, rows
    if fit == "letterbox":
        scale = min(columns / width, rows / height)
        inner = max(1, min(columns, round(width * scale))), max(1, min(rows, round(height * scale)))
    if draft:
        # A JPEG is decoded at a half, a quarter or an eighth where enough is left to average over: twice the wanted
        # size, and as much as the copy for reports has, asked for or not, so that pixels never depend on that.
        wanted = tuple(max(2 * a, b) for a, b in zip(inner, _within(width, height, SMALL), strict=True))
        image.draft(image.mode, wanted[::-1] if turned else wanted)  # type: ignore[arg-type]
    plain = _plain(image)
    pixels = _resized(plain, inner, orientation, GAP[fit])
    left, top = (columns - inner[0]) // 2, (rows - inner[1]) // 2
    placed = left / columns, top / rows, (left + inner[0]) / columns, (top + inner[1]) / rows
    small = _resized(plain, _within(width, height, side), orientation, GAP["letterbox"]) if side else None
    return Picture(width, height, placed, _framed(pixels, size, left, top), small=small)


def _as_ultralytics(
    plain: Image.Image, original: tuple[int, int], size: tuple[int, int], orientation: int, fit: Fit, side: int
) -> Picture:
    """A picture whose pixels are those that ultralytics' predictor gives a model. original: (width, height)."""
    import cv2

    (width, height), (rows, columns) = original, size
    upright = np.asarray(plain.transpose(UPRIGHT[orientation]) if orientation in UPRIGHT else plain)
    small = _resized(plain, _within(width, height, side), orientation, GAP["letterbox"]) if side else None
    inner, left, top = (columns, rows), 0, 0
    if fit == "grey_bars":
        scale = min(rows / height, columns / width)
        inner = max(round(width * scale), 1), max(round(height * scale), 1)
        left, top = (round(free / 2 - 0.1) for free in (columns - inner[0], rows - inner[1]))
    if inner != (width, height):
        upright = cv2.resize(upright, inner, interpolation=cv2.INTER_LINEAR)
    pixels = np.full((rows, columns, 3), GREY, dtype=np.uint8)
    pixels[top : top + inner[1], left : left + inner[0]] = upright
    frame = left / columns, top / rows, (left + inner[0]) / columns, (top + inner[1]) / rows
    return Picture(width, height, (0.0, 0.0, 1.0, 1.0), pixels, small=small, frame=frame)


def _within(width: int, height: int, side: int) -> tuple[int, int]:
    """Width and height with the same proportions, and not above `side`."""
    scale = min(1.0, side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _resized(image: Image.Image, size: tuple[int, int], orientation: int, gap: float) -> np.ndarray:
    """An image brought to (width, height) and turned upright: uint8 [h, w, 3]."""
    stored = size[::-1] if orientation in SIDEWAYS else size
    small = image.resize(stored, Image.Resampling.BILINEAR, reducing_gap=gap)
    return np.array(small.transpose(UPRIGHT[orientation]) if orientation in UPRIGHT else small)


def _framed(pixels: np.ndarray, size: tuple[int, int], left: int, top: int) -> np.ndarray:
    """Pixels [h, w, 3] in a frame of `size`, each bar beside them in the colour that most of the edge next to it has.

    A bar of any other colour would be an edge where there is none, which detectors take for objects.
    """
    height, width = pixels.shape[:2]
    if (height, width) == size:
        return pixels
    frame = np.empty((*size, 3), np.uint8)
    frame[:top], frame[top + height :] = _middle(pixels[0]), _middle(pixels[-1])
    # Bars are above and below or left and right, save for what rounding leaves over.
    frame[top : top + height, :left] = _middle(pixels[:, 0])
    frame[top : top + height, left + width :] = _middle(pixels[:, -1])
    frame[top : top + height, left : left + width] = pixels
    return frame


def _middle(line: np.ndarray) -> np.ndarray:
    """The median colour of a line of pixels [n, 3]; of an even number the lower of the two in the middle."""
    return np.sort(line, axis=0)[(len(line) - 1) // 2]


def _plain(image: Image.Image) -> Image.Image:
    """Any mode → RGB with 8 bits a channel, the transparent on PAPER."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_eight_bits(np.asarray(image), image.mode)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    clear = image if image.mode == "RGBA" else image.convert("RGBA")
    if clear.getchannel("A").getextrema() == (255, 255):
        return clear.convert("RGB")
    paper = Image.new("RGB", clear.size, PAPER)
    paper.paste(clear, mask=clear)
    return paper


def _eight_bits(values: np.ndarray, mode: str) -> np.ndarray:
    """Grey values → uint8. 16 bits are what they are; 32 bits and floats go by the smallest usual range that fits."""
    values = np.nan_to_num(values.astype(np.float32), posinf=0, neginf=0).clip(min=0)
    highest = float(values.max())
    ranges = [65535.0] if mode.startswith("I;16") else [1.0, 255.0, 65535.0] if mode == "F" else [255.0, 65535.0]
    top = next((top for top in ranges if highest <= top), highest)
    return np.rint(values * np.float32(255 / top)).astype(np.uint8)
