"""Small changes to the text of a function, by the places its syntax tree gives: what is not changed stays as it
was written, comments included."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

WIDTH = 120

# What to replace, a node or what lies between the end of one and the end of another, and by what.
Edit = tuple[Any, str]


@lru_cache(maxsize=1000)
def parse(text: str) -> ast.FunctionDef:
    """The tree of a function, which nobody changes: most functions are looked at again and again."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def split(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Triton functions and constants of a file, by name, each with the decorators or comments above it."""
    functions, constants = {}, {}
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            first = node.decorator_list[0].lineno - 1
            functions[node.name] = "\n".join(lines[first: node.end_lineno])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            first = node.lineno - 1
            while lines[first - 1].startswith("#"):
                first -= 1
            constants[node.targets[0].id] = "\n".join(lines[first: node.end_lineno])
    return functions, constants


@lru_cache(maxsize=1000)
def names(text: str) -> frozenset[str]:
    """All names that are read."""
    return frozenset(_reads(parse(text)))


def parameters(text: str) -> list[str]:
    return [argument.arg for argument in parse(text).args.args]


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def apply(text: str, edits: list[Edit]) -> str:
    """Replace places of a text; they do not overlap."""
    spans = []
    for where, new in edits:
        if isinstance(where, tuple):
            first, last = _offset(text, where[0], end=True), _offset(text, where[1], end=True)
        else:
            first, last = _offset(text, where), _offset(text, where, end=True)
        spans.append((first, last, new))
    for first, last, new in sorted(spans, reverse=True):
        text = text[:first] + new + text[last:]
    return text


def fold(text: str, L: Any, unknown: str | None, known: Mapping[str, bool] | None = None) -> str:
    """Decide what depends on L alone: keep the branch that is taken, drop loops over nothing, and write loops
    over bands out. unknown: an attribute of L that is not to be looked at; known: names that may be."""
    known = known or {}
    while True:
        for node in ast.walk(parse(text)):
            if isinstance(node, ast.If) and (taken := _decided(node.test, L, unknown, known)) is not None:
                text = _replaced(text, node, _branch(text, node, taken))
                break
            if isinstance(node, ast.For) and (bodies := _written_out(text, node, L)) is not None:
                text = _replaced(text, node, bodies)
                break
        else:
            return text


def without_dead(text: str) -> str:
    """Drop variables that are read nowhere but in their own assignments."""
    while (found := _dead(text)) is not None:
        text = _replaced(text, found, [])
    return text


def unused_parameters(text: str) -> list[int]:
    used = names(text)
    return [i for i, name in enumerate(parameters(text)) if name not in used]


def without_argument(text: str, callee: str, place: int, declared: bool) -> str:
    """Take an argument out of all calls of a function, and of its declaration if this is it."""
    if callee not in text:
        return text
    function = parse(text)
    lists: list[list[Any]] = [n.args for n in ast.walk(function) if isinstance(n, ast.Call) and is_name(n.func, callee)]
    if declared:
        lists.append(function.args.args)
    spans = []
    for arguments in lists:
        end = _offset(text, arguments[place], end=True)
        if place > 0:
            spans.append((_offset(text, arguments[place - 1], end=True), end))
        else:
            spans.append((_offset(text, arguments[0]), _offset(text, arguments[1]) if len(arguments) > 1 else end))
    for first, last in sorted(spans, reverse=True):
        text = text[:first] + text[last:]
    return text


def wrap(text: str) -> str:
    """The head of a function on one line if it fits, or its parameters on lines of their own."""
    function = parse(text)
    first = _offset(text, function)
    last = text.index(":\n", first)
    listed = [ast.unparse(argument) for argument in function.args.args]
    head = f"def {function.name}({', '.join(listed)})"
    if len(head) >= WIDTH:
        head = f"def {function.name}(\n{fill(listed)}\n)"
    return text[:first] + head + text[last:]


def value(node: ast.expr, L: Any) -> Any:
    """Of an expression that reads nothing but L."""
    return eval(compile(ast.Expression(node), "<kernel>", "eval"), {"__builtins__": {}, "L": L})


