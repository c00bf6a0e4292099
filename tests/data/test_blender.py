"""Pictures of scenes by Blender, and what is said where it fails."""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from PIL import Image

from nsfrc.data.clevr import blender
from nsfrc.data.clevr.making import free
from nsfrc.data.clevr.outlines import boxes
from nsfrc.data.clevr.scenes import Scene
from nsfrc.errors import NsfrcError
from nsfrc.perception.camera import Camera
from tests.data.test_clevr import USUAL, at

SCENE = free(11, 0)


def test_without_blender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NsfrcError, match=r"pip install 'nsfrc\[clevr\]', or .* --no-render"):
        next(blender.rendered([], blender.Quality()), None)


def test_a_bpy_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    jobs = [blender.Job(Scene((), USUAL), tmp_path / f"{i}.png", (i,)) for i in range(6)]
    for text, message in (
        ("raise ImportError('libXi.so.6: cannot open')", "bpy package, which cannot be imported: libXi.so.6: "),
        ("", "Blender cannot be set up: module 'bpy' has no attribute 'ops'"),
    ):
        (tmp_path / "bpy.py").write_text(text)
        importlib.invalidate_caches()
        with pytest.raises(NsfrcError, match=f"{message}.*; --no-render makes scenes without pictures$"):
            list(blender.rendered(jobs, blender.Quality()))
    assert capfd.readouterr() == ("", "")


def test_a_blender_that_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However soon it does: the pool refuses new pictures from then on."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bpy.py").write_text("import os\nos._exit(3)")

    def jobs() -> Iterator[blender.Job]:
        for i in range(2):
            yield blender.Job(Scene((), USUAL), tmp_path / f"{i}.png", (i,))
            for process in multiprocessing.active_children():
                process.join()
            time.sleep(0.2)

    with pytest.raises(NsfrcError, match=r"Blender stopped while it made .*\.png: try again with fewer --workers"):
        list(blender.rendered(jobs(), blender.Quality()))


@pytest.mark.parametrize("failing", ["read", "place"])
def test_a_failed_picture_leaves_nothing_on_the_stage(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bpy, stage, there = MagicMock(), MagicMock(), []
    bpy.data.objects.new.side_effect = lambda name, mesh: MagicMock()
    bpy.data.objects.remove.side_effect = there.remove
    stage.collection.objects.link.side_effect = there.append
    monkeypatch.setitem(sys.modules, "bpy", bpy)
    monkeypatch.setattr(blender, "_stage", {"scene": stage, "meshes": MagicMock(), "materials": MagicMock()})
    monkeypatch.setattr(blender, "_towards_origin", lambda place: None)
    seen: list[int] = []

    def fail(*_: object, **__: object) -> None:
        seen.append(len(there))
        raise OSError("No space left on device")

    if failing == "read":
        bpy.ops.render.render.side_effect = fail
    else:
        blender._stage["meshes"].__getitem__.side_effect = [None, None, KeyError("mesh")]
    with pytest.raises((OSError, KeyError)):
        blender._render(blender.Job(SCENE, tmp_path / "a.png", (1,)))
    assert there == [] and stage.collection.objects.link.call_count == (len(SCENE.things) if seen else 2)
    assert not (tmp_path / "a.png").exists()


@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="needs Blender: pip install 'nsfrc[clevr]'")
def test_pictures_show_things_where_they_are(tmp_path: Path) -> None:
    camera = Camera((7.2, -6.9, 5.6))
    red = at(-1.2, 1.0, camera, shape="sphere", size="large", color="red")
    others = (at(1.5, 0.5, camera, shape="cube", size="large", color="blue"),)
    jobs = [blender.Job(Scene(things, camera), tmp_path / file, (3,))
            for things, file in ((others, "a.png"), ((red, *others), "b.png"))]
    done = blender.rendered(jobs, blender.Quality(96, 64, 2))
    assert [job.path.name for job in done] == ["a.png", "b.png"]
    without, with_it = (np.asarray(Image.open(job.path).convert("RGB")).astype(int) for job in jobs)
    assert with_it.shape == (64, 96, 3)

    x, y, _ = Scene((red,), camera).pixels[0] / 5
    r, g, b = with_it[int(y), int(x)]
    assert r > 1.5 * max(g, b)
    floor = without[int(y), int(x)]
    assert np.ptp(floor) < 12 and 60 < floor.mean() < 220

    redness = [picture[..., 0] - picture[..., 1:].max(axis=-1) for picture in (without, with_it)]
    rows, columns = np.nonzero(redness[1] - redness[0] > 25)
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert found == pytest.approx(boxes([red], camera)[0] * (96, 64, 96, 64), abs=2)

    before = jobs[0].path.stat().st_mtime_ns
    assert len(list(blender.rendered(jobs[:1], blender.Quality(96, 64, 2)))) == 1
    assert jobs[0].path.stat().st_mtime_ns == before, "a picture that is there is not made again"
