"""A trained detector as one ONNX file, for other programs: an image in, its objects out, duplicates merged.

What goes in is [1, 3, H, W] with values 0 … 1, what comes out [1, MOST, 6]: x1 y1 x2 y2 in pixels, objectness, class,
the surest first, and rows of zeros. So ultralytics writes models that suppress by themselves, with the same metadata:
what reads those reads this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.models.onnx_writer import Graph
from nsfrc.perception import yolo_network
from nsfrc.perception.onnx_network import INPUT, Unknown, add
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import SUREST

OUTPUT = "output0"
MOST = 64  # objects


def onnx_model(model: Yolo) -> bytes:
    """The bytes of the file. model: as `Yolo.build` gives it."""
    graph = Graph(INPUT, (1, 3, *model.size))
    try:
        maps = add(graph, _Heads(model.network), INPUT)
    except Unknown as error:
        raise NsfrcError(f"this version of ultralytics builds {model.name} with {error}, for which nsfrc has no "
                         f"ONNX") from None
    scales = len(maps) // 2
    sides, classes = _joined(graph, maps[:scales]), _joined(graph, maps[scales:])
    likely = graph.node("Sigmoid", [classes])
    strength = _strength(graph, model, classes, likely)
    a, b = (_constant(graph, value) for value in model.calibration)
    objectness = graph.node("Sigmoid", [graph.node("Add", [graph.node("Mul", [strength, a]), b])])
    best = graph.node("Cast", [graph.node("ArgMax", [likely], {"axis": 1})], {"to": 1})
    boxes = _boxes(graph, model, sides)
    sure = graph.node("GreaterOrEqual", [graph.node("Sigmoid", [strength]), _constant(graph, model.floor)])
    named = graph.node("ReduceMax", [likely], {"axes": (1,)})
    scores = graph.node("Where", [sure, named, _constant(graph, 0)])  # 0 and less is not chosen
    limits = [graph.tensor(np.array([MOST])), _constant(graph, [model.same_object])]
    chosen = graph.node("NonMaxSuppression", [_turned(graph, boxes), scores, *limits, _constant(graph, [0])])
    which = graph.node("Gather", [chosen, graph.tensor(np.array(2))], {"axis": 1})
    rows = _turned(graph, graph.node("Concat", [boxes, objectness, best], {"axis": 1}))
    kept = _surest_first(graph, graph.node("Gather", [rows, which], {"axis": 1}))
    return graph.model({kept: (1, MOST, 6)}, _told(model))


def _surest_first(graph: Graph, rows: str) -> str:
    """Rows [1, n, 6] by their fifth entry, and rows of zeros up to MOST: [1, MOST, 6]."""
    more = graph.node("Concat", [rows, _constant(graph, np.zeros((1, MOST, 6)))], {"axis": 1})
    sure = graph.node("Gather", [more, graph.tensor(np.array(4))], {"axis": 2})
    order = graph.node("TopK", [sure, graph.tensor(np.array([MOST]))], {"axis": 1}, ("values", "order"))
    return graph.node("Gather", [more, graph.node("Reshape", [order, graph.tensor(np.array([-1]))])], {"axis": 1},
                      (OUTPUT,))


class _Heads(torch.nn.Module):
    """A network: images → logits of sides, then of classes, a map of each for every scale."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        maps, parts = yolo_network.maps(self.network, images), self.network.model[-1].one2many
        heads = [*parts["box_head"], *parts["cls_head"]]
        return tuple(head(one) for head, one in zip(heads, [*maps, *maps], strict=True))


def _joined(graph: Graph, maps: list[str]) -> str:
    """Maps [1, channels, rows, columns] → all their cells, [1, channels, N]."""
    shape = graph.tensor(np.array([0, 0, -1]))  # 0: as it is
    return graph.node("Concat", [graph.node("Reshape", [one, shape]) for one in maps], {"axis": 2})


def _constant(graph: Graph, value: object) -> str:
    return graph.tensor(np.array(value, dtype=np.float32))


def _turned(graph: Graph, values: str) -> str:
    return graph.node("Transpose", [values], {"perm": (0, 2, 1)})


def _strength(graph: Graph, model: Yolo, classes: str, likely: str) -> str:
    """What `strength` of the model says of cells [1, classes, N]: [1, 1, N]. likely: σ of the logits `classes`."""
    if not model.judges_place:
        return graph.node("ReduceMax", [classes], {"axes": (1,)})
    total = graph.node("ReduceSum", [likely, graph.tensor(np.array([1]))])
    total = graph.node("Min", [total, _constant(graph, SUREST)])
    rest = graph.node("Sub", [_constant(graph, 1), total])
    return graph.node("Sub", [graph.node("Log", [total]), graph.node("Log", [rest])])


def _boxes(graph: Graph, model: Yolo, sides: str) -> str:
    """Logits of sides [1, 4 · BINS, N] → x1 y1 x2 y2 in pixels, [1, 4, N]."""
    image = torch.zeros(1, 3, *model.size)
    cells = yolo_network.placed(image, image, yolo_network.map_sizes(model.network, image), image)
    centres = graph.tensor(np.concatenate([cells.centres.T.numpy()] * 2)[None])
    away = graph.tensor(np.array([-1, -1, 1, 1], dtype=np.float32)[None, :, None] * cells.strides.numpy())
    parts = graph.node("Reshape", [sides, graph.tensor(np.array([1, 4, yolo_network.BINS, -1]))])
    steps = _constant(graph, np.arange(yolo_network.BINS)[None, None, :, None])
    means = graph.node("Mul", [graph.node("Softmax", [parts], {"axis": 2}), steps])
    far = graph.node("ReduceSum", [means, graph.tensor(np.array([2]))], {"keepdims": 0})
    corners = graph.node("Add", [graph.node("Mul", [far, away]), centres])
    height, width = model.size
    most = _constant(graph, np.array([width, height, width, height])[None, :, None])
    return graph.node("Min", [graph.node("Relu", [corners]), most])


def _told(model: Yolo) -> dict[str, str]:
    """The metadata: what ultralytics writes of its models, and which weights these are."""
    return {"description": f"nsfrc {model.identity}", "task": "detect", "end2end": "True", "batch": "1",
            "stride": str(yolo_network.COARSEST), "imgsz": str(list(model.size)),
            "names": str(dict(enumerate(model.attributes.classes)))}
