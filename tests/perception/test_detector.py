"""Training a detector: the same weights whether interrupted or not, and figures that stay what they are."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from nsfrc.cli import cli
from nsfrc.data import kandinsky
from nsfrc.errors import NsfrcError
from nsfrc.perception import weights
from nsfrc.perception.attributes import CLEVR, Attributes
from nsfrc.perception.yolo import Yolo
from nsfrc.perception.yolo_clevr import YoloClevr
from nsfrc.training import detector
from nsfrc.training.checkpoint import load_checkpoint
from nsfrc.training.detector import Options, Run, checkpoint_of, train
from nsfrc.training.detector_data import (
    SOURCES,
    Batch,
    Example,
    Examples,
    Source,
    another_nothing,
    batches,
    collect,
    drawn,
    vary,
)
from nsfrc.training.detector_score import calibrate, match, score
from tests.perception.support import interrupted_after_an_epoch, random_yolo

TINY = Options(data="squares", figures=24, epochs=2, size=64, batch_size=8, seed=3)


def square(seed: int, index: int, size: tuple[int, int]) -> Example:
    """One large square, in turn red and blue: quickly learnt."""
    rng = np.random.default_rng([seed, index])
    side = rng.integers(24, 36)
    x, y = rng.integers(0, size[0] - side, 2)
    pixels = np.full((*size, 3), 215, dtype=np.uint8)
    pixels[y : y + side, x : x + side] = ((200, 20, 20), (20, 20, 200))[index % 2]
    return Example(pixels, np.array([index % 2]), np.array([[x, y, x + side, y + side]], dtype=np.float32) / size[0])


@pytest.fixture(autouse=True)
def squares_and_little_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "squares", drawn(Attributes((("red", "blue"), ("square",))), square))
    monkeypatch.setattr(detector, "VALIDATION", 6)


@pytest.fixture(scope="module")
def figures() -> Examples:
    return collect(SOURCES["kandinsky"], False, 3, (64, 64), 24)


class Stop(Exception):
    pass


def test_training_learns_resumes_exactly_and_writes_what_yolo_loads(tmp_path: Path) -> None:
    whole, parts, lines = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors", []
    train(TINY, whole, log=lines.append, made_by="nsfrc train perception …")
    losses = [float(line.split("loss ")[1].split()[0]) for line in lines]
    assert len(losses) == 2 and losses[1] < losses[0]

    def stop(line: str) -> None:
        raise Stop

    with pytest.raises(Stop):
        train(TINY, parts, log=stop)
    assert checkpoint_of(parts).exists() and not parts.exists()
    shutil.copy(checkpoint_of(parts), checkpoint_of(tmp_path / "other"))
    model = train(TINY, parts, resume=True)
    (header, one), (_, other) = weights.load(whole), weights.load(parts)
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    assert not checkpoint_of(parts).exists()

    assert isinstance(model, Yolo) and model.dimensions[4:-1] == ("red", "blue", "square")
    assert model.size == (64, 64) and model.identity.endswith(header["crc32"])
    assert header["made_by"].items() >= {"command": "nsfrc train perception …", "seed": 3, "figures": 24}.items()
    assert all(tensor.dtype != torch.float32 for tensor in one.values())
    with pytest.raises(NsfrcError, match=r"--lr 0.002, not 0.1: resume with --lr 0.002"):
        train(replace(TINY, lr=0.1), tmp_path / "other", resume=True)
    with pytest.raises(NsfrcError, match="continue with --resume"):
        train(TINY, tmp_path / "other")


def test_training_goes_on_from_weights_that_are_there(tmp_path: Path) -> None:
    first, then, lines = tmp_path / "first.safetensors", tmp_path / "then.safetensors", []
    train(TINY, first, log=lines.append)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, then, start=first, log=interrupted)
    with pytest.raises(NsfrcError, match=r"started from the weights \w{8}, not one that started from scratch"):
        train(TINY, then, resume=True)
    train(TINY, then, start=first, resume=True, log=lines.append)
    losses = [float(line.split("loss ")[1].split()[0]) for line in lines if "loss" in line]
    assert losses[2] < losses[0]
    header, _ = weights.load(then)
    assert header["made_by"]["start"] == weights.load(first)[0]["crc32"]
    with pytest.raises(NsfrcError, match=r"tells other attributes apart \(red, blue, square\) than yolo is to learn"):
        train(replace(TINY, data="kandinsky"), tmp_path / "other.safetensors", start=first)


def interrupted(line: str) -> None:
    raise KeyboardInterrupt


def test_what_has_grown_too_large_for_half_precision_is_written_all_the_same() -> None:
    model, images = random_yolo(), torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    grown, usual = model.network.model[7], model.network.model[3].bn.running_var.clone()
    factor = torch.linspace(1, 3000, len(grown.conv.weight))
    with torch.no_grad():
        grown.conv.weight.mul_(factor[:, None, None, None])
        grown.bn.running_mean.add_(0.1).mul_(factor)
        grown.bn.running_var.mul_(factor**2)
        before = model(images)
        detector.even(model.network)
        assert torch.allclose(model(images), before, atol=1e-5) and bool(before.any())
    assert bool((factor**2 * 0.02 > 65_504).any()) and float(grown.bn.running_var.max()) < 1001
    assert torch.equal(model.network.model[3].bn.running_var, usual)


def test_a_run_learns_the_figures_it_sees() -> None:
    run = Run(replace(TINY, figures=16, epochs=20), SOURCES["squares"], "cpu")
    seen = collect(SOURCES["squares"], False, 3, (64, 64), 16)
    losses = [run.one_epoch(seen, lambda items, label, length: nullcontext(items)) for _ in range(8)]
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize(("change", "message"), [
    ({"size": 50}, "multiple of 32"), ({"epochs": 0}, "above 0"), ({"lr": 0.0}, "above 0"),
])
def test_options_that_make_no_sense(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=message):
        train(replace(TINY, **change), tmp_path / "new/w.safetensors")
    assert not (tmp_path / "new").exists()


def test_the_width_of_scenes() -> None:
    scenes = Source(YoloClevr, SOURCES["kandinsky"].examples, CLEVR, high=2 / 3)
    detector._check(replace(TINY, size=96), scenes)
    with pytest.raises(NsfrcError, match=r"not 160 × 107: give --size a multiple of 96; 288 is usual"):
        detector._check(replace(TINY, size=160), scenes)
    with pytest.raises(NsfrcError, match=r"not 50 × 50: give --size a multiple of 32; 192 is usual"):
        detector._check(replace(TINY, size=50), SOURCES["kandinsky"])


def test_figures_of_other_boxes_or_classes_are_not_gone_on_with(tmp_path: Path) -> None:
    run, seen = Run(TINY, SOURCES["squares"], "cpu"), collect(SOURCES["squares"], False, 3, (64, 64), 3)
    run._same_examples(seen, tmp_path)
    run._same_examples(replace(seen, boxes=[box.copy() for box in seen.boxes]), tmp_path)
    for other in (replace(seen, boxes=[box / 2 for box in seen.boxes]), replace(seen, classes=seen.classes[::-1][1:])):
        with pytest.raises(NsfrcError, match="other pictures or scenes"):
            run._same_examples(other, tmp_path)


def test_what_cannot_be_resumed(tmp_path: Path) -> None:
    out = tmp_path / "w.safetensors"
    with pytest.raises(NsfrcError, match="nothing to resume"):
        train(TINY, out, resume=True)
    weights.save(checkpoint_of(out), {"a": torch.zeros(1)}, {"kind": "perception"})
    with pytest.raises(NsfrcError, match="is not a training checkpoint: delete it"):
        train(TINY, out, resume=True)
    checkpoint_of(out).write_text("nonsense")
    with pytest.raises(NsfrcError, match=r"not a safetensors file.*delete it and start without --resume"):
        train(TINY, out, resume=True)
    with pytest.raises(NsfrcError, match="give --out the name of a file"):
        train(TINY, Path())
    with pytest.raises(NsfrcError, match="cannot write"):
        train(TINY, checkpoint_of(out) / "under a file" / "w.safetensors")


@pytest.mark.parametrize(("header", "options", "message"), [
    ({"epoch": -1}, {}, "does not say how far its run is: delete it"),
    ({"epoch": 99}, {}, "does not say how far its run is: delete it"),
    ({"epoch": 0.5}, {}, "does not say how far its run is: delete it"),
    ({}, {"data": "varied"}, "is from a run with --looks varied, not plain: resume with --looks varied"),
    ({}, {"network": None}, "is from a version of nsfrc that had no --network: delete it"),
])
def test_checkpoints_that_are_not_gone_on_with(
    header: dict[str, Any], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path, own = tmp_path / "w.safetensors.checkpoint", asdict(replace(TINY, data="kandinsky"))
    progress = {"epoch": 1, "step": 1, "right": 0.0, "best_right": 0.0, "best_epoch": 1}
    told = {"kind": "checkpoint", "model": "yolo", **progress, "options": own}
    weights.save(path, {}, told)
    assert load_checkpoint(path, "yolo", own)[0]["epoch"] == 1
    weights.save(path, {}, told | header | {"options": own | options})
    with pytest.raises(NsfrcError, match=message):
        load_checkpoint(path, "yolo", own)


def test_the_rate_goes_up_then_down() -> None:
    options = Options(figures=8000, epochs=20)
    rates = [options.rate(step) for step in range(options.steps)]
    assert rates[0] == pytest.approx(options.lr / 300) and max(rates) == rates[299] == options.lr
    assert all(a < b for a, b in pairwise(rates[:300]))
    assert all(a > b for a, b in pairwise(rates[300:]))
    assert rates[-1] == pytest.approx(0.01 * options.lr, rel=0.01)


def test_batches_follow_from_seed_and_epoch(figures: Examples) -> None:
    one, same, later = (list(batches(figures, 7, 5, epoch, "cpu")) for epoch in (0, 0, 1))
    assert [len(batch.images) for batch in one] == [7, 7, 7, 3]
    assert all(torch.equal(a.images, b.images) and torch.equal(a.boxes, b.boxes)
               for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0].images, later[0].images)


def test_boxes_move_with_the_picture() -> None:
    """A black rectangle on white is still exactly where its box says, mirrored, moved or not."""
    pixels = np.full((1, 64, 64, 3), 255, dtype=np.uint8)
    pixels[0, 20:30, 3:12] = 0
    box = np.array([[3, 20, 12, 30]], dtype=np.float32) / 64
    examples = Examples(torch.from_numpy(pixels), [np.array([4])], [box])
    rng, lefts = np.random.default_rng(0), set()
    for _ in range(300):
        batch = vary(examples, np.array([0]), rng, "cpu")
        rows, columns = torch.nonzero(batch.images[0].mean(0) < 0.5, as_tuple=True)
        x, y, width, height = (batch.boxes[0] * 64).tolist()
        seen = [columns.min().item(), rows.min().item(), columns.max().item() + 1, rows.max().item() + 1]
        assert seen == pytest.approx([x - width / 2, y - height / 2, x + width / 2, y + height / 2], abs=1e-4)
        assert batch.classes.tolist() == [4] and batch.owner.tolist() == [0]
        lefts.add(seen[0])
    assert lefts == {*range(0, 8), *range(64 - 16, 64 - 8)}, "3 pixels to the left at most, 4 to the right"


def test_a_picture_of_nothing_becomes_many() -> None:
    """Colours exchanged, upside down, inverted, enlarged: never a value that was not there, but for those between."""
    picture = torch.zeros(3, 32, 32)
    picture[0, :16], picture[2, 24:] = 0.75, 0.5
    made = [another_nothing(picture, np.random.default_rng(seed)) for seed in range(60)]
    assert all(one.shape == picture.shape and one.min() >= 0 and one.max() <= 1 for one in made)
    assert len({one.numpy().tobytes() for one in made}) > 30
    plain = [one for one in made if sorted(one.flatten().tolist()) == sorted(picture.flatten().tolist())]
    assert 5 < len(plain) < 30 and any(one[0, 16:].max() == 0.75 for one in plain), "upside down"
    assert any((1 - one).amax((1, 2)).sort().values.equal(torch.tensor([0.0, 0.5, 0.75])) for one in made), "inverted"
    again = another_nothing(picture, np.random.default_rng(0))
    assert torch.equal(again, made[0]) and picture[0, 0, 0] == 0.75


def test_only_pictures_of_nothing_are_turned_into_others() -> None:
    pixels = np.zeros((2, 64, 64, 3), dtype=np.uint8)
    pixels[:, 20:40, 20:40, 0] = 200
    box = np.array([[20 / 64, 20 / 64, 40 / 64, 40 / 64]], dtype=np.float32)
    examples = Examples(torch.from_numpy(pixels), [np.array([0]), np.array([], dtype=int)],
                        [box, np.zeros((0, 4), dtype=np.float32)])
    channels: list[set[int]] = [set(), set()]
    for seed in range(30):
        for place, one in enumerate(vary(examples, np.array([0, 1]), np.random.default_rng(seed), "cpu").images):
            channels[place].add(int((one.amax((1, 2)) - one.amin((1, 2))).argmax()))
    assert channels == [{0}, {0, 1, 2}]


def test_varied_figures_are_shown_in_several_sizes() -> None:
    """As they are, and as larger pictures."""
    examples = collect(SOURCES["varied"], False, 0, (96, 96), 24)
    epochs = [list(batches(examples, 2, 0, epoch, "cpu")) for epoch in range(4)]

    def sides(some: list[Batch]) -> list[int]:
        return [one.images.shape[-1] for one in some]

    seen = [side for some in epochs for side in sides(some)]
    assert set(seen) == {96, 128} and 0.6 < seen.count(96) / len(seen) < 0.95
    assert sides(epochs[1]) == sides(list(batches(examples, 2, 0, 1, "cpu"))) != sides(epochs[0])
    assert all(one.images.shape[-2] == one.images.shape[-1] and one.images.min() > -1e-5 and one.images.max() < 1 + 1e-5
               for some in epochs for one in some)


def test_colours_stay_what_they_are(figures: Examples) -> None:
    plain = figures.pixels[:8].permute(0, 3, 1, 2).float() / 255
    for seed in range(5):
        varied = vary(figures, np.arange(8), np.random.default_rng(seed), "cpu").images
        assert varied.min() >= 0 and varied.max() <= 1
        change = varied.amax((2, 3)) - plain.amax((2, 3))
        assert change.abs().max() <= 0.081


def test_matching_takes_every_object_once() -> None:
    truth = torch.tensor([[0.0, 0.0, 0.2, 0.2], [0.5, 0.5, 0.9, 0.9]])
    found = torch.tensor([[0.0, 0.0, 0.2, 0.19], [0.01, 0.0, 0.2, 0.2], [0.5, 0.5, 0.9, 0.9], [0.5, 0.5, 0.6, 0.6]])
    assert match(found, np.array([1, 1, 2, 2]), truth, np.array([1, 2])).tolist() == [True, False, True, False]
    assert match(found, np.array([1, 1, 3, 2]), truth, np.array([1, 2])).tolist() == [True, False, False, False]
    assert match(found[:0], np.array([], dtype=int), truth, np.array([1, 2])).tolist() == []
    assert match(found, np.array([1, 1, 2, 2]), truth[:0], np.array([], dtype=int)).tolist() == [False] * 4


class Told(torch.nn.Module):
    """A detector that says what it is told to."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors, self.calibration = vectors, (1.0, 0.0)
        self.attributes, self.dimensions = SOURCES["kandinsky"].attributes, kandinsky.DIMENSIONS

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.vectors[: len(images)]


