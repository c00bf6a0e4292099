"""A detector of your own, made on the spot: draws pictures of cups, keys and lamps, trains a tiny YOLO, exports it.

    python -m examples.icons OUT [--steps 120]

OUT/pictures has pictures with labels in OUT/labels, OUT/data.yaml the names of the classes, OUT/icons.onnx the
detector. It takes about half a minute on one core and needs the extra `onnx`. `docs/detector.md` goes on from there.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw

from nsfrc.perception.offline import load_ultralytics

NAMES = ("cup", "key", "lamp")
SIZE = 96
SHADES = ((200, 60, 50), (40, 90, 190), (50, 50, 60))


def draw(
    rng: random.Random, width: int = SIZE, height: int = SIZE, most: int = 4
) -> tuple[Image.Image, list[list[float]]]:
    """A picture, and for every icon its class and x y w h as fractions. Each icon has a shape of its own."""
    shade = rng.randint(110, 250)
    picture = Image.new("RGB", (width, height), (shade, shade, min(255, shade + 5)))
    pen = ImageDraw.Draw(picture)
    found: list[list[float]] = []
    taken: list[tuple[int, int, int]] = []
    for _ in range(rng.randint(1, most)):
        side = rng.randint(min(width, height) // 6, min(width, height) // 3)
        x, y = rng.randint(0, width - side - 1), rng.randint(0, height - side - 1)
        if any(abs(x - a) < (side + s) * 0.6 and abs(y - b) < (side + s) * 0.6 for a, b, s in taken):
            continue
        taken.append((x, y, side))
        kind = rng.randrange(len(NAMES))
        _icon(pen, kind, x, y, side)
        found.append([kind, (x + side / 2) / width, (y + side / 2) / height, side / width, side / height])
    return picture, found


def _icon(pen: ImageDraw.ImageDraw, kind: int, x: int, y: int, side: int) -> None:
    box, colour = (x, y, x + side - 1, y + side - 1), SHADES[kind]
    if kind == 0:
        pen.rectangle(box, fill=colour)
    elif kind == 1:
        pen.ellipse(box, fill=colour)
    else:
        pen.polygon([(x + side // 2, y), (box[2], box[3]), (x, box[3])], fill=colour)


def network(config: str = "yolov8n.yaml", width: float = 0.125):
    """An untrained YOLO of ultralytics for these classes, narrower than its smallest."""
    load_ultralytics()
    torch.manual_seed(0)
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import DetectionModel, yaml_model_load

    settings = yaml_model_load(config)
    settings["scales"] = {"n": [0.33, width, 1024]}
    model: Any = DetectionModel(settings, nc=len(NAMES), verbose=False)
    model.args, model.names, model.task = get_cfg(), dict(enumerate(NAMES)), "detect"
    return model


def train(model, steps: int = 120, batch: int = 8, seed: int = 0):
    """Train on pictures that are drawn as they are needed."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    model.train()
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = 0.1  # the averages of a long training come too late in a short one
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps, pct_start=0.2)
    for _ in range(steps):
        drawn = [draw(rng) for _ in range(batch)]
        rows = [(place, *row) for place, (_, found) in enumerate(drawn) for row in found]
        table = torch.tensor(rows, dtype=torch.float32).reshape(-1, 6)
        pixels = torch.from_numpy(np.stack([np.asarray(picture) for picture, _ in drawn])).permute(0, 3, 1, 2) / 255
        loss, _ = model.loss({"img": pixels, "batch_idx": table[:, 0], "cls": table[:, 1:2], "bboxes": table[:, 2:]})
        optimiser.zero_grad()
        loss.sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10)
        optimiser.step()
        schedule.step()
    return model.eval()


def export(model, path: Path, **options) -> Path:
    """The network as an ONNX file with names, size and stride in its metadata, as `yolo export` writes it."""
    from ultralytics import YOLO

    wrapper: Any = YOLO("yolov8n.yaml", task="detect")
    wrapper.model = model.eval()
    if not isinstance(model.args, dict):
        wrapper.model.args = vars(model.args)  # which losses want as a namespace
    wrapper.model.pt_path = str(path.with_suffix(".pt"))
    written = wrapper.export(format="onnx", imgsz=options.pop("imgsz", SIZE), simplify=False, **options)
    return Path(written).replace(path)


def pictures(folder: Path, count: int, seed: int = 1, odd: bool = False) -> None:
    """Pictures, their labels, and a data.yaml. odd: of all sizes and proportions."""
    rng = random.Random(seed)
    for name in ("pictures", "labels"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        width, height = (rng.randint(60, 500), rng.randint(60, 500)) if odd else (SIZE * 2, SIZE * 2)
        picture, found = draw(rng, width, height)
        picture.save(folder / "pictures" / f"{number:03}.png")
        lines = "".join(" ".join(f"{value:.6g}" for value in row) + "\n" for row in found)
        (folder / "labels" / f"{number:03}.txt").write_text(lines)
    (folder / "data.yaml").write_text(f"train: pictures\nval: pictures\nnames: [{', '.join(NAMES)}]\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--count", type=int, default=24)
    options = parser.parse_args()
    pictures(options.out, options.count)
    export(train(network(), options.steps), options.out / "icons.onnx")
    print(f"{options.count} pictures and icons.onnx in {options.out}")


if __name__ == "__main__":
    main()
