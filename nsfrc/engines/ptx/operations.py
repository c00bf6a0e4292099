"""How each instruction is written: PTX in, a line or two of Python over arrays out. `W` is the block's writer."""

from __future__ import annotations

import re
from collections.abc import Callable

from nsfrc.engines.ptx.parse import Instruction, split
from nsfrc.engines.ptx.translate import TYPES, BlockWriter, width_of

Operation = Callable[[BlockWriter, Instruction], None]
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "lo": "<", "ls": "<=", "hi": ">",
               "hs": ">="}
# Comparisons that hold for NaN too, by the one that then does not.
UNORDERED = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
SPACES = {"global": "device", "shared": "shared"}
# Modifiers that change nothing here: rounding to nearest, and hints to caches.
IGNORED = {"rn", "approx", "full", "ftz", "sync", "uni", "lo", "ca", "cg", "cs", "nc", "wb", "wt", "L1", "evict_last"}


def form(kind: str, plain: bool = False) -> str:
    """Type of an array for a PTX type. plain: bits matter and signs do not, which saves changing the type."""
    if kind == "pred":
        return "bool"
    letter = "u" if (plain and kind[0] != "f") or kind[0] == "b" else {"s": "i"}.get(kind[0], kind[0])
    return f"{letter}{width_of(kind) // 8}"


def _float(W: BlockWriter, one: Instruction, operand: str) -> str:
    """An operand as float32, flushed where the instruction asks for that."""
    value = W.read(operand, "f4")
    return f"flush({value})" if "ftz" in one.op and value not in W.flushed else value


def _write_float(W: BlockWriter, one: Instruction, value: str) -> None:
    ftz = "ftz" in one.op
    W.write(one.args[0], "f4", f"flush({value})" if ftz else value, flushed=ftz)


def _arithmetic(W: BlockWriter, one: Instruction) -> None:
    kind, symbol = one.op[-1], SYMBOLS[one.kind]
    if kind == "f32":
        left, right = (_float(W, one, operand) for operand in one.args[1:])
        return _write_float(W, one, f"{left} {symbol} {right}")
    if "wide" in one.op:
        return W.write(one.args[0], form(_doubled(kind)), _wide(W, one))
    if "hi" in one.op and width_of(kind) == 32:
        upper = f"({_wide(W, one)} >> {form(_doubled(kind))}(32)).astype({form(kind)})"
        return W.write(one.args[0], form(kind), upper)
    if "hi" in one.op or set(one.op[1:-1]) - IGNORED:
        raise W.unknown()
    left, right = (W.read(operand, form(kind, plain=True)) for operand in one.args[1:])
    return W.write(one.args[0], form(kind, plain=True), f"{left} {symbol} {right}")


def _doubled(kind: str) -> str:
    return f"{kind[0]}{2 * width_of(kind)}"


def _wide(W: BlockWriter, one: Instruction) -> str:
    """A product twice as wide as its factors."""
    kind = one.op[-1]
    left, right = (f"{W.read(operand, form(kind))}.astype({form(_doubled(kind))})" for operand in one.args[1:3])
    return f"{left} * {right}"


def _multiply_add(W: BlockWriter, one: Instruction) -> None:
    kind = one.op[-1]
    if "wide" in one.op:
        wide = form(_doubled(kind))
        return W.write(one.args[0], wide, f"{_wide(W, one)} + {W.read(one.args[3], wide)}")
    if "lo" not in one.op:
        raise W.unknown()
    a, b, c = (W.read(operand, form(kind, plain=True)) for operand in one.args[1:])
    return W.write(one.args[0], form(kind, plain=True), f"{a} * {b} + {c}")


def _fma(W: BlockWriter, one: Instruction) -> None:
    if one.op[-1] != "f32" or "rn" not in one.op:
        raise W.unknown()
    a, b, c = (_float(W, one, operand) for operand in one.args[1:])
    _write_float(W, one, f"fma({a}, {b}, {c}, {'ftz' in one.op})")


def _extreme(W: BlockWriter, one: Instruction) -> None:
    """Of a number and NaN a card takes the number, unless `.NaN` is written."""
    if one.op[-1] != "f32":
        kind = form(one.op[-1])
        function = "maximum" if one.kind == "max" else "minimum"
        left, right = (W.read(operand, kind) for operand in one.args[1:])
        return W.write(one.args[0], kind, f"np.{function}({left}, {right})")
    function = f"{one.kind}imum" if "NaN" in one.op else f"f{one.kind}"
    left, right = (_float(W, one, operand) for operand in one.args[1:])
    return _write_float(W, one, f"np.{function}({left}, {right})")