def test_score_counts_figures_that_are_all_right(figures: Examples) -> None:
    vectors = torch.stack([
        torch.from_numpy(kandinsky.truth(kandinsky.figure(kandinsky.FREE, 3, i).figure, 12)) for i in range(24)
    ])
    vectors[..., -1] *= 0.9
    assert score(Told(vectors), figures, "cpu").all_right == 1.0  # type: ignore[arg-type]
    vectors[0, 0, -1] = 0.4  # not sure enough
    vectors[1, 0, 4:7] = vectors[1, 0, 4:7].roll(1)  # another colour
    vectors[2, 11] = torch.tensor([0, 0, 0.1, 0.1, 1, 0, 0, 1, 0, 0, 0.8])  # one too many
    vectors[3, 0, :4] = torch.tensor([0, 0, 0.01, 0.01])  # elsewhere
    vectors[4, 11] = torch.tensor([0, 0, 0.1, 0.1, 1, 0, 0, 1, 0, 0, 0.4])  # one too many, but not sure
    found = score(Told(vectors), figures, "cpu")  # type: ignore[arg-type]
    assert found.all_right == pytest.approx(20 / 24)
    assert (~found.hits).sum() == 4 and len(found.logits) == sum(len(c) for c in figures.classes) + 2


def test_calibration_recovers_the_truth() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 20_000)
    hits = rng.random(20_000) < 1 / (1 + np.exp(-(2.5 * logits - 1)))
    assert calibrate(logits, hits) == (pytest.approx(2.5, abs=0.15), pytest.approx(-1, abs=0.15))


