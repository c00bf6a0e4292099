"""A folder of figures from files to rows, as `nsfrc infer` does it, on one thread and on several.

The baseline is one thread with torch alone, as it is without ONNX Runtime. All ways take turns, a whole folder each, so
that they meet the same moods of the machine; CPU time is kept beside, which a busy machine changes less.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from nsfrc.benchmarks.measure import Compared, compared, timing
from nsfrc.benchmarks.parts import Results, markdown
from nsfrc.contexts import cores, torch_threads
from nsfrc.data import figure_folder as figures
from nsfrc.inference import images
from nsfrc.inference.folders import Item
from nsfrc.inference.given import gather
from nsfrc.inference.predictor import Predictor
from nsfrc.inference.stream import Reading, stream
from nsfrc.pipelines import pipeline

PATTERN, SEED = "twopairs", 4_100_000
FIGURES, QUICK_FIGURES = 512, 128
ROUNDS, QUICK_ROUNDS = 7, 2
BEFORE = "one thread, without ONNX Runtime"
PLAIN = 0  # stands for the baseline where others have their number of threads


@dataclass(frozen=True)
class FolderRow(Compared):
    """A folder on so many threads: seconds for all of it. of_one_thread: how many times as fast as one thread is.

    busy: seconds of processor time for an image, median; baseline_busy: that of the baseline.
    """

    threads: int
    figures: int
    images_per_second: float
    of_one_thread: float
    busy: float
    baseline_busy: float

    def __str__(self) -> str:
        return (f"folder, {self.threads} threads: {self.images_per_second:6.1f} images/s, "
                f"{self.ratio:.2f}× the baseline, {self.of_one_thread:.2f}× one thread, "
                f"{1e3 * self.busy:.2f} ms of CPU an image (baseline {1e3 * self.baseline_busy:.2f})")


def ways() -> tuple[int, ...]:
    """Numbers of threads that are tried."""
    return tuple(sorted({1, 2, cores()}))


def once(predictor: Predictor, items: Sequence[Item], threads: int) -> tuple[float, float]:
    """Seconds, and seconds of processor time, for all items; PLAIN threads are the baseline."""
    with ExitStack() as stack:
        stack.enter_context(images.quietly())
        stack.enter_context(torch_threads(1))
        if threads == PLAIN:
            stack.enter_context(mock.patch.object(predictor.pipe.perception, "onnx_allowed", False))
        reading = Reading(decoders=0) if threads <= 1 else Reading(threads=threads)
        start, cpu = time.perf_counter(), time.process_time()
        count = sum(map(len, stream(predictor, items, reading)))
        assert count == len(items)
        return time.perf_counter() - start, time.process_time() - cpu


def measure(quick: bool) -> Iterator[FolderRow]:
    count, tried = QUICK_FIGURES if quick else FIGURES, (PLAIN, *ways())
    with tempfile.TemporaryDirectory() as scratch:
        list(figures.write(PATTERN, Path(scratch), count, SEED))
        predictor, items = Predictor(pipeline(PATTERN)), list(gather([Path(scratch)]))
        for threads in tried:
            once(predictor, items[:32], threads)  # warms up
        runs = [{threads: once(predictor, items, threads) for threads in tried}
                for _ in range(QUICK_ROUNDS if quick else ROUNDS)]
    wall = {threads: timing(run[threads][0] for run in runs) for threads in tried}
    cpu = {threads: timing(run[threads][1] / count for run in runs).median for threads in tried}
    for threads in tried[1:]:
        yield FolderRow(**compared(wall[threads], BEFORE, wall[PLAIN]), threads=threads, figures=count,
                        images_per_second=count / wall[threads].median, busy=cpu[threads], baseline_busy=cpu[PLAIN],
                        of_one_thread=wall[1].median / wall[threads].median)


def tell(results: Results) -> str:
    rows: list[FolderRow] = results["end_to_end_folder"]
    lines = [[str(row.threads), f"{row.images_per_second:.0f}", f"{row.ratio:.2f}", f"{row.of_one_thread:.2f}",
              f"{1e3 * row.busy:.2f}"] for row in rows]
    table = markdown(["threads", "images per second", "of the baseline", "of one thread", "CPU ms per image"], lines)
    return f"{table}\n\nA folder of {rows[0].figures} figures of {PATTERN}, from files to rows, as `nsfrc infer` " \
        f"does it. The baseline is {BEFORE}, in turns with the others."
