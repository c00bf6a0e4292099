"""Imports follow the data: text → Program → GroundProgram → Plan → values; heavy libraries come last."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import nsfrc

ROOT = Path(nsfrc.__file__).parent
LAYERS: tuple[set[str], ...] = (
    {"records"},
    {"errors"},
    {"files", "grammars", "hosts", "programs", "trust", "vocabulary", "compiler.spelling"},
    {"compiler.ir", "models"},
    {"questions"},
    {"compiler.syntax", "compiler.expressions", "compiler.well_formed", "compiler.stored", "compiler.graph",
     "compiler.goal_text"},
    {"compiler.layout"},
    {"compiler.parse", "compiler.check"},
    {"compiler.formatting"},
    {"compiler.herbrand", "compiler.filters", "compiler.grounded"},
    {"compiler.graph", "compiler.choices", "compiler.counting", "compiler.row_layout"},
    {"compiler.ground"},
    {"compiler.reach", "compiler.passes"},
    {"compiler.plan"},
    {"compiler.levels"},
    {"compiler.verify"},
    {"compiler.stages", "program", "columns", "compiler.artifact", "compiler.importer"},
    {"compiler.findings"},
    {"compiler.report", "compiler.emit", "engines", "kernels"},
    {"describe", "contexts", "candidates", "distributed"},
    {"reasoner", "perception", "valuation"},
    {"pipelines", "prediction", "explain", "reasons"},
    {"inference"},
    {"learning"},
    {"data"},
    {"training"},
    {"ray"},
    {"benchmarks", "editor", "service"},
    {"page"},
    {"cli"},
    {"__main__"},
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

# Imports inside functions that point upwards, and why they may:
UPWARDS = {
    ("program", "engines"),  # `program.reasoner()` builds what runs the program
    ("program", "reasoner"),
    ("program", "candidates"),
    ("program", "valuation"),  # `program.valuation()` computes comparisons of numbers
    ("program", "compiler.report"),  # a program that is printed says how it reasons
    ("pipelines", "inference"),  # `pipe("a.png")` reads files as `nsfrc infer` does
    ("prediction", "inference"),  # a prediction draws itself as reports do
}
HEAVY = {"torch", "numba", "triton", "llvmlite", "ultralytics", "cv2", "PIL", "scipy", "bpy"}


@dataclass(frozen=True)
class Import:
    """`importer` names `imported`, both as nsfrc parts or library names."""

    importer: str
    imported: str
    where: str
    lazy: bool
    typing_only: bool


def imports() -> Iterator[Import]:
    beside = [path for folder in ("kernels", "benchmarks") for path in (ROOT.parent / folder).rglob("*.py")]
    for path in sorted([*ROOT.rglob("*.py"), *beside]):
        relative = path.relative_to(ROOT if path.is_relative_to(ROOT) else ROOT.parent)
        part = _part([piece.removesuffix(".py") for piece in relative.parts])
        if part in ("__init__", "compiler.__init__"):
            continue
        tree = ast.parse(path.read_text(), str(path))
        for node, lazy, typing_only in _import_nodes(tree, False, False):
            for name in _imported(node):
                yield Import(part, name, f"{relative}:{node.lineno}", lazy, typing_only)


def _import_nodes(
    node: ast.AST, lazy: bool, typing_only: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy, typing_only
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _import_nodes(child, lazy or function, typing_only or typing)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """`ir` for each way to name nsfrc.compiler.ir, the top name of any other library."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        raise AssertionError(f"relative import at line {node.lineno}")
    elif node.module in ("nsfrc", "nsfrc.compiler"):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        names = [node.module or ""]
    for name in names:
        top, _, rest = name.partition(".")
        yield _part(rest.split(".")) if top == "nsfrc" and rest else top


def _part(pieces: Sequence[str]) -> str:
    """The compiler's rooms are told apart, all others are one part each: `compiler.ir`, `engines`."""
    return ".".join(pieces[: 1 + (pieces[0] == "compiler")])


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(imports())


def ours() -> list[Import]:
    return [i for i in all_imports() if i.imported in RANK and i.imported != i.importer]


def test_every_module_has_a_layer() -> None:
    assert {i.importer for i in all_imports()} - RANK.keys() == set()


def test_imports_point_backwards() -> None:
    upwards = [i for i in ours() if RANK[i.imported] > RANK[i.importer] and not i.typing_only
               and not (i.lazy and (i.importer, i.imported) in UPWARDS)]
    assert upwards == []


def test_every_exception_is_needed() -> None:
    assert {(i.importer, i.imported) for i in ours() if i.lazy} >= UPWARDS


def test_no_cycles_when_modules_load() -> None:
    below: dict[str, set[str]] = {}
    for found in ours():
        if not found.lazy and not found.typing_only:
            below.setdefault(found.importer, set()).add(found.imported)
    while below:
        leaves = {part for part, parts in below.items() if not parts & below.keys()}
        assert leaves, f"these import each other: {sorted(below)}"
        below = {part: parts for part, parts in below.items() if part not in leaves}


def test_heavy_libraries_come_with_the_engines() -> None:
    early = [i for i in all_imports() if i.imported in HEAVY and not i.typing_only
             and (RANK[i.importer] < RANK["engines"] or i.importer in ("compiler.report", "compiler.emit", "describe"))]
    assert early == []
    at_start = [i for i in all_imports() if i.imported in HEAVY and i.importer == "cli" and not i.lazy]
    assert at_start == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["programs"], ["compile", "--help"],
                                       ["compile", "twopairs"], ["compile", "twopairs", "--emit", "plan"],
                                       ["check", "twopairs"], ["explain", "twopairs"]])
def test_commands_do_not_load_heavy_libraries(arguments: list[str], tmp_path: Path) -> None:
    assert _loaded(arguments, tmp_path, code=0) == "loaded:"
    assert (tmp_path / "twopairs.nsfrc").exists() == (arguments == ["compile", "twopairs"])


@pytest.mark.parametrize("arguments", [
    ["infer", "--image", "x"], ["infer", "--images", "nowhere"], ["infer", "--images", ".", "--program", "nosuch"],
    ["infer", "--images", ".", "--perception", "nosuch"], ["infer", "--images", ".", "--perception", "nosuch.onnx"],
    ["reason", "nosuch", "--random", "3"], ["learn", "nosuch", "--images", "."], ["play", "nosuch"],
])
def test_mistakes_are_told_before_heavy_libraries_are_loaded(arguments: list[str], tmp_path: Path) -> None:
    assert _loaded(arguments, tmp_path, code=1) == "loaded:"


def _loaded(arguments: list[str], folder: Path, code: int) -> str:
    """The last line of a command that ends with this code: which heavy libraries it loaded."""
    script = (
        "import sys\n"
        "from nsfrc.cli import main\n"
        "try:\n    main()\n"
        f"except SystemExit as stop:\n    assert (stop.code or 0) == {code}, stop.code\n"
        f"print('loaded:', *sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    path = os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].strip()
