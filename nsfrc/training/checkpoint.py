"""The state of an interrupted training on disk: tensors and a JSON header, nothing that has to be unpickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception import weights as files
from nsfrc.training.options import LOOK_OF

KIND = "checkpoint"


def checkpoint_of(out: Path) -> Path:
    """Where a run that writes `out` keeps its state."""
    if not out.name:
        raise NsfrcError(f"cannot write {str(out)!r}: give --out the name of a file")
    return out.with_name(out.name + ".checkpoint")


def check_place(out: Path, resume: bool) -> None:
    """Say before the work, not after it, that a file cannot be written, or that work would be lost."""
    checkpoint = checkpoint_of(out)
    if checkpoint.exists() and not resume:
        raise NsfrcError(f"{checkpoint} is left from an interrupted training: "
                         f"continue with --resume, or delete it to start again")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NsfrcError(f"cannot write {out}: {error.strerror}") from None
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise NsfrcError(f"cannot write {out}: choose a file in a folder that you can write to")


def save_checkpoint(path: Path, tensors: dict[str, torch.Tensor], header: dict[str, Any]) -> None:
    """Write the state, whole or not at all; `header` holds the model, the options, and how far the run is."""
    files.save(path, tensors, {**header, "kind": KIND})


def load_checkpoint(
    path: Path, model: str, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read a state; refuses one of a run with other options, since the result would fit neither."""
    if not path.exists():
        raise NsfrcError(f"there is nothing to resume: no file {path}; start without --resume")
    try:
        header, tensors = files.load(path)
    except NsfrcError as error:
        raise NsfrcError(f"{error}; or delete it and start without --resume") from None
    if header.get("kind") != KIND or not isinstance(header.get("options"), dict):
        raise NsfrcError(f"{path} is not a training checkpoint: delete it and start without --resume")
    for name, value in {"model": model, **options}.items():
        before = header.get("model") if name == "model" else header["options"].get(name)
        if name == "start" and (before or "") == value:  # earlier versions had no such option
            continue
        if name == "start":
            was, now = (f"started from the weights {one}" if one else "started from scratch" for one in (before, value))
            raise NsfrcError(f"{path} is from a run that {was}, not one that {now}: give the same --weights, or delete "
                             f"it and start again")
        if before is None:
            raise NsfrcError(f"{path} is from a version of nsfrc that had no --{name.replace('_', '-')}: delete it and "
                             f"start again")
        if before != value:
            flag, was, now = _given(name, before, value)
            raise NsfrcError(f"{path} is from a run with {flag} {was}, not {now}: "
                             f"resume with {flag} {was}, or delete it and start again")
    if not _is_progress(header, options["epochs"]):
        raise NsfrcError(f"{path} does not say how far its run is: delete it and start without --resume")
    return header, tensors


def _given(name: str, before: Any, value: Any) -> tuple[str, Any, Any]:
    """The option, and its values then and now, as a user gives them."""
    if name == "data" and before in LOOK_OF and value in LOOK_OF:
        return "--looks", LOOK_OF[before], LOOK_OF[value]
    return f"--{name.replace('_', '-')}", before, value


def _is_progress(header: dict[str, Any], epochs: int) -> bool:
    """Whether a header says how far a run of so many epochs is."""
    counts: list[Any] = [header.get(name) for name in ("best_epoch", "epoch", "step")]
    if any(type(one) is not int for one in counts):
        return False
    best, epoch, step = counts
    return 0 <= best <= epoch <= epochs and step >= 0 and all(
        isinstance(header.get(name), int | float) for name in ("right", "best_right"))
