"""Parquet files with a column of images: their bytes, or paths beside the file; and a column that names them.

Blocks are whole row groups, so that no page is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Listing, from_names
from nsfrc.inference.known import Memory
from nsfrc.ray.extra import need_arrow
from nsfrc.ray.places import EMPTY, Place, Stored, is_url, reason_of, told
from nsfrc.ray.sources import Block, Source

IMAGES = ("image", "images", "img", "picture", "photo", "bytes", "content", "data", "jpg", "jpeg", "png")
NAMES = ("file", "file_name", "filename", "path", "name", "key", "__key__", "id", "image_id", "url")
PATHS = ("image_path", "path", "url", "file_name", "filename", "file")
LABELS = ("label", "class", "cls")
AT_ONCE = 32  # pictures that are read at a time
SUFFIX = ".png"  # of the name of a picture that has none: it is an image by its column


@dataclass(frozen=True)
class Columns:
    """What a file's columns are. kind: "bytes", "paths", or "struct" with fields bytes and path."""

    image: str
    kind: str
    name: str | None = None
    label: str | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """Row groups of one file that are a block: their numbers, and how many rows they have."""

    place: Place
    columns: Columns
    groups: tuple[int, ...]
    rows: int

    def __iter__(self) -> Iterator[Any]:
        """The bytes of every picture; what cannot be read is an NsfrcError in its place."""
        import pyarrow

        done = 0
        try:
            with _open(self.place) as file:
                for batch in file.iter_batches(AT_ONCE, row_groups=list(self.groups), columns=[self.columns.image]):
                    for cell in batch.column(0).to_pylist():
                        yield _content(cell)
                        done += 1
        except (OSError, pyarrow.ArrowException, NsfrcError) as error:
            failed = NsfrcError(f"{self.place.name} is damaged ({reason_of(error)}); get a fresh copy")
            yield from (failed for _ in range(self.rows - done))


@dataclass(frozen=True, eq=False)
class ParquetSource(Source):
    """Images in Parquet files. groups: for each file its row groups and how many rows they have."""

    columns: Columns = Columns("image", "bytes")
    places: tuple[Place, ...] = ()
    groups: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    def count(self, size: int) -> int:
        if self.columns.kind == "paths":
            return super().count(size)
        return sum(1 for rows in self.groups for _ in _gathered(rows, size))

    def blocks(self, size: int, known: Memory | None = None) -> Iterator[Block]:
        if self.columns.kind == "paths":
            yield from super().blocks(size, known)
            return
        items = iter(self.listing)
        number = 0
        for place, rows in zip(self.places, self.groups, strict=True):
            for several in _gathered(rows, size):
                count = sum(rows[i] for i in several)
                own = tuple(next(items) for _ in range(count))
                seen = None if known is None else {one.name: known[one.name] for one in own}
                yield Block(number, own, seen, None if seen is not None else Group(place, self.columns, several, count))
                number += 1


