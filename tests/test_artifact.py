"""The .nsfrc file: what goes in comes out, and nothing but that is accepted."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from nsfrc.benchmarks import fuzz_artifacts as artifacts
from nsfrc.compiler import artifact
from nsfrc.compiler.passes import NAMES
from nsfrc.errors import NsfrcError
from nsfrc.program import Program, from_compilation, load
from nsfrc.program import compile as compile_program
from tests.examples import SHIPPED, shipped, write

Tensors = dict[str, np.ndarray]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return from_compilation(shipped("twopairs")).save(tmp_path / "twopairs.nsfrc")


def contents(path: Path) -> tuple[str, Tensors]:
    with safe_open(path, framework="numpy") as file:
        return file.metadata()["nsfrc"], {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def rewrite(path: Path, change: Callable[[dict, Tensors], None]) -> None:
    """Change header and tensors of a file, with a checksum that fits: only `verify` can object."""
    text, tensors = contents(path)
    header = json.loads(text)
    change(header, tensors)
    tensors = {name: table.copy(order="C") for name, table in tensors.items()}
    path.write_bytes(artifact._pack(header, tensors))


def assert_same(left: Program, right: Program) -> None:
    assert left.source == right.source
    assert left.atoms == right.atoms
    assert left.clauses == right.clauses
    assert left.targets == right.targets
    assert (left.settings, left.steps, left.depth) == (right.settings, right.steps, right.depth)
    for name, table in left.plan.tables().items():
        other = right.plan.tables()[name]
        assert table.dtype == other.dtype and np.array_equal(table, other, equal_nan=table.dtype.kind == "f"), name
    for name in ("initial", "neural", "targets", "slot_of", "members", "pair_clause", "pair_head", "pair_start",
                 "factors", "power", "multiplicity", "nodes", "components"):
        ours, theirs = getattr(left.ground, name), getattr(right.ground, name)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), name
    assert (left.ground.S, left.ground.L, left.ground.active) == (right.ground.S, right.ground.L, right.ground.active)


@pytest.mark.parametrize("name", SHIPPED)
def test_round_trip(name: str, tmp_path: Path) -> None:
    program = from_compilation(shipped(name))
    path = program.save(tmp_path / f"{name}.nsfrc")
    assert_same(program, load(path))


def test_round_trip_of_odd_names_and_settings(tmp_path: Path) -> None:
    text = """
        :- steps(7). :- gamma(0.05). :- threshold(0.3). :- perception(kandinsky).
        :- type('odd things', ['big box', 'It\\'s', 'Größe', 3, -2.5]).
        :- neural(has(object, 'odd things')).
        :- target('Kp'(img)). :- classes([small, 'too large']). :- threshold('Kp'(_), 0.75). :- threshold(classes, 0.5).
        small :- 'Kp'(img). 'too large' :- 'Kp'(img).
        'Kp'(X) :- in(O, X), has(O, 'big box').
        'Kp'(X) :- in(O, X), has(O, 'Größe').
    """
    program = compile_program(write(tmp_path, text, "odd names.pl"))
    loaded = load(program.save(tmp_path / "odd names.nsfrc"))
    assert_same(program, loaded)
    assert (loaded.settings.gamma, loaded.settings.threshold, loaded.steps) == (0.05, 0.3, 7)
    assert loaded.settings.thresholds == (("'Kp'(img)", 0.75), ("classes", 0.5))
    assert loaded.classes == ["small", "'too large'"] and loaded.questions == program.questions
    assert loaded.index("has( obj1 , 'big box' )") == program.atoms.index("has(obj1,'big box')")
    assert loaded.index("has(obj1,'It\\'s')") == program.atoms.index("has(obj1,'It\\'s')")


@pytest.mark.parametrize("skip", [(), ("share",), ("merge_equal", "needed"), NAMES])
def test_round_trip_without_passes(skip: tuple[str, ...], tmp_path: Path) -> None:
    program = compile_program("twopairs", skip=skip)
    assert_same(program, load(program.save(tmp_path / "p.nsfrc")))


def test_same_program_same_bytes(saved: Path, tmp_path: Path) -> None:
    again = compile_program("twopairs").save(tmp_path / "again.nsfrc")
    assert again.read_bytes() == saved.read_bytes()
    assert load(saved).save(tmp_path / "third.nsfrc").read_bytes() == saved.read_bytes()


def test_a_reader_may_read_it(saved: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize(("data", "message"), [
    (None, "there is no file"),
    (b"", "not a compiled program, or it is cut short"),
    (b"kp(X) :- in(O, X).\n", "not a compiled program, or it is cut short"),
    (b"\xff" * 100, "not a compiled program, or it is cut short"),
])
def test_what_is_no_artifact_is_refused(data: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.nsfrc"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(NsfrcError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="is a folder"):
        load(tmp_path)


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.nsfrc"
    save_file({"w": np.zeros(3, np.float32)}, path)
    with pytest.raises(NsfrcError, match="a safetensors file, but not a compiled program"):
        load(path)


def test_truncated_files_are_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for length in [*range(1, 20), 100, 1000, len(data) // 2, len(data) - 1000, len(data) - 1]:
        saved.write_bytes(data[:length])
        with pytest.raises(NsfrcError):
            load(saved)
    saved.write_bytes(data + b"more")
    with pytest.raises(NsfrcError):
        load(saved)


def test_a_newer_format_is_refused(saved: Path) -> None:
    def newer(header: dict, tensors: Tensors) -> None:
        header["format"], header["nsfrc"] = artifact.FORMAT + 1, "9.1"
        tensors.clear()

    rewrite(saved, newer)
    with pytest.raises(NsfrcError, match=r"written by nsfrc 9\.1 in format 3; .* reads format 2: update nsfrc"):
        load(saved)


def test_an_older_format_is_refused_with_the_remedy(saved: Path) -> None:
    rewrite(saved, lambda header, _: header.update(format=1))
    with pytest.raises(NsfrcError, match=r"in format 1; .* reads format 2: compile the program again"):
        load(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "{}", '{"format": "1"}', '{"format": 1}', "[" * 100_000])
def test_a_broken_header_is_refused(text: str, saved: Path) -> None:
    _, tensors = contents(saved)
    save_file(tensors, saved, {"nsfrc": text})
    with pytest.raises(NsfrcError):
        load(saved)


@pytest.mark.parametrize(("key", "value"), [
    ("program.types", None), ("program.types", [{"name": "object"}]), ("program.types", []),
    ("program.types.0.constants", "img"), ("program.types.0.role", "star"), ("program.predicates", [3]),
    ("program.predicates", []), ("program.predicates.0.types.0", "nothing"), ("program.name", 1),
    ("program.clauses", []), ("program.clauses", 3), ("program.clauses.0", 7), ("program.clauses.0.head", []),
    ("program.clauses.0.body.0", ["in", {"var": "O1"}]), ("program.clauses.0.body.0.1", {"var": 3}),
    ("program.clauses.0.body.0.1", {"op": "+", "args": []}), ("program.clauses.0.filters", [["==", "img"]]),
    ("program.clauses.0.filters", [["??", "img", "img"]]), ("program.clauses.0.types.0", ["X", "shape"]),
    ("program.targets.0", ["kp", {"var": "X"}]), ("program.facts.0", ["color", "obj1", "red"]),
    ("S", 10**30), ("S", "many"), ("S", 0), ("S", True), ("sizes.L", -1), ("sizes.L", 9), ("sizes.active", 10**12),
    ("sizes", {}), ("sizes", [73]), ("sizes.G", 73.0), ("steps", None), ("steps", "x"), ("steps", 10**9), ("depth", {}),
    ("depth", -1), ("program.settings", 3), ("program.settings", {"unknown": 1}), ("program.settings.threshold", "x"),
    ("program.settings.perception", -1), ("program.settings.steps", 10**9), ("program.settings.gamma", 0.0),
    ("program.settings.gamma", "0.1"), ("program.settings.steps", True), ("program.classes", 1), ("program.classes", 2),
    ("program.classes", "x"), ("program.classes", -1), ("program.settings.thresholds", 3),
    ("program.settings.thresholds", [["kp(img)"]]), ("program.settings.thresholds", [["kp(img)", 2.0]]),
    ("program.settings.thresholds", [["kp(img)", "x"]]), ("program.settings.thresholds", [["other(img)", 0.5]]),
    ("program.settings.thresholds", [["classes", 0.5]]), ("program.settings.thresholds", [["kp(img)", 0.5]] * 2),
])
def test_a_header_that_says_something_else_is_refused(key: str, value: object, saved: Path) -> None:
    def change(header: dict, _: Tensors) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in key.split(".")]
        for part in way:
            header = header[part]
        header[last] = value

    rewrite(saved, change)
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


@pytest.mark.parametrize("key", ["S", "sizes", "steps", "depth", "program", "program.name", "program.settings",
                                 "program.types", "program.predicates", "program.clauses", "program.targets"])
def test_a_header_that_says_too_little_is_refused(key: str, saved: Path) -> None:
    *way, last = key.split(".")
    rewrite(saved, lambda header, _: (header[way[0]] if way else header).pop(last))
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


def test_mutated_files_with_a_fitting_checksum_are_refused_or_used() -> None:
    assert set(artifacts.outcomes(400, seed=0)) == {"used", "refused"}


def names(path: Path) -> list[str]:
    return sorted(contents(path)[1])


def damaged(table: np.ndarray, kind: str) -> np.ndarray:
    table = table.copy()
    if kind == "large":
        return np.where(np.arange(table.size).reshape(table.shape) == table.size // 2, 2**31 - 1, table).astype(
            np.float32 if table.dtype.kind == "f" else np.int64)
    if kind == "negative":
        return -table.astype(np.float32 if table.dtype.kind == "f" else np.int64) - 1
    if kind == "fractions":
        return table.astype(np.float64) + 0.5
    if kind == "half":
        return table.astype(np.float16)
    if kind == "not a number":
        return np.full(table.shape, np.nan, np.float32)
    if kind == "short":
        return table[:-1]
    if kind == "long":
        return np.concatenate([table, table[-1:]])
    if kind == "nested":
        return table[None]
    if kind == "flat":
        return np.array(table.reshape(-1)[0])
    assert kind == "empty"
    return table[:0]


@pytest.mark.parametrize("kind", ["large", "negative", "fractions", "half", "not a number", "short", "long", "nested",
                                  "flat", "empty"])
def test_damaged_tables_are_refused(kind: str, saved: Path) -> None:
    data = saved.read_bytes()
    for name in names(saved):
        saved.write_bytes(data)

        def change(_: dict, tensors: Tensors, name: str = name) -> None:
            tensors[name] = damaged(tensors[name], kind)

        rewrite(saved, change)
        with pytest.raises(NsfrcError, match="damaged"):
            load(saved)
            pytest.fail(f"{name} was accepted: {kind}")


def test_missing_tables_are_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for name in names(saved):
        saved.write_bytes(data)
        rewrite(saved, lambda _, tensors, name=name: tensors.pop(name))
        with pytest.raises(NsfrcError, match="damaged"):
            load(saved)


def test_flipped_bits_are_refused(saved: Path) -> None:
    data = saved.read_bytes()
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(data), 600):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(generator.integers(0, 8))
        saved.write_bytes(flipped)
        with pytest.raises(NsfrcError):
            load(saved)


def test_flipped_bits_with_a_fitting_checksum_never_crash(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checksum the tables' own rules must hold: success or a clear refusal."""
    monkeypatch.setattr(artifact, "_checksum", lambda header, tensors: "the same")
    from_compilation(shipped("twopairs")).save(saved)
    data = saved.read_bytes()
    generator = np.random.default_rng(1)
    for _ in range(600):
        flipped = bytearray(data)
        for place in generator.integers(0, len(data), int(generator.integers(1, 4))):
            flipped[place] ^= 1 << int(generator.integers(0, 8))
        saved.write_bytes(flipped)
        with contextlib.suppress(NsfrcError):
            load(saved)


@pytest.mark.parametrize("call", ["replace", "fdopen"])
def test_an_interrupted_write_leaves_the_old_file(call: str, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(NsfrcError, match=r"cannot write .*: No space left on device"):
        from_compilation(shipped("closeby")).save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_stopped_write_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        from_compilation(shipped("closeby")).save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_folders_are_made_and_impossible_places_refused(saved: Path, tmp_path: Path) -> None:
    program = load(saved)
    assert load(program.save(tmp_path / "a" / "b" / "c.nsfrc")).name == "twopairs"
    with pytest.raises(NsfrcError, match="cannot write"):
        program.save(saved / "inside a file.nsfrc")
    with pytest.raises(NsfrcError, match="cannot write"):
        program.save(tmp_path / "a")
    with pytest.raises(NsfrcError, match="cannot write"):
        program.save(tmp_path / ("long" * 100))
    assert sorted(os.listdir(tmp_path)) == ["a", "twopairs.nsfrc"]


def test_a_device_stays_a_device(saved: Path) -> None:
    load(saved).save(os.devnull)
    assert not Path(os.devnull).is_file()
