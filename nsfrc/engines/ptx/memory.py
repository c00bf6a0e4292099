"""Memory with a shadow: for every cell whether it may be touched, whether it was written, and who last wrote and read
it.

Time is counted in moments: every block has a new one after each of its barriers. Two accesses of a cell by different
threads of a block in one moment are a race if one of them writes (another value than was there, for two writes).
Between blocks there is no order at all, unless one released what it wrote by an atomic and the other acquired it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from nsfrc.engines.ptx import findings as kinds
from nsfrc.engines.ptx.arithmetic import i4, i8, some, spread, u1, u2, u4, u8

if TYPE_CHECKING:
    from nsfrc.engines.ptx.machine import Machine

POISON = 0x7FEDBEEF  # a NaN: what words hold that nothing has written
THREADS = 24  # bits of a tag for a thread; those above are for the moment
OUTSIDE, EMPTY, WRITTEN = 0, 1, 2
TYPES = {1: u1, 2: u2, 4: u4, 8: u8}
STEPS = np.arange(16)
SEVERAL = -2  # blocks have read a cell
NOBODY = -1


class Space(ABC):
    """Cells of `grain` bytes. Offsets are int64 bytes from the start."""

    outside = kinds.OUTSIDE

    def __init__(self, machine: Machine, size: int, grain: int) -> None:
        self.machine, self.size, self.grain = machine, size, grain
        data = np.empty(-(-size // 16) * 4, u4)
        data.fill(POISON)
        self.views: dict[int, Any] = {1: data.view(u1), 2: data.view(u2), 4: data, 8: data.view(u8)}
        cells = -(-size // grain)
        self.state = np.full(cells, OUTSIDE, u1)
        self.writer, self.reader = np.full(cells, NOBODY, i8), np.full(cells, NOBODY, i8)
        self.many = np.full(cells, NOBODY, i8)  # the moment in which several threads read it
        self.block = np.full(cells, NOBODY, i4)  # that has read it, or SEVERAL

    @abstractmethod
    def offsets(self, address: np.ndarray) -> np.ndarray:
        """From the addresses that a program has."""

    @abstractmethod
    def describe(self, offset: int) -> str:
        """What is there, for a finding."""

    def load(self, address: Any, size: int, count: int, active: Any, site: int) -> list[np.ndarray]:
        """`count` values of `size` bytes for every active thread, unsigned; anything for the others."""
        machine = self.machine
        machine.accesses += 1
        lanes, at = self._lanes(address, active)
        if lanes is not None and not len(lanes):
            return [np.zeros(machine.threads, TYPES[size])] * count
        wide = size * count
        if (fault := self._misplaced(at, wide)) is not None:
            self._report_outside(at, fault, lanes, site)
            return self.load(address, size, count, self._without(fault, lanes), site)
        if some(at & (wide - 1)):
            machine.report(kinds.MISALIGNED, site, self.describe(int(at[(at & (wide - 1)) != 0][0])))
            at = at & -wide
        if machine.counts is not None:
            machine.counts.request(self, "ld", at, wide, machine.lanes if lanes is None else lanes)
        if machine.checked:
            self._check_read(self._cells(at, wide), at, lanes, site)
        first = at >> (size.bit_length() - 1)
        view = self.views[size]
        found = [view[first + number if number else first] for number in range(count)]
        if lanes is None:
            return found
        spread = [np.zeros(machine.threads, TYPES[size]) for _ in found]
        for whole, part in zip(spread, found, strict=True):
            whole[lanes] = part
        return spread

    def store(self, address: Any, size: int, values: tuple[Any, ...], active: Any, site: int) -> None:
        machine = self.machine
        machine.accesses += 1
        lanes, at = self._lanes(address, active)
        if lanes is not None and not len(lanes):
            return
        wide = size * len(values)
        if (fault := self._misplaced(at, wide)) is not None:
            self._report_outside(at, fault, lanes, site)
            return self.store(address, size, values, self._without(fault, lanes), site)
        if some(at & (wide - 1)):
            machine.report(kinds.MISALIGNED, site, self.describe(int(at[(at & (wide - 1)) != 0][0])))
            at = at & -wide
        if machine.counts is not None:
            machine.counts.request(self, "st", at, wide, machine.lanes if lanes is None else lanes)
        first, view = at >> (size.bit_length() - 1), self.views[size]
        cells, lost = self._cells(at, wide), None
        for number, value in enumerate(values):
            value = spread(value, machine.threads)
            value = value if lanes is None else value[lanes]
            place = first + number if number else first
            if machine.checked:
                self._check_write(self._cells(at + number * size, size), at, view[place] != value, lanes, site)
            view[place] = value
            if machine.checked and some(other := view[place] != value):
                lost = other if lost is None else lost | other
        self.state[cells] = WRITTEN
        mine = machine.tags if lanes is None else machine.tags[lanes]
        self.writer[cells] = mine if cells.ndim == 1 else mine[:, None]
        if lost is not None:
            self._report_lost(cells if cells.ndim == 1 else cells[:, 0], at, mine, lost, site)

    def _report_lost(
        self, cells: np.ndarray, at: np.ndarray, mine: np.ndarray, lost: np.ndarray, site: int
    ) -> None:
        """Threads whose value another one of the same store has overwritten, of their own block or not."""
        moments = self.writer[cells] >> THREADS
        inside = lost & (moments == mine >> THREADS)
        for kind, which in ((kinds.DIFFERENT_VALUES, inside), (kinds.BETWEEN_BLOCKS, lost & ~inside)):
            if some(which):
                self._tell(kind, site, which, at, self.writer[cells])

    def _lanes(self, address: Any, active: Any) -> tuple[np.ndarray | None, np.ndarray]:
        """Active threads (None: all), and where each of them accesses."""
        at = self.offsets(spread(address, self.machine.threads))
        if active is None:
            return None, at
        lanes = spread(active, self.machine.threads).nonzero()[0]
        return lanes, at[lanes]

    def _cells(self, at: np.ndarray, wide: int) -> np.ndarray:
        first = at >> (self.grain.bit_length() - 1)
        return first if wide <= self.grain else first[:, None] + STEPS[: wide // self.grain]

    def _misplaced(self, at: np.ndarray, wide: int) -> np.ndarray | None:
        """Which accesses leave what there is; None where none does."""
        if at.min() < 0 or at.max() > self.size - wide:
            return (at < 0) | (at > self.size - wide)
        bad = self.state[self._cells(at, wide)] == OUTSIDE
        if not some(bad):
            return None
        return bad if bad.ndim == 1 else bad.any(1)

    def _without(self, fault: np.ndarray, lanes: np.ndarray | None) -> np.ndarray:
        active: np.ndarray = np.zeros(self.machine.threads, bool)
        active[(self.machine.lanes if lanes is None else lanes)[~fault]] = True
        return active

    def _report_outside(self, at: np.ndarray, fault: np.ndarray, lanes: np.ndarray | None, site: int) -> None:
        thread = int((self.machine.lanes if lanes is None else lanes)[fault][0])
        detail = f"{self.describe(int(at[fault][0]))}, by {self.machine.name_of(thread)}"
        self.machine.report(self.outside, site, detail, int(fault.sum()))

    def _check_read(self, cells: np.ndarray, at: np.ndarray, lanes: np.ndarray | None, site: int) -> None:
        machine = self.machine
        mine, moment = machine.tags, machine.moments
        if lanes is not None:
            mine, moment = mine[lanes], moment[lanes]
        if cells.ndim == 2:
            at, mine, moment = at[:, None], mine[:, None], moment[:, None]
        if some(unwritten := self.state[cells] == EMPTY):
            self._tell(kinds.UNWRITTEN, site, unwritten, at, None)
        writer = self.writer[cells]
        if some(race := _same_moment(writer, mine)):
            self._tell(kinds.READ_AFTER_WRITE, site, race, at, writer)
        reader = self.reader[cells]
        if some(others := _same_moment(reader, mine)):
            self.many[cells[others]] = np.broadcast_to(moment, cells.shape)[others]
        self.reader[cells] = mine
        if some(several := self.reader[cells] != mine):
            self.many[cells[several]] = np.broadcast_to(moment, cells.shape)[several]
        if machine.several_blocks:
            self._check_blocks_read(cells, at, writer, reader, lanes, site)

    def _check_write(
        self, cells: np.ndarray, at: np.ndarray, changes: np.ndarray, lanes: np.ndarray | None, site: int
    ) -> None:
        """changes: whether a thread writes another value than is there."""
        machine = self.machine
        mine, moment = machine.tags, machine.moments
        if lanes is not None:
            mine, moment = mine[lanes], moment[lanes]
        if cells.ndim == 2:
            at, mine, moment, changes = at[:, None], mine[:, None], moment[:, None], changes[:, None]
        writer = self.writer[cells]
        if some(race := _same_moment(writer, mine) & changes):
            self._tell(kinds.WRITE_AFTER_WRITE, site, race, at, writer)
        reader = self.reader[cells]
        if some(race := _same_moment(reader, mine) | (self.many[cells] == moment)):
            self._tell(kinds.WRITE_AFTER_READ, site, race, at, reader)
        if machine.several_blocks:
            self._check_blocks_write(cells, at, writer, changes, lanes, site)

    @abstractmethod
    def _check_blocks_read(
        self, cells: np.ndarray, at: np.ndarray, writer: np.ndarray, reader: np.ndarray, lanes: np.ndarray | None,
        site: int,
    ) -> None:
        """Report what another block may write."""

    @abstractmethod
    def _check_blocks_write(
        self, cells: np.ndarray, at: np.ndarray, writer: np.ndarray, changes: np.ndarray, lanes: np.ndarray | None,
        site: int,
    ) -> None:
        """Report what another block may read or write."""

    def _tell(self, kind: str, site: int, which: np.ndarray, at: np.ndarray, other: np.ndarray | None) -> None:
        place = int(np.broadcast_to(at, which.shape)[which][0])
        detail = self.describe(place)
        if other is not None and (tag := int(other[which][0])) >= 0:
            detail += f", against {self.machine.name_of(tag & ((1 << THREADS) - 1), whole=True)}"
        self.machine.report(kind, site, detail, int(which.sum()))


def _same_moment(tags: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """Whether tags are of another thread in the same moment: they differ in the bits of the thread alone."""
    return ((tags ^ mine) - 1).view(u8) < u8((1 << THREADS) - 1)


class Shared(Space):
    """Shared memory of the blocks that run together, one after another."""

    outside = kinds.OUTSIDE_SHARED

    def __init__(self, machine: Machine, bytes_of_block: int, blocks: int, grain: int) -> None:
        self.limit = bytes_of_block
        self.stride = -(-bytes_of_block // 128) * 128
        super().__init__(machine, self.stride * blocks, grain)
        inside = np.arange(len(self.state)) * grain % max(self.stride, 1) < bytes_of_block
        self.state[inside] = EMPTY

    def offsets(self, address: np.ndarray) -> np.ndarray:
        at = address.astype(i8)
        base: np.ndarray = self.machine.block_of_lane * self.stride
        return np.where(at < self.limit, at + base, self.size)  # what is beyond is not another block's

    def describe(self, offset: int) -> str:
        if offset >= self.size:
            return f"beyond its {self.limit} bytes"
        return f"byte {offset % max(self.stride, 1)} of {self.limit}"

    def _check_blocks_read(
        self, cells: np.ndarray, at: np.ndarray, writer: np.ndarray, reader: np.ndarray, lanes: np.ndarray | None,
        site: int,
    ) -> None:
        """A block has its own."""

    def _check_blocks_write(
        self, cells: np.ndarray, at: np.ndarray, writer: np.ndarray, changes: np.ndarray, lanes: np.ndarray | None,
        site: int,
    ) -> None:
        """Likewise."""


class Device(Space):
    """Global memory: the arguments of a launch with room between them, and what blocks know of each other."""

    BASE = 1 << 32
    ROOM = 1 << 14  # bytes between two arguments, which belong to neither
    LINE = 512  # where torch begins an allocation on a card

    def __init__(self, machine: Machine, views: list[tuple[str, np.ndarray, int]]) -> None:
        """views: name, words (flat, written back by `finish`) and where in its allocation it begins, in bytes."""
        self.arguments: list[tuple[str, int, np.ndarray]] = []
        end = self.ROOM
        for name, words, begin in views:
            start = -(-end // self.LINE) * self.LINE + begin % self.LINE
            self.arguments.append((name, start, words))
            end = start + 4 * len(words) + self.ROOM
        super().__init__(machine, end, 4)
        for _, start, words in self.arguments:
            place = slice(start // 4, start // 4 + len(words))
            self.views[4][place] = words
            self.state[place] = np.where(words == POISON, EMPTY, WRITTEN)
        self.known: np.ndarray | None = None  # [block, other]: the moment up to which a block sees what another wrote
        self.acquired: dict[int, np.ndarray] = {}
        self.released: dict[int, np.ndarray] = {}

    def address(self, number: int) -> np.uint64:
        return u8(self.BASE + self.arguments[number][1])

    def finish(self) -> None:
        """Put what was written back where it came from."""
        for _, start, words in self.arguments:
            place = slice(start // 4, start // 4 + len(words))
            written = self.writer[place] != NOBODY
            words[written] = self.views[4][place][written]

    def offsets(self, address: np.ndarray) -> np.ndarray:
        return (address - u8(self.BASE)).view(i8)

    def describe(self, offset: int) -> str:
        for name, start, words in self.arguments:
            if start - self.ROOM // 2 <= offset < start + 4 * len(words) + self.ROOM // 2:
                return f"{name}[{(offset - start) // 4}] of {len(words)}"
        return "near no argument"

    def touched(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Words of an argument that were written, and that were read or written."""
        _, start, words = self.arguments[number]
        place = slice(start // 4, start // 4 + len(words))
        written = self.writer[place] != NOBODY
        return written, written | (self.reader[place] != NOBODY)

    # Blocks among each other.

    def _unseen(self, writer: np.ndarray, block: np.ndarray) -> np.ndarray:
        """Whether another block wrote it, and that is not known here."""
        by = ((writer & ((1 << THREADS) - 1)) // self.machine.block_threads).astype(i8)
        other = (writer != NOBODY) & (by != block)
        if self.known is None or not some(other):
            return other
        seen = self.known[np.broadcast_to(block, by.shape), np.where(other, by, 0)]
        return other & (writer >> THREADS >= seen)

    def _check_blocks_read(
        self, cells: np.ndarray, at: np.ndarray, writer: np.ndarray, reader: np.ndarray, lanes: np.ndarray | None,
        site: int,
    ) -> None:
        block = self.machine.block if lanes is None else self.machine.block[lanes]
        block = block if cells.ndim == 1 else block[:, None]
        if some(race := self._unseen(writer, block)):
            self._tell(kinds.BETWEEN_BLOCKS, site, race, at, writer)
        before = self.block[cells]
        alone = (before == NOBODY) | (before == block)
        if self.known is not None:  # one that is known to have read it earlier does not count any more
            alone |= (before >= 0) & ~self._unread(reader, before, block)
        after = np.where(alone, block, SEVERAL).astype(i4)
        self.block[cells] = after
        if some(lost := (self.block[cells] != after)):
            self.block[cells[lost]] = SEVERAL

    def _check_blocks_write(
        self, cells: np.ndarray, at: np.ndarray, writer: np.ndarray, changes: np.ndarray, lanes: np.ndarray | None,
        site: int,
    ) -> None:
        block = self.machine.block if lanes is None else self.machine.block[lanes]
        block = block if cells.ndim == 1 else block[:, None]
        race = self._unseen(writer, block) & changes
        readers = self.block[cells]
        race |= (readers != NOBODY) & (readers != block) & self._unread(self.reader[cells], readers, block)
        if some(race):
            self._tell(kinds.BETWEEN_BLOCKS, site, race, at, writer)

    def _unread(self, reader: np.ndarray, readers: np.ndarray, block: np.ndarray) -> np.ndarray:
        """Whether another block may not yet have read a cell. reader: the last tag; readers: the block, or SEVERAL."""
        if self.known is None:
            return np.ones(reader.shape, bool)
        last = self.known[np.broadcast_to(block, reader.shape), np.where(readers < 0, 0, readers)]
        return (readers == SEVERAL) | (reader >> THREADS >= last)

    def order(self, word: int, block: int, moment: int) -> None:
        """An atomic that acquires and releases: the block passes on what it and those before it wrote earlier, and sees
        that of the others after its next barrier."""
        blocks = self.machine.blocks
        if self.known is None:
            self.known = np.zeros((blocks, blocks), i8)
        before = self.released.get(word, np.zeros(blocks, i8))
        self.acquired[block] = np.maximum(self.acquired.get(block, before), before)
        passed = np.maximum(before, self.known[block])
        passed[block] = moment  # what it wrote in this very moment need not have come so far
        self.released[word] = passed

    def pass_barrier(self, blocks: np.ndarray) -> None:
        if not self.acquired or self.known is None:
            return
        for block in blocks.tolist():
            if (found := self.acquired.pop(block, None)) is not None:
                self.known[block] = np.maximum(self.known[block], found)
