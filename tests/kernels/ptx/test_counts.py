"""What is counted: sectors, passes over banks, what a cache misses, and instructions by kind."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nsfrc
from nsfrc.engines.ptx.counts import Counts, bank_passes
from nsfrc.engines.ptx.tally import as_lines, kind_of, tally
from tests.cli.support import Run
from tests.kernels.ptx.asm import run

LANES = np.arange(32)


@pytest.mark.parametrize("at, wide, passes", [
    (LANES * 4, 4, (1, 1)), (LANES * 8, 4, (2, 1)), (LANES * 128, 4, (32, 1)), (LANES * 0, 4, (1, 1)),
    (LANES * 16, 16, (4, 4)), (LANES * 33 * 4, 4, (1, 1)), (LANES * 8, 8, (2, 2)), (LANES // 4 * 4, 1, (1, 1)),
])
def test_passes_over_the_banks(at, wide, passes):
    assert bank_passes(at, wide, LANES) == passes


@pytest.mark.parametrize("step, sectors, used", [(4, 4, 1.0), (8, 8, 0.5), (32, 32, 0.125), (0, 1, 0.125)])
def test_sectors_of_a_request(step, sectors, used):
    data = np.zeros(256, np.uint32)
    machine = run(f"mad.wide.u32 %rd5, %r0, {step}, %rd20; ld.global.b32 %r1, [%rd5];", data, counted=True)
    loads = machine.counts.by_kind["ld global"]
    assert (loads.requests, loads.parts, loads.used) == (1, sectors, used)
    assert machine.counts.missed_bytes() == sectors * 32


def test_shared_memory_is_counted_apart():
    machine = run("shl.b32 %r1, %r0, 3; st.shared.b32 [%r1], %r0;", shared=256, threads=32, counted=True)
    (kind,) = machine.counts.by_kind
    assert kind == "st shared" and machine.counts.by_kind[kind].parts == 2


def test_a_cache_that_is_too_small():
    found = Counts()
    found._sectors = [np.array([1]), np.array([2]), np.array([1]), np.array([3]), np.array([2])]
    assert found.missed_bytes() == 3 * 32
    assert found.missed_bytes(2 * 32) == 4 * 32  # 2 left for 3, since 1 had been used again


def test_instructions_of_warps():
    body = "setp.lt.u32 %p1, %r0, 40; @%p1 bra $E; add.s32 %r1, %r0, 1; add.s32 %r1, %r1, 1;\n$E: mov.b32 %r2, 0;"
    machine = run(body, threads=96)
    done = machine.instructions()
    assert done["bra"] == 3 and done["add.s32"] == 4 and machine.diverged == 1  # two of three warps, one of them split


def test_doubled_barriers():
    touch = "st.global.b32 [%rd0], %r0;"
    machine = run(f"{touch} bar.sync 0;\n{touch} bar.sync 0;\nbar.sync 0;\n{touch}", np.zeros(32, np.uint32))
    assert machine.doubled == 1 and len(machine.barrier_lines()) == 2


def test_kinds():
    ops = ("fma.rn.f32", "add.s32", "ex2.approx.ftz.f32", "ld.global.v4.b32", "ldmatrix.x", "bar.sync")
    assert [kind_of(op) for op in ops] \
        == ["floats", "integers", "special", "global", "shared", "barriers"]


RULES = ":- type(image, [img]). :- type(object, slots(2)). :- neural(in(object, image)).\n" \
    ":- neural(red(object)). :- target(kp(img)).\nkp(X) :- in(O, X), red(O).\n"


@pytest.mark.ptx
def test_a_program_is_counted():
    rows = tally(nsfrc.compile(source=RULES, name="rules"))
    assert [row.kernel for row in rows] == ["written_forward", "written_backward"]
    forward = rows[0]
    parts = (forward.floats, forward.integers, forward.special, forward.global_, forward.shared, forward.moves,
             forward.shuffles, forward.branches, forward.barriers)
    assert sum(parts) == forward.instructions and forward.special > 0 == forward.barriers
    assert 0 < forward.loaded_used <= 1 and forward.missed_bytes > 0
    assert len(as_lines(rows)) == 4


@pytest.fixture
def command(tmp_path, monkeypatch, capsys) -> Run:
    return Run(tmp_path, monkeypatch, capsys)


@pytest.mark.ptx
def test_the_command_counts(command):
    (command.folder / "rules.pl").write_text(RULES)
    said = json.loads(command.good("compile", "rules.pl", "--emit", "ptx", "--count", "--json"))
    assert said["counts"][0]["kernel"] == "written_forward"
    refused = command("compile", "rules.pl", "--count")
    assert refused.code != 0 and "--count is for --emit ptx only" in refused.err
