"""A launch: blocks of threads that run a kernel's functions over arrays, several blocks at a time.

Threads that take different ways are masked; the block of instructions with the lowest number goes first, which brings
them together again as early as they can. What is checked on the way is reported to `findings`, never fatal at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nsfrc.engines.ptx import findings as kinds
from nsfrc.engines.ptx.arithmetic import i8, shuffled_lanes, some, spread, u2, u4, u8
from nsfrc.engines.ptx.counts import Counts
from nsfrc.engines.ptx.findings import Finding
from nsfrc.engines.ptx.memory import POISON, THREADS, Device, Shared
from nsfrc.engines.ptx.parse import Instruction, Module
from nsfrc.engines.ptx.translate import Code, translate

WARP = 32
NOWHERE = -1  # before any barrier
LANES = 1 << 14  # threads that run together
ORDERS = ("together", "forwards", "backwards")
MOST_BLOCKS = 20_000_000  # basic blocks of a launch, before it is taken for endless
UNDEFINED = {"u2": u2(0xBEEF), "u4": u4(POISON), "u8": u8(POISON << 20), "bool": np.bool_(False)}


class Endless(Exception):
    """A launch that was stopped."""


@dataclass(slots=True)
class Loaded:
    """A kernel that can run: its functions, translated when first called, and where each instruction is."""

    module: Module
    shared: int
    warps: int
    label: str
    arch: str
    sites: list[tuple[str, Instruction]] = field(default_factory=list)
    _first: dict[str, int] = field(default_factory=dict)
    _codes: dict[str, Code] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, function in self.module.functions.items():
            self._first[name] = len(self.sites)
            self.sites += [(name, one) for block in function.blocks for one in block]

    def code(self, name: str) -> Code:
        if name not in self._codes:
            self._codes[name] = translate(self.module.functions[name], self._first[name])
        return self._codes[name]

    @property
    def grain(self) -> int:
        """The smallest piece of shared memory that an instruction touches."""
        sizes = [int(one.op[-1][1:]) // 8 for _, one in self.sites if one.kind in ("ld", "st") and "shared" in one.op]
        return min([4, *sizes])


class Machine:
    """One launch. Registers, tags and so on are arrays over the threads of the blocks that run together."""

    def __init__(
        self, kernel: Loaded, grid: tuple[int, ...], *, checked: bool = True, counts: Counts | None = None,
        order: str = "together", longest: int = MOST_BLOCKS,
    ) -> None:
        self.kernel, self.checked, self.counts, self.order = kernel, checked, counts, order
        self.grid = (*grid, 1, 1)[:3]
        self.block_threads = kernel.warps * WARP
        self.blocks = int(np.prod(self.grid))
        self.several_blocks = self.blocks > 1
        self.left = longest
        self.executed: Counter[tuple[str, int]] = Counter()
        self.diverged = 0
        self.accesses = 0  # loads, stores and atomics so far
        self.follows: set[tuple[int, int]] = set()  # barriers that one after the other were reached
        self.doubled = 0  # barriers that nothing parts from the one before, exact where one block runs
        self._latest = (NOWHERE, 0)
        self._found: dict[tuple[str, int], list[Any]] = {}
        self._next_moment = 1

    # Running.

    def run(self, device: Device, parameters: list[Any]) -> None:
        self.device = device
        given = {(name, 0): value for name, value in
                 zip(self.kernel.module.functions[self.kernel.module.entry].parameters, parameters, strict=True)}
        with np.errstate(all="ignore"):
            for numbers in self._waves():
                self._begin(numbers)
                try:
                    self._frame(self.kernel.module.entry, given, None)
                except Endless:
                    return

    def _waves(self) -> Iterator[np.ndarray]:
        """Numbers of the blocks that run together, in their order."""
        numbers = np.arange(self.blocks)
        at_once = max(1, LANES // self.block_threads) if self.order == "together" else 1
        if self.order == "backwards":
            numbers = numbers[::-1]
        for first in range(0, self.blocks, at_once):
            yield numbers[first : first + at_once]

    def _begin(self, numbers: np.ndarray) -> None:
        threads = self.block_threads
        self.threads = len(numbers) * threads
        self.lanes = np.arange(self.threads)
        self.block_of_lane: np.ndarray = self.lanes // threads  # among those that run
        self.block: np.ndarray = np.repeat(numbers, threads)
        self.numbers = numbers
        thread: np.ndarray = self.lanes % threads
        self._thread = self.block * threads + thread
        self._moment_of = np.zeros(len(numbers), i8)
        self._advance(np.arange(len(numbers)))
        where = np.unravel_index(self.block, self.grid, order="F")
        self.special = {"tidx": thread.astype(u4), "tidy": u4(0), "tidz": u4(0), "laneid": (thread % WARP).astype(u4),
                        "warpid": (thread // WARP).astype(u4), "ntidx": u4(threads), "ntidy": u4(1), "ntidz": u4(1)}
        for axis, index, size in zip("xyz", where, self.grid, strict=True):
            self.special["ctaid" + axis], self.special["nctaid" + axis] = index.astype(u4), u4(size)
        self.shared = Shared(self, self.kernel.shared, len(numbers), self.kernel.grain)
        self._fresh = {kind: np.full(self.threads, value) for kind, value in UNDEFINED.items()}
        self._shuffles: dict[tuple[str, int, int], np.ndarray] = {}

    def _advance(self, which: np.ndarray) -> None:
        """A new moment for blocks."""
        self._moment_of[which] = np.arange(self._next_moment, self._next_moment + len(which))
        self._next_moment += len(which)
        self.moments: np.ndarray = np.repeat(self._moment_of, self.block_threads)
        self.tags = self.moments << THREADS | self._thread

    def _frame(self, name: str, parameters: dict[tuple[str, int], Any], active: np.ndarray | None) -> dict[Any, Any]:
        """Run a function for some threads; its parameters, and what it returns, by name."""
        code = self.kernel.code(name)
        registers = [self._fresh[kind] for kind in code.registers]
        defined: dict[int, np.ndarray] = {}
        todo: dict[int, np.ndarray | None] = {0: active}
        blocks, end = code.blocks, len(code.blocks)
        while todo:
            number = min(todo)
            mask = todo.pop(number)
            if number >= end:
                continue
            self._tally(name, number, mask)
            following, choice = blocks[number](registers, defined, parameters, self, mask)
            if choice is None:
                self._join(todo, following, mask)
            elif isinstance(following, tuple):
                for entry, target in enumerate(following):
                    self._take(todo, target, spread(choice == entry, self.threads), mask)
            else:
                self._branch(todo, number, following, spread(choice, self.threads), mask)
        return parameters

    def _tally(self, name: str, number: int, mask: np.ndarray | None) -> None:
        warps = self.threads // WARP if mask is None else int(mask.reshape(-1, WARP).any(1).sum())
        self.executed[name, number] += warps
        self.left -= 1
        if self.left < 0:
            site = self.kernel._first[name]
            self.report(kinds.ENDLESS, site, "stopped after so many blocks of instructions")
            raise Endless

    def _branch(
        self, todo: dict[int, np.ndarray | None], number: int, target: int, choice: np.ndarray, mask: np.ndarray | None
    ) -> None:
        taken = choice if mask is None else choice & mask
        rest = ~choice if mask is None else mask & ~choice
        if not some(rest):
            return self._join(todo, target, mask)
        if not some(taken):
            return self._join(todo, number + 1, mask)
        split = taken.reshape(-1, WARP).any(1) & rest.reshape(-1, WARP).any(1)
        self.diverged += int(split.sum())
        self._join(todo, target, taken)
        return self._join(todo, number + 1, rest)

    def _take(
        self, todo: dict[int, np.ndarray | None], target: int, choice: np.ndarray, mask: np.ndarray | None
    ) -> None:
        taken = choice if mask is None else choice & mask
        if some(taken):
            self._join(todo, target, taken)

    def _join(self, todo: dict[int, np.ndarray | None], target: int, mask: np.ndarray | None) -> None:
        if target in todo:
            there = todo[target]
            mask = None if mask is None or there is None else mask | there
        todo[target] = None if mask is None or mask.all() else mask

    def call(
        self, name: str, given: tuple[str, ...], parameters: dict[Any, Any], results: tuple[str, ...],
        active: np.ndarray | None,
    ) -> None:
        function = self.kernel.module.functions[name]
        handed = {(formal, 0): parameters[actual, 0] for formal, actual in zip(function.parameters, given, strict=True)}
        after = self._frame(name, handed, active)
        for actual, formal in zip(results, function.results, strict=True):
            parameters[actual, 0] = after[formal, 0]

    # What threads do together.

    def barrier(self, active: np.ndarray | None, site: int) -> None:
        reached = np.arange(len(self.numbers))
        if active is not None:
            whole = spread(active, self.threads).reshape(-1, self.block_threads)
            if some(partly := whole.any(1) & ~whole.all(1)):
                self.report(kinds.DIVERGED_BARRIER, site, f"block {int(self.numbers[partly][0])}", int(partly.sum()))
            reached = np.flatnonzero(whole.any(1))
        before, accesses = self._latest
        self._latest = (site, self.accesses)
        self.follows.add((before, site))
        self.doubled += int(before != NOWHERE and accesses == self.accesses)
        self._advance(reached)
        self.device.pass_barrier(self.numbers[reached])

    def _whole_warps(self, active: np.ndarray | None, site: int) -> None:
        if active is None:
            return
        warps = spread(active, self.threads).reshape(-1, WARP)
        if some(partly := warps.any(1) & ~warps.all(1)):
            self.report(kinds.DIVERGED_WARP, site, self.name_of(int(np.flatnonzero(partly)[0]) * WARP))

    def shuffle(self, value: Any, mode: str, by: Any, clamp: int, active: np.ndarray | None, site: int) -> Any:
        self._whole_warps(active, site)
        if not np.ndim(value):
            return value
        if not isinstance(by, int):
            lane: np.ndarray = self.lanes % WARP
            return value[shuffled_lanes(lane, mode, by, clamp) + self.lanes - lane]
        key = (mode, by, clamp)
        if key not in self._shuffles:
            lane = self.lanes % WARP
            self._shuffles[key] = shuffled_lanes(lane, mode, by, clamp) + self.lanes - lane
        return value[self._shuffles[key]]

    def redux(self, value: Any, function: Any, active: np.ndarray | None, site: int) -> Any:
        self._whole_warps(active, site)
        whole = spread(value, self.threads).reshape(-1, WARP)
        return np.repeat(function.reduce(whole, axis=1), WARP)

    def _matrix_words(self, address: Any, number: int) -> np.ndarray:
        """Where each thread's word of a matrix is: row t // 4 begins where thread 8·number + t // 4 says."""
        rows = spread(address, self.threads).reshape(-1, WARP)[:, 8 * number : 8 * number + 8]
        lane = np.arange(WARP)
        return (rows[:, lane // 4] + (lane % 4 * 4).astype(u4)).reshape(-1)

    def load_matrices(self, address: Any, count: int, active: np.ndarray | None, site: int) -> list[np.ndarray]:
        self._whole_warps(active, site)
        self._rows_aligned(address, count, active, site)
        return [self.shared.load(self._matrix_words(address, i), 4, 1, active, site)[0] for i in range(count)]

    def store_matrices(self, address: Any, values: tuple[Any, ...], active: np.ndarray | None, site: int) -> None:
        self._whole_warps(active, site)
        self._rows_aligned(address, len(values), active, site)
        for number, value in enumerate(values):
            self.shared.store(self._matrix_words(address, number), 4, (value,), active, site)

    def _rows_aligned(self, address: Any, count: int, active: np.ndarray | None, site: int) -> None:
        rows = spread(address, self.threads).reshape(-1, WARP)[:, : 8 * count]
        if active is not None:
            rows = rows[spread(active, self.threads).reshape(-1, WARP)[:, 0]]
        if some(rows % 16):
            self.report(kinds.MISALIGNED, site, "a row of a matrix begins at a multiple of 16 bytes")

    def atomic_add(self, address: Any, value: Any, ordered: bool, active: np.ndarray | None, site: int) -> np.ndarray:
        """One thread after another. What was there before."""
        value, device = spread(value, self.threads), self.device
        self.accesses += 1
        before = np.zeros(self.threads, value.dtype)
        words = device.views[4].view(value.dtype)
        lanes, at = device._lanes(address, active)
        if len(at) and (fault := device._misplaced(at, 4)) is not None:
            device._report_outside(at, fault, lanes, site)
            lanes, at = (self.lanes if lanes is None else lanes)[~fault], at[~fault]
        for lane, offset in zip((self.lanes if lanes is None else lanes).tolist(), at.tolist(), strict=True):
            word = offset // 4
            if device.state[word] != 2:
                self.report(kinds.UNWRITTEN, site, device.describe(offset))
            before[lane] = words[word]
            words[word] += value[lane]
            device.state[word], device.writer[word] = 2, self.tags[lane]
            if ordered:
                device.order(word, int(self.block[lane]), int(self.moments[lane]))
        return before

    # Registers that nothing wrote.

    def defined(self, known: dict[int, np.ndarray], registers: tuple[int, ...]) -> Any:
        found: Any = np.bool_(True)
        for register in registers:
            found = found & known.get(register, np.bool_(False))
        return found

    def define(self, known: dict[int, np.ndarray], register: int, where: Any, active: np.ndarray | None) -> None:
        if active is not None:
            where = np.where(active, where, known.get(register, np.bool_(False)))
        known[register] = spread(where, self.threads)

    def check_defined(
        self, known: dict[int, np.ndarray], registers: tuple[int, ...], active: np.ndarray | None, site: int
    ) -> None:
        wrong = spread(~self.defined(known, registers), self.threads)
        wrong = wrong if active is None else wrong & active
        if some(wrong):
            self.report(kinds.UNDEFINED, site, f"by {self.name_of(int(np.flatnonzero(wrong)[0]))}", int(wrong.sum()))

    # What was found.

    def name_of(self, thread: int, whole: bool = False) -> str:
        """A thread in words. whole: its number in the grid, and not among those that run."""
        if not whole:
            thread = int(self._thread[thread])
        return f"thread {thread % self.block_threads} of block {thread // self.block_threads}"

    def report(self, kind: str, site: int, detail: str = "", times: int = 1) -> None:
        self._found.setdefault((kind, site), [0, detail])[0] += times

    @property
    def findings(self) -> list[Finding]:
        kernel = self.kernel
        return [
            Finding(kind, kernel.label, kernel.arch, kernel.sites[site][0], kernel.sites[site][1].line,
                    kernel.sites[site][1].name, kernel.sites[site][1].source, detail, times)
            for (kind, site), (times, detail) in self._found.items()
        ]

    def barrier_lines(self) -> frozenset[tuple[int, int]]:
        """Lines of the PTX with barriers that one after the other were reached."""
        line = [one.line for _, one in self.kernel.sites]
        return frozenset((line[first], line[second]) for first, second in self.follows if first != NOWHERE)

    def instructions(self) -> Counter[str]:
        """Instructions of warps that ran, by name."""
        found: Counter[str] = Counter()
        for (name, block), warps in self.executed.items():
            for op, times in self.kernel.code(name).kinds[block].items():
                found[op] += times * warps
        return found
