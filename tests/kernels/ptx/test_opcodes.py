"""Every instruction that Triton emits for our kernels, against numpy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from nsfrc.errors import NsfrcError
from tests.kernels.ptx.asm import found, run

THREADS = 256
FLOATS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0000002, -7.25, 1e-3, 1e30, -1e-30, 1.1754944e-38, 1e-39, np.inf,
                   -np.inf, np.nan, 16777217.0], np.float32)
INTS = np.array([0, 1, 2, 3, 5, 8, 31, 32, 33, 255, 65535, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF],
                np.uint32)
FINITE = FLOATS[np.isfinite(FLOATS)]


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs, and a third one beside."""
    a, b = (one.ravel() for one in np.meshgrid(values, values, indexing="ij"))
    return np.resize(a, THREADS), np.resize(b, THREADS), np.resize(np.roll(values, 3), THREADS).astype(values.dtype)


def outcome(instruction: str, values: np.ndarray, result: str = "b32") -> np.ndarray:
    """`d`, `a`, `b`, `c` in the instruction stand for registers; d is stored as uint32."""
    a, b, c = pairs(values)
    out = np.zeros(THREADS, np.uint32)
    names = {"a": "%r1", "b": "%r2", "c": "%r3", "d": {"b32": "%r4", "b64": "%rd10", "pred": "%p1"}[result]}
    words = [names.get(word, word) for word in instruction.replace(",", " , ").replace(";", " ; ").split()]
    after = {"b32": "", "b64": "shr.u64 %rd11, %rd10, 16; cvt.u32.u64 %r4, %rd11;",
             "pred": "selp.b32 %r4, 1, 0, %p1;"}[result]
    machine = run(
        "ld.global.b32 %r1, [%rd0]; ld.global.b32 %r2, [%rd1]; ld.global.b32 %r3, [%rd2];\n"
        f"{' '.join(words)}\n{after}\nst.global.b32 [%rd3], %r4;", a, b, c, out, threads=THREADS,
    )
    assert machine.findings == []
    return out


def flushed(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def same_floats(mine: np.ndarray, theirs: np.ndarray, within: int = 0) -> None:
    """Equal bits, or within so many units in the last place; any NaN is NaN, and zeros are equal."""
    mine, theirs = mine.view(np.float32), np.asarray(theirs, np.float32)
    nan = np.isnan(theirs)
    assert (np.isnan(mine) == nan).all()
    mine, theirs = mine[~nan], theirs[~nan]
    with np.errstate(all="ignore"):
        step = np.abs(np.spacing(theirs)) * within
        assert ((mine == theirs) | (np.abs(mine - theirs) <= step)).all()


@pytest.mark.parametrize("op, function", [
    ("add.f32", np.add), ("add.rn.f32", np.add), ("sub.f32", np.subtract), ("sub.rn.f32", np.subtract),
    ("mul.f32", np.multiply), ("mul.rn.f32", np.multiply), ("div.full.f32", np.divide), ("div.rn.f32", np.divide),
    ("max.f32", np.fmax), ("min.f32", np.fmin), ("max.NaN.f32", np.maximum), ("min.NaN.f32", np.minimum),
])
def test_of_two_floats(op, function):
    a, b, _ = pairs(FLOATS)
    with np.errstate(all="ignore"):
        same_floats(outcome(f"{op} d, a, b;", FLOATS), function(a, b))


@pytest.mark.parametrize("op, function, within", [
    ("ex2.approx.ftz.f32", np.exp2, 1), ("lg2.approx.ftz.f32", np.log2, 1), ("rcp.approx.ftz.f32", np.reciprocal, 0),
])
def test_functions_flush(op, function, within):
    a, _, _ = pairs(FLOATS)
    with np.errstate(all="ignore"):
        expected = flushed(function(flushed(a).astype(np.float64)).astype(np.float32))
        same_floats(outcome(f"{op} d, a;", FLOATS), expected, within)


def test_sign_changes():
    a, _, _ = pairs(FLOATS)
    for op, function in (("abs.f32", np.abs), ("neg.f32", np.negative)):
        assert np.array_equal(outcome(f"{op} d, a;", FLOATS), function(a).view(np.uint32))


def nearest(x: Fraction) -> np.float32:
    """The float32 nearest to a fraction, the even one of two."""
    guess = np.float32(float(x))
    near = [guess, np.nextafter(guess, np.float32(np.inf)), np.nextafter(guess, np.float32(-np.inf))]
    finite = [f for f in near if np.isfinite(f)]
    return min(finite, key=lambda f: (abs(Fraction(float(f)) - x), int(f.view(np.uint32)) & 1))


@pytest.mark.parametrize("flush", [False, True])
def test_fma_rounds_once(flush):
    """Among them sums that a float64 rounds to half-way between two float32."""
    generator = np.random.default_rng(0)
    a, b, c = (generator.standard_normal(THREADS).astype(np.float32) for _ in range(3))
    a[:64] = np.float32(1) + np.float32(2.0**-12)
    b[:64], c[:64] = a[:64], np.float32(2.0**-60) * generator.choice([-1, 1], 64).astype(np.float32)
    a[64:80], b[64:80], c[64:80] = 2.0**-70, 2.0**-70, 1e-39
    out = np.zeros(THREADS, np.uint32)
    op = "fma.rn.ftz.f32" if flush else "fma.rn.f32"
    run("ld.global.b32 %r1, [%rd0]; ld.global.b32 %r2, [%rd1]; ld.global.b32 %r3, [%rd2];\n"
        f"{op} %r4, %r1, %r2, %r3; st.global.b32 [%rd3], %r4;", a, b, c, out, threads=THREADS)
    given = [flushed(x) for x in (a, b, c)] if flush else (a, b, c)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(*given, strict=True)]
    expected = np.array([nearest(x) for x in exact])
    same_floats(out, flushed(expected) if flush else expected)


