"""Detections that somebody has already: boxes, classes and confidences of files, whatever found them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from nsfrc.errors import NsfrcError
from nsfrc.models.names import ClassNames, class_names
from nsfrc.records import dataclass

EDGE = 1.001  # coordinates up to this are fractions, as rounding may carry them a little beyond 1


@dataclass(frozen=True, eq=False)
class Detections:
    """The detections of files. names: of their classes; source: what messages call them.

    rows: file → x1 y1 x2 y2 | confidence | class, [n, 6], the surest first. in_pixels: whether coordinates are pixels,
    else fractions of the picture. sizes: file → (width, height), as far as they are known. digest: of all of it.
    remarks: what was assumed in reading them.
    """

    names: ClassNames
    rows: Mapping[str, np.ndarray]
    source: str
    in_pixels: bool = False
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def digest(self) -> str:
        told = hashlib.sha256(repr((self.names.names, self.in_pixels, sorted(self.sizes.items()))).encode())
        for name in sorted(self.rows):
            told.update(name.encode("utf-8", "surrogatepass") + b"\0" + np.ascontiguousarray(self.rows[name]).tobytes())
        return told.hexdigest()

    def key(self, name: str) -> str | None:
        """What a picture is called here: its whole name, else its last part, else that without its ending."""
        return next((key for key in (name, PurePosixPath(name).name) if key in self.rows), None) or \
            self._by_stem().get(PurePosixPath(name).stem)

    def _by_stem(self) -> Mapping[str, str]:
        if not hasattr(self, "_stems"):
            found: dict[str, str] = {}
            for key in self.rows:
                found.setdefault(PurePosixPath(key).stem, key)
            object.__setattr__(self, "_stems", found)
        stems: Mapping[str, str] = getattr(self, "_stems")  # noqa: B009
        return stems

    def fractions(self, key: str, size: tuple[int, int] | None = None) -> np.ndarray:
        """The rows of a file with coordinates as fractions of its picture. size: (width, height), where it is known."""
        rows = np.array(self.rows[key], dtype=np.float64)
        if self.in_pixels and len(rows):
            width, height = size or self.sizes.get(key) or (0, 0)
            if not width or not height:
                raise NsfrcError(f"{self.source}: boxes are in pixels, and the size of {key} is not known: give the "
                                 f"pictures with --images, or add width and height")
            rows[:, :4] /= [width, height, width, height]
        rows[:, :4] = rows[:, :4].clip(0, 1)
        return rows


def detections(
    given: Any, names: Sequence[str] | None = None, sizes: Mapping[str, tuple[int, int]] | None = None,
) -> Detections:
    """Detections of pictures, for `nsfrc.infer(..., detections=...)`.

    given: the path of a file or folder that `--detections` takes; or a dict from names of files to what was found in
    each: rows (class, confidence, x1, y1, x2, y2), or a `supervision.Detections`. names: the classes by number, where
    what is given does not name them. sizes: (width, height) of each file, for boxes in pixels without pictures.
    """
    if isinstance(given, Detections):
        return given
    if isinstance(given, str | Path):
        from nsfrc.models.detection_files import read_detections

        return read_detections(Path(given), tuple(names or ()))
    if not isinstance(given, Mapping):
        raise NsfrcError(f"detections are a path, or a dict from files to what was found in them, not a "
                         f"{type(given).__name__}")
    found = {str(file): _rows_of(file, one) for file, one in given.items()}
    return gathered(found, "detections", tuple(names or ()), dict(sizes or {}))


def _rows_of(file: Any, one: Any) -> list[tuple[Any, ...]]:
    """What was found in one file as rows class, confidence, x1, y1, x2, y2."""
    if hasattr(one, "xyxy") and hasattr(one, "class_id"):
        return _of_supervision(str(file), one)
    if not isinstance(one, list | tuple | np.ndarray):
        raise NsfrcError(f"detections of {file}: a list of (class, confidence, x1, y1, x2, y2), not a "
                         f"{type(one).__name__}")
    rows = [tuple(row) if isinstance(row, list | tuple | np.ndarray) else () for row in one]
    if any(len(row) != 6 for row in rows):
        raise NsfrcError(f"detections of {file}: each is (class, confidence, x1, y1, x2, y2)")
    return rows


def _of_supervision(file: str, one: Any) -> list[tuple[Any, ...]]:
    boxes, classes = np.asarray(one.xyxy, dtype=np.float64), one.class_id
    named = (getattr(one, "data", None) or {}).get("class_name")
    if named is None and classes is None:
        raise NsfrcError(f"the detections of {file} have no classes: neither class_id nor data[\"class_name\"]")
    sure = np.ones(len(boxes)) if one.confidence is None else np.asarray(one.confidence, dtype=np.float64)
    which = [str(name) for name in named] if named is not None else [int(number) for number in classes]
    return [(name, float(score), *map(float, box)) for name, score, box in zip(which, sure, boxes, strict=True)]


def gathered(
    found: Mapping[str, Sequence[tuple[Any, ...]]], source: str, names: tuple[str, ...] = (),
    sizes: Mapping[str, tuple[int, int]] | None = None, in_pixels: bool | None = None, known: ClassNames | None = None,
    remarks: tuple[str, ...] = (),
) -> Detections:
    """Detections from rows (class, confidence, x1, y1, x2, y2) of files; a class is a name, or a number of `names`.

    in_pixels: None finds out: fractions are at most 1.
    """
    listed = known or (class_names(list(names), source) if names else None)
    told = _class_numbers(found, listed, source)
    rows = {file: np.array([(*row[2:], row[1], told[row[0]]) for row in one], dtype=np.float64).reshape(-1, 6)
            for file, one in found.items()}
    for file, one in rows.items():
        _refuse_rows(one, file, source)
    if in_pixels is None:
        in_pixels = any(map(are_pixels, rows.values()))
    ordered = {file: one[np.argsort(-one[:, 4], kind="stable")] for file, one in rows.items()}
    every = listed or class_names([str(name) for name in told] or ["nothing"], source)
    return Detections(every, ordered, source, in_pixels, sizes or {}, remarks)


def are_pixels(rows: np.ndarray) -> bool:
    """Whether boxes, [n, 6], are pixels: fractions are at most 1."""
    return len(rows) > 0 and float(rows[:, :4].max()) > EDGE


def _class_numbers(
    found: Mapping[str, Sequence[tuple[Any, ...]]], listed: ClassNames | None, source: str
) -> dict[Any, int]:
    """The number of every class that occurs, by what it is called."""
    met = list(dict.fromkeys(row[0] for one in found.values() for row in one))
    if listed is None:
        if numbers := [one for one in met if isinstance(one, int | np.integer)]:
            raise NsfrcError(f"{source}: classes are numbers ({numbers[0]}), and nothing says what they are called: "
                             f"add :- model([names([person, car])]). to the program, or a data.yaml or classes.txt "
                             f"beside it")
        return {name: number for number, name in enumerate(sorted(met))}
    by_name = {name: i for i, name in enumerate(listed.names)} | {name: i for i, name in enumerate(listed.atoms)}
    told = {}
    for one in met:
        number = int(one) if isinstance(one, int | np.integer) else by_name.get(str(one), -1)
        if not 0 <= number < len(listed):
            raise NsfrcError(f"{source}: there is no class {one}; there are {len(listed)}: "
                             f"{', '.join(listed.names[:8])}{' …' if len(listed) > 8 else ''}")
        told[one] = number
    return told


def _refuse_rows(rows: np.ndarray, file: str, source: str) -> None:
    if not np.isfinite(rows).all():
        raise NsfrcError(f"{source}: a detection of {file} has a number that is not finite")
    if len(rows) and not (rows[:, 4].min() >= 0 and rows[:, 4].max() <= 1):
        raise NsfrcError(f"{source}: a detection of {file} has the confidence {rows[:, 4].max():g}, which is not from "
                         f"0 to 1")
    wrong = np.flatnonzero((rows[:, 0] > rows[:, 2]) | (rows[:, 1] > rows[:, 3]))
    if len(wrong):
        box = ", ".join(f"{value:g}" for value in rows[wrong[0], :4])
        raise NsfrcError(f"{source}: a detection of {file} has the box {box}; it must be x1, y1, x2, y2 with x1 ≤ x2 "
                         f"and y1 ≤ y2")