def _gathered(rows: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Row groups that follow each other, until they have about `size` rows together."""
    several: list[int] = []
    together = 0
    for i, count in enumerate(rows):
        if several and together + count > size:
            yield tuple(several)
            several, together = [], 0
        if count:
            several.append(i)
            together += count
    if several:
        yield tuple(several)


def parquet_source(called: str, places: Sequence[Place], column: str | None = None) -> Source:
    """The images of Parquet files. column: which one they are in, where it is not found by its name."""
    need_arrow()
    names: list[str] = []
    labels: dict[str, str] = {}
    memory: dict[str, Stored] = {}
    groups = []
    columns = None
    seen: set[str] = set()
    for place in places:
        with _open(place) as file:
            own = _columns(place, file.schema_arrow, column)
            if columns is not None and own != columns:
                raise NsfrcError(f"{place.called} has other columns than {places[0].called}: answer for them one "
                                 f"by one")
            columns = own
            groups.append(tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)))
            for row, (name, label, path) in enumerate(_named(place, file, own)):
                if name in seen:
                    raise NsfrcError(f"{place.called}: row {row} is called {name}, as another row is: names must "
                                     f"differ")
                seen.add(name)
                names.append(name)
                if label is not None:
                    labels[name] = label
                if own.kind == "paths":
                    memory[name] = Stored(_beside(place, path), None)
    if not names or columns is None:
        raise NsfrcError(f"there are no images in {called}: no Parquet file there has a row")
    listing = _listing(names, memory, labels, columns)
    return ParquetSource(called, listing, places[0].local is None, columns, tuple(places), tuple(groups))


def _listing(names: list[str], memory: Mapping[str, Stored], labels: dict[str, str], columns: Columns) -> Listing:
    found = from_names(Path(), names, memory)
    # Whatever they are called, they are images.
    found = replace(found, files=dict.fromkeys(names), others=(), unread=())
    if not labels:
        return found
    return replace(found, classes=tuple(sorted(set(labels.values()))), source=f"from the column {columns.label}",
                   given=labels)


def _open(place: Place) -> Any:
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(place.open())
    except (OSError, pyarrow.ArrowException) as error:
        raise NsfrcError(f"{place.called} is cut short, damaged or not a Parquet file ({reason_of(error)}): get a "
                         f"fresh copy, or leave it out") from None


def _columns(place: Place, schema: Any, wanted: str | None) -> Columns:
    """Which column is what. Raises NsfrcError where none has images."""
    import pyarrow.types as kinds

    def text(name: str) -> bool:
        return bool(kinds.is_string(schema.field(name).type) or kinds.is_large_string(schema.field(name).type))

    def kind(name: str) -> str | None:
        one = schema.field(name).type
        if kinds.is_binary(one) or kinds.is_large_binary(one):
            return "bytes"
        if kinds.is_struct(one) and one.get_field_index("bytes") >= 0:
            return "struct"
        return "paths" if text(name) else None

    there = schema.names
    if wanted is not None and wanted not in there:
        raise NsfrcError(f"{place.called} has no column {wanted!r}: there are {', '.join(there)}")
    by_name = [name for name in IMAGES if name in there and kind(name)]
    bytes_alone = [name for name in there if kind(name) in ("bytes", "struct")]
    paths = [name for name in PATHS if name in there and text(name)]
    image = wanted or next(iter([*by_name, *bytes_alone, *paths]), None)
    if image is None or (found := kind(image)) is None:
        what = "no column of images" if image is None else f"a column {image!r} of {schema.field(image).type}"
        raise NsfrcError(f"{place.called} has {what}: it must be bytes or paths of pictures; --image-column names it, "
                         f"and there are {', '.join(f'{one.name} ({one.type})' for one in schema)}")
    name = next((one for one in NAMES if one in there and one != image and text(one)), None)
    label = next((one for one in LABELS if one in there and one != image
                  and (text(one) or kinds.is_integer(schema.field(one).type))), None)
    return Columns(image, found, name, label)


def _named(place: Place, file: Any, columns: Columns) -> Iterator[tuple[str, str | None, str]]:
    """The name, the class and the path of every row, the latter only where the column has paths."""
    paths = {"paths": [columns.image], "struct": [f"{columns.image}.path"]}.get(columns.kind, [])
    wanted = [one for one in (columns.name, columns.label, *paths) if one is not None]
    row = 0
    with told(f"cannot read {place.called}"):
        if not wanted:
            yield from ((f"{place.name}#{row:06}{SUFFIX}", None, "") for row in range(file.metadata.num_rows))
            return
        for batch in file.iter_batches(columns=wanted):
            for cells in batch.to_pylist():
                path = cells.get(columns.image) or ""
                path = (path.get("path") or "") if isinstance(path, dict) else path
                name = cells[columns.name] if columns.name is not None else path
                label = None if columns.label is None else cells[columns.label]
                yield str(name or f"{place.name}#{row:06}{SUFFIX}"), None if label is None else str(label), path
                row += 1


def _beside(place: Place, path: str) -> Place:
    """Where a path of a column leads: an address, an absolute path of a disk, or from the file's folder on."""
    if is_url(path):
        return Place.of(path)
    return Place(place.root, path) if path.startswith("/") and place.local is not None else place.beside(path)


def _content(cell: Any) -> Any:
    data = cell.get("bytes") if isinstance(cell, dict) else cell
    return data if data else NsfrcError(EMPTY)


