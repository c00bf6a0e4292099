"""A model file as perception: pixels as the model's own predictor prepares them, boxes as fractions of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.models.names import ClassNames
from nsfrc.perception.base import Perception
from nsfrc.perception.heads import DEVIATION, MEAN, Head, choose
from nsfrc.perception.running import Runner, runner
from nsfrc.perception.vectors import Layout, Wishes

GREY = 114  # of the bars beside a picture, as ultralytics has them


class Detector(Perception):
    """What a model file finds in images: x1 y1 x2 y2 | classes | attributes | objectness, the surest first.

    A row has 1 at its class, and its confidence as objectness. Coordinates are fractions of the picture itself where it
    is known in which part of the frame that lies, else of the frame. Images go through one at a time, so that rows
    never depend on what else is in a batch.
    """

    def __init__(self, run: Runner, objects: int, wishes: Wishes, device: str = "cpu") -> None:
        super().__init__()
        self.run, self.objects, self.wishes, self.device_name = run, objects, wishes, device
        self.names = _names(run)
        self.layout = Layout(self.names, wishes.attributes)
        self.dimensions = self.layout.dimensions
        self.size = _size(run)
        self.identity = f"{run.path.name}:{run.digest[:16]}"
        self.head = self._head()
        self.fit = "filled" if self.head.stretched else "grey_bars"
        self.to_rectangle = run.dynamic and not self.head.stretched

    def _head(self) -> Head:
        grey = np.full((1, 3, *self.size), GREY / 255, dtype=np.float32)
        try:
            shapes = [one.shape for one in self.run(grey)]
        except NsfrcError:
            # Some exports with NMS inside fail where there is nothing to suppress; what they declare has to do.
            shapes = list(self.run.shapes)
            if not shapes:
                raise
        return choose(shapes, self.size, len(self.names), self.run.told, self.run.path)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """[B, 3, H, W] → [B, E, D]; there are no gradients, as the model runs outside torch."""
        return self.see(images, None)

    @torch.no_grad()
    def see(self, images: torch.Tensor, frames: Sequence[tuple[float, ...]] | None) -> torch.Tensor:
        """The same. frames: where in each image the picture lies, whose fractions boxes then are."""
        pixels = images.detach().float().cpu().numpy()
        found = [self.detections(one, None if frames is None or i >= len(frames) else frames[i])
                 for i, one in enumerate(pixels)]
        self.further = torch.tensor([max(0, len(rows) - self.objects) for rows in found], dtype=torch.long)
        return self.layout.batch(found, self.objects).to(images.device)

    def detections(self, image: np.ndarray, frame: tuple[float, ...] | None = None) -> np.ndarray:
        """An image [3, H, W] → rows x1 y1 x2 y2 as fractions | confidence | class, [n, 6]."""
        height, width = image.shape[1:]
        x1, y1, x2, y2 = (0.0, 0.0, 1.0, 1.0) if frame is None else frame
        inner = np.array([x1 * width, y1 * height, x2 * width, y2 * height])
        if self.to_rectangle and frame is not None:
            image, inner = _rectangle(image, np.rint(inner).astype(int), self.run.stride)
        shape = image.shape[1], image.shape[2]
        if self.head.normalised:
            image = (image - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))
        outputs = self.run(image[None])
        if not _same_shapes(outputs, self.head, shape, len(self.names)):
            raise NsfrcError(f"{self.run.path} puts out {', '.join(str(list(one.shape)) for one in outputs)} for an "
                             f"image of {shape[0]} × {shape[1]}, unlike before: export it again")
        rows = self.head.detections(outputs, shape, len(self.names), self.wishes.least)
        left, top, right, bottom = inner
        rows[:, [0, 2]] = ((rows[:, [0, 2]] - left) / (right - left)).clip(0, 1)
        rows[:, [1, 3]] = ((rows[:, [1, 3]] - top) / (bottom - top)).clip(0, 1)
        return rows[(rows[:, 2] > rows[:, 0]) & (rows[:, 3] > rows[:, 1])]  # others lie in the bars beside the picture

    def __getstate__(self) -> dict[str, Any]:
        """Without the session, which another process opens again from the same file."""
        return {"path": self.run.path, "digest": self.run.digest, "objects": self.objects, "wishes": self.wishes,
                "device": self.device_name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        wishes: Wishes = state["wishes"]
        run = runner(state["path"], state["device"], True, None, wishes.names, wishes.size)
        if run.digest != state["digest"]:
            raise NsfrcError(f"{run.path} has changed since the pipeline was made")
        self.__init__(run, state["objects"], wishes, state["device"])  # type: ignore[misc]


def open_detector(
    path: Path, objects: int, wishes: Wishes, device: str = "cpu", trust: bool = False, asker: str | None = None
) -> Detector:
    """The detector of a model file. trust: whether a pickle may be loaded; asker: the program that names the file."""
    run = runner(path.resolve(), device, trust, asker, wishes.names, wishes.size)
    return Detector(run, objects, wishes, device).eval()


def _names(run: Runner) -> ClassNames:
    if run.names is None:
        raise NsfrcError(f"{run.path} does not say what its classes are called: write :- model([names([person, "
                         f"car])]). in the program, in the order of their numbers, or put a data.yaml with `names` "
                         f"beside it")
    return run.names


def _size(run: Runner) -> tuple[int, int]:
    if run.size is None:
        raise NsfrcError(f"{run.path} takes images of any size and does not say which is usual: write "
                         f":- model([size(640)]). in the program")
    return run.size


def _rectangle(image: np.ndarray, inner: np.ndarray, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """An image with bars so thin that its sides are the least multiples of the stride, and where it lies in that."""
    left, top, right, bottom = (int(side) for side in inner)
    across = (image.shape[2] - (right - left)) // stride * (stride // 2)
    down = (image.shape[1] - (bottom - top)) // stride * (stride // 2)
    cut = image[:, down : image.shape[1] - down, across : image.shape[2] - across]
    return cut, inner - np.array([across, down, across, down])


def _same_shapes(outputs: Sequence[np.ndarray], head: Head, shape: tuple[int, int], classes: int) -> bool:
    """Whether outputs still fit the head that was chosen; a model may do what it likes with another image."""
    if head.name == "picodet":
        return True
    if len(outputs) != 1 or outputs[0].ndim != 3 or len(outputs[0]) != 1:
        return False
    rows, columns = outputs[0].shape[1:]
    return {"v8": rows == 4 + classes, "v5": columns == 5 + classes, "end-to-end": columns == 6,
            "rt-detr": columns in (6, 4 + classes)}[head.name]
