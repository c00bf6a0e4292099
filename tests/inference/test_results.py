"""`nsfrc.infer`: the same rows, files and pages as the command gives, from Python."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import nsfrc
from nsfrc.errors import NsfrcError
from nsfrc.inference import images, predictor
from nsfrc.pipelines import Pipeline
from tests.cli.support import Run, arguments
from tests.inference.support import NO, ONE, SEVERAL, YES, install, labelled, save


@pytest.fixture
def here(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A folder with a program, the perception that reads pixels, and labelled images in d."""
    install(run.folder, monkeypatch)
    (run.folder / "rules.pl").write_text(ONE)
    labelled(run.folder / "d", 3)
    return run


def infer(given: object = "d", **options: object) -> nsfrc.Results:
    return nsfrc.infer(given, "rules.pl", perception="readable:Readable", trust=True, **options)  # type: ignore[arg-type]


def test_rows_come_while_they_are_asked_for(here: Run) -> None:
    results = infer(batch_size=2)
    assert len(results) == 6 and "0 answered so far" in repr(results)
    first = next(iter(results))
    assert (first.file, first.label, first.answer, first.right) == ("false/0.png", "false", "false", True)
    assert "2 answered so far" in repr(results)
    assert [row.file for row in results] == [row.file for row in results.rows] and results[-1].file == "true/2.png"
    assert results[0] is first and len(results[1:3]) == 2
    assert results.measures.accuracy == 1.0 and results.targets == ["kp(img)"] and results.warnings == ()
    assert results.settings["threshold"] == "0.5 by default"
    assert first.reason is not None and "color(obj1,red) 0.00" in first.reason and first.reasons[0].atom == "kp(img)"


def test_files_and_pages_are_those_of_the_command(here: Run) -> None:
    here.good(*arguments("--program", "rules.pl", "--out", "r.csv", "--report", "r.html"))
    here.good(*arguments("--program", "rules.pl", "--out", "r.jsonl"))
    results = infer()
    for name in ("r.csv", "r.jsonl", "r.html"):
        written = (results.report if name.endswith("html") else results.write)(f"own.{name}")
        assert written == Path(f"own.{name}") and written.read_bytes() == Path(name).read_bytes()
    with pytest.raises(NsfrcError, match=r"must end in \.csv or \.jsonl"):
        results.write("r.xlsx")
    assert not list(here.folder.glob("*.part*")) and not list(here.folder.glob(".*.lock"))


def test_each_image_is_decoded_once_and_explained_once(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()
    explained = []
    decoded, explain = images._decoded, predictor.explain
    monkeypatch.setattr(images, "_decoded", lambda *given: opened.update([str(given[1])]) or decoded(*given))
    monkeypatch.setattr(predictor, "explain", lambda *given: explained.append(1) or explain(*given))
    here.good(*arguments("--out", "r.jsonl", "--report", "r.html", "--json"))
    assert sorted(opened.values()) == [1] * 6 and len(explained) == 6
    opened.clear()
    results = infer()
    results.report("own.html")
    results.write("own.jsonl")
    results.report("again.html")
    assert sorted(opened.values()) == [1] * 6 and len(explained) == 12


def test_without_reasons(here: Run) -> None:
    results = infer(explain=False)
    assert results[0].reason is None and results[0].thumbnail is None
    with pytest.raises(NsfrcError, match="explain=True"):
        results.report("r.html")


def test_files_that_fail_are_rows(here: Run) -> None:
    (here.folder / "d" / "true" / "1.png").write_bytes(b"nothing")
    results = infer()
    assert [row.error is None for row in results] == [True] * 4 + [False, True]
    assert results.measures.failed == 1


def test_images_in_memory_and_on_disk(here: Run) -> None:
    path = save(here.folder / "a.png", YES)
    given = [path, path.read_bytes(), NO, Image.fromarray(YES), "d/false/0.png", b"no image", 3]
    results = infer(given)
    assert [(row.file, row.answer) for row in results] == [
        (str(path), "true"), ("image 2", "true"), ("image 3", "false"), ("image 4", "true"), ("d/false/0.png", "false"),
        ("image 6", None), ("image 7", None)]
    assert "not an image" in (results[5].error or "") and "a int is not an image" in (results[6].error or "")
    assert "data:image/" in results.report("r.html").read_text()
    assert infer(YES)[0].answer == "true" and len(infer(np.stack([YES, NO]))) == 2


def test_an_interruption_loses_no_rows(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    results = infer(batch_size=2)
    seen = iter(results)
    next(seen)
    call = Pipeline.predict

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Pipeline, "predict", stop)
    with pytest.raises(KeyboardInterrupt):
        list(seen)
    monkeypatch.setattr(Pipeline, "predict", call)
    assert [row.file for row in results] == [row.file for row in infer()]


def test_a_program_or_a_pipeline_that_is_there_already(here: Run) -> None:
    wanted = [row.scores for row in infer()]
    program = nsfrc.compile("rules.pl")
    assert [row.scores for row in nsfrc.infer("d", program, perception="readable:Readable", trust=True)] == wanted
    pipe = nsfrc.pipeline(program, "readable:Readable", trust=True)
    results = nsfrc.infer("d", pipe)
    assert [row.scores for row in results] == wanted and results.settings["program"] == "rules (as it was given)"
    with pytest.raises(NsfrcError, match="a pipeline has its perception"):
        nsfrc.infer("d", pipe, steps=3)


@pytest.mark.parametrize(("given", "options", "message"), [
    ("d", {"threshold": 1.5}, "threshold is a number from 0 to 1"), ("d", {"batch_size": 0}, "numbers, at least 1"),
    ("gone", {}, "cannot open the folder of images gone"), ("none", {}, "there are no images in none"),
    ([], {}, "the list is empty"), ("d", {"device": "abacus"}, "device 'abacus' cannot be used"),
])
def test_what_cannot_be(given: object, options: dict[str, object], message: str, here: Run) -> None:
    (here.folder / "none").mkdir()
    with pytest.raises(NsfrcError, match=message):
        infer(given, **options)


def test_threads_are_as_before(here: Run) -> None:
    import torch

    before = torch.get_num_threads()
    assert [row.scores for row in infer(threads=4)] == [row.scores for row in infer()]
    assert torch.get_num_threads() == before


def test_a_table(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NsfrcError, match="to_pandas needs pandas, which is not installed: pip install pandas"):
        infer().to_pandas()
    pandas = ModuleType("pandas")
    pandas.DataFrame = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    rows = infer().to_pandas()
    assert len(rows) == 6 and list(rows[0]) == ["file", "label", "score", "answer", "right", "error", "reason"]
    assert json.loads(json.dumps(rows[0]))["right"] is True
    (here.folder / "rules.pl").write_text(SEVERAL)
    assert list(infer("d/true/0.png").to_pandas()[0])[2:5] == ["warm(img)", "cold(img)", "odd(img)"]
