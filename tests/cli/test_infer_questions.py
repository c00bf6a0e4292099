"""`nsfrc infer` with several questions: targets that are independent, and classes beside them."""

from __future__ import annotations

import json

import pytest

import nsfrc
from nsfrc.errors import NsfrcError
from tests.cli.support import Run, arguments, csv_rows, json_lines
from tests.inference.html_tree import parse
from tests.inference.support import labelled, pixels, save, thing

TWO = """
:- include('kandinsky.pl').
:- type(object, slots(2)).
:- target([red(img), square(img)]).
red(X) :- in(O, X), color(O, red).
square(X) :- in(O, X), shape(O, square).
"""
THREE = TWO + """
:- classes([warm(img), cold(img)]).
warm(X) :- red(X).
cold(X) :- in(O, X), color(O, blue).
"""
LABELS = "file,red,square,classes\n1.png,1,0,warm\n2.png,1,1,cold\n3.png,0,,none\n"
HEADER = ["file", "label red(img)", "label square(img)", "label classes", "red(img)", "square(img)", "warm(img)",
          "cold(img)", "answer red(img)", "answer square(img)", "answer classes", "error", "left_out"]


@pytest.fixture
def three(here: Run) -> Run:
    """Three images, one that cannot be read, and labels: red 0.8 and square 0.4; blue and square; nothing."""
    (here.folder / "rules.pl").write_text(THREE)
    (here.folder / "labels.csv").write_text(LABELS)
    save(here.folder / "d" / "1.png", pixels(thing(red=0.8, square=0.4)))
    save(here.folder / "d" / "2.png", pixels(thing(blue=1), thing(square=1)))
    save(here.folder / "d" / "3.png", pixels())
    (here.folder / "d" / "4.png").touch()
    return here


def test_each_question_has_its_answer(three: Run) -> None:
    result = three(*arguments("--labels", "labels.csv", "--out", "r.csv", "--report", "r.html"))
    assert result.code == 1 and "1 image has no label in labels.csv: 4.png" in result.err
    assert "threshold   0.5 by default, for each of 2 targets\n" in result.out
    assert "classes     the highest of warm(img), cold(img) is the answer\n" in result.out
    assert "labels      of red(img), square(img), classes from labels.csv\n" in result.out
    table = result.out[result.out.index("file "):].splitlines()
    assert table[:5] == [
        "file      red  answer  square  answer    warm    cold  answer",
        "1.png  0.8000  true    0.4000  false   0.8000  0.0000  warm(img)  right",
        "2.png  0.0000  false   1.0000  true    0.0000  1.0000  cold(img)  WRONG: red(img) is true",
        "3.png  0.0000  false   0.0000  false   0.0000  0.0000  none       right",
        "4.png       –               –               –       –  failed: the file is empty; get a fresh copy"]
    assert "red(img): 1 true, 2 false\naccuracy 66.67% (2 of 3)\n" in result.out
    assert "square(img): 1 true, 2 false\naccuracy 100.00% (2 of 2)\n" in result.out
    assert "classes: 1 warm(img), 1 cold(img), 1 none\naccuracy 100.00% (3 of 3)\n" in result.out
    rows = csv_rows(three.folder / "r.csv")
    assert list(rows[0]) == HEADER
    assert list(rows[1].values()) == ["2.png", "true", "true", "cold(img)", "0.0000", "1.0000", "0.0000", "1.0000",
                                      "false", "true", "cold(img)", "", ""]
    assert list(rows[3].values()) == ["4.png", *[""] * 10, "the file is empty; get a fresh copy", ""]
    page = parse((three.folder / "r.html").read_text())
    card = next(page.all("article", "wrong"))
    assert [one.one("h4").one("code").text for one in card.all("section", "question")] == [
        "red(img)", "square(img)", "classes"]


def test_json_lines(three: Run) -> None:
    result = three(*arguments("--labels", "labels.csv", "--json"))
    rows, summary = json_lines(result.out)
    assert rows[1]["labels"] == {"red(img)": "true", "square(img)": "true", "classes": "cold(img)"}
    assert rows[1]["answers"] == {"red(img)": "false", "square(img)": "true", "classes": "cold(img)"}
    assert rows[1]["scores"] == {"red(img)": 0.0, "square(img)": 1.0, "warm(img)": 0.0, "cold(img)": 1.0}
    assert {name: text.split()[0] for name, text in rows[1]["reasons"].items()} == {
        "red(img)": "red(img)", "square(img)": "square(img)", "classes": "cold(img)"}
    assert (rows[3]["labels"], rows[3]["scores"], rows[3]["answers"], rows[3]["reasons"]) == (None,) * 4
    assert not {"label", "score", "answer", "reason"} & set(rows[0])
    assert {name: one["accuracy"] for name, one in summary["questions"].items()} == {
        "red(img)": pytest.approx(2 / 3), "square(img)": 1.0, "classes": 1.0}
    assert (summary["images"], summary["failed"]) == (4, 1) and "accuracy" not in summary


