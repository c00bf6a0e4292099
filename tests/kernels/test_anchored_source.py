"""The emitted file of an `anchored` program: run without nsfrc in a process of its own, compiled, and read as text."""

from __future__ import annotations

import builtins
import dis
import os
import subprocess
import sys

import pytest
import torch

from nsfrc.engines.gpu.source import emit
from tests.engines.support import compile_text, relative, run, valuations
from tests.kernels.anchored_programs import BEGINNING, anchored
from tests.kernels.test_source import ODD, REASON, ROOT, WITHOUT_NSFRC, assigned, child, code_objects

COMPILE = WITHOUT_NSFRC + """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

triton.knobs.compilation.disable_line_info = True
triton.knobs.nvidia.dump_ptxas_log = True
types = {"k": "fp32", "unit": "fp32", "batch": "i32", "stride": "i32", "steps": "i32", "ints": "*i32"}
for kernel, constants in ((emitted.anchored_forward, {"KEEP": True}), (emitted.anchored_backward, {})):
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(signature)
               if signature[name].startswith("*") or name == "stride"}
    triton.compile(ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned),
                   target=GPUTarget("cuda", 80, 32), options=emitted.OPTIONS)
    print("compiled", kernel.__name__)
"""


@pytest.mark.parametrize("name, outputs, batches", [
    ("twopairs", "targets", (1, 40)), ("closeby", "all", (33,)), ("path", "all", (1, 40)), ("mixed", "targets", (7,)),
])
def test_values_and_gradients(name, outputs, batches, tmp_path):
    program = anchored(name)
    neural = torch.from_numpy(program.ground.neural)
    given, wanted = [], []
    for batch in batches:
        V0 = valuations(program, batch, seed=batch)
        wanted.append(run(program, V0, "reference", torch.float64, outputs=outputs, inputs="neural")[:2])
        mixture = torch.rand(wanted[-1][0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        V0[:, ~neural] = 0.3  # which is not looked at
        given.append((V0.float(), mixture))
    torch.save(given, tmp_path / "given.pt")
    child(tmp_path, emit(program, outputs), REASON, "1")
    for (V_T, gradient), (reasoned, g_V0, alone, differentiable) in zip(
            wanted, torch.load(tmp_path / "results.pt", weights_only=True), strict=True):
        assert float((reasoned - V_T).abs().max()) <= 2e-6
        assert relative(g_V0.double()[:, neural], gradient[:, neural]) <= 1e-4
        assert not g_V0[:, ~neural].any()
        assert torch.equal(alone, reasoned) and not differentiable


def test_a_small_program_is_written_out_level_by_level():
    program = anchored("twopairs")
    text = emit(program)
    lines = text.splitlines()
    assert len(lines) <= 320 and max(map(len, lines)) <= 120
    places = [text.index(part) for part in (
        "# Level 1.", "# same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).", "  # same_shape_pair(obj3,obj4)",
        "# Level 2.", "# kp(X) :- in(O1,X), ", "# kp(img)", "def written_forward", "def written_backward",
        "# Level 2, backwards.", "# Level 1, backwards.", "# Gradients of V0.", "def forward(V0",
    )]
    assert places == sorted(places)
    assert "static" not in text.replace("tl.static_range", "").replace("staticmethod", "") and "cache" not in text


def test_levels_of_a_larger_program_are_told():
    text = emit(anchored("path"))
    places = [text.index(part) for part in (
        "# Level 1: ", ", 3 rounds.\n#   path(X,Y) :- near(X,Y).\n#   path(X,Z) :- near(X,Y), path(Y,Z).\n# Level 2: ",
        "#   loop(X) :- path(X,Y), near(Y,X).\n# Level 3: ", "STEPS = -1", "def anchored_forward",
    )]
    assert places == sorted(places)
    assert "STEPS" not in emit(anchored("threepairs"))


def test_negations_and_counts_are_told_by_name():
    text = emit(anchored("few"))
    places = [text.index(part) for part in (
        "# Level 1.\n    x23 = 1.0 - capped(x2)  # \\+ color(obj1,blue)\n", "# Level 2.\n    # few(img), counted:\n",
        "# kp(I) :- aggregate_all(count, red(I,_), N), N >= 1, N =< 2, in(O,I), \\+ color(O,blue).",
        "# Level 2, backwards.", "tl.store(g + 10, -g23)",
    )]
    assert places == sorted(places)
    text = emit(anchored("recursion"))
    assert "#   negations and counts: \\+ color(obj1,blue), " in text and ", choices (no + by·(yes - no): " in text
    assert "choice" not in emit(anchored("path")).replace("of a choice", "").replace("without choices", "")


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("outputs", ["targets", "all"])
@pytest.mark.parametrize("name", ["closeby", "twopairs", "threepairs", "path", "mixed", "chain", "counts",
                                  "recursion"])
def test_no_leftovers(name, outputs, gradients):
    """Every name that is read is defined, every function and constant is used."""
    text = emit(anchored(name), outputs, gradients)
    reads = {i.argval for code in code_objects(compile(text, "emitted", "exec"))
             for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    defined = {i.argval for i in dis.get_instructions(compile(text, "emitted", "exec")) if i.opname == "STORE_NAME"}
    assert reads - defined - set(dir(builtins)) <= {"__name__"}
    assert defined - reads <= {"__doc__", "__annotations__", "GAMMA", "TARGETS", "NEURAL", "forward"}
    for word in ("L.", "(L", ", L)", "weights", "ticket", "many", "mixture", "WARM"):
        assert word not in "\n".join(line.split("#")[0] for line in text.splitlines() if '"""' not in line), word
    assert ("backward" in text) == gradients
    assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines())
    assert text.endswith(")\n") and "\n\n\n\n" not in text


def test_odd_names_large_gamma_and_single_reasons(tmp_path):
    """Names that need quotes; a γ for which exponentials are close to 1; heads with one reason, counted twice."""
    text = emit(compile_text(ODD))
    assert eval(assigned(text)["ATOMS"]) == compile_text(ODD).atoms
    program = compile_text(BEGINNING + """
        :- target(kp(img)). :- gamma(0.5).
        pair(I) :- in(obj1, I), in(obj2, I).
        kp(I) :- pair(I), near(X, Y), in(Z, I).
    """)
    V0 = valuations(program, 5)
    wanted = run(program, V0, "reference", torch.float64, outputs="targets", inputs="neural")
    torch.save([(V0.float(), torch.rand(5, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64))],
               tmp_path / "given.pt")
    child(tmp_path, emit(program), REASON, "1")
    [(reasoned, g_V0, *_)] = torch.load(tmp_path / "results.pt", weights_only=True)
    assert float((reasoned - wanted[0]).abs().max()) <= 2e-6 and relative(g_V0.double(), wanted[1]) <= 1e-4


def test_empty_batches_and_messages(tmp_path):
    script = WITHOUT_NSFRC + """
V0 = emitted.initial_valuation(2).requires_grad_()
print(list(emitted.forward(V0[:0]).shape))
try:
    emitted.forward(V0)
except ValueError as error:
    print(error)
"""
    for name in ("closeby", "path"):
        assert child(tmp_path, emit(anchored(name)), script).splitlines()[0].startswith("[0, ")
        told = child(tmp_path, emit(anchored(name), gradients=False), script.replace("V0[:0]", "V0[:0].detach()"))
        assert told.splitlines()[1] == "this file was made without gradients: give it V0.detach()"


def test_the_table_driven_form_compiles_without_spills(tmp_path):
    printed = child(tmp_path, emit(anchored("path")), COMPILE, interpret=False)
    assert "compiled anchored_forward" in printed and "compiled anchored_backward" in printed
    spills = [line for line in printed.splitlines() if "bytes spill stores" in line]
    assert len(spills) >= 10
    assert all(" 0 bytes spill stores, 0 bytes spill loads" in line for line in spills)


def test_same_program_same_bytes(tmp_path):
    """Whatever the process or the form the program comes in; and nothing heavy is imported for it."""
    script = (
        "import sys, nsfrc\nfrom nsfrc.engines.gpu.source import emit\n"
        "sys.stdout.write(emit(nsfrc.program.open_program(sys.argv[1])))\n"
        "assert not {'torch', 'triton'} & set(sys.modules)\n"
    )
    for name in ("twopairs", "path"):
        saved = anchored(name).save(tmp_path / f"{name}.nsfrc")
        environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", script, str(saved)], cwd=tmp_path, env=environment,
                              capture_output=True, text=True, check=True)
        assert done.stdout == emit(anchored(name))
