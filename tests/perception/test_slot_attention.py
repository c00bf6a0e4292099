"""Slot attention: against plain numpy, its symmetries and gradients, where its weights come from, what it sees."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nsfrc import perception
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import folder
from nsfrc.inference.labels import from_folders
from nsfrc.inference.predictor import Asked, Predictor
from nsfrc.inference.stream import stream
from nsfrc.perception import weights
from nsfrc.perception.published import import_slots
from nsfrc.perception.slot_attention import SlotAttention, start_noise
from nsfrc.pipelines import pipeline
from tests.perception import slots

SHARED = Path(__file__).parents[3] / "shared/data"
PUBLISHED = SHARED / "checkpoints/slot_attention_published.pt"


def small(objects: int = 3, seed: int = 0, scattered: bool = False) -> SlotAttention:
    """A tiny network with random weights that say something."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = SlotAttention(objects, size=20, iterations=2, width=6, hidden=7, scattered=scattered, seed=seed).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.ndim > 1 and "attention.mu" not in name:
                    parameter.mul_(3)
    return model


@pytest.fixture
def pictures() -> torch.Tensor:
    return torch.rand(8, 3, 20, 20, generator=torch.Generator().manual_seed(2))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NSFRC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def kept(home: Path, slots: SlotAttention, **changes: object) -> Path:
    """A model where slot_attention looks for it."""
    return weights.save(home / "slot_attention.safetensors", slots.state_dict(), {**slots.header(), **changes})


def test_the_same_as_by_hand(tmp_path: Path) -> None:
    torch.save(slots.checkpoint(), tmp_path / "published.pt")
    import_slots(tmp_path / "published.pt", tmp_path / "ours.safetensors")
    model = SlotAttention.build(4, tmp_path / "ours.safetensors")
    image = torch.rand(3, 128, 128, generator=torch.Generator().manual_seed(0))
    expected = slots.by_hand(slots.state(), image.numpy().astype("float64"), start_noise(4, 64, 0).numpy())
    assert expected.std() > 0.1
    assert model(image[None])[0].numpy() == pytest.approx(expected, abs=1e-5)


def test_what_comes_out(pictures: torch.Tensor) -> None:
    model = small()
    found = model(pictures)
    assert found.shape == (8, 3, 19) and found.min() > 0 and found.max() < 1
    assert model.dimensions[:7] == ("objectness", "x", "y", "z", "sphere", "cube", "cylinder")
    assert model.dimensions[7:] == ("large", "small", "rubber", "metal", "cyan", "blue", "yellow", "purple", "red",
                                    "green", "gray", "brown")
    assert model.fit == "stretch"
    assert model(pictures[:0]).shape == (0, 3, 19)


def test_an_image_gives_the_same_alone_and_in_any_batch(pictures: torch.Tensor) -> None:
    model, pictures = small().double(), pictures.double()  # so that nothing but rounding of 1e-16 can differ
    together = model(pictures)
    for size in (1, 2, 3, 5):
        apart = torch.cat([model(part) for part in pictures.split(size)])
        assert apart.sub(together).abs().max() < 1e-12
    assert model(pictures[3:4])[0].sub(model(pictures[4:5])[0]).abs().max() > 1e-3  # it does look at the image


