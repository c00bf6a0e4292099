"""The same images in a folder, at an address, in Parquet files and in tars give the rows of one machine."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow
import pytest
from pyarrow.parquet import read_table, write_table

from nsfrc.errors import NsfrcError
from nsfrc.inference.rows import as_json
from nsfrc.ray.sources import open_source
from nsfrc.ray.tables import rows_of
from tests.cli.support import Run, arguments
from tests.ray.conftest import IMAGES, contents, pack_parquet, pack_tar
from tests.ray.support import answer_here, lines_of

ALL = 2 * IMAGES + 2


def packed(here: Run, how: str) -> str:
    """The images of d/ in another form."""
    folder, files = here.folder, contents(here.folder / "d")
    if how == "address":
        return f"file://{folder}/d"
    if how == "pattern":
        return f"file://{folder}/d/*/*.png"
    if how == "parquet":
        return str(pack_parquet(folder / "all.parquet", files))
    if how == "struct":
        cells = [{"bytes": data, "path": name} for name, data in files.items()]
        write_table(pyarrow.table({"image": cells}), folder / "hf.parquet", row_group_size=10)
        return "hf.parquet"
    if how == "paths":
        write_table(pyarrow.table({"path": [f"d/{name}" for name in files], "file": list(files)}), "paths.parquet")
        return "paths.parquet"
    if how == "tars":
        for shard in range(3):
            pack_tar(folder / f"s-{shard:02}.tar", dict(list(files.items())[shard::3]))
        return "s-{00..02}.tar"
    return "d"


@pytest.fixture
def expected(here: Run) -> list[str]:
    here(*arguments("--out", "one.jsonl", "--quiet"))
    return sorted(Path("one.jsonl").read_text().splitlines())


@pytest.mark.parametrize("how", ["folder", "address", "pattern", "parquet", "struct", "paths", "tars"])
def test_rows_are_those_of_one_machine(here: Run, expected: list[str], how: str) -> None:
    answer_here(packed(here, how), here.folder / "out", "jsonl")
    assert len(expected) == ALL and lines_of(here.folder / "out") == expected


def test_csv_parts_have_the_lines_of_one_machine(here: Run) -> None:
    here(*arguments("--out", "one.csv", "--quiet"))
    answer_here("d", here.folder / "out", "csv")
    assert lines_of(here.folder / "out", "csv") == sorted(Path("one.csv").read_text().splitlines()[1:])


def test_parquet_has_all_that_json_lines_have(here: Run, expected: list[str]) -> None:
    _, session = answer_here("d", here.folder / "out")
    table = read_table("out")
    dimensions = session.pipe.perception.dimensions
    rows = [as_json(row, session.questions) for row in rows_of(table, session.questions, dimensions)]
    reasons = dict(zip(table.column("file").to_pylist(), table.column("reason").to_pylist(), strict=True))
    import json

    told = []
    for line in rows:
        data = json.loads(line)
        data["reason"] = reasons[data["file"]]
        told.append(json.dumps(data))
    assert sorted(told) == expected
    assert set(table.column("program").to_pylist()) == {session.made_with["program"]}
    assert set(table.column("perception").to_pylist()) == {session.made_with["perception"]}


def test_classes_of_a_table_and_of_tars(here: Run) -> None:
    files = contents(here.folder / "d")
    flat = {name.replace("/", "-"): data for name, data in files.items()}
    classes = [name.partition("-")[0] for name in flat]
    write_table(pyarrow.table({"file": list(flat), "image": list(flat.values()), "label": classes}), "t.parquet")
    beside = {name.replace(".png", ".cls"): label.encode() for name, label in zip(flat, classes, strict=True)}
    pack_tar(here.folder / "t.tar", flat | beside)
    for given in ("t.parquet", "t.tar"):
        listing = open_source([given]).listing
        assert [listing.class_of(name) for name in listing.files] == classes


def test_names_that_two_tars_share_are_told_apart(here: Run) -> None:
    files = contents(here.folder / "d/true")
    for name in ("a.tar", "b.tar"):
        pack_tar(here.folder / name, files)
    names = list(open_source(["*.tar"]).listing.files)
    assert len(names) == 2 * len(files) and names[0].startswith("a.tar/")


def test_detections_without_pictures(here: Run) -> None:
    Path("rules.pl").write_text("""
