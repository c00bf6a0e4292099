"""A function's basic blocks → Python functions over arrays, one for each block.

`add.f32 %r3, %r1, %r2` becomes `v7 = v5 + v6`, with one array element for every thread. Inside a block registers are
local variables in the types that they are used in; those that another block may read are written back at its end, by
the threads that are active. What the text of a block is made of are numbers of registers, constants and names from
`operations`; no text of the PTX gets into it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsfrc.engines.ptx import arithmetic
from nsfrc.engines.ptx.flow import Flow
from nsfrc.engines.ptx.parse import Function, Instruction
from nsfrc.errors import NsfrcError

TYPES = {"b16": "u2", "b32": "u4", "b64": "u8", "pred": "bool"}
NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)U?")
SPECIAL = re.compile(r"%(tid|ctaid|nctaid|ntid)\.([xyz])|%(laneid|warpid)")
ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+))?\s*\]")


@dataclass(frozen=True, slots=True)
class Code:
    """A function that can run: its blocks, the types of its registers, what its blocks consist of, and where."""

    function: Function
    blocks: tuple[Callable[..., tuple[Any, Any]], ...]
    registers: tuple[str, ...]
    kinds: tuple[Counter[str], ...]


def width_of(kind: str) -> int:
    """Bits of a type such as u32."""
    return int(kind[1:])


class BlockWriter:
    """Writes one block; `operations` tells it how for each instruction."""

    def __init__(self, flow: Flow, number: int, constants: dict[str, Any], first_site: int) -> None:
        self.flow, self.function, self.number, self.constants = flow, flow.function, number, constants
        self.lines: list[str] = []
        self.forms: dict[str, dict[str, str]] = {}  # register → type → local variable
        self.written: dict[str, None] = {}
        self.flushed: set[str] = set()  # local variables without subnormal numbers
        self.count = 0
        self.site = first_site
        self.now: Instruction = flow.function.blocks[number][0]
        self.watched: dict[int, None] = {}  # registers that it has read and that may be undefined

    # What operations write with.

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def local(self, expression: str) -> str:
        """Give an expression a name."""
        self.count += 1
        self.emit(f"v{self.count} = {expression}")
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """A name for a number; the same number of the same type has one name."""
        name = f"K{type(value).__name__}_{value.tobytes().hex()}"
        self.constants[name] = value
        return name

    def kind(self, register: str) -> str:
        return self.function.kind_of(register)

    def read(self, operand: str, form: str) -> str:
        """A local variable or constant that holds an operand. form: u4, i4, f4, u8, …, bool."""
        if operand.startswith("%") and not SPECIAL.fullmatch(operand):
            if operand in self.flow.watched:
                self.watched[self.flow.index[operand]] = None
            return self._register(operand, form)
        if found := SPECIAL.fullmatch(operand):
            return f"C.special[{(found[1] or found[3]) + (found[2] or '')!r}]"
        return self.immediate(operand, form)

    def check_defined(self, cond: str) -> None:
        """The instruction acts on what it has read: all of that must be defined."""
        if self.watched:
            self.emit(f"C.check_defined(D, {tuple(self.watched)}, {cond}, {self.site})")

    def defined(self) -> str:
        """Whether all that the instruction has read is defined, thread by thread."""
        return f"C.defined(D, {tuple(self.watched)})"

    def _register(self, register: str, form: str) -> str:
        own = TYPES[self.kind(register)]
        forms = self.forms.setdefault(register, {})
        if not forms:
            forms[own] = self.local(f"R[{self.flow.index[register]}]")
        if form not in forms:
            held, variable = next(iter(forms.items()))
            if form == "bool" or own == "bool" or form[1:] != own[1:]:
                if form[1:] == held[1:] or own == "bool" or form == "bool":
                    raise self.unknown()
                forms[form] = self.local(f"{self._register(register, own)}.astype({form})")  # a part of a register
            else:
                forms[form] = self.local(f"{variable}.view({form})")
                if variable in self.flushed:
                    self.flushed.add(forms[form])
        return forms[form]

    def immediate(self, operand: str, form: str) -> str:
        if operand == "global_smem":
            return self.constant(getattr(np, "uint" + str(8 * int(form[1:])))(0))
        if operand.startswith("0f"):
            value = np.uint32(int(operand[2:], 16))
        elif NUMBER.fullmatch(operand):
            number = int(operand.rstrip("U"), 0)
            if form == "bool":
                return self.constant(np.bool_(number))
            bits = 8 * int(form[1:])
            value = getattr(np, f"uint{bits}")(number & (1 << bits) - 1)
        else:
            raise self.unknown()
        name = self.constant(value if form == "bool" else value.view(_numpy(form)))
        self.flushed.add(name)
        return name

    def write(self, register: str, form: str, value: str, flushed: bool = False, defined: str = "") -> None:
        """Let a register hold an expression of some type, in the threads that the guard names. defined: in which of
        them that is defined; by default where all operands are."""
        own = TYPES[self.kind(register)]
        if form != own and form[1:] != own[1:]:  # into a wider register, or part of one
            value, form = f"({value}).astype({own})", own
        variable = self.local(value) if not re.fullmatch(r"v\d+|K\w+", value) else value
        if self.now.guard is not None:
            new = variable if form == own else f"{variable}.view({own})"
            variable, form = self.local(f"where({self.guard()}, {new}, {self._register(register, own)})"), own
        self.forms[register] = {form: variable}
        self.written[register] = None
        if flushed:
            self.flushed.add(variable)
        if register in self.flow.watched:
            self.emit(f"C.define(D, {self.flow.index[register]}, {defined or self.defined()}, {self.condition()})")

    def guard(self) -> str:
        assert self.now.guard is not None
        register, negated = self.now.guard
        return ("~" if negated else "") + self._register(register, "bool")

    def check_guard(self) -> None:
        """Nothing may depend on a guard that is undefined."""
        if self.now.guard is not None and self.now.guard[0] in self.flow.watched:
            self.emit(f"C.check_defined(D, ({self.flow.index[self.now.guard[0]]},), m, {self.site})")

    def condition(self) -> str:
        """The threads that an instruction is for: None where all are."""
        if self.now.guard is None:
            return "m"
        return self.local(f"both({self.guard()}, m)")

    def address(self, operand: str, form: str) -> tuple[str, int]:
        """`[%rd1 + 16]` as a variable of some type, and 16."""
        found = ADDRESS.fullmatch(operand)
        if found is None:
            raise self.unknown()
        return self.read(found[1], form), int(found[2] or 0)

    def unknown(self) -> NsfrcError:
        return NsfrcError(
            f"line {self.now.line} of the PTX of {self.function.name[:60]}: engine \"ptx\" does not know this form of "
            f"{self.now.name} ({', '.join(self.now.args)[:60]})"
        )

    # The block as a whole.

    def write_block(self) -> list[str]:
        from nsfrc.engines.ptx.operations import OPERATIONS

        for one in self.function.blocks[self.number]:
            self.now, self.watched = one, {}
            self.check_guard()
            operation = OPERATIONS.get(one.kind)
            if operation is None:
                raise self.unknown()
            operation(self, one)
            self.site += 1
        following = self._following()
        self._write_back()
        body = [*self.lines, f"return {following}"]
        return [f"def b{self.number}(R, D, P, C, m):", *(f"    {line}" for line in body)]

    def _following(self) -> str:
        """What comes next: a block, and the threads for which it does (None: all of those active)."""
        last, labels = self.now, self.function.labels
        if last.kind == "brx":
            table = [labels[label] for label in self.function.tables[last.args[1]]]
            index = self.read(last.args[0], "u4")
            self.check_defined("m")
            return f"{tuple(table)}, {index}"
        if last.kind in ("bra", "ret", "exit"):
            target = labels[last.args[0]] if last.kind == "bra" else len(self.function.blocks)
            return f"{target}, {self.local(self.guard()) if last.guard else None}"
        return f"{self.number + 1}, None"

    def _write_back(self) -> None:
        for register in self.written:
            if register in self.flow.local:
                continue
            own, index = TYPES[self.kind(register)], self.flow.index[register]
            held, variable = next(iter(self.forms[register].items()))
            value = variable if held == own else f"{variable}.view({own})"
            self.emit(f"R[{index}] = keep({value}, R[{index}], m, C)")


def _numpy(form: str) -> Any:
    return getattr(arithmetic, form)


def keep(new: Any, old: Any, active: Any, machine: Any) -> Any:
    """A register after a block: new where threads are active. Constants become arrays."""
    if active is not None:
        return np.where(active, new, old)
    return arithmetic.spread(new, machine.threads)


def both(guard: Any, active: Any) -> Any:
    return guard if active is None else guard & active


def translate(function: Function, first_site: int) -> Code:
    """Make a function's blocks callable. first_site: the number of its first instruction in the module."""
    flow = Flow(function)
    names = {name: value for name, value in vars(arithmetic).items() if not name.startswith("_")}
    constants: dict[str, Any] = {**names, "np": np, "where": np.where, "keep": keep, "both": both}
    text: list[str] = []
    for number, block in enumerate(function.blocks):
        text += BlockWriter(flow, number, constants, first_site).write_block()
        first_site += len(block)
    exec(compile("\n".join(text), f"<ptx {function.name[:40]}>", "exec"), constants)
    return Code(
        function, tuple(constants[f"b{number}"] for number in range(len(function.blocks))),
        tuple(TYPES[function.kind_of(register)] for register in flow.index),
        tuple(Counter(one.name for one in block) for block in function.blocks),
    )
