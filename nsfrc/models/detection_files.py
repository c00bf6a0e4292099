"""Files of detections as people have them: COCO JSON, a folder of YOLO labels, CSV, JSON lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.models import names as naming
from nsfrc.models.detections import Detections, gathered
from nsfrc.models.names import ClassNames

LARGEST = 1_000_000_000  # bytes
COLUMNS = ("file", "class", "confidence", "x1", "y1", "x2", "y2")
OTHERS = {  # what else columns and keys may be called
    "file": ("file", "image", "filename", "file_name", "path"), "class": ("class", "label", "name", "class_name"),
    "confidence": ("confidence", "score", "conf"),
    "width": ("width", "image_width"), "height": ("height", "image_height"),
}
Found = dict[str, list[tuple[Any, ...]]]
Sizes = dict[str, tuple[int, int]]


def read_detections(path: Path, names: tuple[str, ...] = ()) -> Detections:
    """The detections of a file or folder. names: the classes by number, where a program lists them."""
    if path.is_dir():
        return _yolo(path, names)
    kind = path.suffix.lower()
    if kind not in (".csv", ".json", ".jsonl", ".ndjson"):
        raise NsfrcError(f"{path} is no file of detections by its name: it must be .json (COCO), .jsonl, .csv, or a "
                         f"folder of YOLO's .txt files")
    text = _text(path)
    if kind == ".csv":
        return _csv(path, text, names)
    if kind == ".json":
        return _coco(path, text, names)
    return _lines(path, text, names)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise NsfrcError(f"{path} is larger than 1 GB: split it")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise NsfrcError(f"{path} is not text in UTF-8") from None


def _listed(path: Path, names: tuple[str, ...]) -> ClassNames | None:
    """Class names by number: the program's, or those of a data.yaml or classes.txt near the file."""
    return naming.class_names(list(names), "the program") if names else naming.beside(path)


