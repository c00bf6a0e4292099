"""A folder of figures from files to rows by two versions, each on one core and on two, in turns.

    python -m nsfrc.benchmarks.end_to_end_change SOURCES [--figures 512] [--rounds 5]

SOURCES: a folder with those of the other version. Both answer the same files as `nsfrc.infer` does by default, with the
perception that ships with them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.parts import markdown
from nsfrc.benchmarks.versions import ROOT, Version

PATTERN, SEED = "twopairs", 4_100_000


@dataclass(frozen=True)
class ChangeRow:
    """Images a second on so many cores, medians. ratio: now / earlier. of_one_core: now, of as many on one core."""

    cores: int
    figures: int
    rounds: int
    earlier: float
    now: float
    ratio: float
    of_one_core: float

    def __str__(self) -> str:
        return f"{self.cores} cores: {self.earlier:.0f} → {self.now:.0f} images/s, {self.ratio:.2f}×; " \
            f"{self.of_one_core:.2f}× one core"


@cache
def _pipeline() -> Any:
    import nsfrc

    return nsfrc.pipeline(PATTERN)


def answer(folder: str, cores: int) -> float:
    """Seconds for all images of a folder."""
    import torch

    import nsfrc

    pipe = _pipeline()
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:cores])
    torch.set_num_threads(cores)
    try:
        start = time.perf_counter()
        count = len(list(nsfrc.infer(folder, pipe, explain=False)))
        assert count == len(list(Path(folder).glob("*/*.png")))
        return time.perf_counter() - start
    finally:
        os.sched_setaffinity(0, allowed)


def measure(against: Path, figures: int, rounds: int, tried: Sequence[int] = (1, 2)) -> Iterator[ChangeRow]:
    from nsfrc.data import figure_folder

    with tempfile.TemporaryDirectory() as scratch:
        list(figure_folder.write(PATTERN, Path(scratch), figures, SEED))
        versions = [Version(sources, __file__) for sources in (against, ROOT)]
        runs: dict[tuple[int, int], list[float]] = {(cores, i): [] for cores in tried for i in range(len(versions))}
        try:
            for turn in range(rounds + 1):  # the first warms up
                for (cores, i), seconds in runs.items():
                    found = versions[i].ask(scratch, cores)
                    if turn:
                        seconds.append(figures / found)
        finally:
            for version in versions:
                version.end()
    speed = {key: statistics.median(found) for key, found in runs.items()}
    for cores in tried:
        yield ChangeRow(cores, figures, rounds, speed[cores, 0], speed[cores, 1],
                        speed[cores, 1] / speed[cores, 0], speed[cores, 1] / speed[tried[0], 1])


def tell(rows: Sequence[ChangeRow]) -> str:
    lines = [[str(row.cores), f"{row.earlier:.0f}", f"{row.now:.0f}", f"{row.ratio:.2f}", f"{row.of_one_core:.2f}"]
             for row in rows]
    return markdown(["cores", "images per second, earlier", "now", "ratio", "of one core"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("against", type=Path, metavar="SOURCES")
    parser.add_argument("--figures", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "end_to_end_change.csv")
    arguments = parser.parse_args()
    rows = list(measure(arguments.against.resolve(), arguments.figures, arguments.rounds))
    print(tell(rows))
    write_csv(arguments.out, rows)


if __name__ == "__main__":
    main()