def fill(items: Iterable[str], indent: str = "    ") -> str:
    """Items with commas between and after, on as few lines as hold them."""
    lines, line = [], indent[:-1]
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            lines.append(line)
            line = indent[:-1]
        line += f" {item},"
    return "\n".join([*lines, line])


def with_docstring(text: str, docstring: str) -> str:
    """Another first statement for a function that has one."""
    return apply(text, [(parse(text).body[0], docstring)])


def _offset(text: str, node: Any, end: bool = False) -> int:
    """Where a node begins or ends in a text; the tree counts bytes of a line."""
    line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _decided(test: ast.expr, L: Any, unknown: str | None, known: Mapping[str, bool]) -> bool | None:
    """Whether a condition on L holds; None where that is not known."""
    match test:
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _decided(operand, L, unknown, known)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            parts, decisive = [_decided(value, L, unknown, known) for value in values], isinstance(op, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
    return bool(value(test, L)) if _reads_only(test, unknown) else None


def _reads_only(node: ast.expr, unknown: str | None) -> bool:
    """Whether an expression reads nothing but L, nor what is unknown of it."""
    for part in ast.walk(node):
        if (isinstance(part, ast.Name) and part.id != "L") or isinstance(part, ast.Call):
            return False
        if isinstance(part, ast.Attribute) and is_name(part.value, "L") and part.attr == unknown:
            return False
    return True


def _written_out(text: str, loop: ast.For, L: Any) -> list[str] | None:
    """The lines that replace a loop: none if it never runs, its body for every band; None to leave it."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            known = all(_reads_only(argument, None) for argument in arguments)
            return [] if known and not range(*(value(argument, L) for argument in arguments)) else None
        case ast.Call(func=ast.Attribute(attr="static_range"), args=[ast.Call(args=[ast.Attribute(attr=bands)])]):
            assert isinstance(loop.target, ast.Name)
            body = _block(text, loop.iter.end_lineno or 0, loop.body[-1], loop)
            return [line.replace(f"L.{bands}[{loop.target.id}]", f"L.{bands}[{i}]")
                    for i in range(len(getattr(L, bands))) for line in body]
    return None


def _branch(text: str, node: ast.If, taken: bool) -> list[str]:
    if taken:
        return _block(text, node.test.end_lineno or 0, node.body[-1], node)
    if not node.orelse:
        return []
    lines, first = text.splitlines(), node.body[-1].end_lineno or 0
    while not re.match(r"\s*else:", lines[first]):
        first += 1
    return _block(text, first + 1, node.orelse[-1], node)


def _block(text: str, first: int, last: ast.stmt, parent: ast.stmt) -> list[str]:
    """Lines after the first up to the end of a statement, as far to the left as the parent."""
    lines = textwrap.dedent("\n".join(text.splitlines()[first: last.end_lineno])).splitlines()
    return [" " * parent.col_offset + line for line in lines]


def _replaced(text: str, node: ast.stmt, new: list[str]) -> str:
    """Put lines in the place of a statement; without any, a block that has no other statement goes with it."""
    if not new:
        for parent in ast.walk(parse(text)):
            if isinstance(parent, ast.If | ast.For) and [_place(s) for s in parent.body] == [_place(node)]:
                assert not parent.orelse
                return _replaced(text, parent, [])
    lines = text.splitlines()
    lines[node.lineno - 1: node.end_lineno] = new
    return "\n".join(lines)


def _place(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


@lru_cache(maxsize=1000)
def _dead(text: str) -> ast.stmt | None:
    """An assignment to a variable that nothing else reads."""
    reads, own = Counter(_reads(parse(text))), Counter[str]()
    first: dict[str, ast.stmt] = {}
    for node in ast.walk(parse(text)):
        match node:
            case (ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name))
                  | ast.AnnAssign(target=ast.Name(id=name))):
                own[name] += sum(read == name for read in _reads(node))
                first.setdefault(name, node)
    for name, statement in first.items():
        if reads[name] == own[name] and name not in parameters(text) and "atomic" not in ast.unparse(statement):
            return statement
    return None


def _reads(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
