"""Real workers of a real Ray on this machine: rows once each, gone on with, and beside a pipeline of one's own."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nsfrc.errors import NsfrcError
from tests.cli.support import Run, arguments
from tests.inference.support import PERCEPTION
from tests.ray.conftest import IMAGES
from tests.ray.support import lines_of

ASK = ("infer", "--ray", "local", "--images", "d", "--program", "rules.pl", *PERCEPTION, "--quiet")
ALL = 2 * IMAGES + 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray on the loopback address, for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        import ray

        ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False,
                 logging_level=logging.ERROR, object_store_memory=100_000_000)
        yield
        ray.shutdown()


def test_rows_once_each_and_the_rest_with_resume(here: Run, cluster: None) -> None:
    here(*arguments("--out", "one.jsonl", "--quiet"))
    alone = sorted(Path("one.jsonl").read_text().splitlines())
    out = f"file://{here.folder}/out"  # an address, as a bucket has
    ended = here(*ASK, "--out", out, "--format", "jsonl", "--block-size", "5", "--workers", "2", "--report", "r.html")
    assert ended.code == 1 and "2 of 42 files gave no answer" in ended.err
    assert "42 images in" in ended.err and "with 2 workers" in ended.err
    assert lines_of(here.folder / "out") == alone
    manifest = json.loads(Path("out/_manifest.json").read_text())
    assert manifest["complete"] and sum(one["rows"] for one in manifest["parts"].values()) == ALL
    assert Path("r.html").exists()

    # As if the driver had died: a part is missing, another was cut short by a disk, a file was not renamed yet.
    Path("out/part-000003.jsonl").unlink()
    Path("out/part-000005.jsonl").write_bytes(Path("out/part-000005.jsonl").read_bytes()[:-200])
    Path("out/.part-000006.jsonl.abcd").write_text("half")
    kept = {path: path.stat().st_mtime_ns for path in Path("out").glob("part-*")}
    kept.pop(Path("out/part-000005.jsonl"))
    ended = here(*ASK, "--out", "out", "--format", "jsonl", "--resume")
    assert "has 32 of 42 rows already" in ended.err
    assert f"{ALL} images: {IMAGES} true, {IMAGES} false, 2 failed" in ended.out
    assert lines_of(here.folder / "out") == alone
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert not Path("out/.part-000006.jsonl.abcd").exists()


def test_a_failure_of_a_worker_is_a_message(here: Run, cluster: None) -> None:
    from tests.inference.support import pixels, save, thing

    save(here.folder / "d/true/7.png", pixels(thing(red=1), stop=True))
    asked = [one if one != "readable:Readable" else "readable:Failing" for one in ASK]
    told = here.refused(*asked, "--out", "out")
    assert "perception readable:Failing" in told and "RuntimeError: no such luck" in told


def test_map_batches(here: Run, cluster: None) -> None:
    import ray.data

    from nsfrc.ray import map_batches

    files = [str(path) for path in sorted(Path("d").absolute().rglob("*.png"))]
    given = ray.data.from_items([{"path": path, "bytes": Path(path).read_bytes(), "n": i} for i, path in
                                 enumerate(files)])
    options = {"perception": "readable:Readable", "trust": True, "workers": 1}
    found = {row["n"]: row for row in map_batches(given, "rules.pl", explain=True, **options).take_all()}
    here(*arguments("--out", "one.jsonl", "--quiet"))
    alone = {row["file"]: row for row in map(json.loads, Path("one.jsonl").read_text().splitlines())}
    assert len(found) == len(files) and "bytes" not in found[0]
    for i, path in enumerate(files):
        for name in ("score", "answer", "error", "reason"):
            assert found[i][name] == alone[os.path.relpath(path, "d")][name]
    with pytest.raises(NsfrcError, match="would take all 3 CPUs"):
        map_batches(given, "rules.pl", **{**options, "workers": 3})
    with pytest.raises(NsfrcError, match=r"takes a ray\.data\.Dataset, not a list"):
        map_batches(files, "rules.pl", **options)  # type: ignore[arg-type]


def test_room_for_workers(cluster: None) -> None:
    from nsfrc.ray.cluster import Wanted, connected

    with connected(Wanted(workers=8)) as ready:
        assert ready.workers == 2 and "room for 2 of 8 workers" in str(ready.remark)
    with pytest.raises(NsfrcError, match=r"Ray has 0 GPUs, too little for a worker with 1 CPU and 0.5 GPU"), \
            connected(Wanted(gpus=0.5)):
        pass
    with pytest.raises(NsfrcError, match="Ray has 3 CPUs"), connected(Wanted(cpus=3)):
        pass