def test_calibration_of_what_needs_none() -> None:
    apart = np.concatenate([np.full(50, -4.0), np.full(50, 3.0)])
    a, b = calibrate(apart, apart > 0)
    assert 0 < a < 10 and 1 / (1 + np.exp(-(3 * a + b))) == pytest.approx(51 / 52, abs=1e-3)
    assert calibrate(apart, np.ones(100, dtype=bool)) == (1.0, 0.0)
    assert calibrate(apart, apart < 0) == (1.0, 0.0), "the wrong way round is noise"


def test_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "w.safetensors"
    arguments = f"train perception --figures 4 --epochs 2 --size 64 --batch-size 4 --out {out}".split()
    threads = torch.get_num_threads()
    with interrupted_after_an_epoch():
        stopped = CliRunner().invoke(cli, arguments)
    assert stopped.exit_code != 0 and "epoch 1/2" in stopped.output
    assert f"--out {out} --resume" in stopped.output and "--batch-size 4" in stopped.output
    finished = CliRunner().invoke(cli, [*arguments, "--resume"])
    torch.set_num_threads(threads)
    assert finished.exit_code == 0, finished.output
    assert "continuing after epoch 1 of 2" in finished.output and f"written to {out}" in finished.output
    assert Yolo.build(3, out).size == (64, 64)


