"""`nsfrc compile --emit`: every stage as text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsfrc.engines.gpu.source import emit as emit_triton
from nsfrc.program import compile as compile_program
from tests.cli.support import RULES, Run
from tests.examples import SHIPPED, write

if TYPE_CHECKING:
    from nsfrc.engines.gpu.aot import Compiled, Kernel


@pytest.mark.parametrize("stage", ["ast", "ir", "ground", "index", "plan", "triton"])
def test_emit_to_screen_and_file(stage: str, run: Run) -> None:
    text = run.good("compile", "twopairs", "--emit", stage)
    assert text.strip() and os.listdir(run.folder) == []
    assert run.good("compile", "twopairs", "--emit", stage, "--out", "stage.txt") == "written to stage.txt\n"
    assert (run.folder / "stage.txt").read_text() == text


def test_emit_ast_names_places(run: Run) -> None:
    write(run.folder, RULES)
    assert "rules.pl:2:1: :- type(image,[img])." in run.good("compile", "rules.pl", "--emit", "ast")


@pytest.mark.parametrize("name", [*SHIPPED, "odd"])
def test_emitted_ir_compiles_to_the_same_program(name: str, run: Run) -> None:
    if name == "odd":
        write(run.folder, """
            :- steps(9). :- gamma(0.00001). :- threshold(0.25). :- perception(mine).
            :- type(thing, slots(2)).
            :- type('odd type', ['big box', 'It\\'s', -3, 2.5]).
            :- neural(has(thing, 'odd type')). :- target(q(thing1)). :- target(alarm).
            :- classes(['one way', other]). :- threshold(q(_), 0.5). :- threshold(classes, 0.125).
            'one way' :- q(thing1). other :- alarm.
            q(X) :- has(X, 'big box'), has(_, -3), size(O, N), N * 2 - 1 >= - N mod 2, O \\= obj1.
            alarm :- q(X), has(X, Y), Y \\== 'It\\'s'.
        """, "odd.pl")
    source = f"{name}.pl" if name == "odd" else name
    run.good("compile", source, "--emit", "ir", "--out", "again.pl")
    first, second = compile_program(source), compile_program("again.pl")
    assert first.atoms == second.atoms
    assert first.clauses == second.clauses
    assert (first.settings, first.steps, first.questions) == (second.settings, second.steps, second.questions)
    assert [t.role for t in first.ground.herbrand.types] == [t.role for t in second.ground.herbrand.types]
    for table, other in zip(first.plan.tables().values(), second.plan.tables().values(), strict=True):
        assert np.array_equal(table, other, equal_nan=table.dtype.kind == "f")


def test_emit_ground(run: Run) -> None:
    lines = run.good("compile", "closeby", "--emit", "ground").splitlines()
    assert len(lines) == 12
    assert lines[0] == "kp(img) :- in(obj1,img), in(obj2,img), closeby(obj1,obj2).  % clause 0"


def test_emit_index(run: Run) -> None:
    lines = run.good("compile", "twopairs", "--emit", "index").splitlines()
    assert lines[0].split("\t") == ["clause", "atom", "substitution", *(f"l{i}" for i in range(8))]
    assert len(lines) == 1 + 168
    run.good("compile", "twopairs", "--emit", "index", "--out", "index.npy")
    tensor = np.load(run.folder / "index.npy")
    assert tensor.shape == (4, 73, 24, 8)
    for line in lines[1:]:
        clause, atom, k, *row = map(int, line.split("\t"))
        assert tensor[clause, atom, k].tolist() == row
    assert "only --emit index" in run.refused("compile", "twopairs", "--emit", "plan", "--out", "x.npy")


def test_emit_plan_is_json(run: Run) -> None:
    data = json.loads(run.good("compile", "twopairs", "--emit", "plan"))
    plan = compile_program("twopairs").plan
    shapes = {name: list(table.shape) for name, table in plan.tables().items()}
    assert data.pop("sizes") == plan.sizes._asdict()
    assert {name: table["shape"] for name, table in data.items()} == shapes
    assert data["row_left"]["values"] == plan.row_left.tolist()
    assert data["constant"]["values"][:3] == [0.0, 1.0, None]


def test_emit_unknown_stage(run: Run) -> None:
    assert "'plan'" in run.refused("compile", "twopairs", "--emit", "assembly")


def test_emit_triton_is_the_same_every_time(run: Run) -> None:
    text = run.good("compile", "twopairs", "--emit", "triton")
    compile(text, "twopairs_gpu.py", "exec")
    assert text == emit_triton(compile_program("twopairs")) == run.good("compile", "twopairs", "--emit", "triton")
    assert run.good("compile", "closeby", "--emit", "triton") != text


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Only some small kernels, each compiled once for all tests; tests/kernels/test_aot.py compiles everything, and
    some of it in several places."""
    from nsfrc.engines.gpu import aot

    names, every = ("clause_start", "spread_claim"), aot.kernels
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(aot, "kernels", lambda program: [k for k in every(program) if k.label in names])
    monkeypatch.setattr(aot, "compile_kernel", partial(_once, aot.compile_kernel))
    return names


@cache
def _once(compile_kernel: Callable[..., Compiled], kernel: Kernel, arch: str) -> Compiled:
    return compile_kernel(kernel, arch)


@pytest.mark.parametrize(("stage", "start"), [("ptx", b"//"), ("cubin", b"\x7fELF")])
def test_emit_machine_code(stage: str, start: bytes, few: tuple[str, ...], run: Run) -> None:
    result = run("compile", "closeby", "--emit", stage, "--arch", "sm_90")
    assert result.code == 0 and "compiling kernels for sm_90" in result.err
    folder = run.folder / "closeby.sm_90"
    assert os.listdir(run.folder) == ["closeby.sm_90"]
    assert {p.name for p in folder.glob(f"*.{stage}")} == {f"{name}.{stage}" for name in few}
    assert all(p.read_bytes().startswith(start) for p in folder.glob(f"*.{stage}"))
    assert "kernels for sm_90, compiled and not run:" in result.out and "written to closeby.sm_90" in result.out
    for entry in json.loads((folder / "kernels.json").read_text())["kernels"]:
        (line,) = (line for line in result.out.splitlines() if line.startswith(f"  {entry['kernel']} "))
        assert line.split()[1:3] == [str(entry["registers"]), "none"] and entry["spill_bytes"] == 0


def test_emit_machine_code_as_json(few: tuple[str, ...], run: Run) -> None:
    data = json.loads(run.good("compile", "closeby", "--emit", "ptx", "--out", "new/deep", "--json"))
    assert data["artifact"] == "new/deep"
    assert [k["kernel"] for k in data["kernels"]] == list(few)
    for kernel in data["kernels"]:
        assert kernel["arch"] == "sm_80" and kernel["spill_bytes"] == 0 < kernel["registers"] <= 128
        assert kernel["ptx_bytes"] == (run.folder / "new/deep" / f"{kernel['kernel']}.ptx").stat().st_size


def test_a_folder_is_replaced_only_if_it_is_ours(few: tuple[str, ...], run: Run) -> None:
    run.good("compile", "closeby", "--emit", "ptx", "--out", "there")
    first = {p.name: p.read_bytes() for p in (run.folder / "there").iterdir()}
    run.good("compile", "closeby", "--emit", "ptx", "--out", "there")
    assert {p.name: p.read_bytes() for p in (run.folder / "there").iterdir()} == first
    run.good("compile", "closeby", "--emit", "cubin", "--out", "there")
    assert not list((run.folder / "there").glob("*.ptx")) and os.listdir(run.folder) == ["there"]
    (run.folder / "there" / "notes.txt").write_text("mine")
    assert "such as notes.txt" in run.refused("compile", "closeby", "--emit", "ptx", "--out", "there")
    (run.folder / "mine").mkdir()
    (run.folder / "mine" / "kernels.json").write_text("[]")
    assert "such as kernels.json" in run.refused("compile", "closeby", "--emit", "ptx", "--out", "mine")
    (run.folder / "file").write_text("mine")
    assert "is a file" in run.refused("compile", "closeby", "--emit", "ptx", "--out", "file")
    assert "cannot write" in run.refused("compile", "closeby", "--emit", "ptx", "--out", "/proc/nowhere/x")
    assert sorted(os.listdir(run.folder)) == ["file", "mine", "there"]
    assert (run.folder / "there" / "notes.txt").read_text() == (run.folder / "file").read_text() == "mine"


def test_nothing_is_left_of_a_folder_that_fails(
    few: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.good("compile", "closeby", "--emit", "ptx", "--out", "there")
    rename = Path.rename

    def fails(path: Path, to: Path) -> Path:
        if to.name == "there" and not path.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", fails)
    assert "No space left" in run.refused("compile", "closeby", "--emit", "cubin", "--out", "there")
    assert os.listdir(run.folder) == ["there"] and (run.folder / "there" / "clause_start.ptx").exists()


def test_machine_code_needs_triton(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import nsfrc.engines.gpu

    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "nsfrc.engines.gpu.aot", raising=False)
    monkeypatch.delattr(nsfrc.engines.gpu, "aot", raising=False)
    assert 'pip install "nsfrc[gpu]"' in run.refused("compile", "closeby", "--emit", "ptx")
    result = run("compile", "closeby", "--emit", "ptx", "--json")
    assert result.code == 1 and "nsfrc[gpu]" in json.loads(result.out)["errors"][0]["message"]
    assert os.listdir(run.folder) == []


def test_machine_code_is_not_for_the_interpreter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "TRITON_INTERPRET is set" in run.refused("compile", "closeby", "--emit", "ptx")
    assert os.listdir(run.folder) == []


def test_arch(run: Run) -> None:
    assert "'sm_90'" in run.refused("compile", "closeby", "--emit", "ptx", "--arch", "sm_70")
    assert "--emit ptx and --emit cubin only" in run.refused("compile", "closeby", "--arch", "sm_80")
    assert "--emit ptx and --emit cubin only" in run.refused("compile", "closeby", "--emit", "ir", "--arch", "sm_80")
    assert os.listdir(run.folder) == []
