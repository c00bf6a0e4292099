"""Training slots: they learn what is in pictures, and end in the same weights whether interrupted or not."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image, ImageDraw

from nsfrc.cli import cli
from nsfrc.data.clevr.layouts import Entry
from nsfrc.data.clevr.scenes import COLORS, DIMENSIONS, Scene, Thing, to_json, truth
from nsfrc.errors import NsfrcError
from nsfrc.perception import weights
from nsfrc.perception.camera import Camera
from nsfrc.perception.slot_attention import SlotAttention
from nsfrc.training.checkpoint import checkpoint_of, save_checkpoint
from nsfrc.training.run import no_bar
from nsfrc.training.scenes import divide, scenes
from nsfrc.training.slots import Options, Run, compared, train
from nsfrc.training.slots_data import Examples, batches, collect
from tests.perception.support import interrupted_after_an_epoch

D = len(DIMENSIONS)


def discs(number: int) -> Scene:
    """One or two large balls, well apart, red or cyan."""
    rng = np.random.default_rng(number)
    sides = rng.permutation([-1.6, 1.6])[: rng.integers(1, 3)]
    places = [(float(side), float(rng.uniform(-1.8, 1.8)), 0.7) for side in sides]
    colors = rng.choice(["red", "cyan"], len(places))
    return Scene(tuple(Thing("sphere", "large", "rubber", str(c), p) for c, p in zip(colors, places, strict=True)),
                 Camera())


def drawn(scene: Scene) -> Image.Image:
    """48 × 32 pixels, a tenth of what CLEVR has."""
    picture = Image.new("RGB", (48, 32), (128, 128, 128))
    for thing, (x, y, _) in zip(scene.things, scene.pixels / 10, strict=True):
        ImageDraw.Draw(picture).ellipse((x - 5, y - 5, x + 5, y + 5), fill=COLORS[thing.color])
    return picture


def folder(root: Path, train: int, val: int = 0) -> Path:
    """A folder as CLEVR has it, of scenes 0, 1, …"""
    numbers = itertools.count()
    for split, count in (("train", train), ("val", val)):
        entries = []
        for _, number in zip(range(count), numbers, strict=False):
            scene, name = discs(number), f"CLEVR_{split}_{number:06d}.png"
            (images := root / "images" / split).mkdir(parents=True, exist_ok=True)
            drawn(scene).save(images / name)
            entries.append(to_json(scene, split, number, name))
        if entries:
            (root / "scenes").mkdir(exist_ok=True)
            (root / "scenes" / f"CLEVR_{split}_scenes.json").write_text(json.dumps({"info": {}, "scenes": entries}))
    return root


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("few"), 6, 3)


def tiny(data: Path, **changes: Any) -> Options:
    return replace(Options(str(data), epochs=3, size=16, batch_size=4, slots=3, seed=3), **changes)


def test_splits_or_every_tenth(tmp_path: Path, few: Path) -> None:
    learnt, held_out = scenes(few)
    assert (len(learnt), len(held_out)) == (6, 3) and {e.split for e in held_out} == {"val"}
    entries = [Entry(Path(f"{i}.png"), discs(i), "train") for i in range(30)]
    learnt, held_out = divide(entries)
    assert [e.image.stem for e in held_out] == ["9", "19", "29"] and len(learnt) == 27
    learnt, held_out = divide([*entries, *(replace(e, split="test") for e in entries)])
    assert len(learnt) == 27 and {e.split for e in held_out} == {"train"}
    learnt, held_out = divide([replace(e, split="val") for e in entries[:4]])
    assert (len(learnt), len(held_out)) == (3, 1)
    with pytest.raises(NsfrcError, match="too few scenes"):
        scenes(folder(tmp_path / "one", 1))
    learnt, held_out = scenes(f"{few}{os.pathsep}{folder(tmp_path / 'more', 4, 2)}")
    assert (len(learnt), len(held_out)) == (10, 5) and len({e.image for e in learnt}) == 10


def test_pictures_are_as_inference_sees_them(few: Path) -> None:
    from nsfrc.inference.images import read

    learnt, _ = scenes(few)
    examples = collect(learnt, 16, 3)
    assert examples.pixels.shape == (6, 16, 16, 3) and examples.truth.shape == (6, 3, D)
    for i, entry in enumerate(learnt):
        assert np.array_equal(examples.pixels[i].numpy(), read(entry.image, (16, 16), "stretch").pixels)
        assert np.array_equal(examples.truth[i].numpy(), truth(entry.scene, 3))
    with pytest.raises(NsfrcError, match=r"shows 2 things, more than 1 slots can hold: use --slots 2"):
        collect(learnt, 16, 1)


def test_batches_follow_from_seed_and_epoch(few: Path) -> None:
    examples = collect(scenes(few)[0], 16, 3)
    one, same, later = (list(batches(examples, 4, 8, 5, epoch, "cpu")) for epoch in (0, 0, 1))
    assert [len(batch.images) for batch in one] == [4, 2]
    for a, b in zip(one, same, strict=True):
        assert all(torch.equal(getattr(a, name), getattr(b, name)) for name in ("images", "truth", "noise"))
    assert not torch.equal(one[0].noise, later[0].noise) and not torch.equal(one[0].noise[0], one[0].noise[1])
    seen = torch.cat([batch.truth for batch in one]).sum((1, 2)).sort().values
    torch.testing.assert_close(seen, examples.truth.sum((1, 2)).sort().values)


def test_slots_learn_what_is_in_pictures() -> None:
    chosen = [discs(i) for i in range(8)]
    pixels = np.stack([np.asarray(drawn(scene).resize((16, 16))) for scene in chosen])
    examples = Examples(torch.from_numpy(pixels), torch.from_numpy(np.stack([truth(s, 2) for s in chosen])))
    # Four seeds on one thread and on two all end at a precision of 1; after 200 epochs not all of them do.
    run = Run(Options(figures=8, epochs=300, size=16, batch_size=8, slots=2, lr=1e-3), "cpu")
    losses = [run.one_epoch(examples, no_bar) for _ in range(300)]
    assert np.mean(losses[-10:]) < 0.1 * losses[0]
    precision = compared(run.average, examples, "cpu").precision
    assert precision[np.inf] > 0.9 and precision[1.0] > 0.9


class Stop(Exception):
    pass


def test_training_resumes_exactly_and_writes_what_is_loaded(tmp_path: Path, few: Path) -> None:
    whole, parts, lines = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors", []
    train(tiny(few), whole, log=lines.append, made_by="nsfrc train perception …")
    assert len(lines) == 3 and all("loss" in line and "objects right" in line for line in lines)

    def stop(line: str) -> None:
        if "epoch 2" in line:
            raise Stop

    with pytest.raises(Stop):
        train(tiny(few), parts, log=stop)
    assert checkpoint_of(parts).exists() and not parts.exists()
    shutil.copy(checkpoint_of(parts), checkpoint_of(tmp_path / "other"))
    model = train(tiny(few), parts, resume=True)
    (header, one), (_, other) = weights.load(whole), weights.load(parts)
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    assert not checkpoint_of(parts).exists()

    assert isinstance(model, SlotAttention) and model.size == (16, 16) and model.objects == 3
    assert model.identity.endswith(header["crc32"]) and header["model"] == "slot_attention"
    told = {"command": "nsfrc train perception …", "seed": 3, "figures": 6, "slots": 3, "data": str(few)}
    assert header["made_by"].items() >= told.items()
    assert all(tensor.dtype != torch.float32 for tensor in one.values())
    with pytest.raises(NsfrcError, match=r"--lr 0.0004, not 0.1: resume with --lr 0.0004"):
        train(tiny(few, lr=0.1), tmp_path / "other", resume=True)
    with pytest.raises(NsfrcError, match="continue with --resume"):
        train(tiny(few), tmp_path / "other")


def test_other_pictures_are_not_gone_on_with(tmp_path: Path) -> None:
    data, out = folder(tmp_path / "data", 3, 1), tmp_path / "w.safetensors"

    def stop(line: str) -> None:
        raise Stop

    with pytest.raises(Stop):
        train(tiny(data), out, log=stop)
    scenes_file = data / "scenes/CLEVR_train_scenes.json"
    before = scenes_file.read_text()
    scenes_file.write_text(before.replace('"rubber"', '"metal"'))
    with pytest.raises(NsfrcError, match=r"started with other pictures or scenes than --data"):
        train(tiny(data), out, resume=True)
    scenes_file.write_text(before)
    (data / "images/train/CLEVR_train_000001.png").write_bytes(
        (data / "images/train/CLEVR_train_000000.png").read_bytes()
    )
    with pytest.raises(NsfrcError, match=r"started with other pictures or scenes than --data"):
        train(tiny(data), out, resume=True)


@pytest.mark.parametrize(("name", "changed", "message"), [
    ("optimiser.network.mlp.0.bias.exp_avg", None, "has no tensor optimiser.network.mlp.0.bias.exp_avg"),
    ("optimiser.network.mlp.0.bias.exp_avg", torch.zeros(3), r"exp_avg is \[3\], the model has \[64\]: delete it and"),
    ("best.network.mlp.0.bias", None, "has no tensor best.network.mlp.0.bias"),
    ("more", torch.zeros(3), "has no tensor more"),
])
def test_a_checkpoint_with_other_parts(
    name: str, changed: torch.Tensor | None, message: str, few: Path, tmp_path: Path
) -> None:
    run, path = Run(tiny(few, figures=6), "cpu"), tmp_path / "w.checkpoint"
    run.one_epoch(examples := collect(scenes(few)[0], 16, 3), no_bar)
    run.validate(examples)
    parts = {part: t for part, t in run.state().items() if part != name}
    save_checkpoint(path, parts if changed is None else {**parts, name: changed}, run.progress())
    with pytest.raises(NsfrcError, match=message):
        Run(tiny(few, figures=6), "cpu").restore(path)


def test_weights_that_are_no_numbers_are_not_written(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "w.safetensors"
    with pytest.raises(NsfrcError, match=r"not numbers or are too large .* delete .* lower --lr than 1e\+30"):
        train(tiny(few, lr=1e30, epochs=1, batch_size=8), out)
    assert checkpoint_of(out).exists() and not out.exists()


def test_a_checkpoint_of_another_model(tmp_path: Path, few: Path) -> None:
    out = tmp_path / "w.safetensors"
    header = {"kind": "checkpoint", "model": "yolo", "options": {}}
    numbers = dict.fromkeys(("epoch", "step", "right", "best_right", "best_epoch"), 0)
    weights.save(checkpoint_of(out), {"a": torch.zeros(1)}, {**header, **numbers})
    with pytest.raises(NsfrcError, match=r"is from a run with --model yolo, not slot_attention"):
        train(tiny(few), out, resume=True)


@pytest.mark.parametrize(("change", "message"), [
    ({"size": 8}, "too small"), ({"epochs": 0}, "above 0"), ({"slots": 0}, "above 0"),
    ({"lr": float("nan")}, "above 0"), ({"data": "/nowhere"}, "nowhere"),
])
def test_options_that_make_no_sense(change: dict[str, Any], message: str, few: Path, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=message):
        train(replace(tiny(few), **change), tmp_path / "new/w.safetensors")
    assert not (tmp_path / "new").exists()


def test_the_command_line(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "w.safetensors"
    arguments = f"train perception --model slot_attention --data {few} --epochs 2 --size 16 --batch-size 4 --slots 3"
    threads = torch.get_num_threads()
    with interrupted_after_an_epoch():
        stopped = CliRunner().invoke(cli, [*arguments.split(), "--out", str(out)])
    assert stopped.exit_code != 0 and "epoch 1/2" in stopped.output
    assert f"--data {few}" in stopped.output and f"--out {out} --resume" in stopped.output
    finished = CliRunner().invoke(cli, [*arguments.split(), "--out", str(out), "--resume"])
    torch.set_num_threads(threads)
    assert finished.exit_code == 0, finished.output
    assert "continuing after epoch 1 of 2" in finished.output and "slot_attention:" in finished.output
    assert "--figures" in weights.load(out)[0]["made_by"]["command"]


@pytest.mark.parametrize(("arguments", "message"), [
    ("--model slot_attention", "give a folder of them with --data DIR"),
    ("--model yolo_clevr", "give a folder of them with --data DIR"),
    ("--model yolo --data .", "leave out --data"),
    ("--model slot_attention --data . --variant s", "--variant is not an option of slot_attention"),
    ("--model yolo --slots 4", "--slots is not an option of yolo"),
])
def test_options_of_other_models(arguments: str, message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["train", "perception", *arguments.split(), "--out", str(tmp_path / "w")])
    assert result.exit_code != 0 and message in " ".join(result.output.split())
