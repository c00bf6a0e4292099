"""`nsfrc infer`: folders in, answers out."""

from __future__ import annotations

import json
import os
import signal
import warnings

import pytest
import torch
from PIL import Image

from nsfrc.inference import run
from nsfrc.inference.report import Report
from nsfrc.inference.rows import Row
from tests.cli.support import Run, arguments, csv_rows, json_lines
from tests.inference.support import DIMENSIONS, NO, ONE, PERCEPTION, YES, labelled, pixels, save, thing


def test_compile_then_infer(here: Run) -> None:
    labelled(here.folder / "d")
    here.good("compile", "rules.pl")
    out = here.good(*arguments())
    lines = out.splitlines()
    assert lines[0].split(None, 1) == ["program", "rules.nsfrc (the only compiled program here)"]
    assert lines[1].startswith("perception  readable:Readable:") and lines[1].endswith("(from --perception)")
    assert lines[2:4] == ["steps       4 by default", "threshold   0.5 by default"]
    assert lines[4].startswith("no objects  an empty image scores 0.0")
    assert lines[6].split() == ["file", "score", "answer"]
    assert lines[7].split()[::2] == ["false/0.png", "false"] and lines[7].endswith("right")
    assert "accuracy 100.00% (6 of 6)" in out and "calibration" in out


def test_wrong_answers_are_marked(here: Run) -> None:
    labelled(here.folder / "d", 2)
    save(here.folder / "d" / "false" / "x.png", YES)
    out = here.good(*arguments())
    (line,) = (line for line in out.splitlines() if "WRONG" in line)
    assert line.startswith("false/x.png") and line.endswith("true    WRONG, it is false")
    assert "accuracy 80.00% (4 of 5)" in out
    confusion = out.splitlines()[out.splitlines().index("label \\ answer".ljust(16) + "      true     false"):][1:3]
    assert [line.split() for line in confusion] == [["true", "2", "0"], ["false", "1", "2"]]


def test_settings_say_where_they_came_from(here: Run) -> None:
    labelled(here.folder / "d", 1)
    (here.folder / "rules.pl").write_text(ONE + ":- threshold(0.25). :- steps(3). :- perception('readable:Readable').")
    trusted = "infer", "--images", "d", "--program", "rules.pl", "--trust"
    out = here.good(*trusted)
    assert "steps       3 from the program" in out and "threshold   0.25 from the program" in out
    assert "(from the program)" in out
    out = here.good(*trusted, "--threshold", "0.9", "--steps", "2")
    assert "rules.pl (from --program)" in out
    assert "steps       2 from --steps" in out and "threshold   0.9 from --threshold" in out


def test_the_threshold_decides(here: Run) -> None:
    save(here.folder / "d" / "a.png", pixels(thing(red=0.7, triangle=1)))
    for threshold, answer in (("0.6", "true"), ("0.8", "false")):
        rows, _ = json_lines(here.good(*arguments("--json", "--threshold", threshold)))
        assert rows[0]["answer"] == answer and rows[0]["score"] == pytest.approx(0.7, abs=0.02)