def _number(value: Any, where: str, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise NsfrcError(f"{where}: {what} is not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise NsfrcError(f"{where}: {what} is {value!r}, not a number") from None


def _class(value: Any, listed: ClassNames | None, where: str) -> Any:
    """A class by name; by number only where names are listed and the name is none of them."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise NsfrcError(f"{where}: a class is a name or a number, not {str(value)[:40]!r}")
    text = " ".join(str(value).split())
    if listed is not None and text not in listed.names and re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    return int(value) if isinstance(value, int) else text


def _side(value: Any, where: str) -> int:
    side = _number(value, where, "a width or height")
    if not 1 <= side <= 1e7 or side != int(side):
        raise NsfrcError(f"{where}: {value!r} is not the width or height of a picture")
    return int(side)


def _csv(path: Path, text: str, names: tuple[str, ...]) -> Detections:
    listed, found, sizes = _listed(path, names) if names else None, Found(), Sizes()
    try:
        rows = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise NsfrcError(f"{path} is not CSV ({error})") from None
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    places = {what: next((head.index(name) for name in OTHERS.get(what, (what,)) if name in head), -1)
              for what in (*COLUMNS, "width", "height")}
    if lacking := [what for what in COLUMNS if places[what] < 0]:
        raise NsfrcError(f"{path}:1: there is no column {lacking[0]}; a file of detections has the columns "
                         f"{', '.join(COLUMNS)}, and for boxes in pixels width and height too")
    for line, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        where = f"{path}:{line}"
        if len(row) != len(head):
            raise NsfrcError(f"{where}: {len(row)} cells; there are {len(head)} columns")
        cells = {what: row[place].strip() for what, place in places.items() if place >= 0}
        file = _file(cells["file"], where)
        one = found.setdefault(file, [])
        if cells.get("width") and cells.get("height"):
            sizes[file] = _side(cells["width"], where), _side(cells["height"], where)
        if cells["class"]:  # else a picture in which nothing was found
            numbers = (_number(cells[what], where, what) for what in COLUMNS[2:])
            one.append((_class(cells["class"], listed, where), *numbers))
    return gathered(found, str(path), sizes=sizes, known=listed)


def _file(value: Any, where: str) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise NsfrcError(f"{where}: a detection has no file")
    return str(value).strip().replace("\\", "/")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NsfrcError(f"{where} is not JSON ({error})") from None


def _lines(path: Path, text: str, names: tuple[str, ...]) -> Detections:
    """One picture a line, or one detection a line; see `from_records`."""
    lines = ((f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    told = [(where, _parsed(line, where)) for where, line in lines]
    return from_records(told, str(path), _listed(path, names) if names else None)


def from_records(
    records: Iterable[tuple[str, Any]], source: str, listed: ClassNames | None = None
) -> Detections:
    """Detections from what JSON says, each with the place that messages name; nothing else is read.

    One record a picture, {"file": …, "detections": [{"class": …, "confidence": …, "box": [x1, y1, x2, y2]}]}, or one a
    detection, with the keys that a CSV has as columns. listed: the classes, where they are known.
    """
    found, sizes = Found(), Sizes()
    for where, told in records:
        if not isinstance(told, dict):
            raise NsfrcError(f"{where}: a line is an object with file, class, confidence and box")
        file = _file(_get(told, "file"), where)
        one = found.setdefault(file, [])
        if _get(told, "width") is not None and _get(told, "height") is not None:
            sizes[file] = _side(_get(told, "width"), where), _side(_get(told, "height"), where)
        several = told.get("detections", [told] if _get(told, "class") is not None else [])
        if not isinstance(several, list):
            raise NsfrcError(f"{where}: detections is not a list")
        one += (_detection(each, listed, where) for each in several)
    return gathered(found, source, sizes=sizes, known=listed)


def _get(told: dict[str, Any], what: str) -> Any:
    return next((told[key] for key in OTHERS.get(what, (what,)) if key in told), None)


def _detection(told: Any, listed: ClassNames | None, where: str) -> tuple[Any, ...]:
    if not isinstance(told, dict):
        raise NsfrcError(f"{where}: a detection is an object with class, confidence and box")
    box = told.get("box", told.get("xyxy", [told.get(corner) for corner in COLUMNS[3:]]))
    if not isinstance(box, list) or len(box) != 4:
        raise NsfrcError(f"{where}: a box is [x1, y1, x2, y2]")
    sure = _get(told, "confidence")
    return (_class(_get(told, "class"), listed, where), 1.0 if sure is None else _number(sure, where, "confidence"),
            *(_number(value, where, "a box") for value in box))


def _coco(path: Path, text: str, names: tuple[str, ...]) -> Detections:
    """Results, a list of image_id, category_id, bbox [x, y, w, h] and score; or a whole file with images and
    categories, whose annotations may have a score."""
    told = _parsed(text, str(path))
    whole = isinstance(told, dict) and "annotations" in told
    results = told["annotations"] if whole else told
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise NsfrcError(f"{path} is not a file of COCO results: a list of objects with image_id, category_id, bbox "
                         f"and score")
    files, sizes = _coco_images(told, path) if whole else ({}, {})
    listed, numbers, remarks = _coco_classes(told if whole else {}, results, path, names)
    found: Found = {name: [] for name in files.values()}
    for place, one in enumerate(results, 1):
        where = f"{path}: detection {place}"
        box = one.get("bbox")
        if not isinstance(box, list) or len(box) != 4:
            raise NsfrcError(f"{where} has no bbox [x, y, width, height]")
        x, y, width, height = (_number(value, where, "bbox") for value in box)
        image = one.get("image_id")
        file = files.get(str(image)) or _file(one.get("file_name", image), where)
        score = _number(one.get("score", 1.0), where, "score")
        found.setdefault(file, []).append((_category(one, numbers, where), score, x, y, x + width, y + height))
    return gathered(found, str(path), sizes=sizes, in_pixels=True, known=listed, remarks=remarks)


def _category(one: dict[str, Any], numbers: dict[str, int], where: str) -> int:
    if (number := numbers.get(str(one.get("category_id")))) is None:
        raise NsfrcError(f"{where} has the category_id {one.get('category_id')!r}, which no category has")
    return number


def _coco_images(told: dict[str, Any], path: Path) -> tuple[dict[str, str], Sizes]:
    images, files, sizes = told.get("images"), dict[str, str](), Sizes()
    for image in images if isinstance(images, list) else ():
        if isinstance(image, dict) and "id" in image and "file_name" in image:
            file = files[str(image["id"])] = _file(image["file_name"], str(path))
            if "width" in image and "height" in image:
                sizes[file] = _side(image["width"], str(path)), _side(image["height"], str(path))
    return files, sizes


def _coco_classes(
    told: dict[str, Any], results: list[dict[str, Any]], path: Path, names: tuple[str, ...]
) -> tuple[ClassNames, dict[str, int], tuple[str, ...]]:
    """The classes, the number of every category_id, and what was assumed of these."""
    categories = told.get("categories")
    if isinstance(categories, list) and categories:
        if not all(isinstance(one, dict) and "id" in one and "name" in one for one in categories):
            raise NsfrcError(f"{path}: a category has no id or name")
        listed = naming.class_names([str(one["name"]) for one in categories], str(path))
        return listed, {str(one["id"]): i for i, one in enumerate(categories)}, ()
    found = _listed(path, names)
    if found is None:
        raise NsfrcError(f"{path} has category_id alone, and nothing says what the classes are called: add "
                         f":- model([names([person, car])]). to the program, or a data.yaml or classes.txt beside it")
    met = [one.get("category_id") for one in results]
    whole = [number for number in met if type(number) is int]
    first = 1 if whole and 0 not in whole and max(whole) == len(found) else 0
    remark = f"{path}: category_id {first} is taken to be {found.names[0]}, the first class of {found.source}"
    return found, {str(i + first): i for i in range(len(found))}, (remark,)


def _yolo(path: Path, names: tuple[str, ...]) -> Detections:
    """A folder of .txt files, one a picture: class x y w h and the confidence, all but the class as fractions."""
    files = sorted(file for file in path.rglob("*.txt") if file.name not in naming.LISTS)
    if not files:
        raise NsfrcError(f"{path} has no .txt files, which YOLO writes a picture's detections to")
    listed = _listed(path, names)
    if listed is None:
        raise NsfrcError(f"{path}: classes are numbers, and nothing says what they are called: add "
                         f":- model([names([person, car])]). to the program, or a data.yaml or classes.txt beside it")
    found = {file.relative_to(path).as_posix().removesuffix(".txt"): list(_yolo_rows(file)) for file in files}
    return gathered(found, str(path), in_pixels=False, known=listed)


def _yolo_rows(file: Path) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate(_text(file).splitlines(), 1):
        if not (cells := line.split()):
            continue
        where = f"{file}:{number}"
        if len(cells) not in (5, 6):
            raise NsfrcError(f"{where}: {len(cells)} numbers; a detection is class, x, y, width, height and, where it "
                             f"is known, the confidence")
        kind = _class(cells[0], None, where)
        if not re.fullmatch(r"[0-9]{1,9}", str(kind)):
            raise NsfrcError(f"{where}: a class is a number, not {cells[0]!r}")
        x, y, width, height, sure = (_number(cell, where, "a number") for cell in [*cells[1:], "1"][:5])
        yield int(kind), sure, x - width / 2, y - height / 2, x + width / 2, y + height / 2
