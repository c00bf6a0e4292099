"""Kernels of `anchored` ahead of time, without a GPU: they compile, spill nothing, and are what a launch would compile.

Written out (twopairs), driven by tables with all that they can have (recursion, soft weights, all atoms), and large
(clevr_hans7); and those with negations and counts. `benchmarks/aot.py` compiles everything.
"""

from __future__ import annotations

import io
import json
import re
from functools import cache
from importlib import resources

import numpy as np
import pytest
import torch

from nsfrc.engines.gpu import aot, kernel_folder
from nsfrc.engines.gpu.anchored_launch import TableJob
from nsfrc.engines.gpu.anchored_shapes import LARGE, SMALL, choose
from nsfrc.engines.gpu.anchored_tables import pack
from nsfrc.engines.gpu.anchored_written import MOST, fits
from nsfrc.engines.ptx.launch import compiled as ptx_of
from nsfrc.engines.ptx.parse import parse
from tests.kernels.anchored_programs import anchored
from tests.kernels.counted_programs import counted

KERNELS = resources.files("nsfrc.kernels")
CASES = {
    "written": ("twopairs", True, "neural", "targets"),
    "recursive": ("path", False, "all", "all"),
    "large": ("clevr_hans7", True, "neural", "targets"),
    "counted": ("recursion", False, "all", "all"),
    "counted, written": ("counts", True, "neural", "targets"),
}
TABLE_DRIVEN = [f"{name}{size}" for size in ("", ".small")
                for name in ("anchored_forward", "anchored_forward.keep", "anchored_backward")]


@cache
def kernels(case):
    name, hard, inputs, outputs = CASES[case]
    return aot.kernels(anchored(name), hard=hard, inputs=inputs, outputs=outputs)


@cache
def compiled(case, arch):
    """Of `counted` the kernels with the most in them: with what is kept for gradients, in tiles of more registers."""
    return [aot.compile_kernel(kernel, arch) for kernel in kernels(case)
            if case != "counted" or kernel.label in ("anchored_forward.soft.keep", "anchored_backward.soft")]


