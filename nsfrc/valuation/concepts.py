"""Learnt parameters of neural predicates: JSON files such as {"closeby": {"w": -90.1, "b": 15.2, "made_by": {…}}}."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch

from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

SHIPPED = Path(__file__).with_name("concepts.json")
MADE_BY = "made_by"
LARGEST = 3.4e38  # of float32

Entries = dict[str, dict[str, Any]]


def shipped(name: str) -> dict[str, Any]:
    """The parameters of a concept that come with nsfrc."""
    return {key: value for key, value in _shipped()[name].items() if key != MADE_BY}


@cache
def _shipped() -> Entries:
    return read(SHIPPED)


def read(path: Path) -> Entries:
    """Every predicate's entry of a file, checked to hold numbers and notes on their making only."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NsfrcError(f"there is no file {path}: make one with nsfrc train concept closeby --out {path}") from None
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise NsfrcError(f"{path} is not a concepts file: it is not JSON ({error})") from None
    example = '{"closeby": {"w": -90, "b": 15}}'
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise NsfrcError(f"{path} is not a concepts file; one looks like {example}")
    for name, entry in entries.items():
        for key, value in entry.items():
            if key != MADE_BY and not _numbers(value):
                raise NsfrcError(f"{path}: {key} of {name} must be a finite number or a list of them, not {value!r}")
    return entries


def _numbers(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_numbers(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def add(path: Path, entries: Entries) -> None:
    """Write entries to a file; those it has of other predicates stay."""
    kept = read(path) if path.is_file() else {}
    text = json.dumps({**kept, **entries}, indent=2, sort_keys=True) + "\n"
    write_whole(path, text.encode())


def learnt(module: object) -> dict[str, torch.Tensor]:
    """The tensors of a module that belong in a file: parameters, then persistent buffers; {} for a plain function."""
    if not isinstance(module, torch.nn.Module):
        return {}
    kept = module.state_dict().keys()
    return {**dict(module.named_parameters()), **{key: b for key, b in module.named_buffers() if key in kept}}


def parameters_of(module: object) -> dict[str, Any]:
    """The parameters and buffers of a module as numbers and lists, as `set_parameters` takes them.

    Comparisons and probabilities have words of their own for what they learn.
    """
    if hasattr(module, "as_entry"):
        entry: dict[str, Any] = module.as_entry()
        return entry
    entry = {key: value.detach().cpu().tolist() for key, value in learnt(module).items()}
    for key, value in entry.items():
        if not _numbers(value):
            buffer = key in dict(module.named_buffers()) if isinstance(module, torch.nn.Module) else False
            remedy = "; a buffer that is not learnt needs persistent=False" if buffer else ""
            raise NsfrcError(f"{type(module).__name__}: {'buffer' if buffer else 'parameter'} {key} cannot be written: "
                             f"it must be finite numbers, and at least one, not {value!r}{remedy}")
    return entry


def set_parameters(module: object, entry: dict[str, Any], where: str) -> None:
    """Put the numbers of one entry, which has all of them, into parameters and buffers; `where` is for messages."""
    if hasattr(module, "take_entry"):
        module.take_entry({key: value for key, value in entry.items() if key != MADE_BY}, where)
        return
    tensors, given = learnt(module), [key for key in entry if key != MADE_BY]
    for key in given:
        if key not in tensors:
            has = f"it has {', '.join(tensors)}" if tensors else "it has none"
            raise NsfrcError(f"{where} has no parameter {key}; {has}")
    numbers = {key: _fitting(entry[key], tensors[key], f"{where}: {key}") for key in given}
    if lacking := [key for key in tensors if key not in given]:
        raise NsfrcError(f"{where} is missing {', '.join(lacking)}: an entry has all of {', '.join(tensors)}")
    with torch.no_grad():
        for key, values in numbers.items():
            tensors[key].copy_(values)


def _fitting(value: Any, like: torch.Tensor, where: str) -> torch.Tensor:
    """Numbers of a file as a tensor of the type and shape of another."""
    try:
        numbers = torch.tensor(value, dtype=like.dtype)
    except (ValueError, TypeError):
        raise NsfrcError(f"{where} is a list of lists of unequal length") from None
    if numbers.shape != like.shape:
        raise NsfrcError(f"{where} has shape {list(numbers.shape)}; it must have {list(like.shape)}")
    return numbers