def test_the_reason_for_each(three: Run) -> None:
    (three.folder / "d" / "4.png").unlink()
    out = three.good(*arguments("--why"))
    start = out.index("2.png")
    told = [line.split()[0] for line in out[start : out.index("3.png")].splitlines()[1:]]
    assert [line for line in told if line.endswith("(img)")] == ["red(img)", "square(img)", "cold(img)"]


def test_thresholds_of_single_targets(three: Run) -> None:
    (three.folder / "d" / "4.png").unlink()

    def answers(*options: str) -> list[str]:
        rows, _ = json_lines(three.good(*arguments("--json", *options)))
        return list(rows[0]["answers"].values())

    assert answers() == ["true", "false", "warm(img)"]
    assert answers("--threshold", "square=0.3") == ["true", "true", "warm(img)"]
    assert answers("--threshold", "0.9") == ["false", "false", "none"]
    assert answers("--threshold", "0.9", "--threshold", "red(img)=0.8") == ["true", "false", "none"]
    assert answers("--threshold", "0.9", "--threshold", "classes=0") == ["false", "false", "warm(img)"]
    own = ":- threshold(0.2), threshold(red(_), 0.85), threshold(classes, 0.9)."
    (three.folder / "rules.pl").write_text(THREE + own)
    assert answers() == ["false", "true", "none"]
    assert answers("--threshold", "0.1") == ["true", "true", "warm(img)"]
    out = three.good(*arguments("--threshold", "square=0.3"))
    assert "threshold   red(img) 0.85 from the program; square(img) 0.3 from --threshold\n" in out
    assert "is the answer, from 0.9 on (from the program); below, it is none\n" in out


@pytest.mark.parametrize(("given", "message"), [
    (["rd=0.3"], "--threshold rd=0.3: rules has no such question; it asks red(img), square(img), classes"),
    (["warm=0.3"], "(classes share a threshold: --threshold classes=X)"),
])
def test_thresholds_of_what_is_not_asked(three: Run, given: list[str], message: str) -> None:
    assert message in three.refused(*arguments(*(word for one in given for word in ("--threshold", one))))


@pytest.mark.parametrize(("given", "message"), [
    (["red=2"], "2 is not a number from 0 to 1"), (["red=nan"], "nan is not a number from 0 to 1"),
    (["high"], "'high' is neither a number from 0 to 1 nor a target with one, as kp1=0.4"),
    (["red="], "'red=' is neither a number"),
    (["red=0.1", "red=0.2"], "the threshold of red is given twice"),
    (["0.1", "0.2"], "the threshold of all targets is given twice"),
])
def test_thresholds_that_are_none(three: Run, given: list[str], message: str) -> None:
    assert message in three.refused(*arguments(*(word for one in given for word in ("--threshold", one))))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_several_questions_are_gone_on_with(here: Run, suffix: str) -> None:
    (here.folder / "rules.pl").write_text(THREE)
    (here.folder / "labels.csv").write_text("file,red,classes\na.png,1,warm\n")
    save(here.folder / "d" / "a.png", pixels(thing(red=0.8)))
    save(here.folder / "d" / "b.png", pixels(thing(blue=1), stop=True))
    command = arguments("--out", f"r.{suffix}", "--labels", "labels.csv", "--batch-size", "1")
    assert here(*command).code == 130
    (here.folder / "go").touch()
    out = arguments("--out", f"r.{suffix}", "--resume")
    assert "made with labels labels.csv" in here.refused(*out) and "now it is None" in here.refused(*out)
    assert "square(img) 0.5, classes none, and now it is red(img) 0.5, square(img) 0.1" in here.refused(
        *command, "--resume", "--threshold", "square=0.1")
    assert "red(img): 1 true, 1 false\naccuracy 100.00% (1 of 1)" in here.good(*command, "--resume")
    part = (here.folder / f"r.{suffix}").read_text()
    here.good(*arguments("--out", f"whole.{suffix}", "--labels", "labels.csv"))
    assert part == (here.folder / f"whole.{suffix}").read_text()


