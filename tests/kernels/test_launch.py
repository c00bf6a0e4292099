"""Which kernels a batch is given to, and what is said where there is no card."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import nsfrc
from nsfrc.engines import AutoEngine
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM, choose, tiles_in_turn
from nsfrc.engines.gpu.tables import pack
from nsfrc.errors import NsfrcError
from tests.engines.support import valuations

NO_CARD = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")


def chosen(name, batch, whole_batch=False, slots=None):
    plan = nsfrc.compile(name, slots=slots).plan
    tables = (pack(plan, True, shape.rows_of_part) for shape in (PROGRAM, CLAUSE))
    return choose(*tables, batch, 4, whole_batch, 108)


@pytest.mark.parametrize("batch", [1, 100, 10_000])
def test_small_programs_are_one_launch(batch):
    assert chosen("twopairs", batch) is PROGRAM


def test_many_rows_of_few_examples_are_shared_out():
    assert chosen("clevr_hans7", 1) is CLAUSE
    assert chosen("clevr_hans7", 100_000) is PROGRAM


def test_a_maximum_over_the_batch_needs_launches():
    assert chosen("twopairs", 10_000, whole_batch=True) is CLAUSE


def test_tiles_of_rows():
    plan = nsfrc.compile("closeby").plan  # one pair of 12 rows
    tables = pack(plan, True)
    assert tiles_in_turn(tables.part_counts, 32) == 1
    assert tiles_in_turn(tables.part_counts, 4) == 3


@NO_CARD
def test_without_a_card():
    program = nsfrc.compile("closeby")
    with pytest.raises(NsfrcError, match=r'engine "gpu" needs a CUDA device.*use engine="auto" or "cpu"'):
        program.reasoner("gpu")


def test_without_triton():
    script = (
        "import sys; sys.modules['triton'] = None\n"
        "import nsfrc\n"
        "from nsfrc.errors import NsfrcError\n"
        "program = nsfrc.compile('closeby')\n"
        "program.reasoner()(__import__('torch').from_numpy(program.initial_valuation())[None])\n"
        "try:\n    program.reasoner('gpu')\n"
        "except NsfrcError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 'pip install "nsfrc[gpu]"' in done.stdout


def test_auto_takes_the_cpu_engine_for_cpu_tensors():
    program = nsfrc.compile("closeby")
    V0 = valuations(program, 5).float()
    reasoner = program.reasoner()
    assert isinstance(reasoner.engine, AutoEngine)
    assert torch.equal(reasoner(V0), program.reasoner("cpu")(V0))


def test_auto_takes_the_gpu_engine_for_cuda_tensors(monkeypatch):
    program = nsfrc.compile("closeby")
    asked = []

    def engine(name, program):
        asked.append(name)
        return lambda V0, weights, run: V0

    monkeypatch.setattr("nsfrc.engines.engine", engine)

    class OnCard(torch.Tensor):
        device, is_cuda = torch.device("cuda", 0), True

    reasoner = program.reasoner()
    reasoner.engine(torch.zeros(1, 43).as_subclass(OnCard), None, reasoner.run)
    assert asked == ["gpu"]


@NO_CARD
def test_the_check_on_a_card_says_that_there_is_none(capsys):
    from nsfrc.benchmarks import gpu_check

    assert gpu_check.main([]) == 0
    assert "no CUDA device" in capsys.readouterr().out
