"""The model of the card: bounds of what is counted, and the dense form beside it."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

import nsfrc
from nsfrc.benchmarks import dense, roofline
from nsfrc.benchmarks.a100 import A100
from nsfrc.benchmarks.roofline import Counted, RooflineRow
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM
from nsfrc.program import Program

pytestmark = pytest.mark.ptx

STEPS = 2
RULES = """:- semantics(paper). :- type(image, [img]). :- type(object, slots(2)).
:- neural(in(object, image)). :- neural(red(object)). :- target(kp(img)).
kp(X) :- in(O, X), red(O).
"""


@pytest.fixture(scope="module")
def twopairs() -> Program:
    return nsfrc.compile("twopairs")


@pytest.fixture(scope="module")
def rules() -> Program:
    return nsfrc.compile(source=RULES, name="rules")


@pytest.fixture(scope="module")
def rows(rules: Program) -> list[RooflineRow]:
    """Of one file of kernels: compiling takes long."""
    return list(roofline.models(rules, (PROGRAM,)))


@pytest.fixture(scope="module")
def in_interpreter(rows: list[RooflineRow]) -> dict[str, Any]:
    """What the child process says, with rows for both files of kernels to measure."""
    given = [*rows, replace(rows[0], kernels="clause")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.roofline_child"], env={**os.environ, "TRITON_INTERPRET": "1"},
        input=json.dumps([asdict(row) for row in given]), cwd=Path(__file__).parent.parent, capture_output=True,
        text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_resources_of_a_card() -> None:
    clocks = 108 * 1.41e9  # of all multiprocessors in a second
    by = roofline.bounds(Counted(instructions=4, special=1, barriers=0, sectors=1, missed=1555), A100)
    assert by == pytest.approx({"issue": 1 / clocks, "special": 2 / clocks, "L2": 32 / (5120 * 1.41e9), "memory": 1e-9})


@pytest.fixture(scope="module")
def runs(rules: Program) -> list[Any]:
    """Of one, two and three tiles of examples."""
    return [roofline.launched(rules, PROGRAM, tiles * roofline.TILE) for tiles in (1, 2, 3)]


def test_every_tile_of_examples_costs_the_same(runs: list[Any]) -> None:
    for direction in (0, 1):
        one, two, three = (roofline.counted(launches[direction], tables, A100) for launches, tables in runs)
        assert three.minus(two) == two.minus(one) and two.instructions > one.instructions
        assert two.missed - one.missed < one.missed  # tables and workspace are there already


def test_what_does_not_fit_the_second_cache_comes_from_memory(runs: list[Any]) -> None:
    (forward, _), tables = runs[1]
    at_home, without = (roofline.counted(forward, 0, card) for card in (A100, replace(A100, l2=432 * 64)))
    assert at_home[:-1] == without[:-1] and at_home.missed < without.missed <= 32 * without.sectors
    assert tables > 0 and roofline.counted(forward, tables, A100) == at_home


def test_rows_of_the_model(rows: list[RooflineRow]) -> None:
    assert [(row.kernels, row.direction) for row in rows] == [("program", "forward"), ("program", "training")]
    for row in rows:
        by = {"issue": row.issue_ns, "special": row.special_ns, "L2": row.l2_ns, "memory": row.memory_ns}
        assert row.bound_ns == max(by.values()) == by[row.limit]
        assert (row.semantics, row.objects, row.batch) == ("paper", 2, roofline.FULL)
        assert row.seconds == pytest.approx(row.bound_ns * 1e-9 * row.batch)
        assert row.chosen and row.dense_bytes and row.dense_over
        assert row.dense_seconds == pytest.approx(row.dense_over * row.seconds)
    forward, training = rows
    assert forward.instructions < training.instructions and forward.dense_bytes < training.dense_bytes


def test_another_batch_and_other_kernels(rules: Program, rows: list[RooflineRow]) -> None:
    small = roofline.at_batch(replace(rows[0], kernels="clause"), rules, 10)
    assert small.seconds == pytest.approx(rows[0].seconds / 10_000) and small.bound_ns == rows[0].bound_ns
    assert not small.chosen and small.dense_fits and small.dense_gb < rows[0].dense_gb


def test_shipped_programs_come_under_both_semantics() -> None:
    paper, anchored = roofline.both_semantics("closeby")
    assert not paper.anchored and anchored.anchored and paper.name == anchored.name == "closeby"
    assert roofline.shapes(paper) == (PROGRAM, CLAUSE) and roofline.shapes(anchored) == (None,)


def test_dense_operations_are_those_torch_runs(twopairs: Program) -> None:
    batch, plan = 3, twopairs.plan
    reasoner = twopairs.reasoner("reference", steps=STEPS)
    with torch.no_grad(), torch.profiler.profile(record_shapes=True) as profile:
        reasoner.engine(torch.rand(batch, plan.G), None, reasoner.run)  # the engine alone: nothing is looked for in V0
    names = "index prod div amax abs eq masked_fill_ sub exp_ sum log_ add_ mul argmax gather gt where cat".split()
    wanted = {f"aten::{name}" for name in names}
    events = [e for e in profile.events() or [] if e.name in wanted
              and not (e.cpu_parent and e.cpu_parent.name == e.name)]
    moved = dense.forward(plan, STEPS, batch)
    assert moved.kernels == len(events)
    assert moved.exps == sum(math.prod(e.input_shapes[0]) for e in events if e.name == "aten::exp_")
    large = {f"aten::{name}" for name in ("prod", "div", "amax", "sub", "exp_", "sum")}
    read = sum(4 * math.prod(e.input_shapes[0]) for e in events if e.name in large)
    index = 8 * plan.C * plan.G * plan.S * plan.L * STEPS
    assert read + index < moved.read < 1.25 * read + index


def test_dense_memory_of_training_is_what_torch_keeps(twopairs: Program) -> None:
    batch, plan, kept = 3, twopairs.plan, {}
    reasoner = twopairs.reasoner("reference", steps=STEPS)

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        reasoner(torch.rand(batch, plan.G, requires_grad=True))
    seen = sum(storage.nbytes() for storage in kept.values())
    assert 0.8 * seen < dense.peak(plan, STEPS, batch, True) <= 1.02 * seen


def test_dense_grows_with_the_batch_but_for_the_index_tensor(twopairs: Program) -> None:
    one, two, three = (dense.forward(twopairs.plan, STEPS, batch) for batch in (1, 2, 3))
    for field in fields(one):
        a, b, c = (getattr(m, field.name) for m in (one, two, three))
        assert b - a == pytest.approx(c - b)
    assert one.kernels == two.kernels and two.written == 2 * one.written < two.read
    assert dense.seconds(dense.forward(twopairs.plan, STEPS, 10**5)) > 10 * dense.seconds(one)


def test_csv_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "rules.pl").write_text(RULES.replace("paper", "anchored"))
    roofline.main(["--program", str(tmp_path / "rules.pl"), "--model", "--out", str(tmp_path)])
    text = capsys.readouterr().out
    assert text.count("MODEL of the A100-SXM4-40GB, not measured") == 2
    with open(tmp_path / "roofline.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:len(fields(RooflineRow))] == [f.name for f in fields(RooflineRow)]
    assert [(line["kind"], line["kernels"], line["direction"]) for line in lines] \
        == [("model", "anchored", "forward"), ("model", "anchored", "training")]
    assert {line["p20"] for line in lines} == {line["dense_seconds"] for line in lines} == {""}
    assert (tmp_path / "roofline.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--program", "closebye"], "closebye"), (["--batches", "0"], "1 or more"),
])
def test_mistakes_are_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        roofline.main(arguments)
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and message in error and "Traceback" not in error


def test_code_that_measures_runs(
    rows: list[RooflineRow], in_interpreter: dict[str, Any], tmp_path: Path
) -> None:
    done = [RooflineRow(**row) for row in in_interpreter["measured"]]
    assert [(row.direction, row.kernels) for row in done] \
        == [("forward", "program"), ("forward", "clause"), ("training", "program")]
    for row in done:
        assert (row.kind, row.card, row.batch) == ("measured", "a card", 3)
        assert (row.seconds, row.p20, row.p80) == (3e-6, 2e-6, 4e-6)
        assert row.over_model == pytest.approx(3e-6 / (3 * row.bound_ns * 1e-9))
        assert row.dense_seconds == 3e-6 and row.dense_over == 1
        assert "MEASURED on a card, batch 3: 3 µs (2 µs to 4 µs)" in roofline.measured_line(row)
    assert "written" in roofline.write_plot([*rows, *done], tmp_path / "both.png") and (tmp_path / "both.png").exists()


def test_events_time_each_run(in_interpreter: dict[str, Any]) -> None:
    # Three runs of 1, 2 and 3 ms to warm up; ten of 3 ms fit 30 ms: runs of 4 … 13 ms.
    assert in_interpreter["events"] == {
        "median": pytest.approx(8.5e-3), "p20": pytest.approx(6e-3), "p80": pytest.approx(12e-3), "runs": 10,
    }
