"""Folders as CLEVR and CLEVR-Hans are published: what is found in them, and what is said of what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest

from nsfrc.data.clevr import making
from nsfrc.data.clevr.fitting import cameras
from nsfrc.data.clevr.layouts import read, splits_of
from nsfrc.data.clevr.scenes import Scene, to_json
from nsfrc.errors import NsfrcError
from nsfrc.perception.camera import Camera
from nsfrc.training.scenes import scenes

SCENES = tuple(making.free(3, index) for index in range(6))


def write(path: Path, entries: list[dict[str, Any]], images: Path | None) -> Path:
    """A scenes file, and empty files for its images."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"info": {"version": "1.0"}, "scenes": entries}))
    if images is not None:
        images.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            (images / entry["image_filename"]).touch()
    return path


def clevr(root: Path) -> Path:
    for split, some in (("train", SCENES[:3]), ("val", SCENES[3:5])):
        entries = [to_json(scene, split, i, f"CLEVR_{split}_{i:06d}.png") for i, scene in enumerate(some)]
        write(root / "scenes" / f"CLEVR_{split}_scenes.json", entries, root / "images" / split)
    (root / "images/test").mkdir()
    (root / "images/test/CLEVR_test_000000.png").touch()
    (root / "questions").mkdir()
    (root / "questions/CLEVR_val_questions.json").write_text("{}")
    return root


def hans(root: Path) -> Path:
    for split in ("train", "val", "test"):
        labelled = [replace(scene, label=i % 3) for i, scene in enumerate(SCENES)]
        entries = [to_json(scene, "new", i, f"CLEVR_Hans_classid_{scene.label}_{i // 3:06d}.png")
                   for i, scene in enumerate(labelled)]
        write(root / split / f"CLEVR_HANS_scenes_{split}.json", entries, root / split / "images")
    return root


def alike(found: Scene, made: Scene) -> bool:
    return found.things == made.things and np.allclose(found.camera.place, made.camera.place, atol=0.1)


def test_the_root_of_clevr(tmp_path: Path) -> None:
    found = read(clevr(tmp_path))
    assert [(e.image.relative_to(tmp_path).as_posix(), e.split) for e in found] == [
        *((f"images/train/CLEVR_train_{i:06d}.png", "train") for i in range(3)),
        *((f"images/val/CLEVR_val_{i:06d}.png", "val") for i in range(2)),
    ]
    assert all(e.image.is_file() for e in found)
    assert all(alike(entry.scene, made) for entry, made in zip(found, SCENES, strict=False))
    assert {e.scene.label for e in found} == {None}


def test_the_root_of_clevr_hans(tmp_path: Path) -> None:
    found = read(hans(tmp_path))
    assert [e.split for e in found] == ["train"] * 6 + ["val"] * 6 + ["test"] * 6
    assert [e.image.name for e in found[:6]] == sorted(e.image.name for e in found[:6])
    assert all(e.image.is_file() and f"classid_{e.scene.label}_" in e.image.name for e in found)
    assert alike(found[1].scene, SCENES[3])  # the second image of class 0


@pytest.mark.parametrize(("below", "count", "split"), [
    ("test", 6, "test"), ("val/CLEVR_HANS_scenes_val.json", 6, "val"),
])
def test_a_part_of_clevr_hans(below: str, count: int, split: str, tmp_path: Path) -> None:
    found = read(hans(tmp_path) / below)
    assert {e.split for e in found} == {split} and len(found) == count
    assert all(e.image.is_file() for e in found)


def test_a_scenes_file_of_clevr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clevr(tmp_path) / "scenes")
    found = read("CLEVR_val_scenes.json")
    assert [(e.split, e.image) for e in found] == [
        ("val", tmp_path / f"images/val/CLEVR_val_{i:06d}.png") for i in range(2)]


def test_a_scenes_file_of_another_name_beside_its_images(tmp_path: Path) -> None:
    path = write(tmp_path / "CLEVR_scenes.json", [to_json(SCENES[0], "new", 0, "a.png")], tmp_path / "images")
    (entry,) = read(path)
    assert entry.image == tmp_path / "images/a.png" and alike(entry.scene, SCENES[0])


