"""Folders of results: whose they are, what goes on, and what a summary says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nsfrc.errors import NsfrcError
from nsfrc.ray.dest import MANIFEST, open_dest, parts_in, read_manifest
from nsfrc.ray.places import Place
from nsfrc.ray.run import block_size
from nsfrc.ray.sampled import report_of_sample, sampled
from nsfrc.ray.summary import digest_and_rows
from tests.cli.support import Run, arguments, json_lines
from tests.inference.support import PERCEPTION
from tests.ray.conftest import IMAGES
from tests.ray.support import answer_here

ASK = ("infer", "--ray", "local", "--images", "d", "--program", "rules.pl", *PERCEPTION)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_a_summary_says_what_one_machine_says(here: Run, kind: str) -> None:
    answer_here("d", here.folder / "out", kind)
    told = json.loads(here.good("summarise", "out", "--json"))
    alone = json_lines(here(*arguments("--json", "--quiet")).out)[1]
    for name in ("images", "failed", "answers", "right", "accuracy", "confusion", "best_threshold"):
        assert told[name] == alone[name], name
    assert told["calibration_error"] == pytest.approx(alone["calibration_error"], abs=1e-12)
    assert told["images"] == 2 * IMAGES + 2 and told["failed"] == 2 and told["missing"] == 0
    text = here.good("summarise", "out", "--fit-threshold")
    assert f"accuracy {alone['accuracy']:.2%}" in text and ":- threshold(" in text


def test_a_summary_of_a_part_of_the_rows_says_so(here: Run) -> None:
    answer_here("d", here.folder / "out")
    (here.folder / "out/part-000001.parquet").unlink()
    assert "1 of 5 parts are not there yet" in here("summarise", "out").err
    (here.folder / "out/part-000002.parquet").write_bytes(b"PAR1 and no more")
    assert "part-000002.parquet is cut short, damaged or not a part" in here.refused("summarise", "out")
    assert "has no _manifest.json" in here.refused("summarise", "d")
    (here.folder / "out" / MANIFEST).write_text('{"nsfrc": 1}')
    assert "_manifest.json is damaged" in here.refused("summarise", "out")


def test_a_part_that_is_not_whole_is_not_taken_for_one(here: Run) -> None:
    answer_here("d", here.folder / "out")
    dest = Place.of(here.folder / "out")
    manifest = read_manifest(dest)
    part = dest.below("part-000000.parquet")
    found = digest_and_rows(part, manifest)
    assert found is not None and found["rows"] == 9
    part.write(part.read()[:-30])
    assert digest_and_rows(part, manifest) is None
    assert list(parts_in(dest, "parquet")) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("change", "told"), [
    ({"program": "rules 00000000"}, "was made with program rules"),
    ({"perception": "readable:Readable other"}, "was made with perception"),
    ({"threshold": "0.9"}, "was made with threshold 0.5, and now it is 0.9"),
])
def test_rows_of_something_else_are_not_gone_on_with(here: Run, change: dict[str, str], told: str) -> None:
    from dataclasses import replace

    answer_here("d", here.folder / "out")
    dest = Place.of(here.folder / "out")
    manifest = read_manifest(dest)
    other = replace(manifest, made_with={**manifest.made_with, **change})
    with pytest.raises(NsfrcError, match=told):
        open_dest(dest, other, resume=True)
    with pytest.raises(NsfrcError, match="images of other names"):
        open_dest(dest, replace(manifest, source="another"), resume=True)
    again = open_dest(dest, replace(manifest, block_size=1000), resume=True)
    assert again.earlier and again.manifest.block_size == 9
    with pytest.raises(NsfrcError, match="is being written by another run"):
        open_dest(dest, manifest, resume=True)
    again.close()


def test_places_that_are_refused_before_ray_starts(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsfrc.ray.cluster._connect", lambda *_: pytest.fail("Ray was started"))
    assert "d is not empty and has no _manifest.json of nsfrc" in here.refused(*ASK, "--out", "d")
    assert "is a file: with --ray, rows go to a folder" in here.refused(*ASK, "--out", "rules.pl")
    assert "give --out FOLDER" in here.refused(*ASK)
    answer_here("d", here.folder / "out")
    assert "has the rows of an earlier run: --resume" in here.refused(*ASK, "--out", "out")
    assert "leave out --why" in here.refused(*ASK, "--out", "new", "--why")
    assert "add --quiet" in here.refused(*ASK, "--out", "new", "--json")
    assert "--cpus-per-worker" in here.refused(*ASK, "--out", "new", "--threads", "2")
    assert "--gpus-per-worker" in here.refused(*ASK, "--out", "new", "--device", "cuda")
    assert "--workers belongs to --ray" in here.refused(*arguments("--workers", "2"))
    assert "is reached with --ray" in here.refused("infer", "--images", "s3://bucket/x", *PERCEPTION)
    text = Path("rules.pl").read_text().replace(":- semantics(paper).", "")
    Path("rules.pl").write_text(text.replace("slots(2)", "slots(auto)"))
    assert "--slots object=10" in here.refused(*ASK, "--out", "new")
    assert not (here.folder / "new").exists()


def test_a_cluster_that_is_not_there(here: Run) -> None:
    asked = [one if one != "local" else "127.0.0.1:1" for one in ASK]
    assert "there is no Ray at 127.0.0.1:1 (Connection refused)" in here.refused(*asked, "--out", "new")
    asked[2] = "nonsense"
    assert "--ray nonsense: not an address; give host:port" in here.refused(*asked, "--out", "new")


def test_a_folder_that_cannot_be_written(here: Run) -> None:
    answer_here("d", here.folder / "out")
    manifest = read_manifest(Place.of(here.folder / "out"))
    with pytest.raises(NsfrcError, match=r"cannot write .* name a folder that you can write to"):
        open_dest(Place.of(here.folder / "rules.pl" / "out"), manifest, resume=False)


def test_no_ray_installed(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert 'pip install "nsfrc[ray]"' in here.refused(*ASK, "--out", "new")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 'pip install "nsfrc[ray]"' in here.refused("summarise", "out")


def test_a_report_of_a_sample_says_that_it_is_one(here: Run) -> None:
    source, session = answer_here("d", here.folder / "out")
    assert len(sampled(source, 1000)) == len(source) == 2 * IMAGES + 2
    assert len({item.name for item in sampled(source, 10)}) == 10
    page = report_of_sample(session, source, here.folder / "r.html", 10).read_text()
    assert "10 of 42 images, from all over" in page and "this page shows a sample" in page
    whole = report_of_sample(session, source, here.folder / "s.html", 1000).read_text()
    assert "this page shows a sample" not in whole


def test_blocks_are_whole_pieces() -> None:
    assert [block_size(n, w) for n, w in ((1, 1), (400, 1), (400, 2), (20_000, 2), (10_000_000, 100))] == [
        32, 64, 32, 1280, 2048]
