"""Whether model files see what ultralytics' own predictor sees: boxes and confidences, picture by picture.

    python -m nsfrc.benchmarks.agreement [--count 60] [--out benchmarks/results]

Models are made on the spot: YOLOv8, v11, v5u and v26 trained for a minute on drawn icons, with and without NMS inside,
of fixed and of open size, and an RT-DETR that is not trained, at a low confidence. Where the package `nudenet` is
installed, its detector is asked about photographs too. Needs the extras `onnx` and `examples`, and the package onnx.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.inference.images import read, to_tensor
from nsfrc.perception.detector import open_detector
from nsfrc.perception.offline import load_ultralytics
from nsfrc.perception.vectors import Wishes

LEAST_OVERLAP, MOST_APART = 0.99, 1e-3


@dataclass(frozen=True)
class Compared:
    """A model on all pictures. least_overlap, most_apart: the worst of all detections; unmatched: those of one side.

    failed: pictures on which the file fails here and there, as exports with NMS inside do where they find nothing.
    """

    model: str
    head: str
    pictures: int
    detections: int
    unmatched: int
    failed: int
    least_overlap: float
    most_apart: float
    agrees: bool


def register_nms() -> torch.library.Library | None:
    """What ultralytics imports of torchvision, for a torch without CUDA, with which that cannot be imported."""
    try:
        import torchvision

        return None
    except RuntimeError:
        pass
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from ultralytics.utils.nms import TorchNMS

    library.impl("nms", TorchNMS.nms, "CPU")
    import torchvision

    torchvision.extension._has_ops = lambda: True
    return library


def compare(path: Path, pictures: list[Path], least: float = 0.25) -> Compared:
    """One model file on pictures, here and in ultralytics."""
    load_ultralytics()
    from ultralytics import RTDETR, YOLO

    ours = open_detector(path, 300, Wishes(conf=least))
    theirs: Any = RTDETR(str(path)) if ours.head.name == "rt-detr" else YOLO(str(path), task="detect")
    count = unmatched = failed = 0
    overlap, apart = 1.0, 0.0
    for file in pictures:
        picture = read(file, ours.size, ours.fit)
        pixels = to_tensor([picture.pixels])[0].numpy()
        try:
            found = ours.detections(pixels, picture.frame)
        except NsfrcError:
            failed += _fails(theirs, file, least, ours.size)
            continue
        wanted = _predicted(theirs, file, least, (picture.width, picture.height), ours.size)
        left, worst, most = _matched(found, wanted)
        count, unmatched = count + len(wanted), unmatched + left
        overlap, apart = min(overlap, worst), max(apart, most)
    agrees = unmatched == 0 and overlap >= LEAST_OVERLAP and apart <= MOST_APART and count > 0
    return Compared(path.stem, ours.head.name, len(pictures), count, unmatched, failed, round(overlap, 5),
                    round(float(apart), 7), agrees)


def _fails(model: Any, file: Path, least: float, size: tuple[int, int]) -> bool:
    """Whether ultralytics fails on a picture too; raises where it does not."""
    try:
        _predicted(model, file, least, (1, 1), size)
    except Exception:  # whatever ONNX Runtime raises
        return True
    raise AssertionError(f"{file}: fails here, and not in ultralytics")


def _predicted(model: Any, file: Path, least: float, sides: tuple[int, int], size: tuple[int, int]) -> np.ndarray:
    # A model of open size is given images of 640 there unless one says otherwise; here of the size in its metadata.
    (width, height), options = sides, {"conf": least, "iou": 0.7, "max_det": 300, "verbose": False, "device": "cpu"}
    boxes = model.predict(str(file), imgsz=list(size), **options)[0].boxes
    rows = torch.cat([boxes.xyxy, boxes.conf[:, None], boxes.cls[:, None]], 1).cpu().numpy().astype(np.float64)
    rows[:, :4] /= [width, height, width, height]
    return rows[(rows[:, 2] > rows[:, 0]) & (rows[:, 3] > rows[:, 1])]  # others lie in the bars beside the picture


def _matched(found: np.ndarray, wanted: np.ndarray) -> tuple[int, float, float]:
    """How many have no partner, the least overlap of partners and the largest difference of their confidences."""
    left, worst, most = list(range(len(found))), 1.0, 0.0
    alone = 0
    for row in wanted:
        best = max((i for i in left if found[i, 5] == row[5]), key=lambda i: _overlap(found[i], row), default=None)
        if best is None or _overlap(found[best], row) < 0.5:
            alone += 1
            continue
        left.remove(best)
        worst, most = min(worst, _overlap(found[best], row)), max(most, abs(found[best, 4] - row[4]))
    return alone + len(left), worst, most


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(across, 0) * max(down, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return float(shared / max(sum(areas) - shared, 1e-12))


def models(folder: Path, steps: int) -> Iterator[tuple[Path, float]]:
    """Model files, each with the least confidence of what is compared."""
    from examples import icons

    for config in ("yolov8n", "yolo11n", "yolov5n", "yolo26n"):
        model = icons.train(icons.network(f"{config}.yaml"), steps)
        kinds: dict[str, dict[str, Any]] = {"": {}, "-open": {"dynamic": True}}
        if config == "yolov8n":
            kinds["-nms"] = {"nms": True, "iou": 0.7, "conf": 0.25}
        for kind, options in kinds.items():
            yield icons.export(model, folder / f"{config}{kind}.onnx", **options), 0.25
    yield _rt_detr(folder), 0.02


def _rt_detr(folder: Path) -> Path:
    from ultralytics import RTDETR

    torch.manual_seed(0)
    model: Any = RTDETR("rtdetr-l.yaml")
    model.model.pt_path = str(folder / "rtdetr.pt")
    return Path(model.export(format="onnx", imgsz=160, simplify=False))


def photographs(folder: Path, count: int) -> list[Path]:
    """Photographs of odd sizes, cut from those that installed packages have."""
    import ultralytics

    rng = np.random.default_rng(0)
    sources = sorted((Path(ultralytics.__file__).parent / "assets").glob("*.jpg"))
    if find_spec("skimage") is not None:
        import skimage

        sources += sorted(file for kind in ("*.jpg", "*.png")
                          for file in (Path(skimage.__file__).parent / "data").glob(kind))
    files = []
    for number in range(count):
        image = Image.open(sources[number % len(sources)]).convert("RGB")
        sides = [int(side * share) for side, share in zip(image.size, rng.uniform(0.5, 1, 2), strict=True)]
        x, y = (int(rng.integers(0, side - part + 1)) for side, part in zip(image.size, sides, strict=True))
        files.append(folder / f"photo{number:03}.{('jpg', 'png')[number % 2]}")
        image.crop((x, y, x + max(sides[0], 1), y + max(sides[1], 1))).save(files[-1], quality=92)
    return files


def _keep(rows: list[Compared], folder: Path) -> None:
    """Tell the last row, and write all that there are."""
    print(rows[-1], flush=True)
    lines = [",".join(field.name for field in fields(Compared))]
    lines += [",".join(map(str, asdict(row).values())) for row in rows]
    write_whole(folder / "agreement.csv", ("\n".join(lines) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    load_ultralytics()
    kept = register_nms()  # it lasts as long as this does
    from examples import icons

    rows: list[Compared] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        icons.pictures(folder, options.count, odd=True)
        drawn = sorted((folder / "pictures").iterdir())
        if find_spec("nudenet") is not None:
            import nudenet

            photos = photographs(folder, options.count)
            rows.append(compare(Path(nudenet.__file__).parent / "320n.onnx", photos, 0.1))
            _keep(rows, options.out)
        for path, least in models(folder, options.steps):
            rows.append(compare(path, drawn, least))
            _keep(rows, options.out)
    del kept
    if not all(row.agrees for row in rows):
        raise SystemExit("some models do not agree")


if __name__ == "__main__":
    main()
