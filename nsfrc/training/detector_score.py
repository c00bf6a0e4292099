"""How good a detector is on pictures it was not trained on, and how sure it may be: matching and calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from nsfrc.perception.boxes import overlap
from nsfrc.perception.yolo import Yolo
from nsfrc.training.detector_data import Examples
from nsfrc.training.pictures import as_images

MATCH = 0.5  # overlap from which a box is the right one
BATCH = 32


@dataclass(frozen=True)
class Score:
    """all_right: share of pictures in which every object, and nothing else, was found with the right class."""

    all_right: float
    logits: np.ndarray  # of every detection, before calibration
    hits: np.ndarray  # whether it is an object, with the right class
    there: np.ndarray  # whether it is an object


@torch.no_grad()
def score(model: Yolo, examples: Examples, device: str) -> Score:
    """Compare what a model finds with what is there. Detections count from objectness 0.5 on."""
    right, logits, hits, there = 0, [], [], []
    groups = [len(group) for group in model.attributes.groups]
    first = model.dimensions.index(model.attributes.values[0])
    a, b = model.calibration
    for start in range(0, len(examples), BATCH):
        chosen = np.arange(start, min(start + BATCH, len(examples)))
        vectors = model(as_images(examples.pixels, chosen, device)).cpu()
        for place, index in enumerate(chosen):
            found = vectors[place][vectors[place, :, -1] > 0]
            truth = torch.from_numpy(examples.boxes[index])
            classes, true_classes = classes_of(found[:, first:-1], groups), examples.classes[index]
            hit = match(found[:, :4], classes, truth, true_classes)
            sure = (found[:, -1] >= 0.5).numpy()
            right += int(sure.sum() == hit[sure].sum() == len(truth))
            logits.append((torch.logit(found[:, -1].double(), eps=1e-7).numpy() - b) / a)
            hits.append(hit)
            there.append(match(found[:, :4], np.zeros_like(classes), truth, np.zeros_like(true_classes)))
    return Score(right / max(1, len(examples)), *map(np.concatenate, (logits, hits, there)))


def classes_of(columns: torch.Tensor, groups: list[int]) -> np.ndarray:
    """The likeliest value of every attribute [N, values] → class numbers [N]."""
    number = torch.zeros(len(columns), dtype=torch.long)
    for part in columns.split(groups, 1):
        number = number * part.shape[1] + part.argmax(1)
    return number.numpy()


def match(boxes: torch.Tensor, classes: np.ndarray, truth: torch.Tensor, true_classes: np.ndarray) -> np.ndarray:
    """Which detections [N], the surest first, are an object that is there; every object is found once at most."""
    return partners(boxes, truth, classes[:, None] == true_classes[None, :]) >= 0


def partners(boxes: torch.Tensor, truth: torch.Tensor, allowed: np.ndarray | None = None) -> np.ndarray:
    """The object that each detection [N], the surest first, is, or −1; every object is found once at most.

    allowed: bool [N, M], which pairs count; all where it is None.
    """
    fits = overlap(boxes, truth).numpy() * (1 if allowed is None else allowed)
    found = np.full(len(boxes), -1)
    for row in range(len(boxes)):
        if len(truth) and fits[row].max() >= MATCH:
            found[row] = fits[row].argmax()
            fits[:, found[row]] = 0
    return found


def calibrate(logits: np.ndarray, hits: np.ndarray) -> tuple[float, float]:
    """Platt scaling: (a, b) for which σ(a · logit + b) is the probability of a hit; (1, 0) where that is unknown.

    The targets are Platt's, slightly inside 0 and 1, so that two separate groups still have a finite slope.
    """
    positive, negative = int(hits.sum()), int((~hits).sum())
    if not positive or not negative:
        return 1.0, 0.0
    target = np.where(hits, (positive + 1) / (positive + 2), 1 / (negative + 2))
    design = np.stack([logits, np.ones_like(logits)], 1)
    weights = np.array([1.0, 0.0])
    for _ in range(100):  # Newton's method with a step that is halved while it makes things worse
        likely = np.exp(-np.logaddexp(0, -design @ weights))
        slope = design.T @ (likely - target)
        curve = design.T @ (design * (likely * (1 - likely))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(curve, slope)
        while _surprise(design @ (weights - step), target) > _surprise(design @ weights, target) + 1e-12:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    a, b = float(weights[0]), float(weights[1])
    return (a, b) if a > 0 else (1.0, 0.0)


def _surprise(logits: np.ndarray, target: np.ndarray) -> float:
    return float((np.logaddexp(0, logits) - target * logits).sum())
