"""What sets a card beside engine "ptx", as far as there is no card: numbers apart, and the profiler's answer read."""

from __future__ import annotations

import subprocess

import pytest
import torch

import nsfrc
from nsfrc.benchmarks import gpu_compare

# As `ncu --csv --metrics …` prints: what the program itself says comes first, numbers have commas.
ANSWER = '''\
==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "written_forward" - 0: 0%....50%....100% - 1 pass
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","4711","python3.11","127.0.0.1","written_forward","1","7","(32, 1, 1)","(1, 1, 1)","0","8.0","Command line \
profiler metrics","smsp__inst_executed.sum","inst","1,234"
"0","4711","python3.11","127.0.0.1","written_forward","1","7","(32, 1, 1)","(1, 1, 1)","0","8.0","Command line \
profiler metrics","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","sector","40"
"0","4711","python3.11","127.0.0.1","written_forward","1","7","(32, 1, 1)","(1, 1, 1)","0","8.0","Command line \
profiler metrics","l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","sector","8"
"1","4711","python3.11","127.0.0.1","written_forward","1","7","(32, 1, 1)","(1, 1, 1)","0","8.0","Command line \
profiler metrics","smsp__inst_executed.sum","inst","1,000"
"2","4711","python3.11","127.0.0.1","void at::native::fill_kernel(int)","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0",\
"Command line profiler metrics","smsp__inst_executed.sum","inst","5"
'''


def test_units_in_the_last_place():
    one = torch.tensor([1.0, -1.0, 0.0, 1e-45, 1.0])
    other = torch.tensor([1.0, -1.0000001, -0.0, -1e-45, 2.0])
    assert gpu_compare.units(one, other).tolist() == [0, 1, 0, 2, 1 << 23]


def test_rows_say_how_far_apart():
    mine = {"values": torch.tensor([0.5, 0.25]), "gradients": torch.tensor([10.0, 1.0])}
    theirs = {"values": torch.tensor([0.5, 0.25 + 2**-22]), "gradients": torch.tensor([10.0, 1.01])}
    values, gradients = gpu_compare.compared("card", "closeby", mine, theirs)
    assert (values.numbers, values.different, values.most_units) == (2, 1, 8) and not gpu_compare.too_far(values)
    assert gradients.largest == pytest.approx(1e-3, rel=1e-3) and gpu_compare.too_far(gradients)
    (wrong,) = gpu_compare.compared("card", "closeby", {"values": torch.tensor([torch.nan])},
                                    {"values": torch.tensor([0.5])})
    assert gpu_compare.too_far(wrong)


@pytest.mark.ptx
def test_counts_of_the_profiler_beside_ours():
    program = nsfrc.compile(source=":- type(image, [img]). :- neural(red(image)). :- target(kp(img)).\n"
                            "kp(X) :- red(X).", name="rules")
    rows = {row.what: row for row in gpu_compare.beside("card", program, "sm_80", ANSWER)}
    assert rows["instructions"].on_card == 2234 and rows["sectors"].on_card == 48
    assert {row.kernel for row in rows.values()} == {"written_forward"}
    assert 0 < rows["instructions"].in_ptx == pytest.approx(2234 / rows["instructions"].ratio)


def test_a_profiler_that_may_not_count(monkeypatch, capsys):
    refused = subprocess.CompletedProcess([], 1, "==ERROR== ERR_NVGPUCTRPERM - no permission\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    assert gpu_compare.under_profiler("ncu", "closeby") == ""
    assert "ERR_NVGPUCTRPERM" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_without_a_card_nothing_is_compared(capsys):
    assert gpu_compare.main([]) == 0
    assert "nothing to compare" in capsys.readouterr().out
