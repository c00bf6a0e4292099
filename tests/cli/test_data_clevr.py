"""`nsfrc data clevr`, `clevr-hans3` and `clevr-hans7`: folders of scenes, and of pictures that need Blender."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from nsfrc.data.clevr import layouts
from nsfrc.data.clevr import scene_folder as folder
from nsfrc.data.clevr.blender import Job, Quality
from nsfrc.data.clevr.making import scene
from nsfrc.data.clevr.scene_folder import Order
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from tests.cli.support import Run

SMALL = Quality(48, 32, 1)


class Renderer:
    """Stands for Blender: notes which pictures it makes, and fails from the number of them that it is told."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.last: int | None = None

    def __call__(self, jobs: Iterable[Job], quality: Quality, workers: int) -> Iterator[Job]:
        for job in jobs:
            if not job.path.exists():
                if len(self.made) == self.last:
                    raise KeyboardInterrupt
                self.made.append(job.path.name)
                write_whole(job.path, b"a picture")
            yield job


@pytest.fixture
def renderer(monkeypatch: pytest.MonkeyPatch) -> Renderer:
    made = Renderer()
    monkeypatch.setattr(folder, "check_blender", lambda: None)
    monkeypatch.setattr(folder, "rendered", made)
    return made


def told(out: Path) -> dict[str, list[str]]:
    """The images that each scenes file tells of."""
    return {file.name: [entry["image_filename"] for entry in json.loads(file.read_text())["scenes"]]
            for file in sorted(out.rglob("*.json"))}


def test_help_lists_all(run: Run) -> None:
    text = run.good("data", "--help")
    for name in ("kandinsky", "clevr", "clevr-crowded", "clevr-alike", "clevr-hans3", "clevr-hans7"):
        assert name in text.split("Commands:")[1].split("Examples:")[0]
        assert f"nsfrc data {name} " in run.good("data", name, "--help").split("Example")[1]
    assert "did you mean clevr?" in run.refused("data", "clever", "--out", "a")


def test_scenes_of_no_class(run: Run) -> None:
    said = run.good("data", "clevr", "--out", "a", "--count", "11", "--seed", "3", "--no-render", "--json")
    assert json.loads(said) == {"set": "clevr", "out": "a", "scenes": 11, "held": 11,
                                "splits": {"train": 10, "val": 1}, "seed": 3, "pictures": None}
    assert told(run.folder / "a") == {
        "CLEVR_train_scenes.json": [f"CLEVR_train_{i:06d}.png" for i in (*range(9), 10)],
        "CLEVR_val_scenes.json": ["CLEVR_val_000009.png"],
    }
    found = layouts.read(run.folder / "a", "val", images=False)
    assert found[0].scene.things == scene("clevr", 3, 9).things and found[0].scene.label is None


def test_scenes_of_classes(run: Run) -> None:
    said = run.good("data", "clevr-hans3", "--out", "a", "--count", "17", "--no-render")
    assert said == "17 scenes of clevr-hans3 in a (12 train, 3 val, 2 test), without pictures\n"
    assert told(run.folder / "a") == {
        f"CLEVR_HANS_scenes_{split}.json": [f"CLEVR_Hans_classid_{i % 3}_{i:06d}.png" for i in numbers]
        for split, numbers in (("test", (15, 16)), ("train", range(12)), ("val", range(12, 15)))
    }
    found = layouts.read(run.folder / "a", images=False)
    assert [entry.scene.label for entry in found if entry.split == "test"] == [0, 1]
    assert {entry.image.parent.parent.name for entry in found} == {"train", "val", "test"}


def test_one_scene(run: Run) -> None:
    said = run.good("data", "clevr-crowded", "--out", "c", "--count", "10", "--no-render")
    assert said == "10 scenes of clevr-crowded in c (9 train, 1 val), without pictures\n"
    said = run.good("data", "clevr", "--out", "a", "--count", "1", "--no-render")
    assert said == "1 scene of clevr in a (1 train), without pictures\n"


def test_a_scenes_file_is_parsed_once(tmp_path: Path, renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    list(folder.write(Order("clevr", 3), tmp_path))
    opened: list[str] = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path.name) or path.open("rb").read())
    list(folder.write(Order("clevr", 3), tmp_path))
    assert opened == ["CLEVR_train_scenes.json"]


def test_one_split(run: Run) -> None:
    run.good("data", "clevr-hans7", "--out", "a", "--count", "9", "--split", "test", "--no-render")
    names = [f"CLEVR_Hans_classid_{i % 7}_{i:06d}.png" for i in (*range(35, 42), 77, 78)]
    assert told(run.folder / "a") == {"CLEVR_HANS_scenes_test.json": names}
    assert "'test' is not one of 'train', 'val'" in run.refused("data", "clevr", "--out", "b", "--split", "test")


def test_same_seed_same_bytes(run: Run) -> None:
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        run.good("data", "clevr-hans3", "--out", out, "--count", "6", "--seed", str(seed), "--no-render")
    texts = {out: (run.folder / out / "train/CLEVR_HANS_scenes_train.json").read_bytes() for out in "abc"}
    assert texts["a"] == texts["b"] != texts["c"]


