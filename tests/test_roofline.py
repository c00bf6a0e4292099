"""The model of the card: its counts against what the kernels do in the interpreter, and its laws."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

import nsfrc
from nsfrc.benchmarks import card, dense, roofline
from nsfrc.benchmarks.card import Task
from nsfrc.engines.gpu import launch
from nsfrc.program import Program

STEPS = 2
# Four rows a part, so that small programs have pairs of several parts.
SHAPES = {"program": launch.PROGRAM, "clause": replace(launch.CLAUSE, rows_of_part=4)}


def in_interpreter(*arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "tests.roofline_child", *arguments], env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def twopairs() -> Program:
    return nsfrc.compile("twopairs")


def task_of(program: Program, kernels: str = "program", direction: str = "forward", **changes: Any) -> Task:
    task = Task(program.plan, SHAPES[kernels], True, False, direction, STEPS)
    return replace(task, **changes)


@pytest.mark.parametrize(("name", "kernels", "inputs", "outputs"), [
    ("closeby", "program", "all", "targets"),
    ("twopairs", "program", "neural", "all"),
    ("twopairs", "clause", "all", "all"),
])
def test_counts_are_those_of_the_kernels(name: str, kernels: str, inputs: str, outputs: str) -> None:
    seen = in_interpreter("count", name, kernels, inputs, outputs)
    program = nsfrc.compile(name)
    for direction in ("forward", "keep", "backward"):
        task = task_of(
            program, kernels, direction, plan=roofline.plan_of(program, inputs),
            neural_only=inputs == "neural", targets_only=outputs == "targets",
        )
        work = card.work_of(task)
        assert work.part(1) == seen[direction], direction
        assert all(work.part(0)[kind] <= done for kind, done in work.part(1).items())


@pytest.mark.parametrize("name", ["twopairs", "nine_circles", "clevr_hans3"])
def test_useful_exponentials_follow_from_the_plan(name: str) -> None:
    program = nsfrc.compile(name)
    plan, pairs = program.plan, len(program.plan.pair_clause)
    rounds = card.loops_of(task_of(program)).rows.rounds[0]  # a running soft-or fades once a round
    absent = 2 * plan.C + min(plan.C, launch.PROGRAM.tall)
    step = plan.rows + rounds + 2 * pairs + absent + 3 * pairs + (len(plan.heads) + 1) + plan.slots
    assert card.work_of(task_of(program)).part(0)["exp"] == STEPS * step
    factors = int((plan.row_left != plan.active).sum() + (plan.row_right != plan.active).sum())
    backward = step - plan.slots + (plan.slots + pairs + len(plan.heads) + 1 + plan.C + pairs) + factors
    assert card.work_of(task_of(program, direction="backward")).part(0)["exp"] == STEPS * backward
    assert pairs <= rounds <= plan.rows


def test_rows_of_every_shipped_program_are_counted_once() -> None:
    for name in roofline.PROGRAMS:
        plan = nsfrc.compile(name).plan
        for kernels in SHAPES:
            loops = card.loops_of(Task(plan, SHAPES[kernels], True, False, "forward", 1))
            assert loops.rows.entries[0] == plan.rows
            assert loops.nodes[0] == plan.nodes
            assert loops.pairs_of_heads.entries[0] == loops.pairs_of_clauses.entries[0] == len(plan.pair_clause)
            assert loops.rows.entries[1] % SHAPES[kernels].tall == 0


def test_work_grows_by_the_same_with_every_step(twopairs: Program) -> None:
    for direction in ("forward", "keep", "backward"):
        one, two, three = (card.work_of(task_of(twopairs, direction=direction, steps=t)).part(1) for t in (1, 2, 3))
        assert {k: two[k] - one[k] for k in one} == {k: three[k] - two[k] for k in one}
        assert two["exp"] > one["exp"] and two["near_read"] > one["near_read"]


def test_compulsory_bytes(twopairs: Program) -> None:
    G, slots = twopairs.plan.G, twopairs.plan.slots
    past = (STEPS + 1) * slots + STEPS
    bytes_of = {d: card.cost(task_of(twopairs, direction=d), 10).compulsory for d in ("forward", "keep", "backward")}
    assert bytes_of == {"forward": 4 * 2 * G, "keep": 4 * (2 * G + past), "backward": 4 * (2 * G + past)}


def test_what_does_not_fit_a_cache_is_served_by_the_next(twopairs: Program) -> None:
    task, batch = task_of(twopairs), 10**6
    at_home = card.cost(task, batch)
    no_l1 = card.cost(task, batch, replace(card.A100, l1_each=1e3))
    no_cache = card.cost(task, batch, replace(card.A100, l1_each=1e3, l2=1e5))
    assert [c.level for c in (at_home, no_l1, no_cache)] == ["L1", "L2", "memory"]
    assert at_home.hbm == no_l1.hbm == at_home.compulsory < no_cache.hbm <= no_cache.compulsory + no_cache.l1
    assert at_home.l2 < no_l1.l2 <= no_l1.l1 == at_home.l1
    assert no_cache.limit == "memory" and no_cache.bound == no_cache.hbm / card.A100.memory_rate


def test_a_full_card_takes_twice_as_long_for_twice_the_batch(twopairs: Program) -> None:
    for direction in ("forward", "keep", "backward"):
        task = task_of(twopairs, direction=direction)
        resident = card.A100.instances * task.shape.wide
        assert resident == 108 * 4 * 32
        assert 0 < card.full_from(task) <= resident
        one, ten, twenty = (card.predicted(task, n * resident) - launch.LAUNCH for n in (1, 10, 20))
        assert card.predicted(task, 1) == pytest.approx(one + launch.LAUNCH, rel=0.5)
        assert twenty == pytest.approx(2 * ten, rel=0.01)
        assert ten / (10 * resident) >= card.cost(task, 10 * resident).bound


def test_waiting_is_what_the_launch_choice_goes_by() -> None:
    seen = set()
    for name in roofline.PROGRAMS:
        program = nsfrc.compile(name)
        for batch in roofline.BATCHES:
            by_shape = {
                shape.kernels: card.seconds_waiting(task, batch)
                for shape in card.SHAPES for task in roofline.tasks(program, "neural", "forward", shape)
            }
            taken = roofline.chosen(program, "neural", batch).kernels
            assert by_shape[taken] == min(by_shape.values()), (name, batch)
            seen.add(taken)
    assert seen == {"program", "clause"}


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


def test_table_is_labelled_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    roofline.main(["--program", "closeby", "--model"])
    text = capsys.readouterr().out
    assert text.count("MODEL of the A100-SXM4-40GB: nothing here was measured") == 2
    assert 'inputs="neural"' in text and 'inputs="all"' in text
    assert "100,000  training" in text and "the card is full from batch" in text


def test_csv_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    roofline.main(["--program", "closeby", "--model", "--json", "--batches", "1", "1000", "--out", str(tmp_path)])
    rows = json.loads(capsys.readouterr().out)
    with open(tmp_path / "roofline.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(rows) == len(lines) == 2 * 2 * 2 * 2
    assert list(lines[0])[:len(fields(roofline.RooflineRow))] == [f.name for f in fields(roofline.RooflineRow)]
    assert {line["kind"] for line in lines} == {"model"} and {line["p20"] for line in lines} == {""}
    assert [int(line["exp"]) for line in lines] == [row["exp"] for row in rows]
    for chosen in ({r["kernels"] for r in rows if r["chosen"] and r["batch"] == b} for b in (1, 1000)):
        assert len(chosen) == 1
    assert (tmp_path / "roofline.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--program", "closebye"], "closebye"), (["--batches", "0"], "1 or more"),
])
def test_mistakes_are_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        roofline.main(arguments)
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and message in error and "Traceback" not in error


def test_code_that_measures_runs() -> None:
    rows = in_interpreter("measure", "closeby")
    assert {(r["inputs"], r["direction"], r["kernels"]) for r in rows} == {
        (i, d, k) for i in roofline.INPUTS for d in roofline.DIRECTIONS for k in SHAPES
    }
    for row in rows:
        assert (row["kind"], row["card"], row["batch"]) == ("measured", "a card", 3)
        assert (row["seconds"], row["p20"], row["p80"]) == (3e-6, 2e-6, 4e-6)
        assert row["over_model"] == pytest.approx(3e-6 / row["model_seconds"])
        assert row["dense_seconds"] == 3e-6 and row["dense_over"] == 1


def test_events_time_each_run() -> None:
    # Three runs of 1, 2 and 3 ms to warm up; ten of 3 ms fit 30 ms: runs of 4 … 13 ms.
    assert in_interpreter("events") == {
        "median": pytest.approx(8.5e-3), "p20": pytest.approx(6e-3), "p80": pytest.approx(12e-3), "runs": 10,
    }
