"""Generated programs, and the parts of the suite about compile time, memory and growth."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from nsfrc.benchmarks import compiling, generated, growth, memory
from nsfrc.benchmarks.measure import read_csv, write_csv
from nsfrc.benchmarks.parts import Part, Results
from nsfrc.compiler.stages import Compilation, compile_file
from tests.swi import crisp


def compiled(folder: Path, clauses: int, seed: int = 0) -> Compilation:
    path = folder / f"generated_{clauses}.pl"
    path.write_text(generated.program_text(clauses, seed))
    return compile_file(path)


def facts(figure: Sequence[tuple[str, str]]) -> list[str]:
    """A crisp world with the objects of a figure."""
    return [fact for i, (colour, shape) in enumerate(figure, 1)
            for fact in (f"in(obj{i},img)", f"color(obj{i},{colour})", f"shape(obj{i},{shape})")]


@pytest.mark.parametrize("clauses", [4, 10, 25])
def test_generated_programs_compile_without_warnings(tmp_path: Path, clauses: int) -> None:
    done = compiled(tmp_path, clauses, seed=1)
    assert len(done.program.clauses) == clauses
    assert len(set(done.program.clauses)) == clauses
    # A very small program may leave a pair without a use, which the compiler says.
    assert clauses < 10 or done.warnings == ()


def test_every_generated_clause_can_hold(tmp_path: Path) -> None:
    program = compiled(tmp_path, 20).program
    rng = random.Random(0)
    worlds = [facts([(rng.choice(generated.COLOURS), rng.choice(generated.SHAPES)) for _ in range(4)])
              for _ in range(400)]
    ground = crisp.rows(program)
    models = [crisp.derive(program, ground, world) for world in worlds]
    for clause in program.clauses:
        bodies = [set(body) for _, body in crisp.clause_rows(clause, program)]
        assert any(body <= model for model in models for body in bodies), str(clause)


def test_the_same_seed_gives_the_same_program() -> None:
    assert generated.program_text(30, 5) == generated.program_text(30, 5)
    assert generated.program_text(30, 5) != generated.program_text(30, 6)


def test_names_of_variables_do_not_make_a_clause_another() -> None:
    rng = random.Random(3)
    bodies = [generated.random_body(rng) for _ in range(30)]
    for body in bodies:
        for order in permutations(range(generated.OBJECTS)):
            renamed = frozenset(
                (name, tuple(order[a] if isinstance(a, int) else a for a in args)) for name, args in body
            )
            assert generated.canonical(renamed) == generated.canonical(body)
    assert len({generated.canonical(body) for body in bodies}) > 20


def test_too_few_clauses_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 3 clauses, not 3"):
        generated.program_text(3)


def test_growth_counts_what_the_compiler_made(tmp_path: Path) -> None:
    done = compiled(tmp_path, 10)
    row = growth.ClausesRow(**growth.grown(done.source, limit_gb=1.0), clauses=10)
    assert (row.rows_live, row.rows_plan) == (done.ground.rows, done.plan.rows)
    assert row.ratio is not None and row.baseline_median == pytest.approx(row.ratio * row.median)
    alone = growth.ClausesRow(**growth.grown(done.source), clauses=10)
    assert (alone.ratio, alone.baseline_median, alone.baseline_runs) == (None, None, 0)
    assert "dense left out" in str(alone)


def objects_row(program: str, objects: int, base: float | None) -> growth.ObjectsRow:
    return growth.ObjectsRow(
        median=1e-3 * objects, p20=1e-3, p80=1e-2, runs=3, baseline="dense reference", baseline_median=base,
        baseline_p20=base, baseline_p80=base, baseline_runs=3 if base else 0,
        ratio=base and base / (1e-3 * objects), batch=50, rows_live=objects ** 4, rows_plan=objects ** 3,
        compile_seconds=0.1, dense_gb=0.5 if base else 9.0, program=program, objects=objects,
    )


def again(part: Part, results: Results, folder: Path) -> Results:
    """The rows, written and read back."""
    for table in part.tables:
        if results.get(table.name):
            write_csv(folder / f"{table.name}.csv", results[table.name], first=table.keys)
            results = {**results, table.name: read_csv(folder / f"{table.name}.csv", table.row)}
    return results


def test_growth_is_told_and_drawn_from_the_csv_file(tmp_path: Path) -> None:
    rows = [objects_row("twopairs", 4, 2.0), objects_row("twopairs", 12, None)]
    results = again(growth.PART, {"growth_objects": rows, "growth_clauses": []}, tmp_path)
    assert results["growth_objects"] == rows
    text = growth.tell(results)
    assert "| twopairs, 4 objects | 256 | 64 | 100 ms | 4 ms | 2 s | 500× |" in text
    assert "| twopairs, 12 objects | 20,736 | 1,728 | 100 ms | 12 ms | needs 9.0 GB per clause | – |" in text
    (picture,) = growth.draw(results, tmp_path)
    assert picture == tmp_path / "growth.png" and picture.read_bytes().startswith(b"\x89PNG")
    assert growth.draw({}, tmp_path) == []


def test_a_compilation_is_timed_in_a_process_of_its_own(tmp_path: Path) -> None:
    row = compiling.compiled("closeby", runs=1)
    assert (row.program, row.slots, row.rows_live, row.note) == ("closeby", 4, 12, "")
    assert row.ratio is not None and row.ground < row.median and 0 < row.peak_gb < 10
    results = again(compiling.PART, {"compile": [row]}, tmp_path)
    assert "| closeby, 4 objects | 12 | 12 |" in compiling.tell(results)


def test_what_the_baseline_would_take_too_long_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MOST_ATOMS", 35)  # closeby has 12 rows of 3 atoms
    monkeypatch.setattr(compiling, "in_child", lambda code: compiling.compile_once("closeby", None, True))
    row = compiling.compiled("closeby", runs=1)
    assert (row.ratio, row.baseline_median) == (None, None)
    assert row.note == "36 body atoms would take the baseline over 20 s" and row.note in str(row)


def test_memory_that_is_held_for_a_moment_is_found() -> None:
    assert 30 < memory.added_mb(lambda: np.ones(5_000_000)) < 60
    assert memory.added_mb(lambda: None) < 5


@pytest.mark.parametrize(("mb", "base", "ratio", "text"), [
    (4.0, 100.0, 25.0, "| 4.0 MB | 100 MB | 25× |"),
    (0.2, 100.0, 100.0, "| < 1 MB | 100 MB | over 100× |"),
    (0.2, 0.5, None, "| < 1 MB | < 1 MB | – |"),
    (4.0, None, None, "| 4.0 MB | 3,000 MB (computed) | – |"),
])
def test_memory_below_the_resolution_is_no_ratio(
    tmp_path: Path, mb: float, base: float | None, ratio: float | None, text: str
) -> None:
    row = memory.memory_row("twopairs", 50, mb, base, 3000.0, 2000.0)
    assert row.ratio == ratio
    results = again(memory.PART, {"memory": [row]}, tmp_path)
    assert results["memory"] == [row]
    assert text in memory.tell(results)
    assert (row.note == "") == (base is not None)


def test_a_dense_form_that_cannot_be_built_is_left_out() -> None:
    """The index tensor of ten objects has more entries than may be built at all."""
    found = growth.grown("threepairs", {"object": 10}, limit_gb=growth.DENSE_LIMIT_GB)
    assert found["median"] > 0 and found["ratio"] is None and found["dense_gb"] > growth.DENSE_LIMIT_GB