@pytest.mark.parametrize("op, function", [
    ("add.s32", lambda a, b: a + b), ("sub.s32", lambda a, b: a - b), ("mul.lo.s32", lambda a, b: a * b),
    ("mul.hi.u32", lambda a, b: a.astype(np.uint64) * b >> np.uint64(32)),
    ("mul.hi.s32", lambda a, b: (a.view(np.int32).astype(np.int64) * b.view(np.int32) >> 32).view(np.uint64)),
    ("and.b32", lambda a, b: a & b), ("or.b32", lambda a, b: a | b), ("xor.b32", lambda a, b: a ^ b),
    ("min.u32", np.minimum), ("max.u32", np.maximum),
    ("min.s32", lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32)),
    ("max.s32", lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32)),
    ("shl.b32", lambda a, b: np.array([int(x) << min(int(y), 32) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)])),
    ("shr.u32", lambda a, b: np.array([int(x) >> min(int(y), 32) for x, y in zip(a, b, strict=True)])),
    ("shr.s32", lambda a, b: np.array([int(x) >> min(int(y), 32) & 0xFFFFFFFF
                                       for x, y in zip(a.view(np.int32), b, strict=True)])),
])
def test_of_two_ints(op, function):
    a, b, _ = pairs(INTS)
    assert np.array_equal(outcome(f"{op} d, a, b;", INTS), np.asarray(function(a, b)).astype(np.uint32))