def test_chosen_splits(tmp_path: Path) -> None:
    assert [e.split for e in read(hans(tmp_path / "h"), "val")] == ["val"] * 6
    assert [e.split for e in read(tmp_path / "h", "test", "train")] == ["train"] * 6 + ["test"] * 6
    assert splits_of(tmp_path / "h") == ["train", "val", "test"]
    with pytest.raises(NsfrcError, match=r"has no split 'test'; there are train, val$"):
        read(clevr(tmp_path / "c"), "test")  # CLEVR keeps these scenes to itself


def test_images_that_are_not_there(tmp_path: Path) -> None:
    clevr(tmp_path)
    for i, more in ((0, ""), (2, ", nor is another"), (1, ", nor are 2 others")):
        (tmp_path / f"images/train/CLEVR_train_{i:06d}.png").unlink()
        told = f"CLEVR_train_scenes.json: scene 0: its .*0000.png is not there{more}: put pictures there"
        with pytest.raises(NsfrcError, match=told):
            read(tmp_path)
    assert len(read(tmp_path, "val")) == 2
    assert len(read(tmp_path, images=False)) == 5


def test_a_training_reads_only_what_it_uses(tmp_path: Path) -> None:
    hans(tmp_path)
    for image in (tmp_path / "test/images").iterdir():
        image.unlink()
    learnt, held_out = scenes(tmp_path)
    assert ({e.split for e in learnt}, {e.split for e in held_out}) == ({"train"}, {"val"})
    rmtree(tmp_path / "train")
    with pytest.raises(NsfrcError, match="is not there, nor are 5 others"):
        scenes(tmp_path)  # there is no train: all is used


def test_scenes_without_any_picture(tmp_path: Path) -> None:
    write(tmp_path / "scenes/CLEVR_train_scenes.json", [to_json(SCENES[0], "train", 0, "a.png")], None)
    assert len(read(tmp_path, images=False)) == 1
    with pytest.raises(NsfrcError, match=r"its image .*a\.png is not there: put pictures there; nsfrc data makes"):
        read(tmp_path)


