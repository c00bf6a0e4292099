"""`nsfrc data kandinsky`: folders of figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from nsfrc.cli import cli
from nsfrc.data import figure_folder as folder
from nsfrc.data.kandinsky import figure
from nsfrc.data.render import render
from nsfrc.errors import NsfrcError


def run(*arguments: object) -> str:
    return CliRunner().invoke(cli, ["data", "kandinsky", *map(str, arguments)], catch_exceptions=False).output


def test_folder_of_a_pattern(tmp_path: Path) -> None:
    said = run("closeby", "--out", tmp_path / "a", "--count", 9, "--seed", 3, "--json")
    assert json.loads(said) == {"pattern": "closeby", "out": str(tmp_path / "a"), "figures": 9, "seed": 3}
    told = json.loads((tmp_path / "a/objects.json").read_text())
    assert (told["pattern"], told["seed"], len(told["figures"])) == ("closeby", 3, 9)
    for i, entry in enumerate(told["figures"]):
        made = figure("closeby", 3, i)
        assert entry["file"] == f"{str(i % 2 == 0).lower()}/{i:06d}.png" and entry["label"] == (i % 2 == 0)
        assert [o["shape"] for o in entry["objects"]] == [s.shape for s in made.figure.shapes]
        pixels = np.asarray(Image.open(tmp_path / "a" / entry["file"]))
        assert np.array_equal(pixels, render(made.figure))


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run("free", "--out", tmp_path / name, "--count", 5, "--seed", seed)
    contents = {name: [p.read_bytes() for p in sorted((tmp_path / name).rglob("*.*"))] for name in "abc"}
    assert len(contents["a"]) == 11
    assert contents["a"] == contents["b"] != contents["c"]


def test_boxes_of_pattern_free_figures(tmp_path: Path) -> None:
    run("free", "--out", tmp_path / "a", "--count", 2)
    lines = (tmp_path / "a/labels/000001.txt").read_text().splitlines()
    shapes = figure("free", 0, 1).figure.shapes
    assert len(lines) == len(shapes)
    kind, x, _, width, height = map(float, lines[0].split())
    assert (x, width) == pytest.approx((shapes[0].x, shapes[0].size), abs=1e-6)
    assert height <= width and kind in range(9)


def test_stopping_keeps_what_is_done(tmp_path: Path) -> None:
    figures = folder.write("twopairs", tmp_path / "a", 10, 0)
    for _ in range(3):
        next(figures)
    figures.close()
    assert len(json.loads((tmp_path / "a/objects.json").read_text())["figures"]) == 3
    assert "10 figures" in run("twopairs", "--out", tmp_path / "a", "--count", 10)
    run("twopairs", "--out", tmp_path / "a", "--count", 4)
    told = json.loads((tmp_path / "a/objects.json").read_text())["figures"]
    assert sorted(entry["file"] for entry in told) == sorted(
        p.relative_to(tmp_path / "a").as_posix() for p in (tmp_path / "a").rglob("*.png")
    )


@pytest.mark.parametrize(("pattern", "message"), [
    ("twopiars", "did you mean twopairs?"), ("zzz", "there are twopairs, threepairs"),
])
def test_unknown_pattern(tmp_path: Path, pattern: str, message: str) -> None:
    with pytest.raises(NsfrcError, match="no pattern called") as error:
        run(pattern, "--out", tmp_path)
    assert message in str(error.value)


def test_folders_are_not_mixed(tmp_path: Path) -> None:
    run("red-triangle", "--out", tmp_path / "a", "--count", 2)
    with pytest.raises(NsfrcError, match="holds figures of red_triangle with seed 0"):
        run("red-triangle", "--out", tmp_path / "a", "--count", 2, "--seed", 1)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/mine.txt").write_text("")
    with pytest.raises(NsfrcError, match="holds other files"):
        run("closeby", "--out", tmp_path / "b")
    with pytest.raises(NsfrcError, match="is a file"):
        run("closeby", "--out", tmp_path / "b/mine.txt")
