"""Files of weights: the same back, and one clear line for everything that is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.perception import weights

HEADER = {"kind": "perception", "model": "mine", "note": [1, 2]}


def module(width: int = 3) -> torch.nn.Module:
    torch.manual_seed(width)
    return torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.BatchNorm1d(width))


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    one, other = module(), module()
    with torch.no_grad():
        next(one.parameters()).fill_(0.25)
    first = weights.save(tmp_path / "a.safetensors", one.state_dict(), HEADER)
    assert weights.load_into(other, first).items() >= HEADER.items()
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))
    again = weights.save(tmp_path / "b.safetensors", dict(reversed(one.state_dict().items())), HEADER)
    assert first.read_bytes() == again.read_bytes()


def test_halves_become_floats(tmp_path: Path) -> None:
    one, other = module(), module()
    half = {n: t.half() if t.is_floating_point() else t for n, t in one.state_dict().items()}
    weights.load_into(other, weights.save(tmp_path / "half", half, HEADER))
    assert next(other.parameters()).dtype == torch.float32
    assert torch.allclose(next(other.parameters()), next(one.parameters()), atol=1e-3)


def test_a_file_without_our_header_is_fine(tmp_path: Path) -> None:
    save_file(module().state_dict(), tmp_path / "plain.safetensors")
    header, tensors = weights.load(tmp_path / "plain.safetensors")
    assert header == {} and "0.weight" in tensors
    weights.load_into(module(), tmp_path / "plain.safetensors")


def _without(path: Path) -> None:
    state = module().state_dict()
    del state["0.bias"]
    weights.save(path, state, HEADER)


def _more(path: Path) -> None:
    weights.save(path, {**module().state_dict(), "1.extra": torch.zeros(1)}, HEADER)


def _other_shape(path: Path) -> None:
    weights.save(path, module(4).state_dict(), HEADER)


def _cut(path: Path) -> None:
    weights.save(path, module().state_dict(), HEADER)
    path.write_bytes(path.read_bytes()[:-7])


def _flipped(path: Path) -> None:
    weights.save(path, module().state_dict(), HEADER)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def _odd_header(path: Path) -> None:
    save_file(module().state_dict(), path, {"nsfrc": json.dumps([1])})


def _program(path: Path) -> None:
    nsfrc.compile("twopairs").save(path)


@pytest.mark.parametrize(("make", "message"), [
    (_without, "has no tensor 0.bias"),
    (_more, "the model has no tensor 1.extra"),
    (_other_shape, r"0.weight is \[4, 2\], the model has \[3, 2\]"),
    (_cut, "cut short"),
    (_flipped, "checksum is wrong"),
    (_odd_header, "its header is not from nsfrc"),
    (_program, "has no weights"),
    (lambda path: path.write_text("hello"), "not a safetensors file"),
    (lambda path: path.write_bytes(b""), "not a safetensors file"),
    (lambda path: path.mkdir(), "is a folder"),
    (lambda path: None, "there is no file"),
])
def test_what_is_wrong_is_said(make: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    make(path)
    target = module()
    before = {n: t.clone() for n, t in target.state_dict().items()}
    with pytest.raises(NsfrcError, match=message) as caught:
        weights.load_into(target, path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert all(torch.equal(t, before[n]) for n, t in target.state_dict().items())