@pytest.mark.parametrize("op, function", [
    ("shl.b32 d, a, 5;", lambda a: a << np.uint32(5)), ("shr.u32 d, a, 31;", lambda a: a >> np.uint32(31)),
    ("shr.s32 d, a, 31;", lambda a: (a.view(np.int32) >> 31).view(np.uint32)),
    ("shl.b32 d, a, 40;", lambda a: 0 * a), ("not.b32 d, a;", lambda a: ~a), ("neg.s32 d, a;", lambda a: 0 - a),
    ("bfe.u32 d, a, 3, 4;", lambda a: a >> np.uint32(3) & np.uint32(15)),
    ("bfe.s32 d, a, 28, 9;", lambda a: (a.view(np.int32) >> 28).view(np.uint32)),
    ("bfe.s32 d, a, 0, 1;", lambda a: np.where(a & np.uint32(1), np.uint32(0xFFFFFFFF), np.uint32(0))),
    ("prmt.b32 d, a, b, 0x5410U;", None), ("prmt.b32 d, a, b, 0x9999U;", None),
])
def test_bits(op, function):
    a, b, _ = pairs(INTS)
    if function is None:  # bytes of b above those of a
        both = np.stack([a, b], 1).view(np.uint8)
        selector = int(op.split(",")[-1].strip(" ;U"), 16)
        columns = [both[:, selector >> 4 * i & 7] for i in range(4)]
        columns = [np.where(c & 128, 255, 0) if selector >> 4 * i & 8 else c for i, c in enumerate(columns)]
        expected = np.stack(columns, 1).astype(np.uint8).view(np.uint32)[:, 0]
    else:
        expected = function(a)
    assert np.array_equal(outcome(op, INTS), expected)


@pytest.mark.parametrize("op, function", [
    ("mul.wide.u32 d, a, b;", lambda a, b, c: a.astype(np.uint64) * b),
    ("mul.wide.s32 d, a, b;", lambda a, b, c: (a.view(np.int32).astype(np.int64) * b.view(np.int32)).view(np.uint64)),
    ("cvt.u64.u32 d, a;", lambda a, b, c: a.astype(np.uint64)),
    ("cvt.s64.s32 d, a;", lambda a, b, c: a.view(np.int32).astype(np.int64).view(np.uint64)),
])
def test_wide(op, function):
    expected = function(*pairs(INTS)) >> np.uint64(16) & np.uint64(0xFFFFFFFF)
    assert np.array_equal(outcome(op, INTS, "b64"), expected.astype(np.uint32))


def test_halves_and_fields_of_64_bits():
    a, b, _ = pairs(INTS)
    out = np.zeros(4 * THREADS, np.uint32)
    run("""ld.global.b32 %r1, [%rd0]; ld.global.b32 %r2, [%rd1]; mov.b64 %rd10, {%r1, %r2};
        mov.b64 {%r3, _}, %rd10; mov.b64 {_, %r4}, %rd10; bfe.s64 %rd11, %rd10, 27, 32; bfe.u64 %rd12, %rd10, 40, 40;
        mov.b64 {%r5, %r6}, %rd11; xor.b32 %r5, %r5, %r6; cvt.u32.u64 %r7, %rd12; shl.b32 %r8, %r0, 4;
        cvt.u64.u32 %rd13, %r8; add.s64 %rd14, %rd22, %rd13; st.global.v4.b32 [%rd14], {%r3, %r4, %r5, %r7};
    """, a, b, out, threads=THREADS)
    whole = a | b.astype(np.uint64) << np.uint64(32)
    field = ((whole << np.uint64(5)).view(np.int64) >> np.int64(32)).view(np.uint64)
    low, high, folded, top = out.reshape(-1, 4).T
    assert np.array_equal(low, a) and np.array_equal(high, b) and np.array_equal(top, b >> np.uint32(8))
    assert np.array_equal(folded, (field ^ field >> np.uint64(32)).astype(np.uint32))


