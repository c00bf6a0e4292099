"""Learnt parameters of neural predicates: JSON files such as {"closeby": {"w": -90.1, "b": 15.2, "made_by": {…}}}."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch

from nsfrc.artifact import write_whole
from nsfrc.errors import NsfrcError

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
        raise NsfrcError(f"{path} is no file of concepts: it is not JSON ({error})") from None
    example = '{"closeby": {"w": -90, "b": 15}}'
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise NsfrcError(f"{path} is no file of concepts; one looks like {example}")
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


def parameters_of(module: object) -> dict[str, Any]:
    """The parameters of a module as numbers and lists, as `set_parameters` takes them; {} for a plain function."""
    parameters = module.named_parameters() if isinstance(module, torch.nn.Module) else ()
    entry = {key: value.detach().cpu().tolist() for key, value in parameters}
    for key, value in entry.items():
        if not _numbers(value):
            raise NsfrcError(f"{type(module).__name__}: parameter {key} cannot be written: it must be finite numbers, "
                             f"and at least one, not {value!r}")
    return entry


def set_parameters(module: object, entry: dict[str, Any], where: str) -> None:
    """Put the numbers of one entry into the parameters of that name; `where` is for messages."""
    for key, value in entry.items():
        if key == MADE_BY:
            continue
        parameters = dict(module.named_parameters()) if isinstance(module, torch.nn.Module) else {}
        if key not in parameters:
            has = f"it has {', '.join(parameters)}" if parameters else "it has none"
            raise NsfrcError(f"{where} has no parameter {key}; {has}")
        try:
            numbers = torch.tensor(value, dtype=parameters[key].dtype)
        except (ValueError, TypeError):
            raise NsfrcError(f"{where}: {key} is a list of lists of unequal length") from None
        if numbers.shape != parameters[key].shape:
            raise NsfrcError(
                f"{where}: {key} has shape {list(numbers.shape)}; it must have {list(parameters[key].shape)}"
            )
        with torch.no_grad():
            parameters[key].copy_(numbers)