def _of_floats(text: str) -> Operation:
    """An operation on float32 operands, named a, b in its text."""

    def operation(W: BlockWriter, one: Instruction) -> None:
        if one.op[-1] != "f32" or {"rz", "rm", "rp", "sat"} & set(one.op):
            raise W.unknown()
        values = dict(zip("ab", (_float(W, one, operand) for operand in one.args[1:]), strict=False))
        _write_float(W, one, re.sub(r"\b[ab]\b", lambda found: values[found[0]], text))

    return operation


def _unary(symbol: str) -> Operation:
    def operation(W: BlockWriter, one: Instruction) -> None:
        kind = "f4" if one.op[-1] == "f32" else form(one.op[-1])
        W.write(one.args[0], kind, symbol.format(W.read(one.args[1], kind)))

    return operation


def _shift(W: BlockWriter, one: Instruction) -> None:
    kind = one.op[-1]
    value, bits = W.read(one.args[1], form(kind)), width_of(kind)
    if not one.args[2].isdigit():
        name = "shift_left" if one.kind == "shl" else "shift_right"
        return W.write(one.args[0], form(kind), f"{name}({value}, {W.read(one.args[2], 'u4')}, {bits})")
    by, symbol = int(one.args[2]), "<<" if one.kind == "shl" else ">>"
    if by >= bits and kind[0] != "s":
        return W.write(one.args[0], form(kind), W.immediate("0", form(kind)))
    return W.write(one.args[0], form(kind), f"{value} {symbol} {W.immediate(str(min(by, bits - 1)), form(kind))}")


def _bit_field(W: BlockWriter, one: Instruction) -> None:
    if not (one.args[2].isdigit() and one.args[3].isdigit()):
        raise W.unknown()
    position, length, bits = int(one.args[2]), int(one.args[3]), f"u{width_of(one.op[-1]) // 8}"
    value = W.read(one.args[1], bits)
    W.write(one.args[0], bits, f"bit_field({value}, {position}, {length}, {one.op[-1][0] == 's'})")


def _permute(W: BlockWriter, one: Instruction) -> None:
    if len(one.op) != 2 or one.args[3].startswith("%"):
        raise W.unknown()
    a, b = (W.read(operand, "u4") for operand in one.args[1:3])
    W.write(one.args[0], "u4", f"permute_bytes({a}, {b}, {int(one.args[3].rstrip('U'), 0)})")


def _compare(W: BlockWriter, one: Instruction) -> None:
    comparison, kind = one.op[1], one.op[-1]
    if len(one.op) - ("ftz" in one.op) != 3 or len(one.args) != 3:
        raise W.unknown()
    floats = kind == "f32"
    plain = comparison in ("eq", "ne")
    left, right = (_float(W, one, a) if floats else W.read(a, form(kind, plain)) for a in one.args[1:])
    if comparison in ("nan", "num"):
        text = f"{'~' if comparison == 'num' else ''}(np.isnan({left}) | np.isnan({right}))"
    elif comparison == "equ":
        text = f"~(({left} < {right}) | ({left} > {right}))"
    elif comparison in UNORDERED:
        text = f"~({left} {UNORDERED[comparison]} {right})"
    elif comparison == "neu":
        text = f"{left} != {right}"
    elif comparison == "ne" and floats:
        text = f"({left} < {right}) | ({left} > {right})"
    else:
        text = f"{left} {COMPARISONS[comparison]} {right}"
    W.write(one.args[0], "bool", text)


def _select(W: BlockWriter, one: Instruction) -> None:
    """Only what is chosen is read."""
    cond, bits = W.read(one.args[3], "bool"), f"u{width_of(one.op[-1]) // 8}"
    always = W.defined()
    values, sure = [], []
    for operand in one.args[1:3]:
        W.watched.clear()
        values.append(W.read(operand, bits))
        sure.append(W.defined())
    W.write(one.args[0], bits, f"where({cond}, {values[0]}, {values[1]})", flushed=set(values) <= W.flushed,
            defined=f"({always} & where({cond}, {sure[0]}, {sure[1]}))")


