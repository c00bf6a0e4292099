"""Where the time of a worker goes, image by image, on one core: what docs/scale.md multiplies by a million.

    python -m nsfrc.benchmarks.cluster_stages [--images 512]

Seconds are of the processor, so that others on the machine count for less.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nsfrc.benchmarks.cluster import PROGRAM, figures
from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.parts import markdown

STAGES = ("read", "decode", "perception", "facts", "reasoning", "rows", "write")


@dataclass(frozen=True)
class StageRow:
    """Milliseconds of the processor for an image. rows: answers and reasons. size: bytes for an image, where it is of
    a file that is read or written.
    """

    stage: str
    milliseconds: float
    share: float
    size: float | None
    images: int


class Clock:
    """CPU seconds by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def on(self, stage: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[stage] += time.process_time() - began


def measured(folder: Path, count: int) -> list[StageRow]:
    import torch

    from nsfrc.inference.folders import folder as listed
    from nsfrc.inference.images import read_bytes, to_tensor
    from nsfrc.inference.predictor import Decoded, Predictor
    from nsfrc.inference.session import Wanted, open_session
    from nsfrc.ray.tables import Form

    torch.set_num_threads(1)
    listing = listed(figures(folder, count))
    session = open_session(Wanted(program=PROGRAM), listing)
    pipe, clock, items = session.pipe, Clock(), list(listing)
    predictor = Predictor(pipe, session.asked(True, False))
    form = Form("parquet", session.questions, "program", "perception", tuple(pipe.perception.dimensions))
    piece = predictor.piece or 32
    predictor(predictor.read(*[item.path for item in items[:piece]]))  # what is compiled and loaded at first
    size, rows = 0, []
    for first in range(0, len(items), piece):
        some = items[first : first + piece]
        with clock.on("read"):
            contents = [item.path.read_bytes() for item in some]
        size += sum(map(len, contents))
        with clock.on("decode"):
            pictures = [read_bytes(data, item.name, pipe.perception.size, pipe.perception.fit)
                        for item, data in zip(some, contents, strict=True)]
        batch = to_tensor([picture.pixels for picture in pictures])
        with torch.no_grad():
            with clock.on("perception"):
                objects = pipe.perception.see(batch, None)
            with clock.on("facts"):
                V0 = pipe.facts(objects)
            with clock.on("reasoning"):
                pipe.reasoner(V0)
        before = time.process_time()
        rows += predictor([Decoded(item, picture) for item, picture in zip(some, pictures, strict=True)])
        whole = time.process_time() - before  # the three above once more, and what makes rows of them
        clock.seconds["rows"] += whole
    clock.seconds["rows"] -= sum(clock.seconds[stage] for stage in ("perception", "facts", "reasoning"))
    form.encode([form.piece(rows[:1])])
    with clock.on("write"):
        data = form.encode([form.piece(rows)])
    whole = sum(clock.seconds.values())
    sizes = {"read": size / count, "write": len(data) / count}
    return [StageRow(stage, 1000 * clock.seconds[stage] / count, clock.seconds[stage] / whole, sizes.get(stage), count)
            for stage in STAGES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--out", type=Path, default=RESULTS / "cluster_stages.csv")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), given.images)
    write_csv(given.out, rows)
    lines = [[row.stage, f"{row.milliseconds:.3f} ms", f"{row.share:.1%}",
              "" if row.size is None else f"{row.size:.0f}"] for row in rows]
    print(markdown(["stage", "CPU an image", "of all", "bytes an image"], lines))


if __name__ == "__main__":
    main()
