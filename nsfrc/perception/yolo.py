"""`yolo`: YOLOv5 as perception. A detection becomes a box, a distribution over every attribute, and an objectness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception import figures, onnx_network, yolo_network
from nsfrc.perception import weights as files
from nsfrc.perception.attributes import KANDINSKY, Attributes
from nsfrc.perception.base import Perception
from nsfrc.perception.boxes import best_of_each, overlap
from nsfrc.perception.onnx_network import OnnxNetwork
from nsfrc.perception.yolo_network import COARSEST

SHIPPED = Path(__file__).parent / "shipped"
# Detections of an image, at most, before those of the same object are merged. An object has up to 15, so that too few
# would be used up by the surer objects of a crowded image before the others come.
CANDIDATES = 1024
STEP = 32  # candidates come in whole vectors, so that last digits do not depend on their number
FLOOR = 0.1  # detections with a lower score do not count
AGAIN = 0.25  # an object without a row that overlaps a better one by more may be that one, seen twice
LOOKS = ("plain", "varied")
NEAR = 0.01  # two ways to compute a logit differ by less
LARGEST = 4096  # pixels of a side of the images that weights may be for
SHARPEST = 1e6  # what a calibration multiplies logits by, or adds to them, is less
SURE = 0.5  # the objectness from which on an object for which there is no row is told of


class Yolo(Perception):
    """Object vectors x1 y1 x2 y2 | one column per value of every attribute | objectness, the surest first.

    Coordinates are fractions of the image. The columns of an attribute sum to 1 for an object that is there.
    calibration: (a, b) of objectness = σ(a · logit + b), the logit being what `strength` says. looks: of the figures
    that it learnt from, "plain" or "varied". network: YOLOv5 as it is, "full"; what is needed of it, "light";
    or that with smaller cells, "fine".
    """

    name = "yolo"
    made_with = "nsfrc train perception --model yolo"
    shipped = SHIPPED / "yolo_kandinsky.safetensors"
    usual_attributes = KANDINSKY
    usual_size: tuple[int, int] = (192, 192)
    judges_place = False  # objectness is how sure it is of the class too, not only that something is there
    # From which overlap on two boxes are one object, whatever classes they have. Kandinsky's shapes do not overlap: of
    # 5,000 figures with touching ones, no two boxes do by more than 0.17.
    same_object = 0.3
    piece = 32  # as fast an image as 16 or 50 at a time, and whole vectors for every loop over them
    side_by_side = True

    def __init__(
        self, objects: int, variant: str = "n", size: tuple[int, int] | None = None,
        attributes: Attributes | None = None, calibration: tuple[float, float] = (1.0, 0.0), floor: float = FLOOR,
        looks: str = "plain", network: str = "full",
    ) -> None:
        super().__init__()
        self.looks, self.kind = looks, network
        self.objects, self.size, self.variant = objects, size or self.usual_size, variant
        self.attributes, self.calibration, self.floor = attributes or self.usual_attributes, calibration, floor
        self.dimensions = ("x1", "y1", "x2", "y2", *self.attributes.values, "objectness")
        self.identity = f"{self.name}-{variant}:untrained"
        self.network = yolo_network.build(variant, len(self.attributes.classes), network)
        self.onnx_allowed = False  # whether ONNX Runtime may run it: `build` fuses it, and what is trained changes
        self._onnx: OnnxNetwork | None = None

    @classmethod
    def build(cls, objects: int, weights: Path | None = None) -> Self:
        """The trained model, frozen and fused for inference; without `weights`, those that come with nsfrc."""
        if weights is None and not cls.shipped.exists():
            raise NsfrcError(
                f"{cls.shipped} is missing: train one with {cls.made_with} "
                f"--out {cls.name}.safetensors, then pass --weights {cls.name}.safetensors"
            )
        path = weights or cls.shipped
        header, tensors = files.load(path)
        model = cls(objects, **settings_of(header, path, cls))
        files.fill(model, tensors, path)
        model.identity = f"{cls.name}-{model.variant}:{header['crc32']}"
        model.eval().requires_grad_(False)
        model.network.fuse(verbose=False)
        model.onnx_allowed = onnx_network.available()
        model.network.to(memory_format=torch.channels_last)  # about a tenth faster on a CPU
        return model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """[B, 3, H, W] → [B, E, D], differentiable in the images; a row never depends on the rest of the batch."""
        if images.ndim != 4 or images.shape[1] != 3 or any(side < 1 or side % COARSEST for side in images.shape[2:]):
            raise NsfrcError(f"images are {list(images.shape)}; {self.name} needs [B, 3, H, W] "
                             f"with H and W multiples of {COARSEST}")
        known = next(self.network.parameters()).dtype
        if images.dtype != known:
            raise NsfrcError(f"images are {images.dtype}; {self.name} needs {known} with values from 0 to 1")
        if not len(images):
            self.further = None
            return images.new_zeros(0, self.objects, len(self.dimensions))
        vectors, _, keep = self.choose(self._cells(images), images.shape[2:])
        chosen = torch.where(keep.unsqueeze(-1), vectors, 0)
        return torch.nn.functional.pad(chosen, (0, 0, 0, self.objects - chosen.shape[1]))

    def choose(
        self, found: yolo_network.Cells, size: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The surest cells of images of size H, W: vectors [B, K, D], which cells [B, K], and which are objects."""
        logits, which = self._candidates(found)
        height, width = size
        scale = logits.new_tensor([width, height, width, height])
        boxes = (yolo_network.boxes(found, which) / scale).clamp(0, 1)
        strength = self.strength(logits)
        keep = best_of_each(boxes, self.same_object) & (strength.sigmoid() >= self.floor)
        # Of one object the cell is kept that is surest of the class; first comes what surely is an object.
        order = torch.where(keep, strength, -math.inf).argsort(dim=1, descending=True, stable=True)
        vectors = self._vectors(boxes, logits, strength)
        vectors = vectors.gather(1, order.unsqueeze(-1).expand(-1, -1, vectors.shape[-1]))
        which, keep = which.gather(1, order), keep.gather(1, order)
        self._count_further(keep, vectors)
        return vectors[:, : self.objects], which[:, : self.objects], keep[:, : self.objects]

    def _cells(self, images: torch.Tensor) -> yolo_network.Cells:
        network = self._in_onnx_runtime(images)
        if network is None:
            return yolo_network.cells(self.network, images)
        return yolo_network.placed(*network(images, self._least), yolo_network.map_sizes(self.network, images), images)

    @property
    def _least(self) -> float:
        """The class logit from which on boxes of cells are wanted.

        Others come after these and are dropped, so they merge none of them. That is so where the surest class is what
        counts; else boxes of all cells are wanted.
        """
        if type(self).strength is not Yolo.strength or not 0 < self.floor < 1:
            return -math.inf
        return math.log(self.floor / (1 - self.floor)) - NEAR

    @property
    def uses_onnx(self) -> bool:
        """Whether what it saw last without gradients, it saw in ONNX Runtime."""
        return self.onnx_allowed and self._onnx is not None

    def _in_onnx_runtime(self, images: torch.Tensor) -> OnnxNetwork | None:
        """The network in ONNX Runtime, where that is faster and does the same: on a CPU, without gradients."""
        if not self.onnx_allowed or torch.is_grad_enabled() or torch.compiler.is_compiling() or self.training:
            return None
        if images.device.type != "cpu" or images.dtype != torch.float32:
            return None
        weights = list(self.network.parameters())
        if any(one.requires_grad or one.device.type != "cpu" or one.dtype != torch.float32 for one in weights):
            return None
        if self._onnx is None or self._onnx.stamp != onnx_network.stamp(weights):
            try:
                self._onnx = OnnxNetwork(self.network)
            except onnx_network.Unknown:
                self.onnx_allowed, self._onnx = False, None
        return self._onnx

    def __getstate__(self) -> dict[str, Any]:
        """Without what ONNX Runtime holds, which a copy makes again."""
        return self.__dict__ | {"_onnx": None}

    @torch.no_grad()
    def _count_further(self, keep: torch.Tensor, vectors: torch.Tensor) -> None:
        if not torch.compiler.is_compiling():  # a graph has no place for what is kept beside its result
            left_out = keep & (keep.cumsum(1) > self.objects) & (vectors[..., -1] >= SURE)
            if bool(left_out.any()):
                boxes = vectors[..., :4]
                left_out &= ~((overlap(boxes, boxes) > AGAIN).triu(1) & keep.unsqueeze(2)).any(1)
            self.further = left_out.sum(1)

    def doubts(self, pixels: np.ndarray, shape: tuple[int, int]) -> tuple[str, ...]:
        unlike = figures.doubts(pixels, self.looks == "varied") if self.attributes == KANDINSKY else ()
        return (*super().doubts(pixels, shape), *unlike)

    def _candidates(self, found: yolo_network.Cells) -> tuple[torch.Tensor, torch.Tensor]:
        """Class logits [B, K, classes] and cells [B, K] of the best cells, the best first."""
        best = found.classes.detach().amax(1)
        count = CANDIDATES
        if not torch.compiler.is_compiling():
            # Those below the floor are dropped in the end and merge none that are above it: most need no work.
            above = int((best.sigmoid() >= self.floor).sum(1).max()) if len(best) else 0
            count = min(count, -(-above // STEP) * STEP)
        count = min(max(count, self.objects), best.shape[1])
        which = best.topk(count, dim=1).indices
        classes = found.classes.shape[1]
        return found.classes.gather(2, which.unsqueeze(1).expand(-1, classes, -1)).transpose(1, 2), which

    def strength(self, logits: torch.Tensor) -> torch.Tensor:
        """How sure it is that there is an object, from the logits of its classes [..., classes]: a logit [...]."""
        return logits.amax(-1)

    def _vectors(self, boxes: torch.Tensor, logits: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
        scores = logits.sigmoid()
        likely = scores / scores.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
        a, b = self.calibration
        objectness = (a * strength + b).sigmoid()
        return torch.cat([boxes, self.attributes.marginals(likely), objectness.unsqueeze(-1)], -1)

    def header(self) -> dict[str, Any]:
        """What a file of weights says about the model in it."""
        height, width = self.size
        return {
            "kind": "perception", "model": self.name, "variant": self.variant,
            "size": width if height == width else [height, width],
            "attributes": self.attributes.groups, "classes": self.attributes.classes,
            "calibration": list(self.calibration), "looks": self.looks, "network": self.kind,
        }


def settings_of(header: dict[str, Any], path: Path, cls: type[Yolo]) -> dict[str, Any]:
    """The arguments of Yolo from a header, checked."""
    if header.get("kind") != "perception" or header.get("model") != cls.name:
        other = header.get("model") if header.get("kind") == "perception" else None
        what = f"{header.get('kind', 'nothing')} {header.get('model', '')}".strip()
        raise NsfrcError(f"{path} does not hold a {cls.name} perception (its header says {what}); "
                         + (f"it is for the perception {other}: name that one, or " if other else "")
                         + f"train one with {cls.made_with} --out {cls.name}.safetensors")
    try:
        attributes = Attributes(tuple(tuple(str(v) for v in group) for group in header["attributes"]))
        calibration = header.get("calibration", [1.0, 0.0])
        a, b = (float(value) for value in calibration)
        height, width = header["size"] if isinstance(header["size"], list) else (header["size"],) * 2
        variant = header["variant"]
        sound = (
            variant in yolo_network.VARIANTS and list(attributes.classes) == header["classes"]
            and len(set(attributes.values)) == len(attributes.values)
            and all(type(side) is int and 0 < side <= LARGEST and side % COARSEST == 0 for side in (height, width))
            and isinstance(calibration, list) and 0 < a < SHARPEST and abs(b) < SHARPEST
            and header.get("looks", "plain") in LOOKS and header.get("network", "full") in yolo_network.KINDS
        )
    except (LookupError, OverflowError, TypeError, ValueError):
        sound = False
    if not sound:
        raise NsfrcError(f"{path} is damaged (its header is not valid): get or train the weights again")
    return {"variant": variant, "size": (height, width), "attributes": attributes, "calibration": (a, b),
            "looks": header.get("looks", "plain"), "network": header.get("network", "full")}