def _move(W: BlockWriter, one: Instruction) -> None:
    kind = one.op[-1]
    if one.args[1].startswith("{") or one.args[0].startswith("{"):
        return _move_halves(W, one)
    if kind == "pred":
        return W.write(one.args[0], "bool", f"np.full(C.threads, {W.read(one.args[1], 'bool')})"
                       if not one.args[1].startswith("%") else W.read(one.args[1], "bool"))
    return W.write(one.args[0], f"u{width_of(kind) // 8}", W.read(one.args[1], f"u{width_of(kind) // 8}"))


def _move_halves(W: BlockWriter, one: Instruction) -> None:
    """A register of 64 bits into two, the lower half first, or from two. A half that nobody wants is `_`."""
    into, source = ([half.strip() for half in operand.strip("{}").split(",")] for operand in one.args)
    if one.op[-1] != "b64" or sorted((len(into), len(source))) != [1, 2]:
        raise W.unknown()
    if len(source) == 2:
        low, high = (f"{W.read(half, 'u4')}.astype(u8)" for half in source)
        return W.write(into[0], "u8", f"{low} | {high} << u8(32)")
    whole = W.read(source[0], "u8")
    for half, shift in zip(into, (0, 32), strict=True):
        if half != "_":
            W.write(half, "u4", f"({whole} >> u8({shift})).astype(u4)")
    return None


def _convert(W: BlockWriter, one: Instruction) -> None:
    into, source = one.op[-2:]
    rounding = set(one.op[1:-2]) - {"rn"}
    if rounding or source[0] == "f" or into not in ("f32", "u64", "s64", "u32", "s32", "u16", "s16"):
        raise W.unknown()
    W.write(one.args[0], form(into), f"{W.read(one.args[1], form(source))}.astype({form(into)})")


def _shuffle(W: BlockWriter, one: Instruction) -> None:
    if "|" in one.args[0] or one.args[3].startswith("%"):
        raise W.unknown()
    by = repr(int(one.args[2], 0)) if not one.args[2].startswith("%") else W.read(one.args[2], "u4")
    value, clamp = W.read(one.args[1], "u4"), int(one.args[3], 0)
    how = f"{one.op[2]!r}, {by}, {clamp}"
    W.write(one.args[0], "u4", f"C.shuffle({value}, {how}, {W.condition()}, {W.site})",
            defined=f"C.shuffle({W.defined()}, {how}, None, {W.site})")


def _redux(W: BlockWriter, one: Instruction) -> None:
    function = {"max": "maximum", "min": "minimum", "add": "add", "and": "bitwise_and", "or": "bitwise_or",
                "xor": "bitwise_xor"}[one.op[2]]
    kind = form(one.op[-1])
    value = W.read(one.args[1], kind)
    W.write(one.args[0], kind, f"C.redux({value}, np.{function}, {W.condition()}, {W.site})",
            defined=f"C.redux({W.defined()}, np.logical_and, None, {W.site})")


def _barrier(W: BlockWriter, one: Instruction) -> None:
    if one.op[:2] != ("bar", "sync") or one.args != ("0",):
        raise W.unknown()
    W.emit(f"C.barrier({W.condition()}, {W.site})")


def _space(W: BlockWriter, one: Instruction) -> str:
    found = {"global", "shared", "param"} & set(one.op)
    if len(found) != 1:
        raise W.unknown()
    return found.pop()


def _place(W: BlockWriter, operand: str, space: str) -> str:
    """An address in bytes, of the type that its space has."""
    kind = "u4" if space == "shared" else "u8"
    base, offset = W.address(operand, kind)
    return f"{base} + {W.immediate(str(offset), kind)}" if offset else base


def _load(W: BlockWriter, one: Instruction) -> None:
    space, kind = _space(W, one), one.op[-1]
    if space == "param":
        return _load_parameter(W, one)
    registers, size = split(one.args[0].strip("{} ")), width_of(kind) // 8
    place, cond = _place(W, one.args[1], space), W.condition()
    W.check_defined(cond)
    W.watched.clear()
    found = W.local(f"C.{SPACES[space]}.load({place}, {size}, {len(registers)}, {cond}, {W.site})")
    for number, register in enumerate(registers):
        value = f"{found}[{number}]"
        if kind[0] == "s" and W.kind(register) != f"b{8 * size}":
            value = f"{value}.view(i{size}).astype(i{TYPES[W.kind(register)][1:]})"
            W.write(register, f"i{TYPES[W.kind(register)][1:]}", value)
        else:
            W.write(register, f"u{size}", value)
    return None