def test_folders_cannot_label_several_targets(here: Run) -> None:
    (here.folder / "rules.pl").write_text(TWO)
    labelled(here.folder / "d", 1)
    result = here(*arguments())
    assert result.code == 0 and "accuracy" not in result.out
    assert "warning: the images in false, true have no label: a folder cannot say which of the 2 targets it is about" \
           "; --labels FILE.csv has a column for each\n" in result.err
    (here.folder / "rules.pl").write_text(THREE.replace("red(img), square(img)", "red(img)").replace("square(X)", "%"))
    out = here.good(*arguments())
    assert "labels      of red(img) (class folders)\n" in out and "accuracy 100.00% (2 of 2)" in out


def test_in_python(three: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    results = nsfrc.infer("d", "rules.pl", perception="readable:Readable", trust=True, labels="labels.csv",
                          threshold={"square": 0.3})
    first, failed = results[0], results[3]
    assert {name: (said.answer, said.right) for name, said in first.answers.items()} == {
        "red(img)": ("true", True), "square(img)": ("true", False), "classes": ("warm(img)", True)}
    assert first.right is False and failed.right is None and results[2].right is True
    assert results.by_question["red(img)"].right == 2 and results.by_question["classes"].accuracy == 1.0
    for wrong in (lambda: first.answer, lambda: first.reason, lambda: results.measures):
        with pytest.raises(NsfrcError, match=r"'red\(img\)', 'square\(img\)', 'classes'"):
            wrong()
    for bad in ({"square": 2.0}, {"square": "x"}, 1.5):
        with pytest.raises(NsfrcError, match="threshold is a number from 0 to 1"):
            nsfrc.infer("d", "rules.pl", threshold=bad)  # type: ignore[arg-type]
    results.write("own.csv")
    three(*arguments("--labels", "labels.csv", "--threshold", "square=0.3", "--out", "r.csv"))
    assert (three.folder / "own.csv").read_text() == (three.folder / "r.csv").read_text()


def test_predictions(three: Run) -> None:
    pipe = nsfrc.pipeline("rules.pl", "readable:Readable", trust=True)
    found = pipe.predict(["d/1.png", "d/2.png"])
    assert [reason.atom for reason in found.reasons("classes")] == ["warm(img)", "cold(img)"]
    assert [reason.atom for reason in found.reasons("red")] == ["red(img)"] * 2
    assert [reason.atom for reason in found.reasons("warm(img)")] == ["warm(img)"] * 2
    with pytest.raises(NsfrcError, match=r"asks 3 questions: name one, as in reasons\('red\(img\)'\)"):
        found.reasons()
    told = [line.split()[0] for line in found[0].why().splitlines() if not line.startswith(" ")]
    assert told == ["red(img)", "square(img)", "warm(img)"] and found.image().width > 0
    (row,) = nsfrc.Predictor(pipe)(nsfrc.Predictor(pipe).read("d/1.png"))
    assert [said.answer for said in row.answers.values()] == ["true", "false", "warm(img)"]


def test_reason_names_the_class(run: Run) -> None:
    (run.folder / "rules.pl").write_text(THREE)
    facts = [{"in(obj1,img)": 1, "color(obj1,blue)": 0.9}, {}]
    (run.folder / "f.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in facts))
    lines = run.good("reason", "rules.pl", "--facts", "f.jsonl").splitlines()
    assert lines[0].split() == ["world", "red(img)", "square(img)", "warm(img)", "cold(img)", "classes"]
    assert lines[1].split() == ["1", "0.0000", "0.0000", "0.0000", "0.9000", "cold(img)"]
    assert lines[2].split()[-1] == "none"
    rows = [json.loads(line) for line in run.good("reason", "rules.pl", "--facts", "f.jsonl", "--json").splitlines()]
    assert [row["classes"] for row in rows] == ["cold(img)", "none"] and rows[0]["cold(img)"] == pytest.approx(0.9)


def test_explain_and_compile_say_what_is_asked(run: Run) -> None:
    (run.folder / "rules.pl").write_text(THREE)
    assert "targets: red(img), square(img); classes: warm(img), cold(img); anchored" in run.good("compile", "rules.pl")
    out = " ".join(run.good("explain", "rules.pl").split())
    assert "asked red(img), square(img), each true or false; which of warm(img), cold(img): the answer is the one " \
           "with the highest value" in out
    assert "classes: kp1(img), kp2(img), kp3(img); paper" in run.good("compile", "clevr_hans3", "--out", "c.nsfrc")
    for data in (run.good("compile", "rules.pl", "--json"), run.good("explain", "rules.nsfrc", "--json")):
        assert json.loads(data)["classes"] == ["warm(img)", "cold(img)"]
