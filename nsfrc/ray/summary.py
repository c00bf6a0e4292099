"""What a folder of results comes to: counts, accuracy, confusion and calibration, part by part.

Only counts are kept, so memory does not depend on how many rows there are.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any

from nsfrc.errors import NsfrcError
from nsfrc.inference.measures import Measured
from nsfrc.inference.rows import Row, from_csv, from_json, heads, score_heads
from nsfrc.ray.dest import Manifest, part_name, parts_in, read_manifest
from nsfrc.ray.extra import need_arrow
from nsfrc.ray.places import Place, reason_of, told
from nsfrc.ray.tables import rows_of

AT_ONCE = 65536  # rows
PIECE = 1 << 20  # bytes


def summarise(dest: Place, each: Callable[[int, int], None] | None = None) -> tuple[Manifest, Measured, list[int]]:
    """The measures of all rows of a folder, and the numbers of the blocks that have no part. Raises NsfrcError.

    each: is told how many of how many parts are done.
    """
    manifest = read_manifest(dest)
    measures = Measured(manifest.questions)
    there = parts_in(dest, manifest.kind)
    for done, number in enumerate(there, 1):
        add_part(measures, dest.below(part_name(number, manifest.kind)), manifest)
        if each is not None:
            each(done, len(there))
    return manifest, measures, [number for number in range(manifest.expected) if number not in there]


def add_part(measures: Measured, part: Place, manifest: Manifest) -> None:
    """Count the rows of a part. Raises NsfrcError where it is none."""
    if manifest.kind == "parquet":
        for row, times in _counted(part, manifest):
            measures.add(row, times)
        return
    parse = from_csv if manifest.kind == "csv" else from_json
    for number, line in _lines(part, manifest.kind == "csv"):
        try:
            measures.add(parse(line, manifest.questions))
        except (ValueError, KeyError, TypeError, csv.Error):
            raise NsfrcError(f"{part.called}:{number}: not a row of results: remove the file, and --resume answers for "
                             f"its block again") from None


def _counted(part: Place, manifest: Manifest) -> Iterator[tuple[Row, int]]:
    """Rows of which the same is said, and how many there are."""
    arrow = need_arrow()
    asked = manifest.questions
    wanted = [*heads("label", asked), *score_heads(asked), *heads("answer", asked)]
    try:
        with arrow.parquet.ParquetFile(part.open()) as file:
            for batch in file.iter_batches(AT_ONCE, columns=wanted):
                table = arrow.Table.from_batches([batch])
                groups = table.group_by(wanted, use_threads=False).aggregate([([], "count_all")])
                yield from zip(rows_of(groups, asked), groups.column("count_all").to_pylist(), strict=True)
    except (OSError, arrow.ArrowException) as error:
        raise NsfrcError(f"{part.called} is cut short, damaged or not a part ({reason_of(error)}): remove it, and "
                         f"--resume answers for its block again") from None


def _lines(part: Place, headed: bool) -> Iterator[tuple[int, str]]:
    """The lines of a part with their numbers."""
    with told(f"cannot read {part.called}"), part.open() as file:
        for number, line in enumerate(io.TextIOWrapper(file, encoding="utf-8", newline="\n"), 1):
            if not line.endswith("\n"):
                raise NsfrcError(f"{part.called}:{number}: cut short: remove the file, and --resume answers for its "
                                 f"block again")
            if number > headed:
                yield number, line.rstrip("\n")


def digest_and_rows(part: Place, manifest: Manifest) -> dict[str, Any] | None:
    """The rows, bytes and digest of a part; None where it is not whole."""
    arrow = need_arrow()
    try:
        if manifest.kind == "parquet":
            with arrow.parquet.ParquetFile(part.open()) as file:
                rows = file.metadata.num_rows
        else:
            rows = sum(1 for _ in _lines(part, manifest.kind == "csv"))
        told_of = hashlib.sha256()
        size = 0
        with part.open() as file:
            while data := file.read(PIECE):
                told_of.update(data)
                size += len(data)
    except (OSError, arrow.ArrowException, UnicodeDecodeError, NsfrcError):
        return None
    return {"rows": rows, "bytes": size, "sha256": told_of.hexdigest()}