def _store(W: BlockWriter, one: Instruction) -> None:
    space, kind = _space(W, one), one.op[-1]
    if space == "param":
        name, offset = _parameter(W, one.args[0])
        return W.emit(f"P[{name!r}, {offset}] = {W.read(one.args[1], f'u{width_of(kind) // 8}')}")
    size = width_of(kind) // 8
    values = ", ".join(W.read(operand, f"u{size}") for operand in split(one.args[1].strip("{} ")))
    place, cond = _place(W, one.args[0], space), W.condition()
    W.check_defined(cond)
    return W.emit(f"C.{SPACES[space]}.store({place}, {size}, ({values},), {cond}, {W.site})")


def _parameter(W: BlockWriter, operand: str) -> tuple[str, int]:
    found = re.fullmatch(r"\[\s*([\w$]+)\s*(?:\+\s*(\d+))?\s*\]", operand)
    if found is None:
        raise W.unknown()
    return found[1], int(found[2] or 0)


def _load_parameter(W: BlockWriter, one: Instruction) -> None:
    name, offset = _parameter(W, one.args[1])
    kind, own = one.op[-1], TYPES[W.kind(one.args[0])]
    size = width_of(kind) // 8
    value = f"P[{name!r}, {offset}]"
    if kind[0] == "s" and int(own[1:]) > size:
        return W.write(one.args[0], f"i{own[1:]}", f"{value}.view(i{size}).astype(i{own[1:]})")
    return W.write(one.args[0], f"u{size}", value)


def _matrix(W: BlockWriter, one: Instruction) -> None:
    """ldmatrix and stmatrix, of 1, 2 or 4 matrices of 8 × 8 halves."""
    loads = one.kind == "ldmatrix"
    shape, count = one.op[3], int(one.op[4][1:])
    registers = split(one.args[0 if loads else 1].strip("{} "))
    if shape != "m8n8" or "trans" in one.op or len(registers) != count:
        raise W.unknown()
    place = _place(W, one.args[1 if loads else 0], "shared")
    if not loads:
        values = ", ".join(W.read(register, "u4") for register in registers)
        W.check_defined(W.condition())
        return W.emit(f"C.store_matrices({place}, ({values},), {W.condition()}, {W.site})")
    found = W.local(f"C.load_matrices({place}, {count}, {W.condition()}, {W.site})")
    for number, register in enumerate(registers):
        W.write(register, "u4", f"{found}[{number}]")
    return None


def _atomic(W: BlockWriter, one: Instruction) -> None:
    kind = one.op[-1]
    if "add" not in one.op or "global" not in one.op or kind not in ("u32", "s32", "f32"):
        raise W.unknown()
    ordered = "acq_rel" in one.op
    place, value = _place(W, one.args[1], "global"), W.read(one.args[2], "f4" if kind == "f32" else "u4")
    cond = W.condition()
    W.check_defined(cond)
    W.watched.clear()
    found = W.local(f"C.atomic_add({place}, {value}, {ordered}, {cond}, {W.site})")
    W.write(one.args[0], "f4" if kind == "f32" else "u4", found)


def _call(W: BlockWriter, one: Instruction) -> None:
    args = list(one.args)
    results = split(args.pop(0).strip("() ")) if args[0].startswith("(") else []
    given = split(args[1].strip("() ")) if len(args) > 1 else []
    W.emit(f"C.call({args[0]!r}, {tuple(given)!r}, P, {tuple(results)!r}, m)")


def _nothing(W: BlockWriter, one: Instruction) -> None:
    """Branches are what a block ends with."""


OPERATIONS: dict[str, Operation] = {
    **{name: _arithmetic for name in SYMBOLS},
    "mad": _multiply_add, "fma": _fma, "max": _extreme, "min": _extreme,
    "div": _of_floats("a / b"), "ex2": _of_floats("np.exp2(a)"), "lg2": _of_floats("np.log2(a)"),
    "rcp": _of_floats("f4(1) / a"), "sqrt": _of_floats("np.sqrt(a)"),
    "abs": _unary("np.abs({})"), "neg": _unary("-{}"), "not": _unary("~{}"),
    "shl": _shift, "shr": _shift, "bfe": _bit_field, "prmt": _permute,
    "setp": _compare, "selp": _select, "mov": _move, "cvt": _convert,
    "shfl": _shuffle, "redux": _redux, "bar": _barrier, "ld": _load, "st": _store,
    "ldmatrix": _matrix, "stmatrix": _matrix, "atom": _atomic, "call": _call,
    "bra": _nothing, "brx": _nothing, "ret": _nothing, "exit": _nothing,
}
