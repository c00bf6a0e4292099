"""Slot attention by hand, in plain numpy, and checkpoints in the layout that was published, with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

# name: shape; every linear layer and convolution has a bias besides, every norm a weight of ones and a bias.
LAYERS = {
    "encoder_cnn.network.0": (64, 3, 5, 5), "encoder_cnn.network.2": (64, 64, 5, 5),
    "encoder_cnn.network.4": (64, 64, 5, 5), "encoder_cnn.network.6": (64, 64, 5, 5),
    "encoder_pos.dense": (64, 4), "layer_norm": (64,), "mlp.network.0": (64, 64), "mlp.network.2": (64, 64),
    "slot_attention.project_q": (64, 64), "slot_attention.project_k": (64, 64), "slot_attention.project_v": (64, 64),
    "slot_attention.mlp.0": (128, 64), "slot_attention.mlp.2": (64, 128),
    "slot_attention.norm_inputs": (64,), "slot_attention.norm_slots": (64,), "slot_attention.norm_mlp": (64,),
    "mlp_classifier.network.0": (64, 64), "mlp_classifier.network.2": (19, 64),
}
OTHERS = {
    "slot_attention.slots_mu": (1, 1, 64), "slot_attention.slots_log_sigma": (1, 1, 64),
    "slot_attention.gru.weight_ih": (192, 64), "slot_attention.gru.weight_hh": (192, 64),
    "slot_attention.gru.bias_ih": (192,), "slot_attention.gru.bias_hh": (192,),
}


def state(seed: int = 0) -> dict[str, torch.Tensor]:
    """A state dict in the published layout."""
    rng = np.random.default_rng(seed)

    def normal(shape: tuple[int, ...], spread: float) -> torch.Tensor:
        return torch.from_numpy(rng.normal(0, spread, shape).astype(np.float32))

    found = {}
    for name, shape in LAYERS.items():
        norm = len(shape) == 1
        found[f"{name}.weight"] = 1 + normal(shape, 0.2) if norm else normal(shape, 2 / np.sqrt(np.prod(shape[1:])))
        found[f"{name}.bias"] = normal(shape[:1], 0.2)
    for name, shape in OTHERS.items():
        found[name] = normal(shape, 1.0 if "slots" in name else 0.2)
    return found


def checkpoint(seed: int = 0, **args: Any) -> dict[str, Any]:
    """A whole checkpoint: what was published has the tensors beside notes on the training."""
    return {"name": "slots", "weights": state(seed), "args": {"n_slots": 10, "n_iters_slot_att": 3, **args}}


def by_hand(weights: dict[str, torch.Tensor], image: np.ndarray, noise: np.ndarray, iterations: int = 3) -> np.ndarray:
    """What the published network says: image [3, 128, 128] from 0 to 1, noise [S, 64] → [S, 19], in float64."""
    w = {name: tensor.numpy().astype(np.float64) for name, tensor in weights.items()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return centred / scale * w[f"{name}.weight"] + w[f"{name}.bias"]

    def mlp(name: str, x: np.ndarray) -> np.ndarray:
        return linear(f"{name}.2", np.maximum(linear(f"{name}.0", x), 0))

    x = image * 2 - 1
    for place, stride in ((0, 1), (2, 2), (4, 2), (6, 1)):
        x = np.maximum(_convolved(x, w, f"encoder_cnn.network.{place}", stride), 0)
    steps = np.arange(32) / 31
    table = np.array([[(y, x, 1 - y, 1 - x) for x in steps] for y in steps])
    x = x + linear("encoder_pos.dense", table).ravel().reshape(64, 32, 32)  # the published order
    x = norm("slot_attention.norm_inputs", mlp("mlp.network", norm("layer_norm", x.reshape(64, -1).T)))
    keys, values = linear("slot_attention.project_k", x), linear("slot_attention.project_v", x)
    slots = w["slot_attention.slots_mu"][0] + w["slot_attention.slots_log_sigma"][0] * noise
    for _ in range(iterations):
        queries = linear("slot_attention.project_q", norm("slot_attention.norm_slots", slots))
        shares = np.exp(queries @ keys.T / 8)
        shares /= shares.sum(0)
        shares += 1e-8
        slots = _gru(w, (shares / shares.sum(1, keepdims=True)) @ values, slots)
        slots = slots + mlp("slot_attention.mlp", norm("slot_attention.norm_mlp", slots))
    return _sigmoid(mlp("mlp_classifier.network", slots))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    said: np.ndarray = 1 / (1 + np.exp(-x))
    return said


def _convolved(x: np.ndarray, w: dict[str, np.ndarray], name: str, stride: int) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (2, 2), (2, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), (1, 2))[:, ::stride, ::stride]
    columns = windows.transpose(1, 2, 0, 3, 4).reshape(*windows.shape[1:3], -1)
    kernels = w[f"{name}.weight"]
    return (columns @ kernels.reshape(len(kernels), -1).T + w[f"{name}.bias"]).transpose(2, 0, 1)


def _gru(w: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray) -> np.ndarray:
    new = np.split(x @ w["slot_attention.gru.weight_ih"].T + w["slot_attention.gru.bias_ih"], 3, axis=1)
    old = np.split(h @ w["slot_attention.gru.weight_hh"].T + w["slot_attention.gru.bias_hh"], 3, axis=1)
    reset, keep = _sigmoid(new[0] + old[0]), _sigmoid(new[1] + old[1])
    return (1 - keep) * np.tanh(new[2] + reset * old[2]) + keep * h