:- type(image, [img]).
:- type(object, slots(auto)).
:- type(class, from_perception).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- target(alone(img)).
alone(X) :- in(A, X), class(A, cup), \\+ (in(B, X), class(B, key)).
""")
    rows = [f"{i}.jpg,{'cup' if i % 3 else 'key'},0.{3 + i % 7},0.1,0.1,0.4,0.5" for i in range(20)]
    Path("d.csv").write_text("\n".join(["file,class,confidence,x1,y1,x2,y2", *rows, *rows[::4]]) + "\n")
    here.good("infer", "--detections", "d.csv", "--program", "rules.pl", "--out", "one.jsonl", "--quiet")
    answer_here("", here.folder / "out", "jsonl", detections=Path("d.csv"))
    assert lines_of(here.folder / "out") == sorted(Path("one.jsonl").read_text().splitlines())


def test_pictures_are_answered_for_where_other_files_lie_beside_them(here: Run) -> None:
    pack_parquet(here.folder / "d/rows.parquet", contents(here.folder / "d/true"))
    assert len(open_source(["d"])) == len(open_source([f"file://{here.folder}/d"])) == ALL


def wrong(here: Run, what: str) -> str:
    """Something that cannot be answered for."""
    folder, files = here.folder, contents(here.folder / "d")
    whole = pack_parquet(folder / "a.parquet", files).read_bytes()
    if what == "parquet cut short":
        (folder / "a.parquet").write_bytes(whole[:-100])
    elif what == "tar cut short":
        data = pack_tar(folder / "a.tar", files).read_bytes()
        (folder / "a.tar").write_bytes(data[: len(data) // 2 + 100])
        return "a.tar"
    elif what == "tar compressed":
        (folder / "a.tar").write_bytes(gzip.compress(pack_tar(folder / "a.tar", files).read_bytes()))
        return "a.tar"
    elif what == "no tar":
        (folder / "a.tar").write_bytes(b"nothing of the kind" * 100)
        return "a.tar"
    elif what == "no images":
        write_table(pyarrow.table({"n": [1, 2]}), folder / "a.parquet")
    elif what == "no rows":
        write_table(pyarrow.table({"image": pyarrow.array([], pyarrow.binary())}), folder / "a.parquet")
    elif what == "names twice":
        write_table(pyarrow.table({"file": ["a", "a"], "image": [b"1", b"2"]}), folder / "a.parquet")
    return {"nothing there": "nowhere.parquet", "nothing fits": "no*.tar", "address": "file:///nowhere/at/all",
            "scheme": "nosuch://bucket/x", "camera": "camera:0"}.get(what, "a.parquet")


@pytest.mark.parametrize(("what", "told"), [
    ("parquet cut short", "a.parquet is cut short, damaged or not a Parquet file"),
    ("tar cut short", "a.tar is cut short"), ("tar compressed", "gunzip it first"), ("no tar", "not a tar"),
    ("no images", "no column of images: it must be bytes or paths of pictures; --image-column"),
    ("no rows", "no Parquet file there has a row"), ("names twice", "row 1 is called a, as another row is"),
    ("nothing there", "there is no file"), ("nothing fits", "no file is called as no*.tar says"),
    ("address", "there are no images in file:///nowhere/at/all"), ("scheme", "cannot open nosuch://bucket/x"),
    ("camera", "leave out --ray"),
])
def test_what_cannot_be_answered_for(here: Run, what: str, told: str) -> None:
    with pytest.raises(NsfrcError) as caught:
        open_source([wrong(here, what)])
    assert told in str(caught.value)


def test_a_damaged_row_group_is_rows_with_errors(here: Run) -> None:
    """A page that is damaged is met when it is read: its block's rows say so, and the others are answered."""
    path = pack_parquet(here.folder / "a.parquet", contents(here.folder / "d"), group=21)
    data = bytearray(path.read_bytes())
    from pyarrow.parquet import ParquetFile

    column = ParquetFile(path).metadata.row_group(1).column(1)
    start = column.data_page_offset
    data[start : start + 40] = bytes(40)
    path.write_bytes(bytes(data))
    answer_here("a.parquet", here.folder / "out", size=21)
    errors = read_table("out").column("error").to_pylist()
    assert len(errors) == ALL and sum("a.parquet is damaged" in (text or "") for text in errors) == 21