def test_ctrl_c_keeps_what_is_done(run: Run, renderer: Renderer) -> None:
    command = ("data", "clevr-hans3", "--out", "a", "--count", "8", "--size", "48x32", "--samples", "1")
    renderer.last = 3
    stopped = run(*command)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err == "stopped after 3 of 8 scenes, which are in a; the same command continues\n"
    assert len(told(run.folder / "a")["CLEVR_HANS_scenes_train.json"]) == 3

    renderer.last = None
    assert run.good(*command) == "8 scenes of clevr-hans3 in a (8 train), with pictures of 48x32\n"
    assert renderer.made == [f"CLEVR_Hans_classid_{i % 3}_{i:06d}.png" for i in range(8)]
    assert told(run.folder / "a")["CLEVR_HANS_scenes_train.json"] == renderer.made

    said = run.good(*command[:5], "5", *command[6:])
    assert said == ("5 scenes of clevr-hans3 in a (5 train), with pictures of 48x32; "
                    "the folder holds 8 scenes in all\n")
    assert len(renderer.made) == 8 and len(told(run.folder / "a")["CLEVR_HANS_scenes_train.json"]) == 8


def test_pictures_without_entries_are_taken_over(tmp_path: Path, renderer: Renderer) -> None:
    """As after a process that was killed between two writings of the scenes file."""
    order = Order("clevr", 4, quality=SMALL)
    list(folder.write(order, tmp_path))
    file = folder.scenes_file(tmp_path, "clevr", "train")
    whole = file.read_bytes()
    info = json.loads(whole)["info"]
    file.write_text(json.dumps({"info": info, "scenes": []}))
    folder.image_file(tmp_path, "clevr", 2).unlink()
    renderer.made.clear()
    assert list(folder.write(order, tmp_path)) == [0, 1, 2, 3]
    assert renderer.made == ["CLEVR_train_000002.png"]
    assert file.read_bytes() == whole


def test_the_folder_says_whose_it_is_before_the_first_picture(tmp_path: Path, renderer: Renderer) -> None:
    renderer.last = 0
    with pytest.raises(KeyboardInterrupt):
        next(folder.write(Order("clevr", 4, quality=SMALL), tmp_path))
    assert told(tmp_path) == {"CLEVR_train_scenes.json": []}


def test_scenes_get_pictures_later(tmp_path: Path, renderer: Renderer) -> None:
    list(folder.write(Order("clevr", 12), tmp_path))
    list(folder.write(Order("clevr", 5, quality=SMALL), tmp_path))
    assert [len(names) for names in told(tmp_path).values()] == [5, 0], "those without a picture are no longer told of"
    assert len(renderer.made) == 5
    with pytest.raises(NsfrcError, match=r"with pictures of 48x32 .*, and these would be .* without pictures"):
        list(folder.write(Order("clevr", 5), tmp_path))


@pytest.mark.parametrize("other", [
    Order("clevr-hans3", 2, 1, quality=SMALL), Order("clevr-hans7", 2, quality=SMALL),
    Order("clevr-hans3", 2, quality=Quality(96, 64, 1)), Order("clevr-hans3", 2, quality=Quality(48, 32, 2)),
])
def test_folders_are_not_mixed(tmp_path: Path, renderer: Renderer, other: Order) -> None:
    list(folder.write(Order("clevr-hans3", 2, quality=SMALL), tmp_path))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}
    with pytest.raises(NsfrcError, match=r"holds scenes of clevr-hans3 with seed 0.*: name another folder for them"):
        list(folder.write(other, tmp_path))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == before


def test_foreign_folders(run: Run) -> None:
    (run.folder / "b").mkdir()
    (run.folder / "b/mine.txt").write_text("")
    arguments = ("data", "clevr", "--no-render", "--out")
    assert "b holds other files: name an empty or new folder" in run.refused(*arguments, "b")
    assert "b/mine.txt is a file: name a folder" in run.refused(*arguments, "b/mine.txt")
    file = run.folder / "c/scenes/CLEVR_val_scenes.json"
    file.parent.mkdir(parents=True)
    for text, message in (('{"info": {"split": "val"}, "scenes": []}', "was not made by nsfrc data"),
                          ('{"info": 3, "scenes": []}', "was not made by nsfrc data"), ("{", "not JSON")):
        file.write_text(text)
        assert message in run.refused(*arguments, "c")
        assert file.read_text() == text


@pytest.mark.parametrize(("size", "message"), [
    ("320", "not a size such as 480x320"), ("100x100", "not 3 wide to 2 high"), ("0x0", "not a size such as 480x320"),
])
def test_sizes(run: Run, size: str, message: str) -> None:
    assert message in run.refused("data", "clevr", "--out", "a", "--size", size)


def test_without_blender(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "bpy" else found(name, *rest))
    assert "pip install 'nsfrc[clevr]'" in run.refused("data", "clevr-hans3", "--out", "a", "--count", "3")
    assert not (run.folder / "a").exists()
    run.good("data", "clevr-hans3", "--out", "a", "--count", "3", "--no-render")
