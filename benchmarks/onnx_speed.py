"""The detectors that ship in ONNX Runtime beside torch, on one thread: CPU time, and whether answers are the same.

    python -m nsfrc.benchmarks.onnx_speed [--rounds 12] [--out benchmarks/results]

Both run in turns in one process, on the example figures and scenes, from pixels to object vectors. It is the CPU's time
that is taken, as a machine that others use would count theirs too. Needs the extra `onnx`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nsfrc.benchmarks.measure import Compared, compared, timing, write_csv
from nsfrc.contexts import torch_threads
from nsfrc.errors import NsfrcError
from nsfrc.inference.images import read, to_tensor
from nsfrc.inference.predictor import Predictor
from nsfrc.pipelines import Pipeline, pipeline

FIGURES, SCENES = (Path(__file__).parent.parent / "examples" / name for name in ("figures", "scenes"))
BATCHES = (1, 8, 32)


@dataclass(frozen=True)
class OnnxRow(Compared):
    """One detector and batch size: CPU seconds of a batch in ONNX Runtime, and of the baseline, torch.

    images, answers, equal: of all example images, how many answers there are and how many are the same; apart: the
    largest difference of an entry of an object vector.
    """

    perception: str
    batch: int
    images: int
    answers: int
    equal: int
    apart: float

    def __str__(self) -> str:
        return (f"{self.perception:<11} batch {self.batch:<3} {1e3 * self.median / self.batch:6.2f} ms an image, "
                f"{self.ratio:.2f} × torch; {self.equal} of {self.answers} answers equal, {self.apart:.1g} apart")


def example_folders() -> list[tuple[str, str, list[Path]]]:
    """Programs, their perceptions, and the example images that they are asked about."""
    figures = [(folder.name, "yolo", sorted(folder.rglob("*.png"))) for folder in sorted(FIGURES.iterdir())]
    return [*figures, ("clevr_hans3", "yolo_clevr", sorted(SCENES.rglob("*.png")))]


def both_ways(pipe: Pipeline, files: Sequence[Path]) -> tuple[int, int, float]:
    """How many answers there are, how many are the same without ONNX Runtime, and how far objects are apart."""
    predictor = Predictor(pipe)
    images = predictor.read(*files)
    with _torch_alone(pipe.perception):
        slow = predictor(images)
    fast = predictor(images)
    if not getattr(pipe.perception, "uses_onnx", False):
        raise NsfrcError("the detector does not run in ONNX Runtime: pip install 'nsfrc[onnx]'")
    said = [[one.answer for row in rows for one in row.answers.values()] for rows in (slow, fast)]
    seen = [np.stack([row.objects for row in rows if row.objects is not None]) for rows in (slow, fast)]
    return len(said[0]), sum(map(eq, *said)), float(np.abs(seen[0] - seen[1]).max())


@contextmanager
def _torch_alone(model: Any) -> Iterator[None]:
    model.onnx_allowed = False
    try:
        yield
    finally:
        model.onnx_allowed = True


def rows(rounds: int) -> Iterator[OnnxRow]:
    """Every detector that ships, at every batch size."""
    found: dict[str, list[tuple[Pipeline, list[Path]]]] = {}
    for program, perception, files in example_folders():
        found.setdefault(perception, []).append((pipeline(program, perception), files))
    for name, several in found.items():
        checked = [both_ways(pipe, files) for pipe, files in several]
        answers, equal = sum(one[0] for one in checked), sum(one[1] for one in checked)
        files = [file for _, some in several for file in some]
        model: Any = several[0][0].perception
        for batch in BATCHES:
            taken = (files * -(-batch // len(files)))[:batch]
            images = to_tensor([read(file, model.size, model.fit).pixels for file in taken])
            fast, slow = _in_turns(model, images, rounds * (1 if batch > 1 else 4))
            yield OnnxRow(**compared(timing(fast), "torch", timing(slow)), perception=name, batch=batch,
                          images=len(files), answers=answers, equal=equal, apart=max(one[2] for one in checked))


@torch.no_grad()
def _in_turns(model: Any, images: torch.Tensor, rounds: int) -> tuple[list[float], list[float]]:
    """CPU seconds of runs in ONNX Runtime and in torch, one after the other."""
    fast, slow = [], []
    for turn in range(-1, rounds):  # the first warms up
        with _torch_alone(model):
            in_torch = _cpu_seconds(model, images)
        in_onnx = _cpu_seconds(model, images)
        if turn >= 0:
            fast.append(in_onnx)
            slow.append(in_torch)
    return fast, slow


def _cpu_seconds(model: Any, images: torch.Tensor) -> float:
    before = time.process_time()
    model(images)
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    found: list[OnnxRow] = []
    with torch_threads(1):
        for row in rows(options.rounds):
            print(row, flush=True)
            found.append(row)
            write_csv(options.out / "onnx_speed.csv", found, ("perception", "batch"))
    if any(row.equal < row.answers for row in found):
        raise SystemExit("some answers differ")


if __name__ == "__main__":
    main()
