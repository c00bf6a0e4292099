"""Light and fine networks: what they leave out, how they begin with what another has learnt, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nsfrc.errors import NsfrcError
from nsfrc.perception import onnx_network, yolo_light, yolo_network
from nsfrc.perception.attributes import Attributes
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr
from nsfrc.training.detector import begin_with
from tests.perception.support import random_yolo, said_by_ultralytics, stored

SIDE = 64
IMAGES = torch.rand(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(5))


def light(network: str = "light") -> Yolo:
    return Yolo(4, size=(SIDE, SIDE), network=network).eval()


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def flatten(full: Yolo) -> None:
    """Leave of the convolutions that a light network splits only what goes through as few channels."""
    for name, part in full.network.named_modules():
        small = name.replace("model.24.", "model.18.")
        if yolo_light.NARROWED.fullmatch(small):
            weight = part.conv.weight
            first, second = yolo_light._split(weight.detach(), yolo_light.rank(len(weight)))
            weight.data = torch.einsum("or,rikl->oikl", second[:, :, 0, 0], first)


def test_it_says_what_the_full_one_says_of_its_finest_scale() -> None:
    """Where the full one's matrices are as narrow as those of the light one, nothing is lost."""
    full, small = random_yolo(), light()
    flatten(full)
    yolo_light.start_from(small.network, full.network)
    with torch.no_grad():
        whole, part = (yolo_network.cells(one.network.eval(), IMAGES) for one in (full, small))
    cells = part.strides.numel()
    assert cells == (SIDE // 8) ** 2 < whole.strides.numel() and torch.all(part.strides == 8)
    assert torch.equal(part.centres, whole.centres[:cells])
    for ours, theirs in ((part.sides, whole.sides), (part.classes, whole.classes)):
        assert torch.allclose(ours, theirs[..., :cells], atol=1e-4)
        assert theirs.std() > 1e-3  # or anything would be like it


@pytest.mark.parametrize(("channels", "between"), [(64, 16), (96, 16), (128, 32), (256, 64)])
def test_channels_between_are_whole_vectors(channels: int, between: int) -> None:
    assert yolo_light.rank(channels) == between


def test_a_matrix_is_split_as_well_as_can_be() -> None:
    weight = torch.randn(24, 5, 3, 3, generator=torch.Generator().manual_seed(0))
    first, second = yolo_light._split(weight, 24)
    assert torch.allclose(torch.einsum("or,rikl->oikl", second[:, :, 0, 0], first), weight, atol=1e-5)
    first, second = yolo_light._split(weight, 6)
    lost = (torch.einsum("or,rikl->oikl", second[:, :, 0, 0], first) - weight).square().sum()
    assert lost.item() == pytest.approx(torch.linalg.svdvals(weight.flatten(1))[6:].square().sum().item(), rel=1e-4)


def test_a_fine_network_cuts_every_cell_in_four() -> None:
    small, fine = light(), light("fine")
    with torch.no_grad():
        whole, cut = (yolo_network.cells(one.network, IMAGES) for one in (small, fine))
    assert torch.all(whole.strides == 8) and torch.all(cut.strides == 4)
    assert torch.equal(cut.centres.unflatten(0, (SIDE // 8, 2, SIDE // 8, 2)).mean((1, 3)).flatten(0, 1), whole.centres)
    assert cut.sides.shape[2] == cut.classes.shape[2] == 4 * whole.classes.shape[2]


@pytest.mark.parametrize(("channel", "place"), [(0, [10.0, 2.0]), (1, [14.0, 2.0]), (2, [10.0, 6.0]), (3, [14.0, 6.0])])
def test_a_quarter_of_a_cell_has_channels_of_its_own(channel: int, place: list[float]) -> None:
    """What only one of four channels says of the cell in row 0 and column 1 is said of one quarter of it."""
    fine, images = light("fine").requires_grad_(False).network, torch.zeros(1, 3, 16, 16)
    branch = fine.model[-1].cv3[0]
    for name, tensor in branch.state_dict().items():
        tensor.fill_(1 if name.endswith("running_var") else 0)
    branch[1][1].conv.weight[0, 0, 1, 1] = branch[1][1].bn.weight[0] = branch[2].weight[0, 0] = 1
    features = torch.zeros(1, 64, 2, 2)
    features[0, channel, 0, 1] = 5
    said = branch[2](branch[1](features))
    cells = yolo_network.placed(said, said, yolo_network.map_sizes(fine, images), images)
    assert cells.centres[said[0, 0].argmax()].tolist() == place and (said != 0).sum() == 1


@pytest.mark.parametrize("network", ["light", "fine"])
@pytest.mark.parametrize("kind", [Yolo, YoloClevr])
def test_half_the_weights_and_the_same_in_onnx_runtime(kind: type[Yolo], network: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = kind(4, size=(SIDE, SIDE), network=network).eval()
    count = sum(one.numel() for one in model.parameters())
    assert count < 0.5 * sum(one.numel() for one in kind(4, size=(SIDE, SIDE)).parameters())
    loaded = kind.build(4, stored(model, tmp_path / "w.safetensors"))
    assert loaded.kind == network and loaded.network.is_fused()
    sides, classes = onnx_network.OnnxNetwork(loaded.network)(IMAGES)
    with torch.no_grad():
        same, ours = said_by_ultralytics(loaded.network, IMAGES), yolo_network.logits(loaded.network, IMAGES)
    for one, other, own in zip((sides, classes), same, ours, strict=True):
        assert torch.allclose(one, other, atol=1e-4) and torch.equal(own, other)
    unlikely, _ = onnx_network.OnnxNetwork(loaded.network)(IMAGES, least=1e6)
    assert unlikely.shape == sides.shape and not unlikely.any()


def test_a_training_begins_with_any_kind_that_has_more_in_it(tmp_path: Path) -> None:
    full, small = random_yolo(), light()
    begin_with(small, stored(full, tmp_path / "full.safetensors"))
    assert torch.equal(small.network.model[0].conv.weight, full.network.model[0].conv.weight)
    again = light()
    begin_with(again, stored(small, tmp_path / "light.safetensors"))
    assert same_weights(again, small)
    with pytest.raises(NsfrcError, match=r"a light network, from which a full one cannot begin: give --network light"):
        begin_with(random_yolo(), tmp_path / "light.safetensors")


def test_a_fine_network_begins_with_all_but_the_ends_of_another(tmp_path: Path) -> None:
    full, small = random_yolo(), light()
    begin_with(small, stored(full, tmp_path / "full.safetensors"))
    stored(small, tmp_path / "light.safetensors")
    for start in ("full", "light"):
        fine = light("fine")
        begin_with(fine, tmp_path / f"{start}.safetensors")
        ours, theirs = fine.state_dict(), small.state_dict()
        taken = {name for name in ours if torch.equal(ours[name], theirs.get(name, torch.empty(0)))}
        assert {name for name in ours if "model.18." not in name or ".0.0." in name} <= taken
        assert not any(name.endswith((".0.2.weight", ".0.1.1.conv.weight")) for name in taken)
    again = light("fine")
    begin_with(again, stored(fine, tmp_path / "fine.safetensors"))
    assert same_weights(again, fine)
    with pytest.raises(NsfrcError, match=r"a fine network, from which a light one cannot begin: give --network fine"):
        begin_with(light(), tmp_path / "fine.safetensors")


def test_classes_that_a_fine_network_cannot_have() -> None:
    seventy = Attributes((tuple(f"kind{i}" for i in range(70)),))
    with pytest.raises(NsfrcError, match=r"cannot have 70 classes.*use --network light"):
        Yolo(4, size=(SIDE, SIDE), attributes=seventy, network="fine")
    assert Yolo(4, size=(SIDE, SIDE), attributes=seventy, network="light").eval()(IMAGES).shape == (2, 4, 75)


def test_an_unknown_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="header is not valid"):
        Yolo.build(4, stored(random_yolo(), tmp_path / "w.safetensors", network="heavy"))
