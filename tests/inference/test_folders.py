"""Which files are taken, in what order, and what folders mean."""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path

import pytest

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import folder, match_labels, printable


def make(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def names(root: Path) -> list[str]:
    return [item.name for item in folder(root)]


def test_images_in_order_and_nothing_else(tmp_path: Path) -> None:
    make(tmp_path, "10.png", "2.PNG", "b/a.jpg", "b/c/d.webp", "notes.txt", "rules.pl", "results.csv", ".hidden.png",
         ".git/e.png", "objects.json", "b/labels.html", "results.csv.part")
    assert names(tmp_path) == ["2.PNG", "10.png", "b/a.jpg", "b/c/d.webp"]
    assert all(item.path.is_file() and item.label is None for item in folder(tmp_path))
    assert folder(tmp_path).left_out() == []


def test_files_that_are_no_images_by_their_names_are_counted(tmp_path: Path) -> None:
    make(tmp_path, "a.png", "photo.mov")
    assert folder(tmp_path).left_out() == ["1 file does not have the name of an image and was left out: photo.mov"]
    make(tmp_path, "b/c/scan", "b/b.jpg", "a.JPG.bak", "b/z.mp4")
    found = folder(tmp_path)
    assert len(found) == 2 and found.left_out() == [
        "4 files do not have the names of images and were left out: a.JPG.bak, photo.mov, b/z.mp4 and 1 more"
    ]


def test_pictures_in_formats_that_are_not_read_are_told_apart(tmp_path: Path) -> None:
    make(tmp_path, "a.png", "photo.HEIC", "scan")
    unread = "in an unsupported format and was left out: photo.HEIC; convert it to PNG or JPEG"
    assert folder(tmp_path).left_out() == [
        "1 file does not have the name of an image and was left out: scan", f"1 file is {unread}"
    ]
    (tmp_path / "scan").unlink()
    make(tmp_path, "b/1.nef", "c.svg", "d.pdf")
    assert folder(tmp_path).left_out() == [
        "4 files are in unsupported formats and were left out: c.svg, d.pdf, photo.HEIC and 1 more; "
        "convert them to PNG or JPEG"
    ]


def test_one_file(tmp_path: Path) -> None:
    make(tmp_path, "figure")
    (item,) = folder(tmp_path / "figure")
    assert (item.name, item.path, item.label) == ("figure", tmp_path / "figure", None)
    assert list(folder(tmp_path / "figure").classes) == []


def test_labels_are_the_first_folder(tmp_path: Path) -> None:
    make(tmp_path, "true/a.png", "true/deep/b.png", "false/c.png", "objects.json")
    assert list(folder(tmp_path).classes) == ["false", "true"]
    assert [(i.name, i.label) for i in folder(tmp_path)] == [
        ("false/c.png", "false"), ("true/a.png", "true"), ("true/deep/b.png", "true"),
    ]


@pytest.mark.parametrize(("files", "classes"), [
    (["true/a.png"], ["true"]),
    (["class0/a.png", "class1/a.png", "class10/a.png"], ["class0", "class1", "class10"]),
    (["images/a.png"], []),
    (["true/a.png", "false/b.png", ".cache/b.png"], ["false", "true"]),
    (["images/train/a.png", "images/val/b.png", "scenes/CLEVR_val_scenes.json", "questions/c.json"], []),
    (["train/a.png", "test/b.png"], []),
])
def test_when_folders_are_classes(files: list[str], classes: list[str], tmp_path: Path) -> None:
    make(tmp_path, *files)
    assert list(folder(tmp_path).classes) == classes
    assert {i.label for i in folder(tmp_path)} == (set(classes) or {None})


def test_images_beside_class_folders_have_no_label(tmp_path: Path) -> None:
    make(tmp_path, "true/a.png", "false/b.png", "loose.png")
    found = folder(tmp_path)
    assert list(found.classes) == ["false", "true"] and found.loose == ["loose.png"]
    assert {i.name: i.label for i in found} == {"false/b.png": "false", "loose.png": None, "true/a.png": "true"}


@pytest.mark.parametrize(("folders", "targets", "matched"), [
    (["true", "false"], ["kp(img)"], {"true": "true", "false": "false"}),
    (["Positive", "neg", "1", "0", "other"], ["kp(img)"],
     {"Positive": "true", "neg": "false", "1": "true", "0": "false"}),
    (["class0", "class1"], ["a(img)", "b(img)", "c(img)"], {"class0": "a(img)", "class1": "b(img)"}),
    (["class1", "class2", "class3"], ["a(img)", "b(img)", "c(img)"],
     {"class1": "a(img)", "class2": "b(img)", "class3": "c(img)"}),
    (["class0", "class2"], ["a(img)", "b(img)", "c(img)"], {"class0": "a(img)", "class2": "c(img)"}),
    (["class1", "class2"], ["a(img)", "b(img)", "c(img)"], {}),  # from 0 or from 1?
    (["class0", "class7"], ["a(img)", "b(img)"], {}),
    (["class0", "class1", "extra"], ["a(img)", "b(img)"], {}),
    (["class0", "class00", "class1"], ["a(img)", "b(img)"], {}),
    (["cats0", "dogs1"], ["a(img)", "b(img)"], {}),
    (["b", "a(img)", "x"], ["a(img)", "b(img)"], {"b": "b(img)", "a(img)": "a(img)"}),
    (["kp1", "kp2"], ["kp1(img)", "kp2(img)", "kp3(img)"], {"kp1": "kp1(img)", "kp2": "kp2(img)"}),
    (["kp2", "kp1", "kp3"], ["kp3(img)", "kp2(img)", "kp1(img)"],
     {"kp2": "kp2(img)", "kp1": "kp1(img)", "kp3": "kp3(img)"}),
    (["kp0", "kp1"], ["kp1(img)", "kp2(img)"], {"kp1": "kp1(img)"}),
    (["has", "has(img,1)"], ["has(img,1)", "has(img,2)"], {"has(img,1)": "has(img,1)"}),
    ([], ["a(img)", "b(img)"], {}),
    (["class_id 1", "class_id 2"], ["a(img)", "b(img)", "c(img)"], {"class_id 1": "b(img)", "class_id 2": "c(img)"}),
    (["class_id 1", "class_id 2"], ["a(img)", "b(img)"], {"class_id 1": "b(img)"}),
    (["class_id 0", "class_id 9", "class_id 12345678901"], ["a(img)", "b(img)"], {"class_id 0": "a(img)"}),
    (["class_id 2", "class_id 3"], ["a(img)", "b(img)"], {}),
    (["class_id 0", "class_id 1"], ["kp(img)"], {}),
])
def test_match_labels(folders: list[str], targets: list[str], matched: dict[str, str]) -> None:
    assert match_labels(folders, targets) == matched


def hans(root: Path, *splits: str) -> Path:
    """A layout of CLEVR-Hans: two images a split, whose names do not say their classes."""
    for split in splits:
        make(root, f"{split}/images/a.png", f"{split}/images/b.png")
        scenes = [{"image_filename": "a.png", "class_id": 2}, {"image_filename": "b.png", "class_id": 0}]
        (root / split / f"CLEVR_HANS_scenes_{split}.json").write_text(json.dumps({"scenes": scenes}))
    return root


def labels(root: Path) -> dict[str, str | None]:
    return {item.name: item.label for item in folder(root)}


def test_classes_from_a_scenes_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hans(tmp_path, "train", "test")
    assert labels(tmp_path) == {
        "test/images/a.png": "class_id 2", "test/images/b.png": "class_id 0",
        "train/images/a.png": "class_id 2", "train/images/b.png": "class_id 0",
    }
    found = folder(tmp_path)
    assert found.classes == ("class_id 0", "class_id 2")
    assert found.source == "from CLEVR_HANS_scenes_test.json, CLEVR_HANS_scenes_train.json"
    assert labels(tmp_path / "test") == {"images/a.png": "class_id 2", "images/b.png": "class_id 0"}
    assert labels(tmp_path / "test/images") == {"a.png": "class_id 2", "b.png": "class_id 0"}
    monkeypatch.chdir(tmp_path / "test/images")
    assert labels(Path()) == {"a.png": "class_id 2", "b.png": "class_id 0"}
    assert found.without_class() is None


def test_images_that_the_scenes_file_does_not_have(tmp_path: Path) -> None:
    make(hans(tmp_path, "val"), "val/images/c.png", "val/images/CLEVR_Hans_classid_1_000000.png")
    found = folder(tmp_path / "val")
    assert [item.label for item in found] == [None, "class_id 2", "class_id 0", None]
    assert found.without_class() == "2 images have no class (from CLEVR_HANS_scenes_val.json) and so no label"


def test_a_damaged_scenes_file_is_no_folder_without_labels(tmp_path: Path) -> None:
    hans(tmp_path, "val")
    path = tmp_path / "val/CLEVR_HANS_scenes_val.json"
    path.write_text('{"scenes": [{"image_filename": "a.png", "class_id": -1}]}')
    with pytest.raises(NsfrcError, match=r"CLEVR_HANS_scenes_val.json: scene 0: class_id is -1"):
        folder(tmp_path)
    path.write_text("{")
    with pytest.raises(NsfrcError, match=r"CLEVR_HANS_scenes_val.json:1:2: not JSON"):
        folder(tmp_path / "val/images")


def test_classes_from_names(tmp_path: Path) -> None:
    make(tmp_path, "train/images/CLEVR_Hans_classid_0_000000.png", "train/images/CLEVR_Hans_classid_11_000003.png",
         "train/images/other.png", "val/images/CLEVR_Hans_classid_0_000000.png")
    found = folder(tmp_path)
    assert [item.label for item in found] == ["class_id 0", "class_id 11", None, "class_id 0"]
    assert (found.classes, found.source) == (("class_id 0", "class_id 11"), "from the file names")
    assert found.without_class() == "1 image has no class (from the file names) and so no label"


def test_one_image_has_the_class_that_it_has_in_its_folder(tmp_path: Path) -> None:
    make(hans(tmp_path, "val"), "alone/CLEVR_Hans_classid_3_000000.png", "beside/a.png")
    (tmp_path / "beside/CLEVR_HANS_scenes_test.json").write_text(
        '{"scenes": [{"image_filename": "a.png", "class_id": 1}]}'
    )
    for image, label, source in (
        ("alone/CLEVR_Hans_classid_3_000000.png", "class_id 3", "from the file names"),
        ("val/images/a.png", "class_id 2", "from CLEVR_HANS_scenes_val.json"),
        ("beside/a.png", "class_id 1", "from CLEVR_HANS_scenes_test.json"),
    ):
        found = folder(tmp_path / image)
        assert [(item.name, item.label) for item in found] == [(Path(image).name, label)]
        assert (found.classes, found.source) == ((label,), source)


def test_class_folders_come_before_names(tmp_path: Path) -> None:
    make(tmp_path, "false/CLEVR_Hans_classid_0_000000.png", "true/CLEVR_Hans_classid_1_000000.png")
    found = folder(tmp_path)
    assert found.classes == ("false", "true") and found.source == "class folders"
    assert [item.label for item in found] == ["false", "true"]


def test_links(tmp_path: Path) -> None:
    make(tmp_path / "there", "a.png")
    make(tmp_path / "here", "b.png")
    (tmp_path / "here" / "linked").symlink_to(tmp_path / "there")
    (tmp_path / "here" / "back").symlink_to(tmp_path / "here")
    (tmp_path / "here" / "dead.png").symlink_to(tmp_path / "nowhere")
    assert names(tmp_path / "here") == ["b.png", "dead.png", "linked/a.png"]


def test_folders_that_link_to_each_other_are_entered_once_and_keep_their_names(tmp_path: Path) -> None:
    folders = ("false", "true", "z.png")
    for name in folders:
        make(tmp_path, f"{name}/image.png")
        for other in folders:
            (tmp_path / name / f"a-{other}").symlink_to(tmp_path / other)
    (tmp_path / "again.png").symlink_to(tmp_path / "true")  # no image, whatever its name
    assert [(i.name, i.label) for i in folder(tmp_path)] == [(f"{name}/image.png", name) for name in folders]


def test_deep_folders(tmp_path: Path) -> None:
    depth, limit = 150, sys.getrecursionlimit()
    make(tmp_path, "d/" * depth + "a.png")
    frames = len(inspect.stack(0))
    sys.setrecursionlimit(frames + 100)
    try:
        found = names(tmp_path)
    finally:
        sys.setrecursionlimit(limit)
    assert found == ["d/" * depth + "a.png"]


def test_each_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "true/a.png", "false/b.png")
    scandir, listed = os.scandir, []

    def counting(path: Path) -> object:
        listed.append(Path(path).name)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counting)
    found = folder(tmp_path)
    assert len(found) == len(list(found)) == len(list(found)) == 2 and found.classes == ("false", "true")
    assert sorted(listed) == sorted([tmp_path.name, "false", "true"])


