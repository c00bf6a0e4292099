"""What is known of images: the right answers, from the folders they lie in or from a table.

A table is a CSV file with the names of the files in its first column, and a column for each question: its head is the
target, or its predicate where that is clear, and its cells are 1, 0, true, false or empty; the column of the classes is
called `classes`, and its cells are names of classes, or `none`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.inference.folders import CLASS_ID, WORDS, Item, Listing, first_of, match_labels
from nsfrc.inference.rows import original
from nsfrc.questions import NONE, Question, called, short

FIRST_COLUMNS = ("file", "world")  # a table is of images, or of worlds of facts by their numbers
SHOWN = 5  # folders, names or questions that a message lists


@dataclass(frozen=True)
class Labels:
    """The right answers. question: the one that classes of files, such as their folders, answer.

    of_class: class → the right answer. of_file: where a table has them, question → file → the right answer.
    """

    question: str = ""
    of_class: Mapping[str, str] = field(default_factory=dict)
    of_file: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, item: Item, question: str) -> str | None:
        """The right answer to a question, if it is known."""
        if question in self.of_file:
            return self.of_file[question].get(item.name)
        return self.of_class.get(item.label) if item.label is not None and question == self.question else None

    def __bool__(self) -> bool:
        return bool(self.of_class or self.of_file)


def from_folders(classes: Sequence[str], questions: Sequence[Question]) -> Labels:
    """Folders that are called by classes, or by their numbers, label these; true and false label the only target."""
    targets = [one for one in questions if not one.of_classes]
    for one in sorted(questions, key=lambda one: not one.of_classes):
        if (one.of_classes or len(targets) == 1) and (found := match_labels(classes, one.atoms)):
            return Labels(one.name, found)
    return Labels()


def about_folders(listing: Listing, labels: Labels, questions: Sequence[Question]) -> str | None:
    """What to say of classes that mean no answer."""
    others = [name for name in listing.classes if name not in labels.of_class]
    if not others or (listing.loose and not labels):  # the latter are just folders
        return None
    shown = ", ".join(others[:SHOWN]) + (f" and {len(others) - SHOWN} more" if len(others) > SHOWN else "")
    classes = next((one.atoms for one in questions if one.of_classes), ())
    last, targets = len(classes) - 1, len(questions) - bool(classes)
    if any(name.startswith(CLASS_ID) for name in others):
        known = f"the classes stand for class_id 0 to {last}" if classes else "the program has no classes"
        return f"the images of {shown} ({listing.source}) have no label: {known}"
    if not classes and targets > 1:
        return (f"the images in {shown} have no label: a folder cannot say which of the {targets} targets it is about; "
                f"--labels FILE.csv has a column for each")
    numbered = f"all numbered, from class0 to class{last} or from class1 to class{last + 1}"
    named = f"named {', '.join(short(classes))}, or {numbered}" if classes else ""
    meant = named if targets != 1 else f"{named}, or true and false" if named else "true and false"
    return f"the images in {shown} have no label: class folders are {meant}"


def read_labels(path: Path, questions: Sequence[Question]) -> Labels:
    """The labels of a table; raises NsfrcError that names the line and the remedy."""
    rows = _rows(path)
    number, head = next(rows, (1, []))
    if not head or head[0].strip().lower() not in FIRST_COLUMNS:
        raise NsfrcError(f"{path}:{number}: the first line must name the columns: file, then the targets, as in "
                         f"file,{','.join(_spoken(questions))}")
    columns = [_question(path, number, cell, questions) for cell in head[1:]]
    if len(set(columns)) < len(columns) or not columns:
        raise NsfrcError(f"{path}:{number}: there must be a column for one question at least, and none twice")
    found: dict[str, dict[str, str]] = {one.name: {} for one in columns}
    files: dict[str, int] = {}
    for number, cells in rows:
        file = original(cells[0]).removeprefix("./")
        if len(cells) != len(head):
            raise NsfrcError(f"{path}:{number}: the line has {len(cells)} cells, and the first line {len(head)}")
        if file in files:
            raise NsfrcError(f"{path}:{number}: {file} has labels on line {files[file]} already")
        files[file] = number
        for one, cell in zip(columns, cells[1:], strict=True):
            if cell.strip():
                found[one.name][file] = _answer(path, number, cell.strip(), one)
    return Labels(of_file=found)


def about_table(path: Path, listing: Listing, labels: Labels) -> list[str]:
    """What to say of files that are not among the images, and of images that have no label."""
    images, named = {item.name for item in listing}, {file for one in labels.of_file.values() for file in one}
    missing, without = sorted(named - images), [name for name in images if name not in named]
    said = []
    if missing:
        what = "1 file that is" if len(missing) == 1 else f"{len(missing)} files that are"
        said.append(f"{path} has labels for {what} not among the images: {first_of(missing)}; images are called as in "
                    f"the column `file` of --out, such as {min(images)}")
    if without and len(without) < len(images):
        have = "1 image has" if len(without) == 1 else f"{len(without)} images have"
        said.append(f"{have} no label in {path}: {first_of(sorted(without))}")
    return said


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, with their numbers."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if any(cells):
                    yield reader.line_num, cells
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{path} is not UTF-8 text: save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise NsfrcError(f"{path}:{reader.line_num}: not a line of CSV ({error})") from None


def _question(path: Path, number: int, cell: str, questions: Sequence[Question]) -> Question:
    name = original(cell).strip()
    if (found := called(questions, name)) is not None:
        return found
    names = [one.name for one in questions]
    hint = did_you_mean(name, names) or f"the questions are {', '.join(names[:SHOWN])}"
    raise NsfrcError(f"{path}:{number}: the column {name!r} is no question of the program; {hint}")


def _spoken(questions: Sequence[Question]) -> list[str]:
    names = short([one.name for one in questions])
    return [name if "," not in name else f'"{name}"' for name in names[:SHOWN]]


def _answer(path: Path, number: int, cell: str, question: Question) -> str:
    """The answer that a cell means."""
    if not question.of_classes:
        if (word := WORDS.get(cell.lower())) is not None:
            return word
        raise NsfrcError(f"{path}:{number}: {cell!r} is no label of {question.name}: it must be 1, 0, true, false or "
                         f"empty")
    name = original(cell)
    names = dict(zip(short(question.atoms), question.atoms, strict=True)) | {one: one for one in question.atoms}
    found = NONE if name == NONE else names.get(name) or names.get("".join(name.split()))
    if found is None:
        known = [*short(question.atoms), NONE]
        hint = did_you_mean(name, known) or f"the classes are {', '.join(known[:SHOWN])}"
        raise NsfrcError(f"{path}:{number}: {cell!r} is no class; {hint}")
    return found
