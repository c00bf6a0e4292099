"""Labels from folders and from tables: which question they answer, and what is said of those that answer none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Item, folder
from nsfrc.inference.labels import about_folders, about_table, from_folders, read_labels
from nsfrc.questions import Question, questions

ONE = questions(["kp(img)"])
TWO = questions(["red(img)", "blue(img)"])
CLASSES = questions(["a(img)", "b(img)"], ["a(img)", "b(img)"])
MIXED = questions(["red(img)", "a(img)", "b(img)"], ["a(img)", "b(img)"])
ALL = questions(["red(img)", "blue(img)", "a(img)", "b(img)"], ["a(img)", "b(img)"])


@pytest.mark.parametrize(("folders", "asked", "question", "found"), [
    (["true", "false"], ONE, "kp(img)", {"true": "true", "false": "false"}),
    (["true", "false"], TWO, "", {}),
    (["true", "false"], MIXED, "red(img)", {"true": "true", "false": "false"}),
    (["true", "false"], ALL, "", {}),
    (["red", "blue"], TWO, "", {}),
    (["a", "b"], MIXED, "classes", {"a": "a(img)", "b": "b(img)"}),
    (["0", "1"], MIXED, "classes", {"0": "a(img)", "1": "b(img)"}),
    (["class0", "none", "class1"], CLASSES, "classes", {"class0": "a(img)", "class1": "b(img)", "none": "none"}),
    (["none", "other"], CLASSES, "", {}),
])
def test_what_folders_label(
    folders: list[str], asked: tuple[Question, ...], question: str, found: dict[str, str]
) -> None:
    labels = from_folders(folders, asked)
    assert (labels.question, labels.of_class, bool(labels)) == (question, found, bool(found))


@pytest.mark.parametrize(("asked", "said"), [
    (ONE, "the images in x, y have no label: class folders are true and false"),
    (TWO, "the images in x, y have no label: a folder cannot say which of the 2 targets it is about; "
          "--labels FILE.csv has a column for each"),
    (CLASSES, "the images in x, y have no label: class folders are named a, b, or all numbered, from class0 to class1 "
              "or from class1 to class2"),
    (MIXED, "the images in x, y have no label: class folders are named a, b, or all numbered, from class0 to class1 or "
            "from class1 to class2, or true and false"),
])
def test_what_is_said_of_other_folders(asked: tuple[Question, ...], said: str, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").touch()
    listing = folder(tmp_path)
    assert about_folders(listing, from_folders(listing.classes, asked), asked) == said


def written(folder: Path, text: str) -> Path:
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table(tmp_path: Path) -> None:
    text = "\ufefffile,red,\"blue( img )\",classes\r\n1.png,1,,a\r\n\r\n./d/2.png,No,TRUE,none\r\n'=3.png,,0,b(img)\r\n"
    labels = read_labels(written(tmp_path, text), ALL)
    assert labels.of_file == {
        "red(img)": {"1.png": "true", "d/2.png": "false"}, "blue(img)": {"d/2.png": "true", "=3.png": "false"},
        "classes": {"1.png": "a(img)", "d/2.png": "none", "=3.png": "b(img)"}}
    item = Item(Path("1.png"), "1.png", label="true")
    assert [labels.of(item, one.name) for one in ALL] == ["true", None, "a(img)"]
    some = read_labels(written(tmp_path, "file,blue\n1.png,0\n"), ALL)
    assert [some.of(item, one.name) for one in ALL] == [None, "false", None]


@pytest.mark.parametrize(("text", "message"), [
    ("", r"labels\.csv:1: the first line must name the columns: file, then the targets, as in file,red,blue,classes"),
    ("1.png,1,0\n", "the first line must name the columns"),
    ("file\n1.png\n", r"labels\.csv:1: there must be a column for one question"),
    ("file,red,red(img)\n", r"labels\.csv:1: .* none twice"),
    ("file,reed\n", r"labels\.csv:1: the column 'reed' is no question of the program; the questions are red\(img\)"),
    ("file,blue(imgg)\n", r"did you mean blue\(img\)\?"),
    ("file,a\n", r"the column 'a' is no question of the program"),
    ("file,red\n1.png\n", r"labels\.csv:2: the line has 1 cells, and the first line 2"),
    ("file,red\n1.png,1\n\n1.png,0\n", r"labels\.csv:4: 1\.png has labels on line 2 already"),
    ("file,red\n1.png,maybe\n", r"labels\.csv:2: 'maybe' is no label of red\(img\): it must be 1, 0, true, false or"),
    ("file,classes\n1.png,c\n", r"labels\.csv:2: 'c' is no class; the classes are a, b, none"),
    ("file,classes\n1.png,nona\n", r"'nona' is no class; did you mean none\?"),
    ('file,red\n"1.png,1\n', r"labels\.csv:2: not a line of CSV"),
])
def test_tables_that_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=message):
        read_labels(written(tmp_path, text), ALL)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"cannot read .*labels\.csv: No such file"):
        read_labels(tmp_path / "labels.csv", ONE)
    (tmp_path / "labels.csv").write_bytes(b"file,kp\n\xff\xfe.png,1\n")
    with pytest.raises(NsfrcError, match="not UTF-8 text: save it as CSV in UTF-8"):
        read_labels(tmp_path / "labels.csv", ONE)


def test_images_and_labels_that_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("1.png", "2.png", "3.png"):
        (tmp_path / "d" / name).touch()
    path, listing = written(tmp_path, "file,kp\n1.png,1\n4.png,0\n"), folder(tmp_path / "d")
    first, second = about_table(path, listing, read_labels(path, ONE))
    assert first.endswith("has labels for 1 file that is not among the images: 4.png; images are called as in the "
                          "column `file` of --out, such as 1.png")
    assert second == f"2 images have no label in {path}: 2.png, 3.png"
    path = written(tmp_path, "file,kp\n1.png,1\n2.png,0\n3.png,1\n")
    assert about_table(path, listing, read_labels(path, ONE)) == []