@pytest.fixture(autouse=True)
def compiling(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


@pytest.mark.parametrize("case, arch", [("written", "sm_80"), ("recursive", "sm_80"), ("large", "sm_80"),
                                        ("recursive", "sm_90"), ("counted", "sm_80"), ("counted", "sm_90"),
                                        ("counted, written", "sm_80"), ("counted, written", "sm_90")])
def test_every_kernel_compiles_and_spills_nothing(case, arch):
    for one in compiled(case, arch):
        assert (one.spill_bytes, one.stack_bytes) == (0, 0), one.kernel.label
        assert 0 < one.registers <= one.kernel.most_registers
        assert re.findall(r"^\.target (\w+)$", one.ptx, re.MULTILINE) == [{"sm_80": "sm_80", "sm_90": "sm_90a"}[arch]]
        assert one.ptx.count(".visible .entry") == 1


def test_one_kernel_each_way():
    assert [k.label for k in kernels("written")] == ["written_forward", "written_backward"]
    assert [k.label for k in kernels("large")] == TABLE_DRIVEN
    assert [k.label.replace(".soft", "") for k in kernels("recursive")] == TABLE_DRIVEN
    assert {k.grids for k in kernels("written")} == {(("tiles",),)}
    assert {k.grids for k in kernels("large")} == {(("instances",),)}


def test_written_kernels_wait_for_nobody_and_fuse_nothing():
    for one in compiled("written", "sm_80"):
        assert "bar." not in one.ptx and one.shared == 0
        lines = [line for line in one.ptx.splitlines() if "fma.rn.f32" in line]
        assert not lines, one.kernel.label  # log2's own have .ftz


def test_only_what_says_so_is_fused():
    for kernel in kernels("large"):
        module = parse(ptx_of(kernel, "sm_80")[0])
        fused = {one.source for function in module.functions.values() for block in function.blocks for one in block
                 if one.name == "fma.rn.f32"}
        for source in fused:
            file, line = re.match(r"(\w+\.py):(\d+)", source).groups()
            assert "tl.fma(" in KERNELS.joinpath(file).read_text("utf-8").splitlines()[int(line) - 1], source
        assert fused


def test_the_cap_keeps_what_is_no_number():
    """The card's own minimum of a NaN and 1 is 1; the interpreter's is not."""
    for one in (*compiled("written", "sm_80"), *compiled("large", "sm_80"), *compiled("counted", "sm_80")):
        assert "min.NaN.f32" in one.ptx or "backward" in one.kernel.name
        assert "min.f32" not in one.ptx, one.kernel.label


def test_what_is_written_out():
    """Small plans without recursion; what its registers would not hold is driven by tables."""
    twopairs = anchored("twopairs").level_plan(True, True)
    assert fits(twopairs, soft=False) and not fits(twopairs, soft=True)
    assert twopairs.values + twopairs.rows <= MOST < 180
    for name in ("threepairs", "clevr_hans7", "path"):
        assert not fits(anchored(name).level_plan(True, True), soft=False)
    assert fits(anchored("counts").level_plan(True, True), soft=False)
    assert not fits(counted("counts", slots=6).level_plan(True, True), soft=False)
    assert not fits(anchored("mixed").level_plan(True, True), soft=False)  # a fact that is derived as well


def test_tiles_are_small_until_the_card_is_full():
    assert choose(1, 108) == choose(864, 108) == SMALL and choose(865, 108) == LARGE


class Launches(TableJob):
    def launch(self, kernel, grid, *arguments, **constants):
        LAUNCHED.append((kernel, constants, arguments))


LAUNCHED: list[tuple] = []


@pytest.mark.parametrize("soft", [False, True])
def test_what_is_compiled_is_what_triton_would_compile_at_the_launch(soft):
    from triton._C.libtriton import native_specialize_impl
    from triton.backends.nvidia.compiler import CUDABackend

    program = anchored("path")
    tables = pack(program.level_plan(True, True), True, soft)
    job = Launches(tables, torch.from_numpy(tables.ints), torch.from_numpy(tables.floats), LARGE, 144.0, 1 / 144, False,
                   5, 432)
    V0, weights = torch.zeros(37, program.ground.G), torch.zeros(3 if soft else 0, program.ground.C)
    LAUNCHED.clear()
    out, past = job.forward(V0, weights, keep=True)
    job.backward(V0, weights, out, past)
    listed = {(k.name, k.constants): k for k in aot.kernels(program, hard=not soft) if "small" not in k.label}
    for kernel, constants, arguments in LAUNCHED:
        source = aot.source(listed[kernel.__name__, tuple(sorted(constants.items()))])
        for number, (name, value) in enumerate(zip(kernel.arg_names, arguments, strict=False)):
            kind, special = native_specialize_impl(CUDABackend, value, False, True, True)
            aligned = (number,) in source.attrs
            if name in ("batch", "steps", "many"):  # any number, so none in particular
                assert (source.signature[name], aligned) == ("i32", False)
            else:
                assert (source.signature[name], aligned) == (kind, special == "D"), name


@pytest.mark.parametrize("case, tables", [("written", {}), ("large", {"anchored": {"ints", "floats"}})])
def test_a_folder_of_machine_code(case, tables):
    program = anchored(CASES[case][0])
    files = kernel_folder.contents(program, compiled(case, "sm_80"), "ptx")
    manifest = json.loads(files["kernels.json"])
    assert manifest["semantics"] == "anchored" and manifest["steps"] == -1 and manifest["targets"] == program.targets
    assert {name: set(found) for name, found in manifest["tables"].items()} == tables
    named = [file for found in manifest["tables"].values() for file in found.values()]
    assert set(files) == {"kernels.json", *named, *(kernel["file"] for kernel in manifest["kernels"])}
    for entry, one in zip(manifest["kernels"], compiled(case, "sm_80"), strict=True):
        assert entry["enable_fp_fusion"] is False and entry["num_warps"] in (1, 4, 16)
        parameters = re.findall(r"\.param \.(\w+)", re.findall(r"\.visible \.entry[^{]*", one.ptx)[0])
        sizes = {"u64": "*", "u32": "i32", "f32": "fp32"}
        assert [sizes[p] for p in parameters] == [
            "*" if a["type"].startswith("*") else a["type"] for a in entry["arguments"]]
    for file in named:
        table = np.load(io.BytesIO(files[file]))
        assert table.dtype in (np.int32, np.float32) and len(table)