def test_folders_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.png", "locked/b.png", "z.png")
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = list(folder(tmp_path))
    assert [(i.name, i.error) for i in found] == [
        ("a.png", None), ("locked", "cannot open the folder: Permission denied"), ("z.png", None),
    ]
    with pytest.raises(NsfrcError, match=r"cannot open the folder of images .*gone: No such file"):
        folder(tmp_path / "gone")


def test_names_are_one_printable_line(tmp_path: Path) -> None:
    assert printable("a\nb\x1b[31m.png") == "a\\nb\\x1b[31m.png"
    assert printable(os.fsdecode(b"caf\xe9.png")) == "caf\\xe9.png"
    assert printable("Größe 1.png") == "Größe 1.png"
    assert printable("\ud83d.png\udfff") == "\\ud83d.png\\udfff"  # JSON may hold halves of characters
    (tmp_path / "a\nb.png").touch()
    (tmp_path / "a\\nb.png").touch()
    assert sorted(names(tmp_path)) == ["a\\\\nb.png", "a\\nb.png"]


def test_printable_names_never_coincide() -> None:
    byte = os.fsdecode(b"\x85")
    different = ["\n", "\\n", "\\\n", byte, "\x85", "\\x85", "\\u0085", "\U000e0001", "\ue0001", "\\\\x85"]
    assert len({printable(name) for name in different}) == len(different)
    assert all(printable(name).isprintable() for name in different)
