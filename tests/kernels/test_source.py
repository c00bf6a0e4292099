"""The emitted file: run without nsfrc in a process of its own, compiled ahead of time, and read as text.

The interpreter must be asked for before kernels are imported, and compiling needs it not to be, so every file runs in
a child; in all of them nsfrc cannot be imported.
"""

from __future__ import annotations

import ast
import builtins
import dis
import hashlib
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

import nsfrc
from nsfrc.engines.gpu import source_edit as edit
from nsfrc.engines.gpu.source import emit
from nsfrc.engines.gpu.tables import pack
from nsfrc.errors import NsfrcError
from nsfrc.program import Program
from tests.engines.support import compile_text, relative, run, valuations
from tests.examples import SHIPPED

ROOT = Path(nsfrc.__file__).parents[1]
WITHOUT_NSFRC = "import sys\nsys.modules['nsfrc'] = None\nsys.path.insert(0, '.')\nimport torch\nimport emitted\n"
REASON = WITHOUT_NSFRC + """
torch.use_deterministic_algorithms(True)  # fills new memory with NaN
assert torch.empty(9).new_empty(3).isnan().all()
emitted.INSTANCES_PER_MULTIPROCESSOR = int(sys.argv[1])
results = []
for V0, mixture in torch.load("given.pt", weights_only=True):
    V0.requires_grad_()
    reasoned = emitted.forward(V0)
    (reasoned * mixture).sum().backward()
    with torch.no_grad():
        alone = emitted.forward(V0.t().contiguous().t())
    results.append((reasoned.detach(), V0.grad, alone, emitted.forward(V0.detach()).requires_grad))
torch.save(results, "results.pt")
"""
REFUSE = WITHOUT_NSFRC + """
V0 = emitted.initial_valuation(2)
wrong = {"narrow": V0[:, 1:], "flat": V0[0], "double": V0.double(), "whole": V0.long(), "grad": V0.requires_grad_()}
for name in sys.argv[1:]:
    try:
        emitted.forward(wrong[name])
        print(name, "was taken")
    except ValueError as error:
        print(error)
"""
COMPILE = WITHOUT_NSFRC + """
import re, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

triton.knobs.compilation.disable_line_info = True
triton.knobs.nvidia.dump_ptxas_log = True
types = {"k": "fp32", "unit": "fp32", "batch": "i32", "stride": "i32", "steps": "i32", "indices": "*i32"}
forward, backward = emitted.program_forward, emitted.program_backward
for kernel, constants in ((forward, {"KEEP": False}), (forward, {"KEEP": True}), (backward, {})):
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(signature)
               if signature[name].startswith("*") or name == "stride"}
    triton.compile(
        ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned),
        target=GPUTarget("cuda", 80, 32), options={"num_warps": emitted.WARPS, "maxnreg": emitted.REGISTERS},
    )
    print("compiled", kernel.__name__)
"""


@cache
def shipped(name: str) -> Program:
    return nsfrc.compile(name)