@pytest.mark.parametrize("objects", [7, 10])
def test_pieces_are_the_same_to_the_last_bit(objects: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = SlotAttention(objects, size=64).eval().requires_grad_(False)
    images = torch.rand(16, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    assert model.piece == len(images)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(2))
    assert torch.equal(model(images[order]), model(images)[order])
    alone = torch.cat([images[2:3], torch.zeros(15, 3, 64, 64)])
    assert torch.equal(model(alone)[0], model(images)[2])


def test_the_seed_decides_where_slots_start(pictures: torch.Tensor) -> None:
    assert torch.equal(small(seed=4)(pictures), small(seed=4)(pictures))
    assert small(seed=4)(pictures).sub(small(seed=5)(pictures)).abs().max() > 1e-3
    assert torch.equal(start_noise(9, 6, 4)[:3], start_noise(3, 6, 4))
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    start_noise(3, 6, 4)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_noise_is_no_part_of_the_weights() -> None:
    assert set(small(3).state_dict()) == set(small(5).state_dict())
    assert not any("noise" in name or "ways" in name for name in small().state_dict())


def test_slots_have_no_order(pictures: torch.Tensor) -> None:
    network = small().network
    noise = torch.randn(5, 6, generator=torch.Generator().manual_seed(3))
    order = torch.tensor([3, 0, 4, 1, 2])
    assert network(pictures, noise[order]).sub(network(pictures, noise)[:, order]).abs().max() < 1e-5
    each = noise.expand(8, -1, -1)
    assert network(pictures, each).sub(network(pictures, noise)).abs().max() < 1e-6


def test_a_negative_sigma_is_noise_from_the_other_side(pictures: torch.Tensor) -> None:
    model = small()
    before = model(pictures)
    with torch.no_grad():
        model.network.attention.sigma.neg_()
    assert model(pictures).sub(before).abs().max() > 1e-3
    model.noise.neg_()
    assert torch.equal(model(pictures), before)


def test_positions_tell_places_apart() -> None:
    """The straight table is linear in where a feature is; the scattered one has the same numbers elsewhere."""
    straight, scattered = small().network.positions(), small(scattered=True).network.positions()
    assert straight.shape == scattered.shape == (6, 5, 5)
    assert straight.diff(n=2, dim=1).abs().max() < 1e-6 and straight.diff(n=2, dim=2).abs().max() < 1e-6
    assert not torch.equal(straight, scattered)
    assert torch.equal(straight.permute(1, 2, 0).flatten(), scattered.flatten())


@pytest.mark.parametrize("scattered", [False, True])
def test_gradients_are_those_of_finite_differences(scattered: bool) -> None:
    model = small(2, scattered=scattered).double()
    images = torch.rand(1, 3, 20, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    names, parameters = zip(*model.named_parameters(), strict=True)

    def said(image: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (image,))

    inputs = [tensor.detach().requires_grad_() for tensor in (images, *parameters)]
    assert torch.autograd.gradcheck(said, inputs, eps=1e-7, atol=1e-6, fast_mode=True)
    gradients = torch.autograd.grad(said(*inputs).square().sum(), inputs)
    assert all(bool(gradient.abs().max() > 0) for gradient in gradients)


def test_images_that_do_not_fit_are_refused(pictures: torch.Tensor) -> None:
    model = small()
    with pytest.raises(NsfrcError, match=r"\[8, 3, 20, 16\]; this slot_attention needs \[B, 3, 20, 20\]"):
        model(pictures[..., :16])
    with pytest.raises(NsfrcError, match=r"needs \[B, 3, 20, 20\]"):
        model(pictures[0])
    with pytest.raises(NsfrcError, match="uint8; slot_attention needs floating point"):
        model((pictures * 255).byte())


def test_weights_are_found_at_home(home: Path, pictures: torch.Tensor) -> None:
    path = kept(home, small())
    model = perception.create("slot_attention", 3)
    assert model(pictures).sub(small()(pictures)).abs().max() < 1e-4
    assert model.identity == f"slot_attention:{weights.load(path)[0]['crc32']}"
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert perception.create("slot_attention", 7)(pictures).shape == (8, 7, 19)


def test_named_weights_go_before_those_at_home(home: Path, tmp_path: Path, pictures: torch.Tensor) -> None:
    kept(home, small())
    other = small()
    with torch.no_grad():
        other.network.attention.mu.add_(1)
    model = perception.create("slot_attention", 3, kept(tmp_path / "elsewhere", other))
    assert model(pictures).sub(other(pictures)).abs().max() < 1e-4
    assert model(pictures).sub(small()(pictures)).abs().max() > 1e-2


def test_without_weights_the_ways_to_some_are_told(home: Path) -> None:
    with pytest.raises(NsfrcError) as caught:
        perception.create("slot_attention", 10)
    for word in (str(home), "weights import FILE", "train perception --model slot_attention --data DIR --out",
                 "--weights", "--perception yolo_clevr"):
        assert word in str(caught.value)


@pytest.mark.parametrize(("changes", "message"), [
    ({"model": "yolo"}, "does not hold a slot_attention perception .its header says perception yolo"),
    ({"kind": "concept"}, "header says concept slot_attention"),
    ({"size": 0}, "header is not valid"),
    ({"size": 10**9}, "header is not valid"),
    ({"iterations": True}, "header is not valid"),
    ({"width": "6"}, "header is not valid"),
    ({"scattered": None}, "header is not valid"),
    ({"dimensions": ["x"]}, "header is not valid"),
    ({"width": 8}, r"network.encoder.0.weight is \[6, 3, 5, 5\], the model has \[8, 3, 5, 5\]"),
])
def test_files_that_hold_something_else(home: Path, changes: dict[str, object], message: str) -> None:
    kept(home, small(), **changes)
    with pytest.raises(NsfrcError, match=message):
        perception.create("slot_attention", 3)


@pytest.mark.parametrize(("name", "share"), [("clevr_hans3", 0.97), ("clevr_hans7", 0.93)])
def test_answers_to_published_images(name: str, share: float, home: Path) -> None:
    images = SHARED / name.replace("_", "-")
    if not PUBLISHED.is_file() or not images.is_dir():
        pytest.skip("the published checkpoint and images are not here")
    import_slots(PUBLISHED, home / "slot_attention.safetensors")
    pipe = pipeline(name, "slot_attention")
    listing = folder(images)
    labels = from_folders(listing.classes, pipe.program.questions)
    rows = [row for rows in stream(Predictor(pipe, Asked(labels=labels)), listing) for row in rows]
    assert len(rows) == 10 * len(pipe.program.targets)
    assert sum(bool(row.right) for row in rows) >= share * len(rows)
