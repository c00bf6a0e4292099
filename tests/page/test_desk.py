"""What the page knows and does, without a browser."""

from __future__ import annotations

import base64
import json
import zlib
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from nsfrc.benchmarks.tiny_detector import write_tiny
from nsfrc.data.kandinsky import figure
from nsfrc.data.png import png
from nsfrc.data.render import render
from nsfrc.errors import NsfrcError
from nsfrc.inference.given import gather
from nsfrc.inference.results import infer
from nsfrc.learning.results import NothingLearnt
from nsfrc.page import link
from nsfrc.page.begin import TEMPLATES, Start, shipped_text, start
from nsfrc.page.desk import Desk, Learning, totals
from nsfrc.page.pictures import SAMPLES
from nsfrc.page.reading import in_words, read_text, units
from nsfrc.page.seen import Eyes, Memory
from tests.perception.test_model_file import PROGRAM, paint

RULES = """:- include('kandinsky.pl').
:- type(object, slots(4)).
:- neural(closeby(object, object)).
:- target(kp(img)).

kp(X) :- in(A, X), in(B, X), closeby(A, B), color(A, red).
"""


@pytest.fixture(scope="module")
def eyes() -> Eyes:
    return Eyes()


@pytest.fixture(scope="module")
def seen(eyes: Eyes) -> Memory:
    """What perception sees in the sample figures, looked at once for all tests."""
    made = Desk(Start(RULES, Path.cwd() / "rules.pl", samples=("closeby",)), eyes)
    made.update()
    return made.memory


@pytest.fixture
def desk(eyes: Eyes, seen: Memory, tmp_path: Path) -> Desk:
    made = Desk(Start(RULES, tmp_path / "rules.pl", samples=("closeby",)), eyes)
    made.memory = deepcopy(seen)
    made.update()
    return made


def drawn(pattern: str, number: int) -> bytes:
    return png(render(figure(pattern, 0, number).figure))


def test_findings_have_places_and_what_to_write(tmp_path: Path) -> None:
    text = "% 𝒳\n" + RULES.replace("closeby(A", "close_by(A")
    (mark,) = read_text(text, tmp_path / "rules.pl").marks
    assert text[mark.start : mark.end] == "close_by" and (mark.line, mark.column) == (7, 30)
    assert (mark.severity, mark.code, mark.fix) == ("error", "unknown-predicate", "closeby")
    assert units(text, mark.start) == mark.start + 1
    assert text[: mark.start] + mark.fix + text[mark.end :] == "% 𝒳\n" + RULES


def test_findings_of_included_files_are_where_they_are_included(tmp_path: Path) -> None:
    (tmp_path / "more.pl").write_text("% fine\nq(.\n")
    text = RULES + ":- include('more.pl').\n"
    marks = read_text(text, tmp_path / "rules.pl").marks
    assert marks and all(text[mark.start : mark.end] == ":- include('more.pl')." for mark in marks)
    assert marks[0].message.startswith("more.pl:2: ") and marks[0].fix is None