def child(folder: Path, text: str, script: str, *arguments: str, interpret: bool = True) -> str:
    """What a script prints that has an emitted file beside it, and nothing else."""
    (folder / "emitted.py").write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in ("TRITON_INTERPRET", "PYTHONPATH")}
    environment |= {"TRITON_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    environment |= {"TRITON_INTERPRET": "1"} if interpret else {}
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name, outputs, instances, batches", [
    ("closeby", "all", 1, (1, 40)), ("twopairs", "targets", 4, (1, 40)), ("clevr_hans3", "targets", 1, (7,)),
])
def test_values_and_gradients(
    name: str, outputs: str, instances: int, batches: tuple[int, ...], tmp_path: Path
) -> None:
    program = shipped(name)
    neural = torch.from_numpy(program.ground.neural)
    given, wanted = [], []
    for batch in batches:
        V0 = valuations(program, batch, seed=batch)
        wanted.append(run(program, V0, "reference", torch.float64, outputs=outputs, inputs="neural")[:2])
        mixture = torch.rand(wanted[-1][0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        V0[:, ~neural] = 0.3  # which is not looked at
        given.append((V0.float(), mixture))
    torch.save(given, tmp_path / "given.pt")
    child(tmp_path, emit(program, outputs), REASON, str(instances))
    results = torch.load(tmp_path / "results.pt", weights_only=True)
    assert len(results) == len(batches)
    for (V_T, gradient), (reasoned, g_V0, alone, differentiable) in zip(wanted, results, strict=True):
        assert reasoned.shape == V_T.shape and reasoned.dtype == torch.float32
        assert float((reasoned - V_T).abs().max()) <= 2e-6
        assert float(gradient[:, neural].abs().max()) > 1e-3
        assert relative(g_V0.double()[:, neural], gradient[:, neural]) <= 1e-4
        assert not g_V0[:, ~neural].any()
        assert torch.equal(alone, reasoned) and not differentiable


def test_empty_batch_and_no_gradients(tmp_path: Path) -> None:
    program = shipped("closeby")
    script = WITHOUT_NSFRC + (
        "V0 = emitted.initial_valuation(1)\nV0[:, [emitted.ATOMS.index(atom) for atom in emitted.NEURAL]] = 0.7\n"
        "print(list(emitted.forward(V0[:0]).shape), emitted.forward(V0).item())\n"
    )
    V0 = valuations(program, 1)
    V0[:, torch.from_numpy(program.ground.neural)] = 0.7
    shape, value = child(tmp_path, emit(program, gradients=False), script).rsplit(maxsplit=1)
    assert shape == "[0, 1]"
    assert abs(float(value) - float(program.reasoner("reference", outputs="targets")(V0))) <= 2e-6


def test_main_prints_the_targets(tmp_path: Path) -> None:
    program = shipped("closeby")
    printed = child(tmp_path, emit(program), "import runpy\nrunpy.run_path('emitted.py', run_name='__main__')")
    V0 = torch.from_numpy(program.initial_valuation()).double()[None]
    value = float(program.reasoner("reference", outputs="targets")(V0))
    name, _, number = printed.strip().partition(": ")
    assert name == "kp(img)" and abs(float(number) - value) <= 3e-6


def test_messages(tmp_path: Path) -> None:
    text = emit(shipped("closeby"))
    lines = child(tmp_path, text, REFUSE, "narrow", "flat", "double", "whole").splitlines()
    assert lines == [
        "V0 has shape [2, 42]; it must be [B, 43], one column per atom of ATOMS",
        "V0 has shape [43]; it must be [B, 43], one column per atom of ATOMS",
        "V0 is torch.float64; the kernels compute in float32: give them V0.float()",
        "V0 is torch.int64; the kernels compute in float32: give them V0.float()",
    ]
    [line] = child(tmp_path, text, REFUSE, "grad", interpret=False).splitlines()
    assert line.startswith("V0 is on cpu; the kernels need it on a CUDA device (or TRITON_INTERPRET=1")
    [line] = child(tmp_path, emit(shipped("closeby"), gradients=False), REFUSE, "grad").splitlines()
    assert line == "this file was made without gradients: give it V0.detach()"
    with pytest.raises(NsfrcError, match="outputs is 'targets' or 'all', not 'some'"):
        emit(shipped("closeby"), outputs="some")


def test_compiles_ahead_of_time_without_spills(tmp_path: Path) -> None:
    printed = child(tmp_path, emit(shipped("twopairs")), COMPILE, interpret=False)
    assert printed.count("compiled program_forward") == 2 and "compiled program_backward" in printed
    spills = [line for line in printed.splitlines() if "bytes spill stores" in line]
    assert len(spills) >= 30  # every phase is a function of its own
    assert all(" 0 bytes spill stores, 0 bytes spill loads" in line for line in spills)


def test_same_program_same_bytes(tmp_path: Path) -> None:
    """Whatever the process, the folder or the form the program comes in; and nothing heavy is imported for it."""
    script = (
        "import hashlib, sys, nsfrc\nfrom nsfrc.engines.gpu.source import emit\n"
        "text = emit(nsfrc.program.open_program(sys.argv[1]))\n"
        "print(hashlib.sha256(text.encode()).hexdigest(), *{'torch', 'triton'} & set(sys.modules))\n"
    )
    text = emit(shipped("twopairs"))
    copy = tmp_path / "elsewhere" / "twopairs.pl"
    copy.parent.mkdir()
    copy.write_text((ROOT / "programs" / "kandinsky" / "twopairs.pl").read_text())
    saved = shipped("twopairs").save(tmp_path / "other.nsfrc")
    for seed, program in enumerate(("twopairs", str(copy), str(saved))):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", script, program], cwd=tmp_path, env=environment,
                              capture_output=True, text=True, check=True)
        assert done.stdout.split() == [hashlib.sha256(text.encode()).hexdigest()]
    assert emit(shipped("closeby")) != text and emit(shipped("twopairs"), "all") != text


ODD = r"""
:- semantics(paper).
:- use_module(library(nsfr)).
:- type(image, [img]).
:- type(color, ['a\nb', 'it\'s', 'q"uote', 'back\\slash', '\"\"\"', 'é😀', plain]).
:- neural(color(image, color)).
:- pred(kp(image)).
:- target(kp(img)).
:- steps(2).
:- gamma(0.05).
kp(X) :-
    color(X,'a\nb'), color(X,'it\'s'), color(X,'q"uote'), color(X,'back\\slash'), color(X,'\"\"\"'), color(X,'é😀').
"""


def assigned(text: str) -> dict[str, str]:
    """Source of every assignment of a file, by what it assigns to."""
    return {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in ast.parse(text).body
            if isinstance(node, ast.Assign)}


@pytest.mark.parametrize("name", ["closeby", "clevr_hans3", "odd"])
def test_names_and_numbers(name: str) -> None:
    program = compile_text(ODD) if name == "odd" else shipped(name)
    found = assigned(emit(program))
    assert ast.literal_eval(found["ATOMS"]) == program.atoms
    assert ast.literal_eval(found["TARGETS"]) == program.targets
    assert ast.literal_eval(found["STEPS"]) == program.steps
    assert ast.literal_eval(found["GAMMA"]) == (0.05 if name == "odd" else 0.01)


@pytest.mark.parametrize("name", ["twopairs", "nine_circles"])
def test_tables_lie_where_the_kernels_look(name: str) -> None:
    program = shipped(name)
    tables, found = pack(program.plan, targets_only=True), assigned(emit(program))
    for whole, where, values in (("INDICES", tables.at, tables.indices), ("FLOATS", tables.of, tables.floats)):
        begin = 0
        for table in found[whole].strip("[]").split(", "):
            table = table.removeprefix("*")
            numbers = eval(found[table], {"__builtins__": {}})
            assert found[f"AT_{table}"] == f"static({begin})"
            first = getattr(where, table.lower())
            assert values[first: first + len(numbers)].tolist() == numbers
            begin += len(numbers)


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("outputs", ["targets", "all"])
@pytest.mark.parametrize("name", SHIPPED)
def test_no_leftovers(name: str, outputs: str, gradients: bool) -> None:
    """Every name that is read is defined, every function and constant is used, and nothing is there of what a
    program with hard weights and whole pairs does not need."""
    text = emit(shipped(name), outputs, gradients)
    reads = {i.argval for code in code_objects(compile(text, "emitted", "exec"))
             for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    defined = {i.argval for i in dis.get_instructions(compile(text, "emitted", "exec")) if i.opname == "STORE_NAME"}
    assert reads - defined - set(dir(builtins)) <= {"__name__"}
    assert defined - reads <= {"__doc__", "__annotations__", "GAMMA", "TARGETS", "NEURAL", "forward"}
    for word in ("L.", "(L", ", L)", "BAND", "weights", "ticket", "partial", "mixtures", "through_soft", "join_parts"):
        assert word not in "\n".join(line.split("#")[0] for line in text.splitlines() if '"""' not in line), word
    assert ("backward" in text) == gradients and ("KEEP" in text) == gradients
    assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines())
    assert text.endswith(")\n") and "\n\n\n\n" not in text


KERNEL = '''\
@triton.jit
def f(x, y, ticket, L: tl.constexpr):
    """γ and more."""
    unread = tl.load(y)
    unread = unread * 2  # γ
    if L.hard and not L.gradient:
        # why
        a = g(x, y, L)
    else:
        a = g(y, x, L)
    for i in range(L.few, L.few):
        a += i
    for band in tl.static_range(len(L.bands)):
        h(L.bands[band].last)
    if KEEP and not L.hard:
        tl.store(ticket, a)
    return a'''


def test_folding_keeps_what_is_taken() -> None:
    L = types.SimpleNamespace(hard=True, gradient=False, few=3, bands=("one", "two"))
    text = edit.fold(KERNEL, L, unknown=None)
    assert "    # why\n    a = g(x, y, L)\n    h(L.bands[0].last)\n    h(L.bands[1].last)\n    return a" in text
    assert "if L.hard and not L.gradient:" in edit.fold(KERNEL, L, unknown="gradient")
    never = types.SimpleNamespace(**vars(L) | {"hard": False})
    assert "    a = g(y, x, L)\n    h(" in edit.fold(KERNEL, never, unknown="gradient")
    assert "if KEEP and not L.hard:" in edit.fold(KERNEL, never, None)
    assert "    tl.store(ticket, a)\n    return a" in edit.fold(KERNEL, never, None, {"KEEP": True})
    assert "ticket, a" not in edit.fold(KERNEL, never, None, {"KEEP": False})


def test_dropping_keeps_what_is_read() -> None:
    assert "unread" not in edit.without_dead(KERNEL) and "a += i" in edit.without_dead(KERNEL)
    L = types.SimpleNamespace(hard=True, few=3, bands=())
    text = edit.fold(KERNEL, L, unknown="gradient")
    assert edit.unused_parameters(text) == [2]
    text = edit.without_argument(text, "f", 2, declared=True)
    assert edit.parameters(text) == ["x", "y", "L"]
    text = edit.without_argument(text, "g", 0, declared=False)
    assert "a = g(y, L)" in text and "a = g(x, L)" in text
