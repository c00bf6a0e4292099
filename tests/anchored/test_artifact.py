"""Compiled `anchored` programs as files: what goes in comes out, and a table that was spoilt is refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import nsfrc
from nsfrc.compiler import artifact
from nsfrc.compiler.verify import verify_levels
from nsfrc.errors import NsfrcError
from nsfrc.program import Program, load
from tests.anchored.programs import RULES, VOCABULARY, text
from tests.anchored.support import PASSES, compiled, valuations
from tests.test_artifact import Tensors, contents, damaged, names, rewrite

SHARED = "products shared with what is recursive"
# All tables of a plan have something in them.
FULL = r"""
    :- target(kp(img)). :- target(other(obj1)).
    lit(X) :- color(X, red).
    lit(X) :- near(X, Y), near(Y, X), lit(Y), lit(Z), color(Z, blue).
    dim(X) :- in(X, img), \+ (near(X, Y), lit(Y)).
    kp(X) :- in(O, X), lit(Y), lit(Z), color(Z, blue), near(O, Y), aggregate_all(count, (in(P, X), dim(P)), N), N >= 2.
    other(X) :- near(X, Y), near(Y, X), lit(Y), in(X, img), \+ dim(X).
"""
# Other numbers of the right kind, by the table they stand in: each breaks a rule.
OTHERS = {
    "block_rounds": (0, 5), "block_heads": (1, 0), "block_nodes": (1, 9), "block_choices": (1, 99),
    "run_times": (0, 0.5), "head_atom": (0, 2),
    "pair_clause": (0, 9), "targets": (0, 3), "constant": (0, 0.5), "head_start_value": (0, 1.5),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return full().save(tmp_path / "p.nsfrc")


@cache
def full() -> Program:
    return nsfrc.compile(source=VOCABULARY + FULL, name="test")


def test_no_table_of_this_program_is_empty() -> None:
    assert all(table.size for table in full().lowered.tables().values())


def assert_same(left: Program, right: Program) -> None:
    assert left.source == right.source and left.lowered.sizes == right.lowered.sizes
    assert (left.steps, left.depth) == (right.steps, right.depth)
    for name, table in left.lowered.tables().items():
        other = right.lowered.tables()[name]
        assert table.dtype == other.dtype and np.array_equal(table, other, equal_nan=table.dtype.kind == "f"), name
    for name in ("initial", "neural", "targets", "pair_clause", "pair_head", "pair_start", "factors", "cycle"):
        ours, theirs = getattr(left.ground, name), getattr(right.ground, name)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), name


@pytest.mark.parametrize("name", [*RULES, *range(6)])
def test_round_trip(name: str | int, tmp_path: Path) -> None:
    program = compiled(name)
    loaded = load(program.save(tmp_path / "p.nsfrc"))
    assert_same(program, loaded)
    assert loaded.save(tmp_path / "q.nsfrc").read_bytes() == (tmp_path / "p.nsfrc").read_bytes()
    V0 = valuations(program, 5).float()
    for outputs in ("all", "targets"):
        assert torch.equal(*(p.reasoner("cpu", gamma=0.1, outputs=outputs)(V0) for p in (program, loaded)))


@pytest.mark.parametrize("skip", [PASSES, *((name,) for name in PASSES)])
@pytest.mark.parametrize("name", ["attributes that may be equal", SHARED])
def test_round_trip_without_passes(name: str, skip: tuple[str, ...], tmp_path: Path) -> None:
    program = nsfrc.compile(source=text(name), skip=skip)
    assert_same(program, load(program.save(tmp_path / "p.nsfrc")))


def test_few_steps_of_a_program_are_those_of_its_file(tmp_path: Path) -> None:
    program = nsfrc.compile(source=text("paths along facts") + " :- steps(1).")
    loaded = load(program.save(tmp_path / "p.nsfrc"))
    V0 = valuations(program, 5)
    for p in (program, loaded):
        assert (p.reasoner("cpu")(V0.float()) - p.reasoner("reference")(V0)).abs().max() <= 2e-6


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


@pytest.mark.parametrize("name", OTHERS)
def test_other_numbers_are_refused(name: str, saved: Path) -> None:
    place, value = OTHERS[name]

    def change(_: dict, tensors: Tensors) -> None:
        table = tensors[f"plan.{name}"].copy()
        table[place] = value
        tensors[f"plan.{name}"] = table

    rewrite(saved, change)
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


@pytest.mark.parametrize("side", ["row_left", "row_right", "node_left", "node_right", "choice_by", "choice_no",
                                  "choice_yes"])
def test_what_is_not_computed_in_time_is_refused(side: str, saved: Path) -> None:
    """The first to be computed uses the last that is."""
    last = full().lowered.values - 1

    def change(_: dict, tensors: Tensors) -> None:
        table = tensors[f"plan.{side}"].astype(np.int64)
        table[0] = last
        tensors[f"plan.{side}"] = table

    rewrite(saved, change)
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


@pytest.mark.parametrize("side", ["choice_by", "choice_no", "choice_yes"])
def test_choices_between_what_is_not_finished_are_refused(side: str, saved: Path) -> None:
    """A product, the choice itself, a later one."""
    plan = full().lowered
    data = saved.read_bytes()
    for place in (plan.first_node, plan.first_node + plan.nodes - 1, plan.first_choice, plan.first_choice + 1):
        saved.write_bytes(data)

        def change(_: dict, tensors: Tensors, place: int = place) -> None:
            table = tensors[f"plan.{side}"].astype(np.int64)
            table[0] = place
            tensors[f"plan.{side}"] = table

        rewrite(saved, change)
        with pytest.raises(NsfrcError, match="damaged"):
            load(saved)


def test_a_count_of_what_depends_on_it_is_refused(saved: Path) -> None:
    """`dim` would count `other`, which counts `dim`; whoever orders such a program would never end."""

    def change(header: dict, _: Tensors) -> None:
        (count,) = (p["count"] for p in header["program"]["predicates"] if p["name"].startswith("\\+ dim#"))
        assert count["of"][:2] == ["dim#1", 1]
        count["of"][:2] = ["other", 1]

    rewrite(saved, change)
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


@pytest.mark.parametrize(("key", "value"), [
    ("G", 5), ("C", 1), ("inputs", 0), ("heads", 1), ("inputs", -1), ("heads", 10**12), ("declared", False),
    ("declared", 1), ("declared", None), ("G", 1.5),
])
def test_other_sizes_are_refused(key: str, value: object, saved: Path) -> None:
    rewrite(saved, lambda header, _: header["sizes"].update({key: value}))
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


def test_the_other_semantics_is_refused(saved: Path) -> None:
    rewrite(saved, lambda header, _: header["program"]["settings"].update(semantics="paper"))
    with pytest.raises(NsfrcError, match="damaged"):
        load(saved)


def test_flipped_bits_with_a_fitting_checksum_are_refused_or_legal(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels trust what is loaded, so whatever is not refused must obey the rules of plans."""
    monkeypatch.setattr(artifact, "_checksum", lambda header, tensors: "the same")
    full().save(saved)
    data, generator, used = saved.read_bytes(), np.random.default_rng(1), 0
    for _ in range(300):
        flipped = bytearray(data)
        for place in generator.integers(0, len(data), int(generator.integers(1, 4))):
            flipped[place] ^= 1 << int(generator.integers(0, 8))
        saved.write_bytes(flipped)
        try:
            program = load(saved)
        except NsfrcError:
            continue
        used += 1
        verify_levels(program.lowered, program.ground)
        program.level_plan(declared_start=False, targets_only=False)
    assert used


def test_the_header_says_which_semantics(saved: Path) -> None:
    assert json.loads(contents(saved)[0])["program"]["settings"]["semantics"] == "anchored"
