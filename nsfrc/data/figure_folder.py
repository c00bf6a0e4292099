"""A folder of figures: pictures by label, and objects.json with what is truly in them.

    DIR/true/000000.png  DIR/false/000001.png   of a pattern; even numbers have it
    DIR/images/000000.png  DIR/labels/000000.txt   without a pattern; one line per object: class, centre, width, height
    DIR/objects.json
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

from nsfrc import __version__
from nsfrc.data import agreement
from nsfrc.data.figures import COLORS, SHAPES, Figure, Palette
from nsfrc.data.kandinsky import FREE, Labelled, figure
from nsfrc.data.png import png
from nsfrc.data.render import render
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

TRUTH = "objects.json"
BATCH = 64  # figures that are checked together


def write(
    pattern: str, out: Path, count: int, seed: int, palette: Palette | None = None
) -> Generator[Path, None, None]:
    """Make figures 0 … count − 1 and yield each when it is on disk; the same seed gives the same bytes.

    What is done stays when the caller stops: objects.json then tells of those figures. palette: what is drawn for red,
    yellow and blue, which labels and objects.json still call so.
    """
    drawn = None if palette is None else [list(color) for color in palette]
    earlier = _earlier(out, pattern, seed, drawn)
    entries: list[dict[str, Any]] = []
    try:
        for start in range(0, count, BATCH):
            numbers = range(start, min(start + BATCH, count))
            batch = [_in_colors(figure(pattern, seed, i), palette) for i in numbers]
            if pattern != FREE:
                agreement.check(pattern, batch, start)
            for i, labelled in zip(numbers, batch, strict=True):
                path = _write_figure(out, i, labelled)
                entries.append(_entry(path.relative_to(out), labelled))
                yield path
    finally:
        if entries:
            head = {"pattern": pattern, "seed": seed, "nsfrc": __version__}
            head |= {} if drawn is None else {"palette": drawn}
            write_whole(out / TRUTH, _lines(head, entries + earlier[len(entries) :]).encode())


def _in_colors(labelled: Labelled, palette: Palette | None) -> Labelled:
    if palette is None:
        return labelled
    drawn = labelled.figure
    return replace(labelled, figure=replace(drawn, style=replace(drawn.style, colors=palette)))


def _write_figure(out: Path, number: int, labelled: Labelled) -> Path:
    folder = "images" if labelled.label is None else str(labelled.label).lower()
    path = out / folder / f"{number:06d}.png"
    write_whole(path, png(render(labelled.figure)))
    if labelled.label is None:
        write_whole(out / "labels" / f"{number:06d}.txt", _boxes(labelled.figure).encode())
    return path


def _boxes(drawn: Figure) -> str:
    lines = []
    for shape in drawn.shapes:
        x1, y1, x2, y2 = shape.box
        kind = COLORS.index(shape.color) * len(SHAPES) + SHAPES.index(shape.shape)
        lines.append(f"{kind} {shape.x:.6f} {shape.y:.6f} {x2 - x1:.6f} {y2 - y1:.6f}\n")
    return "".join(lines)


def _entry(file: Path, labelled: Labelled) -> dict[str, Any]:
    objects = [{"shape": s.shape, "color": s.color, "box": [round(value, 6) for value in s.box]}
               for s in labelled.figure.shapes]
    return {"file": file.as_posix(), "label": labelled.label, "objects": objects}


def _lines(head: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """JSON with a line for each figure."""
    figures = ",\n".join(json.dumps(entry) for entry in entries)
    return f'{json.dumps(head)[:-1]}, "figures": [\n{figures}\n]}}\n'


def _earlier(out: Path, pattern: str, seed: int, palette: list[list[int]] | None) -> list[dict[str, Any]]:
    """What the folder holds already of the same figures; figures of two kinds must not mix in one."""
    try:
        if not out.exists() or not any(out.iterdir()):
            return []
    except NotADirectoryError:
        raise NsfrcError(f"{out} is a file: name a folder for the figures") from None
    except OSError as error:
        raise NsfrcError(f"cannot read {out}: {error.strerror}") from None
    try:
        head = json.loads((out / TRUTH).read_text(encoding="utf-8"))
        same = (head["pattern"], head["seed"], head.get("palette")) == (pattern, seed, palette)
        figures = list(head["figures"])
    except (OSError, ValueError, LookupError, TypeError):
        raise NsfrcError(f"{out} holds other files: name an empty or new folder for the figures") from None
    if not same:
        raise NsfrcError(
            f"{out} holds figures of {head['pattern']} with seed {head['seed']}"
            f"{' in a palette' if head.get('palette') else ''}: name another folder for these"
        )
    return figures
