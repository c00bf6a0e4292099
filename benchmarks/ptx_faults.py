"""Faults to plant in machine code: lines of PTX changed, and arguments of a launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import torch

from nsfrc.engines.ptx.parse import LIBRARY, PLACES

FORWARD, BACKWARD = "program_forward.soft", "program_backward.soft"
TABLES, SECTOR_WORDS = ("indices", "floats"), 8  # tables are filled up to whole sectors


@dataclass(frozen=True)
class Mutant:
    """kind: what was changed. line: of the PTX; source: the Python line that it comes from."""

    kind: str
    kernel: str
    line: int
    source: str
    text: str
    edit: Callable[[str], str] | None = None
    argument: str = ""
    change: Callable[[Any], Any] | None = None


def mutants(texts: dict[str, str], most: int, barriers: int | None) -> Iterator[Mutant]:
    """Every barrier, or so many; of the others an even choice. texts: of kernels, by name."""
    for kernel in (FORWARD, BACKWARD):
        ptx = texts[kernel]
        yield from _edits(kernel, ptx, "barrier removed", r"\tbar\.sync\b", lambda line: "\t// " + line, barriers)
        yield from _edits(kernel, ptx, "mask dropped", r"@%p\d+ (ld|st)\.global",
                          lambda line: re.sub(r"@%p\d+ ", "", line), most)
        yield from _edits(kernel, ptx, "shuffle by another distance", r"shfl\.sync\.bfly",
                          lambda line: re.sub(r", (\d+), 31", _other_distance, line), most)
        yield from _edits(kernel, ptx, "product rounded before its sum", r"\tfma\.rn\.f32", _split_fma, most)
        yield from _edits(kernel, ptx, "offset one word further", r"ld\.global.*\+ 0 \]",
                          lambda line: line.replace("+ 0 ]", "+ 4 ]"), most)
    for kernel, arguments in ((FORWARD, ("V0", "weights", "out", "work", "indices", "floats")),
                              (BACKWARD, ("V0", "weights", "g_out", "g_V0", "g_weights", "past", "past_z", "partial",
                                          "work", "indices", "floats"))):
        for name in arguments:
            words = 1 + (SECTOR_WORDS - 1) * (name in TABLES)
            yield Mutant("argument too short", kernel, 1, "", f"{name} −{words}", argument=name,
                         change=partial(_shorter, words=words))
        for name, by in (("stride", 1), ("batch", 1), ("batch", -1), ("steps", 1)):
            yield Mutant("number off by one", kernel, 1, "", f"{name} {by:+}", argument=name, change=partial(add, by))


def _shorter(value: torch.Tensor, words: int) -> torch.Tensor:
    return value.reshape(-1)[:-words]


def first_word(value: torch.Tensor) -> torch.Tensor:
    return value.reshape(-1)[:1]


def _other_distance(found: re.Match[str]) -> str:
    return f", {1 if found[1] == '16' else 2 * int(found[1])}, 31"


def _split_fma(line: str) -> str:
    """Into a register that nothing else uses: the result itself."""
    found = re.search(r"fma\.rn\.f32\s+(\S+), (\S+), (\S+), (\S+);", line)
    assert found is not None
    d, a, b, c = found.groups()
    if d == c:
        return line
    return f"\tmul.rn.f32 {d}, {a}, {b}; add.rn.f32 {d}, {d}, {c};"


def _edits(
    kernel: str, ptx: str, kind: str, pattern: str, edit: Callable[[str], str], most: int | None
) -> Iterator[Mutant]:
    lines = ptx.split("\n")
    places = [n for n, line in enumerate(lines) if re.search(pattern, line) and edit(line) != line]
    if most is not None and len(places) > most:
        places = [places[i * len(places) // most] for i in range(most)]
    for number in places:
        changed = edit(lines[number])
        yield Mutant(kind, kernel, number + 1, source_of(lines, number), lines[number].strip(),
                     partial(with_line, number=number, line=changed))


def with_line(text: str, number: int, line: str) -> str:
    lines = text.split("\n")
    lines[number] = line
    return "\n".join(lines)


def without_lines(text: str, numbers: tuple[int, ...]) -> str:
    lines = text.split("\n")
    for number in numbers:
        lines[number - 1] = "\t// " + lines[number - 1]
    return "\n".join(lines)


def source_of(lines: list[str], number: int) -> str:
    for line in reversed(lines[:number]):
        if ".loc" in line:
            ours = [f"{file}:{at}" for file, at in PLACES.findall(line) if file not in LIBRARY and at != "0"]
            return ours[0] if ours else ""
    return ""
