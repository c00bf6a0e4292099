"""`benchmarks.reading`: what a byte of text takes in memory."""

from __future__ import annotations

from nsfrc.benchmarks import reading


def test_every_kind_is_read_and_measured() -> None:
    rows = list(reading.measure(length=4_000))
    assert [row.kind for row in rows] == list(reading.KINDS)
    assert all(0 < row.held <= row.peak < 200 and row.megabytes_per_second > 0 for row in rows)


def test_memory_is_that_of_the_result() -> None:
    held, peak = reading.memory(lambda: bytearray(bytes(200_000))[:100_000])
    assert 100_000 <= held < 110_000 and peak >= 300_000
