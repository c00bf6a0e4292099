"""`nsfrc weights`: a published checkpoint becomes ours, detectors become ONNX, and what there is is told."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from nsfrc.errors import NsfrcError
from nsfrc.models.model_file import read_header
from nsfrc.perception import weights
from nsfrc.perception.slot_attention import SlotAttention
from nsfrc.perception.weights_folder import weights_home
from nsfrc.perception.yolo import Yolo
from tests.cli.support import Run
from tests.perception import slots
from tests.perception.support import random_yolo, stored


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NSFRC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def published(folder: Path, **args: object) -> Path:
    torch.save(slots.checkpoint(**args), folder / "published.pt")
    return folder / "published.pt"


def test_import_and_use(run: Run, home: Path, tmp_path: Path) -> None:
    said = run.good("weights", "import", published(tmp_path))
    path = home / "slot_attention.safetensors"
    assert said.splitlines() == [f"imported 42 tensors with 380,947 numbers into {path}",
                                 "slot_attention uses them wherever a program or --perception names it"]
    header, tensors = weights.load(path)
    assert (header["kind"], header["model"], header["iterations"]) == ("perception", "slot_attention", 3)
    assert header["source"]["file"] == "published.pt" and len(header["source"]["crc32"]) == 8
    sigma = slots.state()["slot_attention.slots_log_sigma"]
    assert torch.equal(tensors["network.attention.sigma"], sigma) and sigma.min() < 0
    (tmp_path / "images").mkdir()
    Image.fromarray(np.zeros((32, 48, 3), np.uint8)).save(tmp_path / "images/a.png")
    asked = ("infer", "--program", "clevr_hans3", "--images", "images")
    assert "slot_attention:" in run.good(*asked, "--perception", "slot_attention")
    assert "yolo_clevr-n:" in run.good(*asked)


def test_import_elsewhere(run: Run, home: Path, tmp_path: Path) -> None:
    told = json.loads(run.good("weights", "import", published(tmp_path, n_iters_slot_att=2), "--out", "s.safetensors",
                               "--json"))
    assert told == {"model": "slot_attention", "file": "s.safetensors", "source": str(tmp_path / "published.pt"),
                    "tensors": 42, "numbers": 380_947}
    assert not home.exists()
    assert SlotAttention.build(10, tmp_path / "s.safetensors").iterations == 2


@pytest.mark.parametrize("stored", ["plain", "parallel", "wrapped", "half", "safetensors"])
def test_other_forms_of_the_same(stored: str, run: Run, home: Path, tmp_path: Path) -> None:
    state, path = slots.state(), tmp_path / "state.pt"
    if stored == "safetensors":
        path = path.with_suffix(".safetensors")
        save_file(state, path)
    else:
        torch.save({
            "plain": state, "parallel": {f"module.{name}": tensor for name, tensor in state.items()},
            "wrapped": {"state_dict": state, "epoch": 3}, "half": {name: t.half() for name, t in state.items()},
        }[stored], path)
    run.good("weights", "import", path)
    _, tensors = weights.load(home / "slot_attention.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
    near = tensors["network.classifier.2.weight"] - state["mlp_classifier.network.2.weight"]
    assert near.abs().max() <= (1e-3 if stored == "half" else 0)


def test_the_same_file_gives_the_same_bytes(run: Run, home: Path, tmp_path: Path) -> None:
    path = published(tmp_path)
    run.good("weights", "import", path)
    first = (home / "slot_attention.safetensors").read_bytes()
    run.good("weights", "import", path)
    assert (home / "slot_attention.safetensors").read_bytes() == first


def _changed(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        state = slots.state()
        change(state)
        torch.save({"weights": state}, path)

    return write


class Unknown:
    """Something that only code can bring back."""


def _pickled(protocol: int) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(pickle.dumps({"weights": Unknown()}, protocol))


def _garbage(path: Path) -> None:
    path.write_bytes(b"not a checkpoint at all" * 9)


def _cut(path: Path) -> None:
    published(path.parent).replace(path)
    path.write_bytes(path.read_bytes()[:-5000])


def _flipped(path: Path) -> None:
    """One bit of one number, and not its exponent, is another."""
    state = slots.state()
    torch.save(state, path)
    content = bytearray(path.read_bytes())
    content[content.index(state[Q].numpy().tobytes()) + 1] ^= 1
    path.write_bytes(content)


Q = "slot_attention.project_q.weight"
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing file": (lambda path: None, "there is no file"),
    "folder": (Path.mkdir, "is a folder, not a checkpoint"),
    "pipe": (os.mkfifo, "is not a plain file"),
    "empty": (Path.touch, "is not a checkpoint that torch.save wrote, or it is cut short"),
    "garbage": (_garbage, "is not a checkpoint that torch.save wrote"),
    "cut short": (_cut, "or it is cut short"),
    "code": (lambda path: torch.save({"weights": slots.state(), "args": Unknown()}, path), "running code in it"),
    "flipped": (_flipped, "is damaged (the checksum of"),
    **{f"code in a pickle of protocol {protocol}": (_pickled(protocol), "running code in it")
       for protocol in range(1, pickle.HIGHEST_PROTOCOL + 1)},
    "a pickle without code": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "is not a checkpoint that torch"),
    "a number": (lambda path: torch.save(3, path), "has no named tensors"),
    "nothing": (lambda path: torch.save({}, path), "has no named tensors"),
    "other things": (lambda path: torch.save({"a": 1}, path), "has 'a', which is not a named tensor"),
    "no names": (lambda path: torch.save({1: torch.zeros(2)}, path), "has 1, which is not a named tensor"),
    "another shape": (_changed(lambda s: s.update({Q: torch.zeros(32, 64), "mlp.network.0.bias": torch.zeros(3)})),
                      "mlp.network.0.bias is [3], slot_attention has [64]"),
    "a missing tensor": (_changed(lambda s: s.pop(Q)), f"no tensor {Q}, which is [64, 64] in slot_attention"),
    "one too many": (_changed(lambda s: s.update(more=torch.zeros(2, 3))), "more is [2, 3], slot_attention has no"),
    "whole numbers": (_changed(lambda s: s.update({Q: torch.zeros(64, 64, dtype=torch.int32)})), "torch.int32"),
    "not a number": (_changed(lambda s: s[Q][3, 5].fill_(float("nan"))), f"{Q} has values that are not numbers"),
    "infinite": (_changed(lambda s: s[Q][3, 5].fill_(float("inf"))), f"{Q} has values that are not numbers"),
    "infinite in 32 bits": (_changed(lambda s: s.update({Q: torch.full((64, 64), 1e300, dtype=torch.float64)})),
                            f"{Q} has values that are not numbers"),
    "sparse": (_changed(lambda s: s.update({Q: s[Q].to_sparse()})), f"{Q} is stored as torch.sparse_coo"),
    "no values": (_changed(lambda s: s.update({Q: s[Q].to("meta")})), f"{Q} has no values (it is on the device meta)"),
    "no iterations": (lambda path: published(path.parent, n_iters_slot_att=0).replace(path), "n_iters_slot_att is 0"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused(what: str, run: Run, home: Path, tmp_path: Path) -> None:
    make, message = REFUSED[what]
    make(tmp_path / "bad.pt")
    said = run.refused("weights", "import", tmp_path / "bad.pt")
    assert message in said and "bad.pt" in said
    assert len(said.splitlines()) == 1
    assert not home.exists()


def test_a_file_of_ours_needs_no_import(run: Run, tmp_path: Path) -> None:
    run.good("weights", "import", published(tmp_path), "--out", "ours.safetensors")
    assert "--weights ours.safetensors" in run.refused("weights", "import", "ours.safetensors")


def test_a_refused_file_leaves_what_was_there(run: Run, home: Path, tmp_path: Path) -> None:
    run.good("weights", "import", published(tmp_path))
    before = (home / "slot_attention.safetensors").read_bytes()
    _cut(tmp_path / "bad.pt")
    run.refused("weights", "import", "bad.pt")
    assert (home / "slot_attention.safetensors").read_bytes() == before
    assert [path.name for path in home.iterdir()] == ["slot_attention.safetensors"]


def test_a_place_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot write" in run.refused("weights", "import", published(tmp_path), "--out", "file/ours.safetensors")


def test_list(run: Run, home: Path, tmp_path: Path) -> None:
    def states() -> dict[str, str]:
        told = [json.loads(line) for line in run.good("weights", "list", "--json").splitlines()]
        assert {entry["file"] for entry in told if entry["model"] == "slot_attention"} == {
            str(home / "slot_attention.safetensors")}
        return {entry["model"]: entry["state"] for entry in told}

    assert states().items() >= {"yolo": "shipped", "slot_attention": "missing"}.items()
    run.good("weights", "import", published(tmp_path))
    assert states()["slot_attention"] == "imported"
    lines = [line.split() for line in run.good("weights", "list").splitlines()]
    assert ["slot_attention", "imported", str(home / "slot_attention.safetensors")] in lines


def test_what_ships_is_not_imported_wherever_weights_are_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSFRC_HOME", str(Yolo.shipped.parent))
    assert "yolo             shipped " in run.good("weights", "list")


def test_where_weights_are_kept(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert weights_home() == home
    monkeypatch.setenv("HOME", "/somebody")
    monkeypatch.setenv("NSFRC_HOME", "~/kept")
    assert weights_home() == Path("/somebody/kept")
    monkeypatch.setenv("NSFRC_HOME", "~nobody-of-that-name/kept")
    with pytest.raises(NsfrcError, match="set NSFRC_HOME to a folder"):
        weights_home()
    monkeypatch.setenv("NSFRC_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert weights_home() == tmp_path / "nsfrc"
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    assert weights_home() == Path("/somebody/.local/share/nsfrc")


def test_without_weights_infer_explains_before_it_reads_an_image(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images/broken.png").write_bytes(b"no image")
    said = run.refused("infer", "--program", "clevr_hans3", "--images", "images", "--perception", "slot_attention")
    assert said.count("error:") == 1 and "broken" not in said
    for way in ("nsfrc weights import FILE", "nsfrc train perception --model slot_attention --data DIR --out slots",
                "--weights slots.safetensors", "--perception yolo_clevr", str(home)):
        assert way in said


def test_export(run: Run, tmp_path: Path) -> None:
    said = run.good("weights", "export", "yolo", "--out", "k.onnx")
    identity = Yolo.build(4).identity
    assert said.startswith(f"written to k.onnx: {identity}, 3.") and said.endswith("192×192, 9 classes\n")
    stored(random_yolo(), tmp_path / "mine.safetensors")
    told = json.loads(run.good("weights", "export", "yolo", "--weights", "mine.safetensors", "--out", "deep/m.onnx",
                               "--json"))
    assert told["file"] == "deep/m.onnx" and told["bytes"] == (tmp_path / "deep/m.onnx").stat().st_size
    assert (told["width"], told["height"], told["classes"][1]) == (64, 64, "red circle")
    header = read_header(tmp_path / "k.onnx")
    assert header.size == (192, 192) and header.told["description"] == f"nsfrc {identity}"


@pytest.mark.parametrize(("asked", "message"), [
    (("yolo", "--out", "k.pt"), "'k.pt' would not be taken for ONNX: give --out"),
    (("yolo", "--weights", "none.safetensors", "--out", "k.onnx"), "there is no file none.safetensors"),
    (("yolo_clevr", "--weights", "mine.safetensors", "--out", "k.onnx"), "does not hold a yolo_clevr perception"),
])
def test_exports_that_are_refused(asked: tuple[str, ...], message: str, run: Run, tmp_path: Path) -> None:
    stored(random_yolo(), tmp_path / "mine.safetensors")
    assert message in run.refused("weights", "export", *asked)
    assert not list(tmp_path.glob("k.*"))
