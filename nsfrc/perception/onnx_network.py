"""The YOLO that ships in ONNX Runtime, which runs it faster than torch does on a CPU; without gradients.

The graph is made from the network itself when it is first needed, so that it has whatever weights that has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import repeat
from typing import Any

import numpy as np
import torch
from torch import fx

from nsfrc.models.onnx_writer import Graph
from nsfrc.perception import yolo_network
from nsfrc.perception.running import QUIET

INPUT = "images"
AT_ONCE = 8  # images, a seventh faster than one at a time, and no slower than 32


class Unknown(Exception):
    """An operation that there is no ONNX for here, such as in a network of another version of ultralytics."""


class OnnxNetwork:
    """A fused network. What is said of an image is the same in every bit whatever goes through with it.

    The parts that say where boxes end are sessions of their own, one for each scale: they are a fifth of the work, and
    most figures have objects in one scale only.
    """

    def __init__(self, network: Any) -> None:
        """Raises Unknown."""
        self.stamp = stamp(network.parameters())
        self.body = _session(to_onnx(_Body(network), ("batch", 3, "height", "width")))
        self.box_heads = [_session(to_onnx(_BoxHead(part), ("batch", "channels", "height", "width")))
                          for part in network.model[-1].one2many["box_head"]]

    def __call__(self, images: torch.Tensor, least: float = -math.inf) -> tuple[torch.Tensor, torch.Tensor]:
        """Images [B, 3, H, W] → box logits [B, 4 * BINS, N] and class logits [B, classes, N].

        Box logits of a scale are 0 for an image in which no class logit of that scale is `least` or more.
        """
        pixels = np.ascontiguousarray(images.detach().numpy())
        # An image like the one before it is not looked at again: batches are filled up with black ones.
        new = np.array([i == 0 or not np.array_equal(pixels[i], pixels[i - 1]) for i in range(len(pixels))])
        found = self._all(pixels if new.all() else pixels[new], least)
        sides, classes = (torch.from_numpy(np.concatenate(part)) for part in zip(*found, strict=True))
        if new.all():
            return sides, classes
        place = torch.from_numpy(np.cumsum(new) - 1)
        return sides[place], classes[place]

    def _all(self, pixels: np.ndarray, least: float) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """What comes out for images, computed by as many threads as torch has, each with images of its own."""
        threads = min(torch.get_num_threads(), len(pixels))
        size = min(AT_ONCE, -(-len(pixels) // threads))
        parts = [pixels[first : first + size] for first in range(0, len(pixels), size)]
        if threads == 1:
            return [self._some(part, least) for part in parts]
        with ThreadPoolExecutor(threads, thread_name_prefix="nsfrc-onnx") as pool:
            return list(pool.map(self._some, parts, repeat(least)))

    def _some(self, pixels: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
        found: Sequence[np.ndarray] = self.body.run(None, {INPUT: pixels})
        maps, classes = found[: len(self.box_heads)], found[len(self.box_heads) :]
        sides = [self._sides(*scale, least) for scale in zip(self.box_heads, maps, classes, strict=True)]
        return tuple(np.concatenate([_in_a_row(one) for one in part], axis=2) for part in (sides, classes))  # type: ignore[return-value]

    def _sides(self, head: Any, features: np.ndarray, classes: np.ndarray, least: float) -> np.ndarray:
        wanted = classes.max((1, 2, 3)) >= least
        if wanted.all():
            return head.run(None, {INPUT: features})[0]  # type: ignore[no-any-return]
        sides = np.zeros((len(features), 4 * yolo_network.BINS, *classes.shape[2:]), np.float32)
        if wanted.any():
            sides[wanted] = head.run(None, {INPUT: features[wanted]})[0]
        return sides


def _in_a_row(maps: np.ndarray) -> np.ndarray:
    """[B, channels, rows, columns] → [B, channels, cells]."""
    return maps.reshape(*maps.shape[:2], -1)


def _session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = QUIET
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def stamp(weights: Iterable[torch.Tensor]) -> tuple[tuple[int, int], ...]:
    """What changes where weights do: where they are, and how often they were written to."""
    return tuple((one.data_ptr(), one._version) for one in weights)


def available() -> bool:
    return find_spec("onnxruntime") is not None


def to_onnx(module: torch.nn.Module, shape: Sequence[int | str]) -> bytes:
    """A module that gives several maps, as an ONNX model; shape: of its input. Raises Unknown."""
    graph = Graph(INPUT, shape)
    return graph.model({name: ("batch", f"channels{i}", f"rows{i}", f"columns{i}")
                        for i, name in enumerate(add(graph, module, INPUT))})


def add(graph: Graph, module: torch.nn.Module, given: str) -> list[str]:
    """Add what a module does with the node `given`, and say which nodes hold the maps that it gives. Raises Unknown."""
    try:
        traced = _Tracer().trace(module)
    except (fx.proxy.TraceError, TypeError) as error:
        raise Unknown(str(error)) from None
    parts = dict(module.named_modules())
    made: dict[fx.Node, str] = {}
    for node in traced.nodes:
        if node.op == "placeholder":
            made[node] = given
        elif node.op == "output":
            return [made[one] for one in node.args[0]]
        elif node.op == "call_module":
            made[node] = _module(graph, parts[str(node.target)], made[node.args[0]])
        elif name := _name(node):
            made[node] = _function(graph, name, node, made)
    raise Unknown("nothing comes out")


class _Body(torch.nn.Module):
    """A network without the heads for boxes: images → the maps that these look at, then class logits, by scale."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        maps = yolo_network.maps(self.network, images)
        heads = self.network.model[-1].one2many["cls_head"]
        return (*maps, *(head(one) for head, one in zip(heads, maps, strict=True)))


