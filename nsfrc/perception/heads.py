"""What detectors put out, as detections: rows x1 y1 x2 y2 | confidence | class, in pixels of what went in.

A head is known by the shapes that come out and the number of class names:

    v8          [1, 4 + C, N]     x y w h and a score for each class: YOLOv8, v9, v11, v12, YOLOv5u
    v5          [1, N, 5 + C]     x y w h, objectness, and a score for each class: YOLOv5, v6, v7
    end-to-end  [1, N, 6]         x1 y1 x2 y2 score class: v10, v26, and exports with NMS inside
    rt-detr     [1, N, 4 + C]     x y w h from 0 to 1 and a score for each class; or [1, N, 6], x y w h score class
    picodet     k × [1, n, C] and k × [1, n, 4 · R]: scores, and distances to the sides as distributions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsfrc.errors import NsfrcError
from nsfrc.models.model_file import how_to_write

MOST = 300  # detections of an image, as ultralytics has it
CANDIDATES = 30_000
SAME = 0.7  # overlap from which on two boxes of a class are one object, as ultralytics has it
STRIDES = (8, 16, 32)
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet

Outputs = Sequence[np.ndarray]
Shape = tuple[int, int]


@dataclass(frozen=True)
class Head:
    """How to read what a detector puts out.

    read: (outputs of one image, its (height, width), classes, least confidence) → rows, not yet suppressed.
    suppress: whether several boxes may mean one object. stretched: whether images fill the frame, without bars.
    normalised: whether pixels have the mean and deviation of ImageNet.
    """

    name: str
    read: Callable[[Outputs, Shape, int, float], np.ndarray]
    suppress: bool = True
    stretched: bool = False
    normalised: bool = False
    same: float = SAME

    def detections(self, outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
        """Rows [n, 6], the surest first."""
        rows = self.read(outputs, shape, classes, least)
        rows = rows[np.isfinite(rows).all(axis=1)]
        rows = rows[(rows[:, 4] >= least) & (rows[:, 5] >= 0) & (rows[:, 5] < classes)]
        rows = rows[np.argsort(-rows[:, 4], kind="stable")][:CANDIDATES]
        return rows[kept(rows, self.same)] if self.suppress else rows[:MOST]


def kept(rows: np.ndarray, same: float = SAME) -> list[int]:
    """Which of rows that stand surest first stay: those that no better one of their class overlaps by more."""
    left = np.arange(len(rows))
    x1, y1, x2, y2 = rows[:, :4].T.astype(np.float64)
    area = np.maximum(x2 - x1, 0) * np.maximum(y2 - y1, 0)
    stay: list[int] = []
    while len(left) and len(stay) < MOST:
        best, left = int(left[0]), left[1:]
        stay.append(best)
        across = np.minimum(x2[best], x2[left]) - np.maximum(x1[best], x1[left])
        down = np.minimum(y2[best], y2[left]) - np.maximum(y1[best], y1[left])
        shared = np.maximum(across, 0) * np.maximum(down, 0)
        rival = (shared > same * (area[best] + area[left] - shared)) & (rows[left, 5] == rows[best, 5])
        left = left[~rival]
    return stay


def _corners(boxes: np.ndarray) -> np.ndarray:
    """x y w h → x1 y1 x2 y2."""
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def _rows(boxes: np.ndarray, scores: np.ndarray, least: float) -> np.ndarray:
    """Boxes [N, 4] x y w h with scores [N, C] → rows of those whose best class is sure enough."""
    sure = scores.max(axis=1)
    there = sure >= least
    best = scores[there].argmax(axis=1)
    return np.concatenate([_corners(boxes[there]), sure[there, None], best[:, None]], axis=1)


def _v8(outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
    found = outputs[0][0].T
    return _rows(found[:, :4], found[:, 4 : 4 + classes], least)


def _v5(outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
    found = outputs[0][0]
    return _rows(found[:, :4], found[:, 4:5] * found[:, 5 : 5 + classes], least)


def _end_to_end(outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
    return outputs[0][0]


def _scaled(rows: np.ndarray, shape: Shape) -> np.ndarray:
    height, width = shape
    return np.concatenate([rows[:, :4] * [width, height, width, height], rows[:, 4:]], axis=1)


def _rt_detr(outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
    found = outputs[0][0]
    return _scaled(_rows(found[:, :4], found[:, 4:], least), shape)


def _rt_detr_best(outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
    found = outputs[0][0]
    return _scaled(np.concatenate([_corners(found[:, :4]), found[:, 4:]], axis=1), shape)


def _picodet(outputs: Outputs, shape: Shape, classes: int, least: float) -> np.ndarray:
    found, half = [], len(outputs) // 2
    for level, (scores, distances) in enumerate(zip(outputs[:half], outputs[half:], strict=True)):
        stride = 8 << level
        rows, columns = -(-shape[0] // stride), -(-shape[1] // stride)
        y, x = (np.indices((rows, columns)).reshape(2, -1) + 0.5) * stride
        spread = np.exp(distances[0] - distances[0].max(axis=1, keepdims=True)).reshape(len(x), 4, -1)
        sides = stride * (spread @ np.arange(spread.shape[2])) / spread.sum(axis=2)
        corners = np.stack([x - sides[:, 0], y - sides[:, 1], x + sides[:, 2], y + sides[:, 3]], axis=1)
        sure = scores[0].max(axis=1)
        found.append(np.concatenate([corners, sure[:, None], scores[0].argmax(axis=1)[:, None]], axis=1))
    return np.concatenate(found)


V8, V5 = Head("v8", _v8), Head("v5", _v5)
END_TO_END = Head("end-to-end", _end_to_end, suppress=False)
RT_DETR = Head("rt-detr", _rt_detr, suppress=False, stretched=True)
RT_DETR_BEST = Head("rt-detr", _rt_detr_best, suppress=False, stretched=True)
PICODET = Head("picodet", _picodet, stretched=True, normalised=True, same=0.5)


def choose(shapes: Sequence[tuple[int, ...]], size: Shape, classes: int, told: dict[str, Any], path: object) -> Head:
    """The head that fits what came out of one image of `size`. told: metadata. Raises NsfrcError if none does."""
    task = told.get("task", "detect")
    if task != "detect":
        raise NsfrcError(f"{path} is a model of the task {task!r}; boxes come from models that detect: "
                         f"{how_to_write()}")
    head = _of_one(shapes[0][1:], size, classes, told) if _single(shapes) else _of_pairs(shapes, size, classes)
    if head is None:
        found = ", ".join("[" + ", ".join(map(str, shape)) + "]" for shape in shapes)
        raise NsfrcError(
            f"{path} puts out {found} for one image of {size[0]} × {size[1]}; with {classes} classes nsfrc knows "
            f"[1, {4 + classes}, N] (YOLOv8 and later), [1, N, {5 + classes}] (YOLOv5), [1, N, 6] (end-to-end, NMS "
            f"inside) and [1, N, {4 + classes}] (RT-DETR): are the class names right? Else {how_to_write()}"
        )
    return head


def _single(shapes: Sequence[tuple[int, ...]]) -> bool:
    return len(shapes) == 1 and len(shapes[0]) == 3 and shapes[0][0] == 1


def _of_one(shape: tuple[int, ...], size: Shape, classes: int, told: dict[str, Any]) -> Head | None:
    rows, columns = shape
    args = told.get("args")
    detr = "rtdetr" in f"{told.get('head', '')} {told.get('description', '')}".lower().replace("-", "")
    if detr and columns in (6, 4 + classes):
        return RT_DETR_BEST if columns == 6 else RT_DETR
    if columns == 6 and (told.get("end2end") is True or (isinstance(args, dict) and args.get("nms") is True)):
        return END_TO_END
    if rows == 4 + classes:
        return V8
    cells = sum((size[0] // stride) * (size[1] // stride) for stride in STRIDES)
    if columns == 5 + classes and (columns != 6 or rows % cells == 0):
        return V5
    if columns == 6:
        return END_TO_END
    return RT_DETR if columns == 4 + classes else None


def _of_pairs(shapes: Sequence[tuple[int, ...]], size: Shape, classes: int) -> Head | None:
    """Scores and distances level by level, in the order of their strides."""
    half = len(shapes) // 2
    if not half or len(shapes) % 2 or any(len(shape) != 3 or shape[0] != 1 for shape in shapes):
        return None
    for level, (scores, distances) in enumerate(zip(shapes[:half], shapes[half:], strict=True)):
        cells = -(-size[0] // (8 << level)) * -(-size[1] // (8 << level))
        if scores[1:] != (cells, classes) or distances[1] != cells or distances[2] % 4 or not distances[2]:
            return None
    return PICODET
