"""Which registers a block keeps to itself, and which may be read before anything wrote them."""

from __future__ import annotations

import re

from nsfrc.engines.ptx.parse import Function, Instruction

REGISTER = re.compile(r"%[a-zA-Z]+\d+")
# Instructions whose first operand is read and not written.
NO_RESULT = ("st", "bra", "brx", "ret", "exit", "call", "bar", "barrier", "stmatrix", "red", "membar", "fence")


def reads_and_writes(one: Instruction) -> tuple[list[str], list[str]]:
    """Registers that an instruction reads, and those that it writes."""
    first = 0 if one.kind in NO_RESULT else 1
    read = [register for operand in one.args[first:] for register in REGISTER.findall(operand)]
    if one.guard is not None:
        read.append(one.guard[0])
    return read, [register for operand in one.args[:first] for register in REGISTER.findall(operand)]


class Flow:
    """index: a number for every register. local: registers that one block alone writes, before it reads them.
    watched: those that some path reads though nothing, or only a guarded instruction, has written them, and all that
    depend on these. Reading such a register is no fault, since Triton lets threads compute what nobody uses; acting
    on it is."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.index: dict[str, int] = {}
        where: dict[str, set[int]] = {}
        exposed: set[str] = set()
        self._written: list[set[str]] = []
        self._exposed: list[set[str]] = []
        for number, block in enumerate(function.blocks):
            written, early = self._scan(block, number, where)
            self._written.append(written)
            self._exposed.append(early)
            exposed |= early
        self.local = {register for register, blocks in where.items() if len(blocks) == 1 and register not in exposed}
        self.watched = self._dependents(self._may_be_unwritten())

    def _scan(self, block: list[Instruction], number: int, where: dict[str, set[int]]) -> tuple[set[str], set[str]]:
        """What a block surely writes, and what it reads, or keeps in some threads, before it wrote it."""
        written: set[str] = set()
        early: set[str] = set()
        for one in block:
            reads, writes = reads_and_writes(one)
            for register in (*reads, *writes):
                self.index.setdefault(register, len(self.index))
                where.setdefault(register, set()).add(number)
            early |= set(reads) - written
            if one.guard is None:
                written |= set(writes)
            else:
                early |= set(writes) - written
        return written, early

    def _may_be_unwritten(self) -> set[str]:
        """Forwards through the blocks, until nothing changes: what is surely written when one begins."""
        blocks = range(len(self.function.blocks))
        before = [set(self.index) if number else set() for number in blocks]
        changed = True
        while changed:
            changed = False
            for number in blocks:
                after = before[number] | self._written[number]
                for following in self.function.successors(number):
                    if following in blocks and not before[following] <= after:
                        before[following] &= after
                        changed = True
        return {register for number in blocks for register in self._exposed[number] - before[number]}

    def _dependents(self, registers: set[str]) -> set[str]:
        found = set(registers)
        uses = [reads_and_writes(one) for block in self.function.blocks for one in block] if found else []
        size = -1
        while size < len(found):
            size = len(found)
            for reads, writes in uses:
                if not found.isdisjoint(reads):
                    found.update(writes)
        return found