def test_files_that_are_no_images_by_their_names_are_remarked(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    for name in ("film.mov", "photo.heic", "scan", "notes.txt"):
        (here.folder / "d" / name).touch()
    result = here(*arguments())
    assert result.code == 0
    assert "warning: 2 files do not have the names of images and were left out: film.mov, scan\n" in result.err
    unread = "1 file is in an unsupported format and was left out: photo.heic; convert it to PNG or JPEG\n"
    assert f"warning: {unread}" in result.err
    (here.folder / "d" / "a.png").unlink()
    message = here.refused(*arguments())
    assert "and others); 2 files do not have the names of images" in message and f"; {unread}" in message


def test_names_that_are_no_unicode(here: Run) -> None:
    """Standard output refuses what is no UTF-8."""
    odd = os.fsdecode(b"caf\xe9")
    for name in ("d", f"{odd}d"):
        save(here.folder / name / f"{odd}.png", YES)
    (here.folder / "rules.pl").rename(here.folder / f"{odd}.pl")
    written = ("--out", f"{odd}.csv", "--report", f"{odd}.html")
    out = here.good("infer", "--images", f"{odd}d", *PERCEPTION, *written)
    assert "program     caf\\xe9.pl (the only program here)" in out
    assert "written to caf\\xe9.csv\nwritten to caf\\xe9.html\n" in out
    assert (here.folder / f"{odd}.html").exists()
    here.good(*arguments("--json", *written))


def test_pillow_is_quiet(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(here.folder / "d" / "a.png", YES)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", YES.shape[0] * YES.shape[1] - 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        here.good(*arguments())
    assert not [one for one in said if issubclass(one.category, Image.DecompressionBombWarning)]


def test_files_that_fail_are_rows_and_the_rest_goes_on(here: Run) -> None:
    labelled(here.folder / "d", 1)
    (here.folder / "d" / "true" / "bad.png").write_text("no image")
    (here.folder / "d" / "true" / "empty.jpg").touch()
    (here.folder / "d" / "notes.txt").write_text("not looked at")
    result = here(*arguments("--out", "r.csv"))
    assert result.code == 1 and "Traceback" not in result.err
    assert "error: 2 of 4 files gave no answer: true/bad.png (not an image" in result.err
    assert "failed: not an image" in result.out and "accuracy 100.00% (2 of 2)" in result.out
    rows = csv_rows(here.folder / "r.csv")
    assert [bool(r["error"]) for r in rows] == [False, False, True, True]
    assert all(r["score"] == r["answer"] == "" for r in rows[2:])


def test_only_failures(here: Run) -> None:
    (here.folder / "d").mkdir()
    for i in range(5):
        (here.folder / "d" / f"{i}.png").touch()
    assert "5 of 5 files gave no answer: 0.png" in (message := here.refused(*arguments()))
    assert "and 2 more" in message


def test_json(here: Run) -> None:
    labelled(here.folder / "d", 1)
    rows, summary = json_lines(here.good(*arguments("--json")))
    assert [(r["file"], r["label"], r["answer"], r["error"]) for r in rows] == [
        ("false/0.png", "false", "false", None), ("true/0.png", "true", "true", None),
    ]
    assert len(rows[0]["objects"]) == 2 and len(rows[0]["objects"][0]) == 11
    assert summary["accuracy"] == 1.0 and summary["settings"]["threshold"] == "0.5 by default"
    assert list(DIMENSIONS) == summary["dimensions"] == rows[0]["dimensions"]
    assert rows[0]["reason"].startswith("kp(img) 0.") and "missing color(obj1,red) 0.00" in rows[0]["reason"]
    assert "because in(obj1,img) 1.00, color(obj1,red) 1.00" in rows[1]["reason"]
    assert summary["best_threshold"]["accuracy"] == 1.0


def test_rows_in_a_file_have_the_reason(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    here.good(*arguments("--out", "r.jsonl"))
    (row,) = map(json.loads, (here.folder / "r.jsonl").read_text().splitlines())
    assert "because in(obj1,img) 1.00" in row["reason"] and row["dimensions"] == list(DIMENSIONS)


def test_the_score_of_an_empty_image(here: Run) -> None:
    save(here.folder / "d" / "a.png", pixels())
    rows, summary = json_lines(here.good(*arguments("--json")))
    assert summary["empty_scores"] == {"kp(img)": rows[0]["score"]} and 0 < rows[0]["score"] < 0.1
    here.good(*arguments("--report", "r.html"))
    assert f"an empty image scores {rows[0]['score']:.2f}" in (here.folder / "r.html").read_text()


def test_quiet(here: Run) -> None:
    save(here.folder / "d" / "a.png", NO)
    assert here.good(*arguments("--quiet")) == "1 image: 1 false\n"
    rows, summary = json_lines(here.good(*arguments("--quiet", "--json")))
    assert rows == [] and summary["images"] == 1


def test_long_tables_are_cut(here: Run) -> None:
    labelled(here.folder / "d", 21)
    out = here.good(*arguments())
    assert sum(".png" in line for line in out.splitlines()) == 20
    assert "… and 22 more: --out results.csv writes all of them" in out
    out = here.good(*arguments("--out", "r.csv"))
    assert "… and 22 more\n" in out and "written to r.csv" in out
    assert len(csv_rows(here.folder / "r.csv")) == 42


def test_results_do_not_depend_on_how(here: Run) -> None:
    labelled(here.folder / "d", 9)
    here.good(*arguments("--out", "first.csv"))
    first = (here.folder / "first.csv").read_bytes()
    for more in (["--batch-size", "1"], ["--batch-size", "5", "--threads", "1"], ["--threads", "4"]):
        here.good(*arguments("--out", "other.csv", *more))
        assert (here.folder / "other.csv").read_bytes() == first


@pytest.mark.parametrize(("threads", "computing", "reading"), [
    (1, 1, 0), (2, 1, 1), (3, 2, 1), (4, 2, 2), (6, 4, 2), (8, 4, 4), (1024, 512, 512),
])
def test_threads(threads: int, computing: int, reading: int, here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(here.folder / "d" / "a.png", YES)
    seen = []
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    monkeypatch.setattr(run, "stream", lambda _, items, reading: seen.append(reading.decoders) or iter(()))
    here.good(*arguments("--threads", str(threads)))
    assert seen[:2] == [computing, reading]


@pytest.mark.parametrize("out", ["r.csv", "r.jsonl"])
def test_stop_and_resume(out: str, here: Run) -> None:
    labelled(here.folder / "d", 6)
    save(here.folder / "d" / "true" / "2.png", pixels(thing(red=1, triangle=1), stop=True))
    (here.folder / "d" / "false" / "3.png").write_bytes(b"")
    command = arguments("--out", out, "--batch-size", "2")
    stopped = here(*command)
    assert stopped.code == 130 and "Traceback" not in stopped.err
    assert f"stopped after 8 images; {out}.part keeps them, and the same command with --resume continues" in stopped.err
    assert not (here.folder / out).exists()
    (here.folder / "go").touch()
    resumed = here(*command, "--resume")
    assert resumed.code == 1  # for the empty file, which an earlier run met
    assert "1 of 12 files gave no answer: false/3.png" in resumed.err
    assert "true/1.png" not in resumed.out and "true/2.png" in resumed.out
    assert "accuracy 100.00% (11 of 11)" in resumed.out
    here(*arguments("--out", f"whole.{out}", "--batch-size", "2"))
    assert (here.folder / out).read_bytes() == (here.folder / f"whole.{out}").read_bytes()
    assert not list(here.folder.glob("*.part*"))


def test_stop_and_resume_with_pieces_side_by_side(here: Run) -> None:
    labelled(here.folder / "d", 8)
    save(here.folder / "d" / "true" / "3.png", pixels(thing(red=1, triangle=1), stop=True))
    (here.folder / "d" / "false" / "3.png").write_bytes(b"")
    command = ["infer", "--program", "rules.pl", "--images", "d", "--perception", "readable:Beside", "--trust"]
    stopped = here(*command, "--threads", "3", "--out", "r.csv")
    assert stopped.code == 130 and "Traceback" not in stopped.err
    kept = (here.folder / "r.csv.part").read_text().splitlines()[1:]
    assert len(kept) <= 10 and not len(kept) % 2  # whole pieces, and none after the one that stopped it
    (here.folder / "go").touch()
    assert here(*command, "--threads", "2", "--out", "r.csv", "--resume").code == 1  # for the empty file
    assert here(*command, "--threads", "1", "--out", "whole.csv").code == 1
    whole = (here.folder / "whole.csv").read_text().splitlines()
    assert (here.folder / "r.csv").read_text().splitlines() == whole and whole[1 : 1 + len(kept)] == kept


def test_resume_with_another_question_is_refused(here: Run) -> None:
    labelled(here.folder / "d", 2)
    save(here.folder / "d" / "true" / "9.png", pixels(thing(), stop=True))
    assert here(*arguments("--out", "r.csv", "--batch-size", "1")).code == 130
    (here.folder / "go").touch()
    again = arguments("--out", "r.csv", "--resume")
    assert "threshold 0.5, and now it is 0.7" in here.refused(*again, "--threshold", "0.7")
    assert "made with steps 4" in here.refused(*again, "--steps", "5")
    (here.folder / "rules.pl").write_text(ONE.replace("red", "blue"))
    assert "made with program rules" in here.refused(*again)
    (here.folder / "rules.pl").write_text(ONE)
    assert len(csv_rows(here.folder / "r.csv.part")) == 4
    here.good(*again)


def test_resume_needs_something(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    assert "give --out too" in here.refused(*arguments("--resume"))
    assert "leave out --resume or --report" in here.refused(
        *arguments("--resume", "--out", "r.csv", "--report", "r.html"))
    result = here(*arguments("--resume", "--out", "r.csv"))
    assert result.code == 0 and "no r.csv.part to continue" in result.err


def test_a_stop_without_out(here: Run) -> None:
    save(here.folder / "d" / "a.png", pixels(thing(), stop=True))
    result = here(*arguments())
    assert result.code == 130 and "stopped after 0 images; nothing is kept without --out" in result.err


def test_report(here: Run) -> None:
    pytest.importorskip("nsfrc.inference.report")
    labelled(here.folder / "d", 2)
    assert "written to r.html" in here.good(*arguments("--report", "r.html"))
    page = (here.folder / "r.html").read_text()
    assert "true/1.png" in page and "because" in page and "data:image/" in page


def test_reasons_go_no_deeper_than_the_steps_taken(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    text = ONE.replace("kp(X) :-", "kp(X) :- found(X). found(X) :-")
    (here.folder / "rules.pl").write_text(text)
    for steps, deep in (("3", True), ("1", False)):
        here.good(*arguments("--report", "r.html", "--steps", steps))
        cards = (here.folder / "r.html").read_text().partition("<main")[2]
        assert "found(img)" in cards and ("color(obj1,red)" in cards) == deep


def test_a_stop_keeps_the_report_so_far(here: Run) -> None:
    pytest.importorskip("nsfrc.inference.report")
    labelled(here.folder / "d", 2)
    save(here.folder / "d" / "true" / "9.png", pixels(thing(), stop=True))
    result = here(*arguments("--report", "r.html", "--out", "r.csv", "--batch-size", "1"))
    assert result.code == 130 and "with --resume, but without --report, continues; the report r.html shows only " \
                                  "these images\n" in result.err
    page = (here.folder / "r.html").read_text()
    assert "true/1.png" in page and "true/9.png" not in page and "this page shows the first 4 images" in page
    result = here(*arguments("--report", "r.html", "--batch-size", "1"))
    assert "stopped after 4 images; no rows are kept without --out; the report r.html" in result.err
    (here.folder / "r.html").unlink()
    result = here(*arguments("--report", "r.html", "--batch-size", "16"))
    assert "stopped after 0 images; nothing is kept without --out\n" in result.err
    assert not (here.folder / "r.html").exists()


@pytest.mark.parametrize("at_once", [False, True])
def test_a_stop_amid_a_batch_counts_the_rows_that_are_kept(
    at_once: bool, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes while cards of the report are made, after the rows of the batch have been written."""
    labelled(here.folder / "d", 4)
    add, seen = Report.add, []

    def interrupted(report: Report, row: Row) -> None:
        seen.append(row)
        if len(seen) == 4 and at_once:
            raise KeyboardInterrupt
        if len(seen) == 4:
            signal.raise_signal(signal.SIGINT)  # to this thread: at once, however busy the machine is
        add(report, row)

    monkeypatch.setattr(Report, "add", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in the background of a shell
    try:
        result = here(*arguments("--out", "r.csv", "--report", "r.html", "--batch-size", "3"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.code == 130 and "stopped after 6 images; r.csv.part keeps them" in result.err
    assert len(csv_rows(here.folder / "r.csv.part")) == 6
    if not at_once:
        assert "this page shows the first 6 images" in (here.folder / "r.html").read_text()
    monkeypatch.undo()
    monkeypatch.chdir(here.folder)
    monkeypatch.syspath_prepend(here.folder)
    assert "8 images" in here.good(*arguments("--out", "r.csv", "--resume", "--batch-size", "3"))


def test_several_images_and_folders(here: Run) -> None:
    """Each --images counts; names then begin with the path as it was given, so that none is there twice."""
    for name, image in (("a.png", YES), ("e/a.png", NO), ("d/true/a.png", YES), ("d/false/a.png", NO)):
        save(here.folder / name, image)
    several = ("infer", "--images", "a.png", "--images", "e/a.png", "--images", "d", "--images", "a.png", *PERCEPTION)
    result = here(*several, "--out", "r.csv")
    assert result.code == 0 and "accuracy 100.00% (2 of 2)" in result.out
    assert "warning: 2 images have no class (class folders) and so no label\n" in result.err
    assert [(r["file"], r["label"], r["answer"]) for r in csv_rows(here.folder / "r.csv")] == [
        ("a.png", "", "true"), ("e/a.png", "", "false"), ("d/false/a.png", "false", "false"),
        ("d/true/a.png", "true", "true")]
    for name in ("x", "y"):
        (here.folder / name).mkdir()
    assert "there are no images in x, y (" in here.refused("infer", "--images", "x", "--images", "y")


def test_numpy_says_nothing(here: Run) -> None:
    """A perception may place objects at infinity; the report does not show them, and that is all."""
    with open(here.folder / "readable.py", "a") as module:
        module.write("\nclass Wild(Readable):\n    dimensions = ('x', *Readable.dimensions[1:])\n"
                     "    def places(self, vectors):\n        return (vectors[:, :2] + 1) * 3e38 * 3e38 / 0\n")
    save(here.folder / "d" / "a.png", YES)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        here.good("infer", "--images", "d", "--perception", "readable:Wild", "--trust", "--report", "r.html")
    assert not [str(one.message) for one in said if issubclass(one.category, RuntimeWarning)]


def test_a_part_that_is_replaced_is_told(here: Run) -> None:
    save(here.folder / "d" / "a.png", pixels(thing(), stop=True))
    assert here(*arguments("--out", "r.csv")).code == 130
    told = "r.csv.part, the rows of an interrupted run, is replaced: --resume would have continued it\n"
    assert told in here(*arguments("--out", "r.csv")).err
    (here.folder / "go").touch()
    assert "replaced" not in here(*arguments("--out", "r.csv", "--resume")).err
    assert "replaced" not in here(*arguments("--out", "r.csv")).err


def test_programs_are_found_in_the_folder_of_images(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    (here.folder / "rules.pl").rename(here.folder / "d" / "rules.pl")
    assert "program     d/rules.pl" in here.good(*arguments())
    (here.folder / "a.pl").write_text(ONE)
    (here.folder / "b.pl").write_text(ONE)
    message = here.refused(*arguments())
    assert "there are 2 programs in the current folder; choose one:\n  --program a.pl\n  --program b.pl" in message


def test_no_program(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    (here.folder / "rules.pl").unlink()
    assert "there is no program" in here.refused(*arguments())
    assert "no shipped program" in here.refused(*arguments("--program", "nothing"))


def test_folders_without_meaning_are_remarked(here: Run) -> None:
    for name in ("cats", "dogs"):
        save(here.folder / "d" / name / "a.png", YES)
    result = here(*arguments())
    assert "warning: the images in cats, dogs have no label: class folders are true and false" in result.err
    assert result.code == 0 and "accuracy" not in result.out


def test_plugins(here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    text = ":- neural(seen_from_test_infer(object)). kp(X) :- seen_from_test_infer(O), in(O, X)."
    (here.folder / "rules.pl").write_text(ONE + text)
    assert "seen_from_test_infer" in here.refused(*arguments())
    (here.folder / "own.py").write_text(
        "import nsfrc\n"
        "@nsfrc.neural_predicate('seen_from_test_infer')\n"
        "def seen(thing):\n    return thing['objectness']\n"
    )
    rows, _ = json_lines(here.good(*arguments("--plugin", "own.py", "--json")))
    assert rows[0]["answer"] == "true"


def test_nothing_to_look_at(here: Run) -> None:
    (here.folder / "d").mkdir()
    assert "there are no images in d" in here.refused(*arguments())
    assert "No such file or directory" in here.refused("infer", "--images", "gone")
    assert "nothing to answer for: give --images DIR, or --detections FILE" in here.refused("infer")


@pytest.mark.parametrize("option", [("--threshold", "1.5"), ("--threshold", "nan"), ("--batch-size", "0"),
                                    ("--batch-size", "9" * 20), ("--threads", "0"), ("--threads", "9" * 11),
                                    ("--steps", "-1"), ("--steps", "9" * 20), ("--device", "abacus"),
                                    ("--out", "r.xlsx"), ("--out", "d"), ("--weights", "gone"),
                                    ("--concepts", "gone"), ("--plugin", "gone.py"), ("--perception", "gone"),
                                    ("--perception", "readable:Gone"), ("--report", "d"),
                                    ("--report", "d/a.png"), ("--report", "rules.pl")])
def test_options_that_cannot_be(option: tuple[str, str], here: Run) -> None:
    save(here.folder / "d" / "a.png", YES)
    message = here.refused(*arguments(), *option)
    assert option[0].lstrip("-") in message or option[1] in message


def test_one_image(here: Run) -> None:
    path = save(here.folder / "some.png", YES)
    rows, _ = json_lines(here.good("infer", "--images", path, *PERCEPTION, "--json"))
    assert [(r["file"], r["answer"]) for r in rows] == [("some.png", "true")]


def test_warnings_about_the_program_are_remarks(here: Run) -> None:
    labelled(here.folder / "d")
    (here.folder / "rules.pl").write_text(ONE + "\nunused(O) :- color(O, red).\n")
    assert "no target needs unused/1" in here(*arguments()).err