class _BoxHead(torch.nn.Module):
    """The head for boxes of a scale: its map → box logits."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.head(features),)


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, yolo_network.Combined) or super().is_leaf_module(m, module_qualified_name)


def _name(node: fx.Node) -> str:
    """The name of a function; empty where only a shape is read, which ONNX has no need for."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    return "" if name in ("getattr", "getitem", "size") else name


def _module(graph: Graph, part: torch.nn.Module, given: str) -> str:
    """The node of a layer."""
    if isinstance(part, torch.nn.Conv2d) and part.padding_mode == "zeros" and not isinstance(part.padding, str):
        weights = [graph.tensor(one.detach().float().contiguous().numpy()) for one in (part.weight, part.bias)
                   if one is not None]
        return graph.node("Conv", [given, *weights], {
            "kernel_shape": part.kernel_size, "strides": part.stride, "pads": (*part.padding, *part.padding),
            "dilations": part.dilation, "group": part.groups})
    if isinstance(part, torch.nn.SiLU):
        return graph.node("Mul", [given, graph.node("Sigmoid", [given])])
    if isinstance(part, torch.nn.MaxPool2d) and part.dilation == 1 and not part.ceil_mode:
        size, step, around = (_pair(one) for one in (part.kernel_size, part.stride, part.padding))
        return graph.node("MaxPool", [given], {"kernel_shape": size, "strides": step, "pads": (*around, *around)})
    if isinstance(part, torch.nn.Upsample) and part.mode == "nearest" and part.scale_factor is not None:
        factor = float(part.scale_factor)  # type: ignore[arg-type]  # one for both sides, or this raises
        scales = graph.tensor(np.array([1, 1, factor, factor], dtype=np.float32))
        return graph.node("Resize", [given, "", scales], {
            "mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})
    if isinstance(part, yolo_network.Combined):
        members = part.get_buffer("members").float().numpy()
        return graph.node("Conv", [given, graph.tensor(members[:, :, None, None])], {"kernel_shape": (1, 1)})
    if isinstance(part, torch.nn.PixelShuffle):
        return graph.node("DepthToSpace", [given], {"blocksize": part.upscale_factor, "mode": "CRD"})
    if isinstance(part, torch.nn.Identity):
        return given
    raise Unknown(type(part).__name__)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _function(graph: Graph, name: str, node: fx.Node, made: dict[fx.Node, str]) -> str:
    """The node of a function or a method."""
    first, *rest = (*node.args, *node.kwargs.values())
    given: Any = first
    if name == "cat" and len(rest) == 1 and isinstance(rest[0], int):
        return graph.node("Concat", [made[one] for one in given], {"axis": rest[0]})
    if name == "add" and len(rest) == 1 and isinstance(rest[0], fx.Node):
        return graph.node("Add", [made[given], made[rest[0]]])
    if name in ("view", "reshape"):
        # A size that is read from another shape is that of the batch: 0 leaves it as it is.
        shape = [0 if isinstance(one, fx.Node) else one for one in rest]
        if shape[:1] == [0] and all(isinstance(one, int) for one in shape):
            return graph.node("Reshape", [made[given], graph.tensor(np.array(shape, dtype=np.int64))])
    raise Unknown(name)
