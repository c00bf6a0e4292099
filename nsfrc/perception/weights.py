"""Weights of perception models: safetensors with a JSON header that says what they are and what made them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from nsfrc import __version__
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.files import write_whole

Tensors = dict[str, torch.Tensor]


def save(path: Path, state: Mapping[str, torch.Tensor], header: Mapping[str, Any]) -> Path:
    """Write tensors and a header with its "kind", whole or not at all; the same ones give the same bytes."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(state.items())}
    full = {**header, "nsfrc": __version__, "crc32": checksum(tensors)}
    write_whole(path, to_bytes(tensors, {"nsfrc": json.dumps(full, sort_keys=True)}))
    return path


def load(path: Path) -> tuple[dict[str, Any], Tensors]:
    """The header (empty in a file that nsfrc did not write) and the tensors; raises NsfrcError if damaged."""
    if path.is_dir():
        raise NsfrcError(f"{path} is a folder, not a file with weights")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("nsfrc", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise NsfrcError(f"there is no file {path}") from None
    except (SafetensorError, ValueError, RecursionError) as error:
        raise NsfrcError(f"{path} is not a safetensors file, or it is cut short ({error}); "
                         f"safetensors.torch.save_file(model.state_dict(), FILE) writes one") from None
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror or error}") from None
    if not isinstance(header, dict):
        raise NsfrcError(f"{path} is damaged (its header is not from nsfrc): get or train the weights again")
    if header and "kind" not in header:
        raise NsfrcError(f"{path} has no weights: it is another nsfrc file, such as a compiled program")
    if header and header.get("crc32") != checksum(tensors):
        raise NsfrcError(f"{path} is damaged (its checksum is wrong): get or train the weights again")
    return header, tensors


def checksum(tensors: Mapping[str, torch.Tensor]) -> str:
    """crc32 over names, types, shapes and contents."""
    code = 0
    for name, tensor in sorted(tensors.items()):
        code = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), code)
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        code = zlib.crc32(flat.view(torch.uint8).numpy().tobytes(), code)
    return f"{code:08x}"


def load_into(module: torch.nn.Module, path: Path) -> dict[str, Any]:
    """Fill a module from a file in which every tensor of it, and nothing else, is; returns the header."""
    header, tensors = load(path)
    fill(module, tensors, path)
    return header


def fill(module: torch.nn.Module, tensors: Tensors, path: Path) -> None:
    """Copy tensors into a module; NsfrcError names the first that does not fit or has a NaN. Types are converted."""
    wanted = module.state_dict()
    check(tensors, wanted, path)
    if wrong := [name for name in wanted if bool(tensors[name].isnan().any())]:
        raise NsfrcError(f"{path} holds what is not a number, in {wrong[0]}: get or train the weights again")
    with torch.no_grad():
        for name, place in wanted.items():
            place.copy_(tensors[name])


def check(tensors: Tensors, wanted: Mapping[str, torch.Tensor], path: Path) -> None:
    """That tensors have the names and shapes of `wanted`; NsfrcError names the first that does not fit."""
    for name, place in wanted.items():
        if name not in tensors:
            hint = did_you_mean(name, tensors)
            raise NsfrcError(f"{path} does not fit: it has no tensor {name}" + (f"; {hint}" if hint else ""))
        if tensors[name].shape != place.shape:
            raise NsfrcError(
                f"{path} does not fit: {name} is {list(tensors[name].shape)}, the model has {list(place.shape)}"
            )
    if extra := sorted(tensors.keys() - wanted.keys()):
        raise NsfrcError(f"{path} does not fit: the model has no tensor {extra[0]}")
