"""Engine "ptx": what our launchers start is compiled, executed and checked, forwards and backwards."""

from __future__ import annotations

import copy

import pytest
import torch

import nsfrc
from nsfrc.engines.gpu.anchored_shapes import LARGE, SMALL
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM
from nsfrc.engines.ptx import engine
from nsfrc.engines.ptx import findings as kinds
from nsfrc.engines.ptx.engine import PtxJob
from nsfrc.engines.ptx.findings import KernelFault
from nsfrc.errors import NsfrcError
from tests.engines.plain_child import TWO_CLAUSES
from tests.engines.support import relative, run, valuations
from tests.kernels.anchored_programs import anchored
from tests.kernels.ptx.support import GRADIENTS, PAPER, VALUES, agree, executed, weights

pytestmark = pytest.mark.ptx


@pytest.fixture(scope="module")
def small():
    return nsfrc.compile(source=PAPER, name="small")


def test_the_whole_program_in_one_launch(small):
    launches = agree(small, 40, shape=PROGRAM)
    assert [one.kernel for one in launches] == ["program_forward.keep", "program_backward"]
    assert all(one.grid == (2,) and one.findings == () for one in launches)
    assert launches[0].instructions["bar.sync"] > 0


@pytest.mark.parametrize("normalise", ["example", "batch"])
def test_a_launch_for_every_group_of_clauses(small, normalise):
    launches = agree(small, 11, shape=CLAUSE, normalise=normalise)
    names = {one.kernel.partition(".")[0] for one in launches}
    assert {"clause_start", "clause_rows", "clause_join", "clause_uses", "clause_end_back"} <= names
    assert ("spread_largest" in names) == (normalise == "batch")


def test_soft_weights_and_the_other_card(small):
    launches = agree(small, 40, 3, shape=PROGRAM, arch="sm_90")
    assert {one.arch for one in launches} == {"sm_90"}


@pytest.mark.parametrize("name, batch, mixtures, shape, kernel", [
    ("closeby", 33, None, None, "written_forward"), ("path", 9, 2, SMALL, "anchored_forward.soft.keep.small"),
    ("mixed", 33, None, LARGE, "anchored_forward.keep"),
])
def test_anchored(name, batch, mixtures, shape, kernel):
    launches = agree(anchored(name), batch, mixtures, shape=shape)
    assert launches[0].kernel == kernel
    assert launches[0].warps == (16 if shape is SMALL else 1 if shape is None else 4)


@pytest.mark.parametrize("shape", [PROGRAM, CLAUSE], ids=["program", "clause"])
def test_false_above_nothing(shape):
    """A head far below atoms that head nothing, whose clauses are nearly all there is: one minus their shares says
    nothing of what is left. The last three examples have a false of 0."""
    program = nsfrc.compile(source=TWO_CLAUSES, name="two")
    V0 = valuations(program, 6)
    V0[:3, 0] = 0.98
    V0[:3, program.index("lit(obj1)")] = 1.7
    theirs = run(program, V0.float().double(), "reference", torch.float64, None, steps=3, gamma=0.002)
    mine, launches = executed(program, V0, shape=shape, steps=3, gamma=0.002)
    assert (mine[0] - theirs[0]).abs().max() <= VALUES
    assert relative(mine[1], theirs[1]) <= GRADIENTS
    assert all(one.doubled == 0 for one in launches if max(one.grid) == 1)


class ThreeTiles(PtxJob):
    """As many instances for any batch."""

    def tiles(self, batch: int) -> int:
        return 3


def test_an_instance_without_a_tile_adds_nothing(small, monkeypatch):
    """More instances than tiles, which our launchers never start: the ticket is passed on in order all the same."""
    V0, W, options = valuations(small, 5), weights(small, 3), {"shape": PROGRAM, "arch": "sm_90"}
    one, _ = executed(small, V0, W, **options)
    monkeypatch.setattr(engine, "PtxJob", ThreeTiles)
    for order in ("together", "backwards"):
        more, launches = executed(small, V0, W, order=order, **options)
        assert [one.grid for one in launches] == [(3,), (3,)]
        assert all(torch.equal(a, b) for a, b in zip(one, more, strict=True))


def test_a_fault_is_raised_with_its_place(small):
    def without_barriers(label: str, ptx: str) -> str:
        return ptx.replace("bar.sync", "// bar.sync")

    with pytest.raises(KernelFault, match="without a barrier between") as caught:
        executed(small, valuations(small, 3), shape=PROGRAM, change=without_barriers)
    assert {one.kind for one in caught.value.findings} >= {kinds.READ_AFTER_WRITE}
    first = caught.value.findings[0]
    assert first.kernel.startswith("program_forward") and first.line > 0
    assert any(one.source.startswith(("maths.py", "step.py", "derive.py")) for one in caught.value.findings)
    answer, launches = executed(small, valuations(small, 3), shape=PROGRAM, change=without_barriers, check="collect")
    assert torch.isfinite(answer[0]).all() and launches[0].findings


def test_what_is_refused(small):
    with pytest.raises(NsfrcError, match="arch is for engine \"ptx\" alone"):
        small.reasoner("cpu", arch="sm_80")
    with pytest.raises(NsfrcError, match="arch of engine \"ptx\" cannot be 'sm_75'"):
        small.reasoner("ptx", arch="sm_75")
    reasoner = small.reasoner("ptx")
    with pytest.raises(NsfrcError, match="order of engine \"ptx\" cannot be 'sideways'"):
        reasoner.engine.runner.order = "sideways"
    with pytest.raises(NsfrcError, match="executes machine code on the CPU"):
        reasoner(torch.zeros(2, small.ground.G, device="meta"))
    assert copy.deepcopy(reasoner).engine.runner.arch == "sm_80"