def test_a_folder_without_scenes(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    with pytest.raises(NsfrcError, match=r"has no scenes: there is neither scenes/CLEVR_train_scenes.json"):
        read(tmp_path)
    with pytest.raises(NsfrcError, match=r"cannot open the folder of scenes .*gone: No such file"):
        read(tmp_path / "gone")


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda entry: entry["objects"][1].pop(name)


def _with(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda entry: entry["objects"][1].update({name: value})


@pytest.mark.parametrize(("spoil", "message"), [
    (_without("shape"), "scene 2, object 1: it has no shape"),
    (_with("color", "crimson"), "scene 2, object 1: color is 'crimson'; it must be one of cyan, blue"),
    (_with("size", ["large"]), r"scene 2, object 1: size is \['large'\]; it must be one of large, small$"),
    (_with("3d_coords", [0, 1]), r"scene 2, object 1: 3d_coords is \[0, 1\]; it must be three finite numbers"),
    (_with("3d_coords", "123"), "scene 2, object 1: 3d_coords is '123'; it must be three finite"),
    (_with("3d_coords", None), "scene 2, object 1: 3d_coords is None; it must be three finite numbers"),
    (_with("3d_coords", [True, 1, 2]), r"scene 2, object 1: 3d_coords is \[True, 1, 2\]; it must be"),
    (_with("pixel_coords", [1, "1", 2]), r"scene 2, object 1: pixel_coords is \[1, '1', 2\]; it must be"),
    (_with("3d_coords", [0, 1, float("nan")]), "scene 2, object 1: 3d_coords is .*; it must be three finite numbers"),
    (_with("3d_coords", [0, 1, 10**400]), "scene 2, object 1: 3d_coords is .*; it must be three finite numbers"),
    (_with("rotation", float("inf")), "scene 2, object 1: rotation is inf; it must be a finite number"),
    (_with("rotation", None), "scene 2, object 1: rotation is None; it must be a finite number"),
    (_with("rotation", "90"), "scene 2, object 1: rotation is '90'; it must be a finite number"),
    (_with("pixel_coords", [900, 100, 11.0]), "scene 2: no camera near CLEVR's sees its 3d_coords"),
    (lambda entry: entry["objects"].insert(0, 5), "scene 2, object 0: it must be "),
    (lambda entry: entry.pop("objects"), "scene 2: it has no list of objects"),
    (lambda entry: entry.update(class_id="1"), "scene 2: class_id is '1'; it must be a number from 0"),
    (lambda entry: entry.update(image_filename="../a.png"), "scene 2: image_filename is '../a.png'"),
    (lambda entry: entry.pop("image_filename"), "scene 2: image_filename is None"),
    (lambda entry: entry.update(image_filename="CLEVR_train_000001.png"),
     "scene 2: CLEVR_train_000001.png is the image of scene 1 already"),
])
def test_scenes_that_are_none(spoil: Callable[[dict[str, Any]], object], message: str, tmp_path: Path) -> None:
    path = clevr(tmp_path) / "scenes/CLEVR_train_scenes.json"
    data = json.loads(path.read_text())
    spoil(data["scenes"][2])
    path.write_text(json.dumps(data))
    with pytest.raises(NsfrcError, match=f"^{path}: {message}"):
        read(tmp_path)


@pytest.mark.parametrize(("content", "message"), [
    (b"", ":1:1: not JSON: Expecting value"),
    (b'{"scenes": [\n{,', ":2:2: not JSON: "),
    (b'{"scenes": ["\xff"]}', ": not JSON: it is not UTF-8 text"),
    (b"[1, 2]", ": not a scenes file: it must be"),
    (b'{"scenes": {}}', ": not a scenes file: it must be"),
    (b'{"scenes": [3]}', ": scene 0: it must be {…}"),
    (b"[" * 100_000, ": not a scenes file: "),
    (b'{"scenes": [' + b"9" * 5000 + b"]}", ": not a scenes file: "),
])
def test_files_that_are_no_scenes(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "CLEVR_HANS_scenes_val.json"
    path.write_bytes(content)
    with pytest.raises(NsfrcError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_no_image_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hans(tmp_path)
    opened = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path.name) or path.open("rb").read())
    read(tmp_path, "test")
    assert opened == ["CLEVR_HANS_scenes_test.json"]


def test_cameras_are_found_together_as_alone() -> None:
    entries = [to_json(scene, "train", 0, "a.png") for scene in SCENES]
    points = [np.array([o["3d_coords"] for o in entry["objects"]]) for entry in entries]
    seen = [np.array([o["pixel_coords"] for o in entry["objects"]]) for entry in entries]
    for i, (camera, scene) in enumerate(zip(cameras(points, seen), SCENES, strict=True)):
        (alone,) = cameras(points[i : i + 1], seen[i : i + 1])
        assert camera is not None and alone is not None
        assert np.allclose(camera.place, alone.place, atol=1e-6)
        assert np.allclose(camera.place, scene.camera.place, atol=0.1)  # as far as rounded pixels say it
    assert cameras([], []) == []


def test_cameras_of_exact_places_are_exact() -> None:
    made = Camera((7.9, -6.1, 5.0))
    rng = np.random.default_rng(0)
    points = [np.insert(rng.uniform(-3, 3, (n, 2)), 2, rng.choice([0.35, 0.7], n), axis=1) for n in (2, 3, 10)]
    for camera in cameras(points, [made.pixels(some) for some in points]):
        assert camera is not None and np.allclose(camera.place, made.place, atol=1e-5)


def test_cameras_that_nothing_is_known_of() -> None:
    """One thing or none leave the camera at its usual place; nonsense gives none."""
    one = np.array([[0.0, 0.0, 0.35]])
    nonsense = np.array([[0.0, 0.0, 1e300], [1.0, 1.0, 1e-300]])
    assert cameras([np.zeros((0, 3)), one], [np.zeros((0, 3)), Camera().pixels(one)]) == [Camera(), Camera()]
    assert cameras([nonsense, np.eye(3)], [nonsense, np.zeros((3, 3))]) == [None, None]