def test_only_files_of_its_own_folder_are_included(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    secret = tmp_path / "secret.pl"
    secret.write_text("password(hunter2).\n")
    (tmp_path / "secret.bin").write_bytes(b"hunter2\n\xff")
    (tmp_path / "home" / "linked.pl").symlink_to(secret)
    for name in (str(secret), "../secret.pl", "../secret", "../secret.bin", "../nothing.pl", "linked.pl", "linked",
                 "/proc/self/environ", "x\\0\\y"):
        reading = read_text(f"{RULES}:- include('{name}').\n", tmp_path / "home" / "rules.pl")
        assert reading.program is None and "hunter2" not in str(reading.marks)
        ((code, message),) = {(mark.code, mark.message.partition(" is ")[2]) for mark in reading.marks}
        assert (code, message) == ("include-outside", "not included from here")
    assert read_text(RULES, tmp_path / "home" / "rules.pl").program is not None


def test_words_of_a_program(tmp_path: Path) -> None:
    ((number, clause, words, notes),) = in_words(read_text(RULES, tmp_path / "rules.pl"))
    assert number == 1 and clause.startswith("kp(X) :- in(A,X)")
    assert "A is close by B" in words and "row" in notes


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_templates_are_programs(name: str, tmp_path: Path) -> None:
    assert read_text(TEMPLATES[name], tmp_path / f"{name}.pl").marks == ()


def test_rows_are_those_of_infer(tmp_path: Path, eyes: Eyes) -> None:
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(drawn("red_triangle", number))
    desk = Desk(start("red_triangle", gather(tmp_path)), eyes)
    desk.update()
    assert desk.answers is not None
    there = infer(tmp_path, "red_triangle")
    assert [(row.file, row.scores, row.answer, row.reason) for row in desk.answers.rows] == [
        (row.file, row.scores, row.answer, row.reason) for row in there]
    assert desk.saved_results("csv") == there.write(tmp_path / "rows.csv").read_bytes()


@pytest.mark.parametrize("named", ["in the program", "on the command line"])
def test_a_detector_of_ones_own(named: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    write_tiny(tmp_path / "tiny.onnx")
    (tmp_path / "photos").mkdir()
    paint(tmp_path / "photos" / "a.png", {(0, 0): "red", (3, 2): "blue", (1, 1): "red"})
    paint(tmp_path / "photos" / "b.png", {(1, 0): "green"}, (64, 32))
    (tmp_path / "rules.pl").write_text(PROGRAM)
    own = Eyes(None if named == "in the program" else str(tmp_path / "tiny.onnx"))
    desk = Desk(start(str(tmp_path / "rules.pl"), gather(tmp_path / "photos")), own)
    desk.update()
    assert desk.problem is None and desk.answers is not None, desk.problem
    there = infer(tmp_path / "photos", tmp_path / "rules.pl")
    assert [(row.scores, row.reason) for row in desk.answers.rows] == [(row.scores, row.reason) for row in there]


def test_pictures_are_looked_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {row.file: row.scores for row in desk.answers.rows} if desk.answers else {}
    monkeypatch.setattr("nsfrc.page.seen.decode", lambda *_, **__: pytest.fail("looked again"))
    desk.update(RULES.replace("red", "blue"))
    assert desk.answers is not None and len(desk.answers.rows) == SAMPLES
    assert {row.file: row.scores for row in desk.answers.rows} != before


def test_errors_leave_the_pictures_alone(desk: Desk) -> None:
    before = desk.answers
    desk.update(RULES.replace("closeby(A", "close_by(A"))
    assert desk.stale and desk.answers is before and len(desk.pictures) == SAMPLES
    with pytest.raises(NsfrcError, match="no answers to save"):
        desk.saved_results("csv")
    desk.update(RULES)
    assert not desk.stale and desk.answers is not None and len(desk.answers.rows) == SAMPLES


def test_a_file_that_is_no_picture_has_its_error(desk: Desk) -> None:
    assert desk.pictures.drop("../../etc/a.png", b"nothing") == "a.png"
    assert desk.pictures.drop("a.png", drawn("closeby", 0)) == "a.png (2)"
    desk.update()
    assert desk.answers is not None
    rows = desk.answers.by_name
    assert rows["a.png"].error and "not an image" in rows["a.png"].error
    assert rows["a.png (2)"].scores == rows["closeby 0"].scores


def test_names_of_dropped_pictures(desk: Desk) -> None:
    desk.clear()
    names = ("../../up.png", "C:\\x\\y.png", "a\0b.png", "half \ud83d", "", ".", "n" * 300)
    assert [desk.pictures.drop(name, b"") for name in names] == [
        "up.png", "y.png", "a\\x00b.png", "half \\ud83d", "picture", "picture (2)", "n" * 255]


def test_a_page_holds_so_many_pictures(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsfrc.page.pictures.MAX_PICTURES", SAMPLES + 3)
    desk.pictures.samples("free")
    assert len(desk.pictures) == SAMPLES + 3
    with pytest.raises(NsfrcError, match="15 pictures at most"):
        desk.pictures.drop("a.png", b"")


def test_what_if_moves_the_score(desk: Desk) -> None:
    desk.update(RULES.replace(", color(A, red)", ""))
    desk.select("closeby 0")
    row = desk.row()
    assert row is not None
    fact = next(fact for fact in desk.facts(row) if fact.atom.startswith("closeby"))
    assert fact.named and fact.pull > 0.5 and fact.value > 0.9
    desk.imagine(fact.atom, 0.25)
    moved = desk.row()
    assert moved is not None and moved.scores[0] < 0.6 < row.scores[0]
    assert moved.answer == "false" and moved.reason != row.reason
    desk.changes.clear()
    assert desk.row() == row


def test_what_is_blue_is_not_red(desk: Desk) -> None:
    """The values of an attribute that nobody moves make room."""
    assert desk.answers is not None
    row = desk.answers.rows[0]
    assert row.V0 is not None
    program = desk.answers.program
    colors = [program.index(f"color(obj1,{color})") for color in ("red", "yellow", "blue")]
    best = max(colors, key=lambda place: row.V0[place])
    other = next(place for place in colors if place != best)
    moved = desk.answers.imagine(row.file, {program.atoms[other]: 1.0})
    assert moved is not None and moved.V0 is not None
    assert moved.V0[other] == 1 and moved.V0[best] < 1e-6
    assert (moved.V0 != row.V0).sum() <= 3


def test_pulls_are_slopes(desk: Desk) -> None:
    """Against a difference of two runs."""
    desk.update(RULES.replace("kp(X) :- ", "kp(X) :- color(B, C), dif(C, red), ").replace("closeby(A, B), ", ""))
    assert desk.answers is not None and desk.reading is not None and desk.reading.marks == ()
    row = desk.answers.imagine("closeby 0", {"in(obj1,img)": 0.6, "in(obj2,img)": 0.7})
    assert row is not None
    for fact in desk.answers.facts(row, desk.answers.question(), ["in(obj1,img)", "in(obj2,img)"]):
        changes = {"in(obj1,img)": 0.6, "in(obj2,img)": 0.7}
        low, high = (desk.answers.imagine("closeby 0", changes | {fact.atom: fact.value + step})
                     for step in (-0.05, 0.05))
        assert low is not None and high is not None
        assert fact.pull == pytest.approx((high.scores[0] - low.scores[0]) / 0.1, abs=0.02)


def test_labels_and_folders(tmp_path: Path, eyes: Eyes) -> None:
    for number in range(4):
        path = tmp_path / "pictures" / ("true" if number % 2 == 0 else "false") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(drawn("closeby", number))
    desk = Desk(Start(RULES.replace(", color(A, red)", ""), tmp_path / "rules.pl", gather(tmp_path / "pictures")), eyes)
    desk.update()
    assert totals(desk) == {"pictures": 4, "labelled": 4, "right": 4, "wrong": 0}
    desk.label("true/0.png", "false")
    desk.label("true/0.png", "perhaps")
    desk.update()
    assert desk.labelled().get("true/0.png") == "false" and totals(desk)["wrong"] == 1
    desk.label("true/0.png", "false")
    assert desk.labelled().get("true/0.png") == "true"


def test_a_rule_is_learnt_from_eight_labels(desk: Desk) -> None:
    for number in range(8):
        desk.label(f"closeby {number}", "true" if figure("closeby", 0, number).label else "false")
    learnt = desk.learn(Learning())
    assert [one.text for one in learnt.clauses] == ["kp(X) :- in(A, X), in(B, X), closeby(A, B)."]
    assert any("a guess" in remark for remark in learnt.remarks)
    desk.update(learnt.text)
    assert desk.reading is not None and desk.reading.marks == ()
    assert totals(desk)["right"] == 8


def test_learning_says_what_is_missing(desk: Desk) -> None:
    with pytest.raises(NsfrcError, match="no picture has a label"):
        desk.learn(Learning())
    desk.update(TEMPLATES["learn_a_rule"])
    assert desk.answers is None and desk.question is not None and desk.question.name == "kp(img)"
    desk.label("closeby 0", "true")
    with pytest.raises(NsfrcError, match="at least 2"):
        desk.learn(Learning())
    desk.update("kp(")
    with pytest.raises(NsfrcError, match="mend the program first"):
        desk.learn(Learning())


def test_learning_can_be_stopped(desk: Desk) -> None:
    for number in range(8):
        desk.label(f"closeby {number}", "true" if number < 4 else "false")
    running = Learning()
    running.stop.set()
    with pytest.raises(NothingLearnt, match="before the search was stopped"):
        desk.learn(running)


def test_a_link_holds_what_is_on_the_page(desk: Desk, eyes: Eyes) -> None:
    desk.label("closeby 3", "false")
    desk.select("closeby 2")
    desk.imagine("in(obj1,img)", 0.5)
    desk.pictures.drop("mine.png", b"")
    address = link.encode(desk.state())
    assert address is not None
    other = Desk(Start("", desk.path), eyes)
    other.reopen(link.decode(address))
    other.update()
    assert (other.text, other.name, other.selected) == (RULES, "rules", "closeby 2")
    assert other.labelled().get("closeby 3") == "false" and other.changes == {"in(obj1,img)": 0.5}
    assert list(other.pictures.items) == [f"closeby {number}" for number in range(SAMPLES)]


@pytest.mark.parametrize("entries", [
    [], {"v": 2}, {"v": 1, "text": 3}, {"v": 1, "samples": "free"}, {"v": 1, "samples": ["free"] * 100},
    {"v": 1, "labels": {"kp(img)": []}}, {"v": 1, "facts": {"in(obj1,img)": 7}}, {"v": 1, "selected": {}},
])
def test_links_of_others_are_refused(entries: object) -> None:
    address = base64.urlsafe_b64encode(zlib.compress(json.dumps(entries).encode())).decode().rstrip("=")
    with pytest.raises(NsfrcError, match="link is damaged"):
        link.decode(address)
    with pytest.raises(NsfrcError, match="link"):
        link.decode(address[:-3])


def test_halves_of_characters_in_a_link() -> None:
    """They cannot be sent to a browser."""
    found = link.decode(link.encode(link.State("% \ud83d 🔑", labels={"\udfff": {"a": "true"}})) or "")
    assert found.text == "% \ufffd 🔑" and found.labels == {"\ufffd": {"a": "true"}}


def test_a_link_does_not_unpack_without_end() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 20_000_000, 9)).decode().rstrip("=")
    assert len(bomb) < link.MAX_LINK
    with pytest.raises(NsfrcError, match="too long"):
        link.decode(bomb)
    with pytest.raises(NsfrcError, match="too long"):
        link.decode("A" * (link.MAX_LINK + 1))


@pytest.mark.parametrize("name", ["evil:Model", "evil.pt"])
def test_no_code_that_a_program_names_is_run(name: str, eyes: Eyes, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "evil.pt").write_bytes(b"PK\x03\x04")
    desk = Desk(Start("", tmp_path / "rules.pl", samples=("closeby",)), eyes)
    desk.reopen(link.State(f":- perception('{name}').\n{RULES}"))
    desk.update()
    assert desk.answers is None and desk.problem is not None and "runs no code but its own" in desk.problem
    assert not (tmp_path / "ran").exists()


def test_ends_of_lines_are_those_of_the_editor(tmp_path: Path, eyes: Eyes) -> None:
    (tmp_path / "rules.pl").write_bytes(RULES.replace("\n", "\r\n").encode())
    desk = Desk(start(str(tmp_path / "rules.pl")), eyes)
    assert desk.text == RULES and desk.path == tmp_path / "rules.pl"
    desk.reopen(link.State(RULES.replace("\n", "\r")))
    assert desk.text == RULES


def test_the_name_in_a_link_names_no_folder(eyes: Eyes, tmp_path: Path) -> None:
    desk = Desk(Start("", tmp_path / "rules.pl"), eyes)
    desk.reopen(link.State(RULES, "../../elsewhere/rules"))
    assert desk.path == tmp_path / "rules.pl"


def test_opening_a_shipped_program(desk: Desk) -> None:
    assert desk.open("red_triangle") == shipped_text("red_triangle")[0]
    desk.update()
    assert desk.reading is not None and desk.reading.marks == () and desk.name == "red_triangle"
    assert next(iter(desk.pictures.items)) == "red_triangle 0"
    desk.pictures.drop("mine.png", drawn("closeby", 0))
    desk.open("closeby")
    assert len(desk.pictures) == SAMPLES + 1  # pictures of the user's own stay
    with pytest.raises(NsfrcError, match="not a shipped program"):
        desk.open("../secret")


def test_programs_with_slots_for_all_objects_and_with_classes(desk: Desk) -> None:
    desk.update(RULES.replace("slots(4)", "slots(auto)"))
    assert desk.problem is None and desk.answers is not None and desk.answers.objects.names[-1] == "obj4"
    desk.open("how_many")
    desk.update()
    assert desk.question is not None and desk.question.of_classes
    desk.label(next(iter(desk.pictures.items)), "circles(img,2)")
    desk.update()
    assert totals(desk)["labelled"] == 1


def test_pictures_unlike_those_that_perception_knows_are_remarked_on(desk: Desk) -> None:
    assert desk.answers is not None and desk.answers.remarks == ()
    grey = np.random.default_rng(0).integers(0, 255, (64, 64, 1), np.uint8)
    desk.clear()
    desk.pictures.drop("noise.png", png(np.repeat(grey, 3, axis=2)))
    desk.update()
    assert desk.answers is not None and any("not as yolo expects" in remark for remark in desk.answers.remarks)


def test_another_perception(desk: Desk) -> None:
    desk.see_with("evil:Model")
    assert desk.perception is None
    desk.update(":- perception('slot_attention').\n" + RULES)
    desk.see_with("yolo")
    desk.update()
    assert desk.problem is None and desk.answers is not None and desk.answers.session.perception == "yolo"
    assert link.decode(link.encode(desk.state()) or "").perception == "yolo"


def test_labels_of_one_of_several_questions(desk: Desk) -> None:
    both = RULES.replace("target(kp(img))", "target([kp(img), blue(img)])")
    desk.update(f"{both}blue(X) :- in(O, X), color(O, blue).\n")
    assert [one.name for one in desk.questions] == ["kp(img)", "blue(img)"]
    desk.asked = "blue(img)"
    for number in range(8):
        blue = any(shape.color == "blue" for shape in figure("closeby", 0, number).figure.shapes)
        desk.label(f"closeby {number}", "true" if blue else "false")
    desk.update()
    assert totals(desk)["right"] == 8 and set(desk.labels) == {"blue(img)"}
    learnt = desk.learn(Learning())
    assert [one.text for one in learnt.clauses] == ["blue(X) :- in(A, X), color(A, blue)."]


def test_saved_files(desk: Desk) -> None:
    page = desk.saved_results("html").decode()
    assert "<html" in page and "closeby 0" in page and "href=\"../" not in page
    lines = desk.saved_results("jsonl").decode().splitlines()
    assert len(lines) == SAMPLES and json.loads(lines[0])["file"] == "closeby 0"
    desk.clear()
    desk.update()
    with pytest.raises(NsfrcError, match="no answers to save"):
        desk.saved_results("csv")