def test_64_bits():
    a, b, _ = pairs(INTS)
    out = np.zeros(THREADS, np.uint32)
    run("""ld.global.b32 %r1, [%rd0]; ld.global.b32 %r2, [%rd1];
        mad.wide.s32 %rd10, %r1, 12, 5; mad.wide.u32 %rd11, %r2, 7, %rd10; shl.b64 %rd12, %rd11, 3;
        or.b64 %rd13, %rd12, 1; add.s64 %rd14, %rd13, -9; mul.lo.s64 %rd15, %rd14, 3; mad.lo.s64 %rd16, %rd15, 5, %rd10;
        shr.s64 %rd17, %rd16, 2; and.b64 %rd18, %rd17, 0xFFFFFFFFFF; mov.b64 %rd19, %rd18;
        setp.lt.s64 %p1, %rd17, 0; setp.gt.s64 %p2, %rd17, 100; setp.lt.u64 %p3, %rd18, 4096;
        setp.ne.b64 %p4, %rd19, %rd17;
        selp.b64 %rd30, %rd19, %rd12, %p1; shr.u64 %rd31, %rd30, 8; cvt.u32.u64 %r5, %rd31;
        selp.b32 %r6, 3, 7, %p2; selp.b32 %r7, 11, 13, %p3; selp.b32 %r8, 17, 19, %p4;
        xor.b32 %r5, %r5, %r6; mad.lo.s32 %r5, %r5, 31, %r7; add.s32 %r5, %r5, %r8; st.global.b32 [%rd2], %r5;
    """, a, b, out, threads=THREADS)
    mask, expected = (1 << 64) - 1, []

    def signed(x: int) -> int:
        x &= mask
        return x - (1 << 64) if x >> 63 else x

    for x, y in zip(a.view(np.int32).tolist(), b.tolist(), strict=True):
        v10 = x * 12 + 5
        v11 = (y * 7 + v10) & mask
        v12 = v11 << 3 & mask
        v14 = (v12 | 1) - 9
        v16 = signed(v14 * 3 * 5 + v10)
        v17 = v16 >> 2
        v18 = v17 & 0xFFFFFFFFFF
        v30 = (v18 if v17 < 0 else v12) & mask
        r5 = v30 >> 8 & 0xFFFFFFFF
        r5 ^= 3 if v17 > 100 else 7
        expected.append((r5 * 31 + (11 if v18 < 4096 else 13) + (17 if v18 != v17 & mask else 19)) & 0xFFFFFFFF)
    assert np.array_equal(out, np.array(expected, np.uint32))


@pytest.mark.parametrize("op, function", [
    ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal), ("eq", np.equal),
    ("ltu", lambda a, b: ~np.greater_equal(a, b)), ("geu", lambda a, b: ~np.less(a, b)),
    ("leu", lambda a, b: ~np.greater(a, b)), ("gtu", lambda a, b: ~np.less_equal(a, b)), ("neu", np.not_equal),
    ("equ", lambda a, b: (a == b) | np.isnan(a) | np.isnan(b)),
    ("ne", lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)), ("nan", lambda a, b: np.isnan(a) | np.isnan(b)),
])
def test_comparisons_of_floats(op, function):
    a, b, _ = pairs(FLOATS)
    assert np.array_equal(outcome(f"setp.{op}.f32 d, a, b;", FLOATS, "pred"), function(a, b).astype(np.uint32))


@pytest.mark.parametrize("op, function, signed", [
    ("eq.b32", np.equal, False), ("ne.b32", np.not_equal, False), ("lt.u32", np.less, False),
    ("gt.u32", np.greater, False),
    ("lt.s32", np.less, True), ("le.s32", np.less_equal, True), ("gt.s32", np.greater, True),
    ("ge.s32", np.greater_equal, True),
])
def test_comparisons_of_ints(op, function, signed):
    a, b, _ = pairs(INTS)
    a, b = (a.view(np.int32), b.view(np.int32)) if signed else (a, b)
    assert np.array_equal(outcome(f"setp.{op} d, a, b;", INTS, "pred"), function(a, b).astype(np.uint32))


def test_conversions_to_float():
    a, _, _ = pairs(INTS)
    assert np.array_equal(outcome("cvt.rn.f32.s32 d, a;", INTS), a.view(np.int32).astype(np.float32).view(np.uint32))
    assert np.array_equal(outcome("cvt.rn.f32.u32 d, a;", INTS), a.astype(np.float32).view(np.uint32))