def test_looks_and_a_start_on_the_command_line(tmp_path: Path) -> None:
    out, first = tmp_path / "w.safetensors", tmp_path / "first.safetensors"
    arguments = f"train perception --figures 4 --epochs 1 --size 64 --batch-size 4 --looks varied --out {out}".split()
    threads = torch.get_num_threads()
    Run(replace(TINY, data="kandinsky"), SOURCES["kandinsky"], "cpu").write(Yolo(3, size=(64, 64)), first, "")
    finished = CliRunner().invoke(cli, [*arguments, "--weights", str(first)])
    torch.set_num_threads(threads)
    assert finished.exit_code == 0, finished.output
    told = weights.load(out)[0]["made_by"]
    assert told["data"] == "varied" and told["start"] == weights.load(first)[0]["crc32"]
    assert f"--weights {first} --looks varied" in told["command"] and "--start" not in told["command"]


@pytest.mark.parametrize(("given", "said"), [
    ("--model yolo_clevr --data scenes --looks varied", "leave out --looks"),
    ("--model slot_attention --data scenes --weights weights", "leave out --weights"),
    ("--through twopairs --images scenes --looks varied", "--looks is for training from scratch"),
])
def test_options_that_do_not_go_together(given: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "weights").touch()
    arguments = [str(tmp_path / word) if word in ("scenes", "weights") else word for word in given.split()]
    refused = CliRunner().invoke(cli, ["train", "perception", "--out", str(tmp_path / "w"), *arguments])
    assert refused.exit_code != 0
    assert said in f"{refused.output} {refused.exception}"


def test_help_has_examples() -> None:
    text = CliRunner().invoke(cli, ["train", "perception", "--help"]).output
    assert "Examples:" in text and "--resume" in text
    assert "concept" in CliRunner().invoke(cli, ["train", "--help"]).output
