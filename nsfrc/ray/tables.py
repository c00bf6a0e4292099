"""Rows as an Arrow table, and as the bytes of a file: Parquet, CSV or JSON lines.

The columns are those of `nsfrc infer --out`, with what does not fit a cell of a CSV. CSV and JSON lines are the lines
that one machine writes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nsfrc.inference.rows import Answered, Row, as_csv, as_json, csv_header, heads, score_heads
from nsfrc.questions import Question
from nsfrc.ray.extra import need_arrow

KINDS = {"parquet": ".parquet", "csv": ".csv", "jsonl": ".jsonl"}
DIMENSIONS = b"nsfrc.dimensions"  # in the metadata of a Parquet file: the names of an object's entries


@dataclass(frozen=True)
class Form:
    """What rows are written as. kind: one of KINDS. program, perception: what made them, by name and digest.

    label: whether there are columns for the right answers.
    """

    kind: str
    questions: tuple[Question, ...]
    program: str
    perception: str
    dimensions: tuple[str, ...] = ()
    label: bool = True

    @property
    def reasons(self) -> bool:
        """Whether rows must have the reason."""
        return self.kind != "csv"

    def piece(self, rows: Sequence[Row]) -> Any:
        """Some rows as they go into a file, without the reasons as trees, which take the most room."""
        if self.kind == "parquet":
            return self.table(rows)
        line = as_csv if self.kind == "csv" else as_json
        return "".join(f"{line(row, self.questions)}\n" for row in rows)

    def encode(self, pieces: Sequence[Any]) -> bytes:
        """The content of a file with these pieces."""
        if self.kind != "parquet":
            head = f"{csv_header(self.questions)}\n" if self.kind == "csv" else ""
            return "".join([head, *pieces]).encode()
        arrow = need_arrow()
        content = io.BytesIO()
        arrow.parquet.write_table(arrow.concat_tables(pieces).unify_dictionaries(), content, compression="zstd")
        return content.getvalue()

    def schema(self) -> Any:
        """Names and types of the columns."""
        arrow = need_arrow()
        text, told = arrow.string(), arrow.dictionary(arrow.int32(), arrow.string())
        asked = self.questions
        fields = [
            arrow.field("file", text, nullable=False),
            *(arrow.field(name, text) for name in (heads("label", asked) if self.label else ())),
            *(arrow.field(name, arrow.float64()) for name in score_heads(asked)),
            *(arrow.field(name, text) for name in heads("answer", asked)),
            arrow.field("error", text), arrow.field("left_out", arrow.int32()),
            *(arrow.field(name, text) for name in heads("reason", asked)),
            arrow.field("objects", arrow.list_(arrow.list_(arrow.float32()))),
            arrow.field("program", told), arrow.field("perception", told),
        ]
        return arrow.schema(fields, metadata={DIMENSIONS: json.dumps(self.dimensions)})

    def table(self, rows: Sequence[Row]) -> Any:
        """The rows as a table of that schema."""
        arrow = need_arrow()
        schema = self.schema()
        columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        for row in rows:
            for name, value in self._cells(row).items():
                columns[name].append(value)
        arrays = [arrow.array(values, schema.field(name).type) for name, values in columns.items()]
        return arrow.Table.from_arrays(arrays, schema=schema)

    def _cells(self, row: Row) -> dict[str, Any]:
        asked = self.questions
        names = score_heads(asked)

        def each(what: str) -> dict[str, Any]:
            return {name: getattr(row.answers[one.name], what)
                    for name, one in zip(heads(what, asked), asked, strict=True)}

        return {
            "file": row.file, **(each("label") if self.label else {}),
            **dict(zip(names, row.scores or [None] * len(names), strict=True)), **each("answer"), "error": row.error,
            "left_out": row.further, **each("reason"),
            "objects": None if row.objects is None else np.asarray(row.objects, np.float32).tolist(),
            "program": self.program, "perception": self.perception,
        }


def rows_of(table: Any, questions: Sequence[Question], dimensions: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of a table that `Form.table` made, without reasons; columns that are not there are empty."""
    names = score_heads(questions)
    labels, answers = heads("label", questions), heads("answer", questions)
    for cells in table.to_pylist():
        said = {one.name: Answered(cells.get(label), cells.get(answer))
                for one, label, answer in zip(questions, labels, answers, strict=True)}
        given = any(one.answer is not None for one in said.values())
        objects = cells.get("objects")
        yield Row(
            cells.get("file") or "", Path(cells.get("file") or ""), said,
            tuple(cells[name] for name in names) if given else (), cells.get("error"),
            None if objects is None else np.array(objects, np.float32).reshape(-1, len(dimensions)), tuple(dimensions),
            further=cells.get("left_out") or 0,
        )


def as_line(row: Row) -> str:
    """What a driver must know of a row to count and show it, as a line of JSON."""
    said = {name: [one.label, one.answer] for name, one in row.answers.items()}
    return json.dumps([row.file, said, row.scores, row.error, row.further, row.doubts, row.animated])


def from_line(line: str) -> Row:
    file, said, scores, error, further, doubts, animated = json.loads(line)
    answers: Mapping[str, Answered] = {name: Answered(*pair) for name, pair in said.items()}
    return Row(file, Path(file), answers, tuple(scores), error, further=further, doubts=tuple(doubts),
               animated=animated)