def test_predicates_halves_and_guards():
    out = np.zeros(64, np.uint32)
    run("""setp.lt.u32 %p1, %r0, 40; setp.gt.u32 %p2, %r0, 9; and.pred %p3, %p1, %p2; or.pred %p4, %p1, %p2;
        xor.pred %p5, %p3, %p4; not.pred %p6, %p5; mov.pred %p7, 0; or.pred %p6, %p6, %p7;
        selp.b16 %h1, 5, 6, %p3; shl.b16 %h2, %h1, 2; shr.u16 %h3, %h2, 1; and.b16 %h4, %h3, 14; or.b16 %h4, %h4, 1;
        cvt.u32.u16 %r1, %h4; cvt.u16.u32 %h5, %r0; setp.ne.b16 %p8, %h5, 7; selp.f32 %r3, 0f00000000, 0f3F800000, %p8;
        mov.u32 %r2, 100; @%p6 add.s32 %r2, %r2, %r1; @!%p6 mov.b32 %r2, %r3; st.global.b32 [%rd0], %r2;
    """, out, threads=64)
    n = np.arange(64)
    p1, p2 = n < 40, n > 9
    h4 = np.where(p1 & p2, 5, 6) << 2 >> 1 & 14 | 1
    expected = np.where(~((p1 & p2) ^ (p1 | p2)), 100 + h4, np.where(n != 7, 0, 0x3F800000))
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("mode, by, clamp, source", [
    ("bfly", 5, 31, lambda n: n ^ 5), ("bfly", 16, 31, lambda n: n ^ 16),
    ("down", 3, 31, lambda n: np.where(n < 29, n + 3, n)),
    ("up", 4, 0, lambda n: np.where(n >= 4, n - 4, n)), ("idx", 9, 31, lambda n: 0 * n + 9),
    ("idx", 2, 0x181F, lambda n: n & 24 | 2),
])
def test_shuffles(mode, by, clamp, source):
    """0x181F: by eights."""
    out = np.zeros(64, np.uint32)
    run(f"mul.lo.s32 %r1, %r0, 3; shfl.sync.{mode}.b32 %r2, %r1, {by}, {clamp}, -1; st.global.b32 [%rd0], %r2;",
        out, threads=64)
    n = np.arange(64)
    assert np.array_equal(out, (source(n % 32) + n // 32 * 32) * 3)


def test_shuffle_by_a_register_and_redux():
    out, most = np.zeros(64, np.uint32), np.zeros(64, np.int32)
    run("""and.b32 %r1, %r0, 7; shfl.sync.idx.b32 %r2, %r0, %r1, 31, -1; st.global.b32 [%rd0], %r2;
        sub.s32 %r3, 20, %r0; mov.b32 %r5, -1; redux.sync.max.s32 %r4, %r3, %r5; redux.sync.min.s32 %r6, %r3, %r5;
        add.s32 %r4, %r4, %r6; st.global.b32 [%rd1], %r4;""", out, most, threads=64)
    n = np.arange(64)
    assert np.array_equal(out, n // 32 * 32 + n % 8)
    assert np.array_equal(most, np.where(n < 32, 20 - 11, -12 - 43))


def test_vectors_of_both_memories():
    data, out = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    machine = run("""shl.b32 %r1, %r0, 4; cvt.u64.u32 %rd4, %r1; add.s64 %rd5, %rd20, %rd4; add.s64 %rd6, %rd21, %rd4;
        ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd5 + 0]; mov.b32 %r2, global_smem; add.s32 %r2, %r2, %r1;
        st.shared.v4.b32 [%r2], {%r7, %r6, %r5, %r4}; bar.sync 0; xor.b32 %r3, %r2, 16;
        ld.shared.v2.b32 {%r8, %r9}, [%r3]; ld.shared.b64 %rd7, [%r3+8]; cvt.u32.u64 %r10, %rd7; shr.u64 %rd8, %rd7, 32;
        cvt.u32.u64 %r11, %rd8; st.global.v2.b32 [%rd6], {%r8, %r9}; st.global.v2.b32 [%rd6+8], {%r10, %r11};
    """, data, out, shared=512)
    assert machine.findings == []
    assert np.array_equal(out.reshape(32, 4), data.reshape(32, 4)[np.arange(32) ^ 1, ::-1])


def test_bytes_of_shared_memory():
    out = np.zeros(32, np.uint32)
    machine = run("""cvt.u16.u32 %h1, %r0; st.shared.b8 [%r0], %h1; bar.sync 0; xor.b32 %r1, %r0, 3;
        ld.shared.b8 %h2, [%r1]; cvt.u32.u16 %r2, %h2; and.b32 %r3, %r0, 28; ld.shared.b32 %r4, [%r3];
        shr.u32 %r4, %r4, 24; shl.b32 %r4, %r4, 8; or.b32 %r2, %r2, %r4; ld.shared.s32 %rd5, [%r3];
        cvt.u32.u64 %r5, %rd5;
        st.global.b32 [%rd0], %r2;""", out, shared=64)
    n = np.arange(32)
    assert machine.findings == []
    assert np.array_equal(out, n ^ 3 | (n | 3) << 8)


@pytest.mark.parametrize("count", [1, 4])
def test_matrices_of_a_warp(count):
    """stmatrix and ldmatrix put row t // 4 of matrix i where thread 8 i + t // 4 says, and take it from there."""
    out = np.zeros(32 * count, np.uint32)
    registers = [f"%r{10 + i}" for i in range(count)]
    given = "\n".join(f"mad.lo.s32 {r}, %r0, 10, {i};" for i, r in enumerate(registers))
    takes = f"mad.wide.u32 %rd5, %r0, {4 * count}, %rd20;" + "".join(
        f"st.global.b32 [%rd5+{4 * i}], %r2{i};" for i in range(count))
    machine = run(f"""{given}\nshl.b32 %r1, %r0, 4;
        stmatrix.sync.aligned.m8n8.x{count}.shared.b16 [%r1], {{{', '.join(registers)}}}; bar.sync 0;
        xor.b32 %r2, %r1, 16;
        ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{', '.join(f'%r2{i}' for i in range(count))}}}, [%r2];
        {takes}""", out, shared=512)
    n = np.arange(32)
    assert machine.findings == []
    for i in range(count):
        assert np.array_equal(out.reshape(32, count)[:, i], (n ^ 4) * 10 + i)  # rows changed places by twos


def test_branches_tables_and_calls():
    out = np.zeros(64, np.uint32)
    body = """and.b32 %r1, %r0, 3; mov.b32 %r2, 0; mov.b32 %r5, 0;
$TABLE: .branchtargets $A, $B, $A, $C;
        brx.idx %r1, $TABLE;
$A:     add.s32 %r2, %r2, 100; bra.uni $END;
$B:     add.s32 %r2, %r2, 200;
$C:     add.s32 %r2, %r2, 7;
$END:   add.s32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r1; @%p1 bra $END;
        add.s32 %r2, %r2, %r5; st.global.b32 [%rd0], %r2;"""
    machine = run(body, out, threads=64)
    n = np.arange(64) % 4
    assert np.array_equal(out, np.array([100, 207, 100, 7])[n] + np.maximum(n, 1))
    assert machine.findings == [] and machine.diverged > 0


def test_atomics_count_every_thread():
    counter, out = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    run("""mov.b32 %r1, 2; atom.global.gpu.acq_rel.add.u32 %r2, [%rd20 + 0], %r1; mov.u32 %r3, %ctaid.x;
        mad.lo.s32 %r4, %r3, 32, %r0; mad.wide.u32 %rd5, %r4, 4, %rd21; st.global.b32 [%rd5], %r2;""",
        counter, out, grid=(2,))
    assert counter[0] == 128
    assert sorted(out) == list(range(0, 128, 2))


def test_what_is_not_known_is_said():
    with pytest.raises(NsfrcError, match=r"line \d+ of the PTX of k: .* does not know this form of sin\.approx"):
        run("sin.approx.f32 %r1, %r0;")
    with pytest.raises(NsfrcError, match="is not declared"):
        run("mov.b32 %r1, %q7;")
    assert found(run("mov.b32 %r1, 3;")) == []
