"""Published checkpoints → our files of weights. What does not fit is refused, and nothing in a file is ever run."""

from __future__ import annotations

import pickle
import pickletools
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.perception import weights as files
from nsfrc.perception.slot_attention import NAME, SlotAttention

# Their name → ours, as beginnings of the names of tensors.
SLOT_NAMES = {
    "encoder_cnn.network.": "network.encoder.",
    "encoder_pos.dense.": "network.positions.dense.",
    "layer_norm.": "network.norm.",
    "mlp.network.": "network.mlp.",
    "slot_attention.slots_mu": "network.attention.mu",
    "slot_attention.slots_log_sigma": "network.attention.sigma",  # their name misleads: it is used as it is
    "slot_attention.project_q.": "network.attention.query.",
    "slot_attention.project_k.": "network.attention.key.",
    "slot_attention.project_v.": "network.attention.value.",
    "slot_attention.gru.": "network.attention.gru.",
    "slot_attention.mlp.": "network.attention.mlp.",
    "slot_attention.norm_": "network.attention.norm_",
    "mlp_classifier.network.": "network.classifier.",
}
PARALLEL = "module."  # before every name where several GPUs trained it
WRAPPED = ("weights", "state_dict", "model_state_dict")  # entries that hold the tensors, beside notes on the training
ITERATIONS = "n_iters_slot_att"  # such a note


def import_slots(path: Path, out: Path) -> dict[str, torch.Tensor]:
    """Read a published slot-attention checkpoint, or its plain state dict, and write it as ours; returns the tensors.

    Raises NsfrcError that names the first tensor which does not fit, or says what else is wrong with the file.
    """
    content = read_checkpoint(path)
    notes = content.get("args") if isinstance(content, Mapping) else None
    iterations = notes.get(ITERATIONS, 3) if isinstance(notes, Mapping) else 3
    if type(iterations) is not int or not 1 <= iterations <= 100:
        raise NsfrcError(f"{path}: {ITERATIONS} is {iterations!r}; it must be a number from 1 to 100")
    model = SlotAttention(iterations=iterations, scattered=True)
    tensors = checked(state_of(content, path), model.state_dict(), path)
    source = {"file": path.name, "crc32": f"{zlib.crc32(path.read_bytes()):08x}"}
    files.save(out, tensors, {**model.header(), "source": source})
    return tensors


def read_checkpoint(path: Path) -> Any:
    """What torch.save or safetensors wrote, on the CPU and without running anything in it."""
    if path.is_dir():
        raise NsfrcError(f"{path} is a folder, not a checkpoint")
    if not path.exists():
        raise NsfrcError(f"there is no file {path}")
    if not path.is_file():
        raise NsfrcError(f"{path} is not a plain file")
    if path.suffix == ".safetensors":
        header, tensors = files.load(path)
        if header:
            raise NsfrcError(f"{path} is already an nsfrc file: use it with --weights {path}")
        return tensors
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how old files are stored
            _check_archive(path)
            return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror or error}") from None
    except NsfrcError:
        raise
    except Exception as error:  # a damaged file makes the reader raise almost anything
        refused = isinstance(error, pickle.UnpicklingError)
        if refused and ("global" in str(error).lower() or _names_code(path)):
            raise NsfrcError(
                f"{path} can only be read by running code in it, which nsfrc does not do: if you trust it, save "
                f"only its state dict, with torch.save(model.state_dict(), FILE)"
            ) from None
        raise NsfrcError(f"{path} is not a checkpoint that torch.save wrote, or it is cut short") from None


def _check_archive(path: Path) -> None:
    """Refuse an archive whose contents are not those that were written: torch does not look at its checksums."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise NsfrcError(f"{path} is damaged (the checksum of {damaged} in it is wrong): get a fresh copy")


def _names_code(path: Path) -> bool:
    """Whether a file is a whole pickle that asks for code; such of newer protocols torch cannot even read."""
    try:
        with path.open("rb") as file:
            steps = {step.name for step, _, _ in pickletools.genops(file)}
    except Exception:  # no pickle
        return False
    return not steps.isdisjoint({"GLOBAL", "STACK_GLOBAL", "INST"})


def state_of(content: Any, path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint by name."""
    found = content
    if isinstance(content, Mapping):
        found = next((content[name] for name in WRAPPED if isinstance(content.get(name), Mapping)), content)
    if not isinstance(found, Mapping) or not found:
        raise NsfrcError(f"{path} has no named tensors: it is not a checkpoint of {NAME}")
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise NsfrcError(f"{path} has {name!r}, which is not a named tensor: it is not a checkpoint of {NAME}")
    return {name.removeprefix(PARALLEL): tensor for name, tensor in found.items()}


def checked(
    state: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor], path: Path
) -> dict[str, torch.Tensor]:
    """Their tensors under our names, float32, if they are those of `wanted` in name and shape and all are numbers."""
    tensors = {}
    for ours, place in wanted.items():
        theirs = _their_name(ours)
        if theirs not in state:
            hint = did_you_mean(theirs, state)
            raise NsfrcError(f"{path} does not fit: it has no tensor {theirs}, which is {list(place.shape)} in {NAME}"
                             + (f"; {hint}" if hint else ""))
        tensor = state[theirs]
        if tensor.shape != place.shape:
            raise NsfrcError(f"{path} does not fit: {theirs} is {list(tensor.shape)}, {NAME} has {list(place.shape)}")
        if tensor.layout != torch.strided:
            raise NsfrcError(f"{path} does not fit: {theirs} is stored as {tensor.layout}: save it with .to_dense()")
        if tensor.device.type != "cpu":
            raise NsfrcError(f"{path} does not fit: {theirs} has no values (it is on the device {tensor.device})")
        if not tensor.is_floating_point():
            raise NsfrcError(f"{path} does not fit: {theirs} is not floating point ({tensor.dtype})")
        tensors[ours] = tensor.float()
        if not bool(tensors[ours].isfinite().all()):
            raise NsfrcError(f"{path}: {theirs} has values that are not numbers (NaN, infinite, above float32)")
    known = {_their_name(ours) for ours in wanted}
    for name, tensor in state.items():
        if name not in known:
            raise NsfrcError(f"{path} does not fit: {name} is {list(tensor.shape)}, {NAME} has no such tensor")
    return tensors


def _their_name(ours: str) -> str:
    theirs, beginning = next((t, o) for t, o in SLOT_NAMES.items() if ours.startswith(o))
    return theirs + ours.removeprefix(beginning)
