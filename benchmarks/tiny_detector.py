"""The smallest detector that answers truly: an ONNX file that finds squares of pure red, green and blue.

It has the output of a YOLOv8, [1, 4 + C, N], and the metadata of an ultralytics export. Every cell of 16 × 16 pixels is
a box; its score for a colour is how much of that colour it has, and of no other. Tests and fuzzing use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("red square", "green square", "blue square")
CELL = 16


def write_tiny(path: Path, size: int = 64, names: tuple[str, ...] = NAMES, layout: str = "v8",
               metadata: dict[str, Any] | None = None) -> Path:
    """Write the model for images of `size`. layout: v8, v5, end-to-end or rt-detr. metadata: instead of the usual."""
    from onnx import TensorProto, helper, numpy_helper, save

    cells = size // CELL
    mixing = 2 * np.eye(3, dtype=np.float32) - 1  # red is what has red and neither green nor blue
    weights = np.repeat(np.repeat(mixing[:, :, None, None], CELL, 2), CELL, 3) / CELL**2
    y, x = (np.indices((cells, cells)).reshape(2, -1) + 0.5) * CELL
    sides = np.full(cells * cells, CELL)
    boxes: np.ndarray = np.stack([x, y, sides, sides]).astype(np.float32)[None]  # [1, 4, N]
    if layout == "rt-detr":
        boxes = boxes / np.float32(size)
    constants: dict[str, Any] = {"weights": weights.astype(np.float32), "boxes": boxes,
                 "flat": np.array([1, 3, -1], dtype=np.int64), "low": np.float32(0), "high": np.float32(1),
                 "ones": np.ones((1, 1, cells * cells), dtype=np.float32)}
    nodes = [helper.make_node("Conv", ["images", "weights"], ["grid"], strides=[CELL, CELL]),
             helper.make_node("Reshape", ["grid", "flat"], ["cells"]),
             helper.make_node("Clip", ["cells", "low", "high"], ["scores"])]
    nodes += _output(helper, layout, constants, cells)
    shapes = {"v8": [1, 7, cells**2], "v5": [1, cells**2, 8], "rt-detr": [1, cells**2, 7],
              "end-to-end": [1, cells**2, 6]}
    graph = helper.make_graph(
        nodes, "tiny", [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, shapes[layout])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    told = {"names": str(dict(enumerate(names))), "imgsz": f"[{size}, {size}]", "stride": "32", "task": "detect"}
    told |= {"head": "RTDETRDecoder"} if layout == "rt-detr" else {}
    told |= {"end2end": "True"} if layout == "end-to-end" else {}
    for key, value in (told if metadata is None else metadata).items():
        model.metadata_props.add(key=key, value=str(value))
    save(model, str(path))
    return path


def _output(helper: Any, layout: str, constants: dict[str, Any], cells: int) -> list[Any]:
    """What joins boxes [1, 4, N] and scores [1, 3, N]."""
    if layout == "v8":
        return [helper.make_node("Concat", ["boxes", "scores"], ["output0"], axis=1)]
    if layout == "v5":
        return [helper.make_node("Concat", ["boxes", "ones", "scores"], ["joined"], axis=1),
                helper.make_node("Transpose", ["joined"], ["output0"], perm=[0, 2, 1])]
    if layout == "rt-detr":
        return [helper.make_node("Concat", ["boxes", "scores"], ["joined"], axis=1),
                helper.make_node("Transpose", ["joined"], ["output0"], perm=[0, 2, 1])]
    half = constants["boxes"][:, 2:] / 2
    constants["boxes"] = np.concatenate([constants["boxes"][:, :2] - half, constants["boxes"][:, :2] + half], axis=1)
    return [helper.make_node("ReduceMax", ["scores"], ["best"], axes=[1], keepdims=1),
            helper.make_node("ArgMax", ["scores"], ["which"], axis=1, keepdims=1),
            helper.make_node("Cast", ["which"], ["number"], to=1),
            helper.make_node("Concat", ["boxes", "best", "number"], ["joined"], axis=1),
            helper.make_node("Transpose", ["joined"], ["output0"], perm=[0, 2, 1])]
