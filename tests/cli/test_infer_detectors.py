"""Own detectors and own detections on the command line: model files, --detections, slots(auto), new, train concept."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from PIL import Image

from nsfrc.benchmarks.tiny_detector import write_tiny
from nsfrc.inference.given import gather
from nsfrc.inference.session import Wanted, open_session
from tests.cli.support import Run
from tests.perception.test_model_file import PROGRAM, paint

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

RULES = """
:- include('boxes.pl').
:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- target(alone(img)).
alone(X) :- in(A, X), class(A, cup), \\+ (in(B, X), class(B, key)).
"""
ROWS = [("a.jpg", "cup", 0.9, 10, 20, 60, 80), ("a.jpg", "key", 0.8, 70, 0, 90, 30),
        ("b.jpg", "cup", 0.4, 5, 5, 50, 70), ("b.jpg", "key", 0.1, 50, 50, 60, 70)]


@pytest.fixture
def photos(run: Run) -> Path:
    tmp_path = run.folder
    write_tiny(tmp_path / "tiny.onnx")
    (tmp_path / "rules.pl").write_text(PROGRAM)
    (tmp_path / "photos").mkdir()
    paint(tmp_path / "photos" / "a.png", {(0, 0): "red", (3, 2): "blue", (1, 1): "red"})
    paint(tmp_path / "photos" / "b.png", {(1, 0): "green"}, (64, 32))
    return tmp_path


def test_three_commands_from_photographs_to_a_report(photos: Path, run: Run) -> None:
    assert "written to warm.pl" in run.good("new", "warm", "--perception", "tiny.onnx")
    assert "fine" in run.good("check", "warm.pl")
    shown = run.good("infer", "--images", "photos", "--program", "warm.pl", "--report", "r.html")
    assert "objects     3, as many as the fullest of 2 images has (slots(auto))" in shown
    assert "presence    crisp, from confidence 0.25 on" in shown
    page = (photos / "r.html").read_text()
    assert "1 red_square</text>" in page and 'class="picture"' in page


def test_rules_about_more_objects_than_there_are(photos: Path, run: Run) -> None:
    (photos / "photos" / "a.png").unlink()
    run.good("new", "warm", "--perception", "tiny.onnx")
    shown = run.good("infer", "--images", "photos", "--program", "warm.pl")
    assert "objects     2, as many as a rule speaks of; the image has 1 (slots(auto))" in shown
    named = PROGRAM.replace("in(A, X), class(A,", "in(obj3, X), class(obj3,")
    assert named != PROGRAM
    (photos / "third.pl").write_text(named)
    shown = run.good("infer", "--images", "photos", "--program", "third.pl")
    assert "objects     3, as many as a rule speaks of" in shown


def test_rules_that_count_more_objects_than_there_are(run: Run) -> None:
    counts = ":- target(many(img)).\nmany(X) :- aggregate_all(count, in(_, X), N), N >= 3.\n"
    (run.folder / "rules.pl").write_text(RULES.replace("from_perception", "[cup, key]") + counts)
    (run.folder / "d.jsonl").write_text('{"file": "a", "detections": [{"class": "cup", "box": [0, 0, 0.5, 0.5]}]}\n')
    shown = run.good("infer", "--detections", "d.jsonl", "--program", "rules.pl")
    assert "objects     3, as many as a rule speaks of; the image has 1 (slots(auto))" in shown


def test_rows_of_a_model_file(photos: Path, run: Run) -> None:
    run.good("infer", "--images", "photos", "--program", "rules.pl", "--out", "r.jsonl")
    a, b = map(json.loads, Path("r.jsonl").read_text().splitlines())
    assert (a["answer"], b["answer"]) == ("true", "false")
    assert a["dimensions"][-2:] == ["objectness", "confidence"] and len(a["objects"]) == 3
    assert b["objects"][0][:4] == [0.25, 0, 0.5, 0.5]  # of a picture of 64 × 32, whose frame is square


def test_resume_notices_other_weights(photos: Path, run: Run) -> None:
    wanted = Wanted((photos / "photos",), "rules.pl")
    listing = gather(str(photos / "photos"))
    first = open_session(wanted, listing).made_with
    assert first["presence"] == "crisp, from confidence 0.25 on"
    assert open_session(wanted, listing).made_with == first
    write_tiny(photos / "tiny.onnx", metadata={"names": "['red square', 'green square', 'blue square']"})
    assert open_session(wanted, listing).made_with["perception"] != first["perception"]


def test_dropped_objects_are_told_in_every_row(photos: Path, run: Run) -> None:
    text = PROGRAM.replace("slots(auto)", "slots(2)")
    Path("rules.pl").write_text(text)
    shown = run.good("infer", "--images", "photos", "--program", "rules.pl", "--out", "r.csv")
    assert "a.png  0.0000  false   (1 object left out)\n" in shown
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert [row["left_out"] for row in rows] == ["1", ""]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "coco", "yolo"])
def test_detections_of_every_kind_answer_the_same(run: Run, kind: str) -> None:
    tmp_path = run.folder
    Path("rules.pl").write_text(RULES)
    file = _written(tmp_path, kind)
    if kind in ("coco", "csv"):  # boxes in pixels without sizes: the pictures have them
        (tmp_path / "photos").mkdir()
        for name in ("a.jpg", "b.jpg"):
            Image.new("RGB", (100, 100)).save(tmp_path / "photos" / name)
        shown = run.good("infer", "--images", "photos", "--detections", str(file), "--program", "rules.pl")
    else:
        shown = run.good("infer", "--detections", str(file), "--program", "rules.pl")
    lines = [line.split()[1:3] for line in shown.splitlines() if line.startswith(("a", "b")) and "0" in line]
    assert lines == [["0.0000", "false"], ["1.0000", "true"]]


def _written(folder: Path, kind: str) -> Path:
    if kind == "csv":
        lines = ["file,class,confidence,x1,y1,x2,y2", *(",".join(map(str, row)) for row in ROWS)]
        (folder / "d.csv").write_text("\n".join(lines))
        return folder / "d.csv"
    if kind == "jsonl":
        lines = [json.dumps({"file": f, "class": c, "confidence": s, "box": [v / 100 for v in b]})
                 for f, c, s, *b in ROWS]
        (folder / "d.jsonl").write_text("\n".join(lines))
        return folder / "d.jsonl"
    if kind == "coco":
        (folder / "classes.txt").write_text("cup\nkey\n")
        rows = [{"image_id": f, "category_id": ["cup", "key"].index(c) + 1, "score": s,
                 "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]]} for f, c, s, *b in ROWS]
        (folder / "d.json").write_text(json.dumps(rows))
        return folder / "d.json"
    (folder / "data.yaml").write_text("names: {0: cup, 1: key}\n")
    (folder / "labels").mkdir()
    for f, c, s, x1, y1, x2, y2 in ROWS:
        with open(folder / "labels" / f"{f[0]}.txt", "a") as file:
            file.write(f"{['cup', 'key'].index(c)} {(x1 + x2) / 200} {(y1 + y2) / 200} {(x2 - x1) / 100} "
                       f"{(y2 - y1) / 100} {s}\n")
    return folder / "labels"


@pytest.mark.parametrize(("name", "text", "message"), [
    ("d.csv", "file,class\n", "d.csv:1: there is no column confidence"),
    ("d.csv", "file,class,confidence,x1,y1,x2,y2\na,cup,2,0,0,1,1\n", "confidence 2, which is not from 0 to 1"),
    ("d.csv", "file,class,confidence,x1,y1,x2,y2\na,cup,1,0,x,1,1\n", "d.csv:2: y1 is 'x', not a number"),
    ("d.csv", "file,class,confidence,x1,y1,x2,y2\na,cup,1,5,0,1,1\n", "must be x1, y1, x2, y2 with x1 ≤ x2"),
    ("d.csv", "file,class,confidence,x1,y1,x2,y2\na,cup,1,5,0,9,9\na,key,1,5,0,9,9\n", "boxes are in pixels"),
    ("d.json", "{", "is not JSON"), ("d.json", "[1]", "not a file of COCO results"),
    ("d.json", '[{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}]', "nothing says what the classes are called"),
    ("d.jsonl", '{"file": "a", "class": "cup", "box": [1]}', "d.jsonl:1: a box is [x1, y1, x2, y2]"),
    ("d.doc", "", "is no file of detections by its name"),
])
def test_detections_that_are_refused(run: Run, name: str, text: str, message: str) -> None:
    Path("rules.pl").write_text(RULES)
    Path(name).write_text(text)
    assert message in run.refused("infer", "--detections", name, "--program", "rules.pl")


def test_patterns_lists_and_videos(photos: Path, run: Run) -> None:
    shown = run.good("infer", "--images", "photos/*.png", "--program", "rules.pl")
    assert "2 images: 1 true, 1 false" in shown
    Path("list.txt").write_text("# two of them\nphotos/b.png\nphotos/a.png\n")
    shown = run.good("infer", "--images", "list.txt", "--program", "rules.pl")
    assert "2 images: 1 true, 1 false" in shown
    refused = run.refused("infer", "--images", "none/*.png", "--program", "rules.pl")
    assert "no file is called as none/*.png says" in refused
    cv2 = pytest.importorskip("cv2")
    writer = cv2.VideoWriter("clip.avi", cv2.VideoWriter_fourcc(*"MJPG"), 10, (64, 64))
    if not writer.isOpened():
        pytest.skip("opencv writes no video here")
    for number in range(8):
        writer.write(cv2.imread("photos/a.png") if number >= 4 else cv2.imread("photos/a.png") * 0)
    writer.release()
    shown = run.good("infer", "--images", "clip.avi", "--every", "4", "--program", "rules.pl")
    assert "clip.avi#0" in shown and "clip.avi#4" in shown and "2 images: 1 true, 1 false" in shown
    Path("broken.mp4").write_bytes(b"\0" * 100)
    assert "is not a video" in run.refused("infer", "--images", "broken.mp4", "--program", "rules.pl")


def test_learning_through_the_rules_and_fitting_thresholds(run: Run) -> None:
    tmp_path = run.folder
    write_tiny(tmp_path / "tiny.onnx", size=96)
    Path("rules.pl").write_text("""
        :- type(image, [img]). :- type(object, slots(auto)). :- type(class, from_perception).
        :- neural(in(object, image)). :- neural(class(object, class)). :- neural(closeby(object, object)).
        :- perception('tiny.onnx'). :- target(kp(img)).
        kp(X) :- in(A, X), in(B, X), class(A, red_square), class(B, blue_square), closeby(A, B).""")
    rng = random.Random(0)
    for number in range(40):  # near means up to three cells here, which is more than what closeby has learnt
        near = number % 2 == 0
        while True:
            a, b = ((rng.randrange(6), rng.randrange(6)) for _ in range(2))
            apart = abs(a[0] - b[0]) + abs(a[1] - b[1])
            if (1 <= apart <= 3) if near else apart >= 5:
                break
        (tmp_path / "l" / str(near).lower()).mkdir(parents=True, exist_ok=True)
        paint(tmp_path / "l" / str(near).lower() / f"{number}.png", {a: "red", b: "blue"}, (96, 96))
    learn = ("train", "concept", "closeby", "--program", "rules.pl", "--images", "l", "--out", "c.json", "--json")
    told = json.loads(run.good(*learn))
    assert told["accuracy"]["before"] < 0.9 and told["accuracy"]["held_out"] == 1 and told["accuracy"]["training"] == 1
    shown = run.good("infer", "--images", "l", "--program", "rules.pl", "--concepts", "c.json", "--fit-threshold")
    assert "accuracy 100.00%" in shown and ":- threshold(0." in shown and "100.0% of 40 labelled images" in shown
    wrong = run.refused("train", "concept", "clsby", "--program", "rules.pl", "--images", "l")
    assert "nothing to learn called 'clsby'" in wrong
    assert "needs images of both labels" in run.refused("infer", "--images", "l/true", "--program", "rules.pl",
                                                    "--fit-threshold")


def test_new_refuses_what_is_there(photos: Path, run: Run) -> None:
    assert "there is a file rules.pl already" in run.refused("new", "rules")
    assert "not an ONNX file" in run.refused("new", "other", "--perception", "best.pt")
    run.good("new", "street")
    assert "person" in Path("street.pl").read_text()
