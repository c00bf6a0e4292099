"""PTX text → functions made of basic blocks.

Only what Triton emits is read: one entry, device functions, registers, instructions, labels, tables of branch targets,
and the line information that says where in Python an instruction comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from nsfrc.errors import NsfrcError

HEAD = re.compile(r"\.(entry|func)\s*(?:\(([^()]*)\))?\s*([\w$]+)\s*\(([^()]*)\)\s*([^;{]*)([;{])", re.DOTALL)
STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
LABEL = re.compile(r"([$\w]+):\s*")
REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+)", re.DOTALL)
PLACES = re.compile(r"([^\s:@\[\]]+):(\d+):\d+")
# Files of Triton's own library, which say less than the line of ours that called them.
LIBRARY = ("standard.py", "core.py", "math.py")
ENDS = ("bra", "brx", "ret", "exit")


@dataclass(frozen=True, slots=True)
class Instruction:
    """op: ("ld", "global", "b32"). guard: register and whether it is negated. source: Python lines, innermost first."""

    op: tuple[str, ...]
    args: tuple[str, ...]
    guard: tuple[str, bool] | None
    line: int
    source: str

    @property
    def name(self) -> str:
        return ".".join(self.op)

    @property
    def kind(self) -> str:
        return self.op[0]


@dataclass(slots=True)
class Function:
    """blocks end at a branch or before a label; labels: the block that a label begins."""

    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    registers: dict[str, str] = field(default_factory=dict)  # prefix or name → type
    blocks: list[list[Instruction]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def kind_of(self, register: str) -> str:
        """pred, b16, b32 or b64."""
        found = self.registers.get(register) or self.registers.get(register.rstrip("0123456789"))
        if found is None:
            raise NsfrcError(f"{self.name}: register {register} is not declared")
        return found

    def successors(self, number: int) -> tuple[int, ...]:
        """Blocks that may follow; one past the last is the end."""
        last, onwards = self.blocks[number][-1], number + 1
        if last.kind == "bra":
            target = self.labels[last.args[0]]
            return (target, onwards) if last.guard else (target,)
        if last.kind == "brx":
            return tuple(self.labels[label] for label in self.tables[last.args[1]])
        if last.kind in ("ret", "exit"):
            return (onwards,) if last.guard else ()
        return (onwards,)


@dataclass(frozen=True, slots=True)
class Module:
    functions: dict[str, Function]
    entry: str


def parse(text: str) -> Module:
    """Read the text of one kernel."""
    plain = re.sub(r"//[^\n]*", "", text)
    lines = text.split("\n")
    functions: dict[str, Function] = {}
    entry, at = "", 0
    while (head := HEAD.search(plain, at)) is not None:
        at = head.end()
        if head[6] == ";":
            continue
        end = _closing(plain, at)
        function = Function(head[3], _names(head[4]), _names(head[2] or ""))
        _read_body(function, plain[at:end], plain.count("\n", 0, at), lines)
        functions[function.name] = function
        entry = function.name if head[1] == "entry" else entry
        at = end
    if not entry:
        raise NsfrcError("this PTX has no entry, so there is nothing to run")
    return Module(functions, entry)


def _names(parameters: str) -> tuple[str, ...]:
    return tuple(one.split()[-1] for one in parameters.split(",") if one.strip())


def _closing(text: str, at: int) -> int:
    depth = 1
    for found in re.compile("[{}]").finditer(text, at):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    raise NsfrcError("this PTX ends inside a function")


def _read_body(function: Function, body: str, first: int, lines: list[str]) -> None:
    """Fill a function. first: number of the body's first line, from 0; lines: the text with its comments."""
    instructions: list[Instruction] = []
    starts: dict[str, int] = {}
    source = ""
    for number, statement in _statements(body, first):
        if statement.startswith(".loc"):
            source = _source(lines[number])
            continue
        while (label := LABEL.match(statement)) is not None:
            starts[label[1]] = len(instructions)
            statement = statement[label.end():]
            if statement.startswith(".branchtargets"):
                function.tables[label[1]] = tuple(split(statement.removeprefix(".branchtargets")))
                statement = ""
        if statement.startswith(".reg"):
            _declare(function, statement)
        elif statement and not statement.startswith("."):
            instructions.append(_instruction(statement, number + 1, source))
    _cut(function, instructions, starts)


def _statements(body: str, first: int) -> Iterator[tuple[int, str]]:
    """Statements without the brackets of scopes, and the line that each begins in; .loc and labels have no
    semicolon."""
    pending, begun = "", first
    for number, line in enumerate(body.split("\n"), first):
        for piece in re.split(r"(?<=;)", line):
            part = piece.strip()
            if not pending:
                part, begun = part.lstrip("{} \t"), number
            pending = f"{pending} {part}".strip()
            if pending.startswith(".loc") or pending.endswith((";", ":")):
                yield begun, pending.rstrip(";").rstrip()
                pending = ""
            elif pending in ("{", "}"):
                pending = ""


def _source(line: str) -> str:
    """`.loc 3 54 74 // maths.py:54:74 @[ step.py:110:56 ]` → "maths.py:54, in step.py:110"."""
    _, _, comment = line.partition("//")
    places = [(file.rsplit("/", 1)[-1], number) for file, number in PLACES.findall(comment)]
    ours = [f"{file}:{number}" for file, number in places if file not in LIBRARY and number != "0"]
    return ", in ".join(dict.fromkeys(ours))


def _declare(function: Function, statement: str) -> None:
    found = REGISTERS.match(statement)
    assert found is not None
    for name in found[2].split(","):
        function.registers[re.sub(r"<\d+>", "", name.strip())] = found[1]


def _instruction(statement: str, line: int, source: str) -> Instruction:
    found = STATEMENT.fullmatch(statement)
    if found is None:
        raise NsfrcError(f"line {line} of the PTX is not an instruction that can be read: {statement[:80]}")
    guard = (found[2], found[1] == "!") if found[2] else None
    return Instruction(tuple(found[3].replace("::", ".").split(".")), tuple(split(found[4])), guard, line, source)


def split(operands: str) -> list[str]:
    """Split at commas outside brackets."""
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(operands):
        depth += (letter in "{([") - (letter in "})]")
        if letter == "," and not depth:
            found.append(operands[begin:at].strip())
            begin = at + 1
    return [*found, last] if (last := operands[begin:].strip()) else found


def _cut(function: Function, instructions: list[Instruction], starts: dict[str, int]) -> None:
    """Basic blocks. Labels that only mark line information, which nothing branches to, begin none."""
    used = {label for one in instructions if one.kind in ("bra", "brx") for label in one.args}
    used |= {label for table in function.tables.values() for label in table}
    leaders = {0, *(at for label, at in starts.items() if label in used)}
    leaders |= {at + 1 for at, one in enumerate(instructions) if one.kind in ENDS}
    cuts = [*sorted(at for at in leaders if at < len(instructions)), len(instructions)]
    function.blocks = [instructions[a:b] for a, b in pairwise(cuts)]
    function.labels = {label: cuts.index(at) for label, at in starts.items() if label in used}
