"""Each fault that the machine looks for, planted in a kernel of a few lines, and the same kernel without it."""

from __future__ import annotations

import numpy as np
import pytest

from nsfrc.engines.ptx import findings as kinds
from nsfrc.engines.ptx.memory import POISON
from tests.kernels.ptx.asm import found, run

SWAP = "shl.b32 %r1, %r0, 2; st.shared.b32 [%r1], %r0; {barrier} xor.b32 %r2, %r1, {other}; " \
    "ld.shared.b32 %r3, [%r2]; st.global.b32 [%rd0], %r3;"


def words(count: int = 64) -> np.ndarray:
    return np.zeros(count, np.uint32)


@pytest.mark.parametrize("other", [4, 128], ids=["within a warp", "between warps"])
def test_a_barrier_that_is_missing(other):
    out = words()
    machine = run(SWAP.format(barrier="bar.sync 0;", other=other), out, threads=64, shared=256)
    assert found(machine) == []
    assert np.array_equal(out, np.arange(64) ^ other // 4)
    again = words()
    machine = run(SWAP.format(barrier="", other=other), again, threads=64, shared=256)
    assert found(machine) == [kinds.READ_AFTER_WRITE]
    assert np.array_equal(out, again)  # which no comparison of values can see
    (finding,) = machine.findings
    assert finding.op == "ld.shared.b32" and "against thread" in finding.detail and "line" in str(finding)


def test_reading_before_others_write():
    body = """shl.b32 %r1, %r0, 2; st.shared.b32 [%r1], %r0; bar.sync 0; ld.shared.b32 %r3, [0 + 0];
        {barrier} add.s32 %r3, %r3, 1; setp.eq.b32 %p1, %r0, 63; mov.b32 %r4, 0; @%p1 st.shared.b32 [%r4], %r3;"""
    body = body.replace("[0 + 0]", "[%r5]").replace("shl.b32 %r1", "mov.b32 %r5, 0; shl.b32 %r1", 1)
    assert found(run(body.format(barrier="bar.sync 0;"), words(), threads=64, shared=256)) == []
    assert found(run(body.format(barrier=""), words(), threads=64, shared=256)) == [kinds.WRITE_AFTER_READ]


def test_two_values_for_one_place():
    body = "{value} mov.b32 %r1, 8; st.shared.b32 [%r1], %r2;"
    assert found(run(body.format(value="mov.b32 %r2, 5;"), words(), shared=64)) == []  # the same one is no fault
    assert found(run(body.format(value="mov.b32 %r2, %r0;"), words(), shared=64)) == [kinds.DIFFERENT_VALUES]
    twice = """setp.lt.u32 %p1, %r0, 32; mov.b32 %r1, 8; @%p1 st.shared.b32 [%r1], 1; @!%p1 st.shared.b32 [%r1], %r2;"""
    assert found(run("mov.b32 %r2, 1;" + twice, words(), threads=64, shared=64)) == []
    assert found(run("mov.b32 %r2, 2;" + twice, words(), threads=64, shared=64)) == [kinds.WRITE_AFTER_WRITE]


@pytest.mark.parametrize("offset, expected", [
    (0, []), (4, [kinds.OUTSIDE]), (-4, [kinds.OUTSIDE]), (1 << 20, [kinds.OUTSIDE]), (2, [kinds.MISALIGNED]),
])
def test_the_ends_of_an_argument(offset, expected):
    load = run(f"ld.global.b32 %r1, [%rd0 + {offset}]; st.global.b32 [%rd1], %r1;", words(32), words(32))
    store = run(f"st.global.b32 [%rd0 + {offset}], %r0;", words(32), words(32))
    assert found(load) == found(store) == sorted(expected)
    if offset == 4:
        assert "argument0[32] of 32" in load.findings[0].detail


def test_alignment_of_vectors():
    body = "mad.wide.u32 %rd5, %r0, 16, %rd20; ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd5 + {}];"
    assert found(run(body.format(0), words(136))) == []
    assert found(run(body.format(8), words(136))) == [kinds.MISALIGNED]


def test_the_end_of_shared_memory():
    body = "shl.b32 %r1, %r0, 2; st.shared.b32 [%r1], %r0;"
    assert found(run(body, words(), shared=128, grid=(2,))) == []
    assert found(run(body, words(), shared=124, grid=(2,))) == [kinds.OUTSIDE_SHARED]


def test_words_that_nothing_wrote():
    data = np.full(32, POISON, np.uint32)
    assert found(run("ld.global.b32 %r1, [%rd0];", data)) == [kinds.UNWRITTEN]
    assert found(run("st.global.b32 [%rd0], %r0; ld.global.b32 %r1, [%rd0];", data)) == []
    assert found(run("shl.b32 %r1, %r0, 2; ld.shared.b32 %r2, [%r1];", words(), shared=128)) == [kinds.UNWRITTEN]


def test_registers_that_nothing_wrote():
    """Computing with them is no fault, as long as nobody uses it."""
    half = "setp.lt.u32 %p1, %r0, 16; @%p1 ld.global.b32 %r1, [%rd0]; shfl.sync.bfly.b32 %r2, %r1, {}, 31, -1; " \
        "add.s32 %r3, %r1, %r2; {} st.global.b32 [%rd0], %r3;"
    assert found(run(half.format(8, "@%p1"), words(32))) == []
    assert found(run(half.format(16, "@%p1"), words(32))) == [kinds.UNDEFINED]
    assert found(run(half.format(8, ""), words(32))) == [kinds.UNDEFINED]
    chosen = "setp.lt.u32 %p1, %r0, 16; @%p1 mov.b32 %r1, 3; selp.b32 %r2, {}, %p1; st.global.b32 [%rd0], %r2;"
    assert found(run(chosen.format("%r1, 0"), words(32))) == []
    assert found(run(chosen.format("0, %r1"), words(32))) == [kinds.UNDEFINED]
    assert found(run("setp.eq.b32 %p1, %r9, 0; @%p1 bra $E; st.global.b32 [%rd0], %r0;\n$E: mov.b32 %r1, 0;",
                     words(32))) == [kinds.UNDEFINED]


def test_barriers_and_warps_that_not_all_threads_reach():
    body = "setp.lt.u32 %p1, %r0, {}; @%p1 bra $E; {}\n$E: mov.b32 %r1, 0;"
    assert found(run(body.format(64, "bar.sync 0;"), threads=64)) == []
    assert found(run(body.format(32, "bar.sync 0;"), threads=64)) == [kinds.DIVERGED_BARRIER]
    for one in ("shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;", "mov.b32 %r3, -1; redux.sync.max.s32 %r2, %r0, %r3;"):
        assert found(run(body.format(32, one), threads=64)) == []  # whole warps
        assert found(run(body.format(40, one), threads=64)) == [kinds.DIVERGED_WARP]


WORD_OF_BLOCK = "mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd5, %r1, {}, %rd20; setp.eq.b32 %p1, %r0, 0; "


def test_blocks_that_use_one_word():
    store = WORD_OF_BLOCK + "@%p1 st.global.b32 [%rd5], %r1;"
    assert found(run(store.format(4), words(4), grid=(2,))) == []
    for order in ("together", "forwards", "backwards"):
        assert found(run(store.format(0), words(4), grid=(2,), order=order)) == [kinds.BETWEEN_BLOCKS]
    reads = WORD_OF_BLOCK.format(4) + "@%p1 st.global.b32 [%rd5], %r1; @%p1 ld.global.b32 %r2, [%rd20];"
    assert found(run(reads, words(4), grid=(2,))) == [kinds.BETWEEN_BLOCKS]


TICKET = """mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd5, %r1, 128, %rd1; add.s32 %r9, %r1, 1; st.global.b32 [%rd5], %r9;
    {before} mov.b32 %r7, 0; setp.eq.b32 %p1, %r0, 0; mov.b32 %r2, 0;
    @%p1 atom.global.gpu.{order}.add.u32 %r2, [%rd20 + 0], 1;
    @%p1 st.shared.b32 [%r7], %r2; {after} ld.shared.b32 %r3, [%r7]; setp.eq.b32 %p2, %r3, 2; @!%p2 bra $E;
    ld.global.b32 %r4, [%rd1]; ld.global.b32 %r5, [%rd1+128]; ld.global.b32 %r6, [%rd1+256]; add.s32 %r4, %r4, %r5;
    add.s32 %r4, %r4, %r6; st.global.b32 [%rd1], %r4;\n$E: mov.b32 %r8, 0;"""


def test_the_last_block_may_read_what_the_others_released():
    right = {"before": "bar.sync 0;", "order": "acq_rel", "after": "bar.sync 0;"}
    for order in ("together", "forwards", "backwards"):
        out = words(96)
        assert found(run(TICKET.format(**right), words(1), out, shared=16, grid=(3,), order=order)) == []
        assert (out[:32] == 6).all()
    wrong = [found(run(TICKET.format(**right | one), words(1), words(96), shared=16, grid=(3,)))
             for one in ({"before": ""}, {"order": "relaxed"}, {"after": ""})]
    assert wrong[0] == [kinds.BETWEEN_BLOCKS] == wrong[1]
    assert kinds.READ_AFTER_WRITE in wrong[2]


def test_what_does_not_end_is_stopped():
    machine = run("$A: add.s32 %r0, %r0, 1; bra.uni $A;", longest=1000)
    assert found(machine) == [kinds.ENDLESS]


def test_more_than_four_warps():
    out = words(1024)
    body = SWAP.format(barrier="bar.sync 0;", other=2048)
    assert found(run(body, out, threads=1024, shared=4096)) == []
    assert np.array_equal(out, np.arange(1024) ^ 512)
    assert found(run(SWAP.format(barrier="", other=2048), out, threads=1024, shared=4096)) == [kinds.READ_AFTER_WRITE]
