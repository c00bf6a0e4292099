"""CLEVR-Hans: accuracy of each perception that has weights, and the time from file to answer on one CPU thread.

    python -m nsfrc.benchmarks.clevr --images ROOT                 ROOT/clevr-hans3, ROOT/clevr-hans7, or one of them
    python -m nsfrc.benchmarks.clevr --images ROOT --weights FILE  slot attention with other weights than those imported

Writes results/clevr.csv, a row for each set and perception with its confusion matrix, and results/clevr_times.csv,
where the dense reference reasons from the same V0 in the same run, so that reasoning is also a ratio.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from nsfrc.benchmarks import end_to_end
from nsfrc.benchmarks.measure import RESULTS, Timing, timed, write_csv
from nsfrc.errors import NsfrcError
from nsfrc.inference.folders import Listing, folder
from nsfrc.inference.images import read, to_tensor
from nsfrc.inference.labels import from_folders
from nsfrc.inference.measures import Measures
from nsfrc.inference.predictor import Asked, Predictor
from nsfrc.inference.stream import stream
from nsfrc.perception import used_weights
from nsfrc.pipelines import Pipeline, pipeline

SETS = {"clevr-hans3": "clevr_hans3", "clevr-hans7": "clevr_hans7"}  # folder, in any case → program
SLOTS = "slot_attention"
PERCEPTIONS = (SLOTS, "yolo_clevr")
BATCHES = (1, 16)
TIMED = 64  # images that times are taken from


@dataclass(frozen=True)
class ScenesRow:
    """One set and perception. tied: images with several highest scores. confusion: a row a label, columns answers."""

    program: str
    perception: str
    images: int
    failed: int
    right: int
    accuracy: float
    tied: int
    confusion: str


@dataclass(frozen=True)
class TimesRow(end_to_end.EndToEndRow):
    """As in end_to_end.csv; and seconds of the dense reference for one image, and what that is of `reasoning`.

    The latter at batch 1 only.
    """

    dense_median: float | None
    dense_p20: float | None
    dense_p80: float | None
    dense_over_reasoning: float | None


def sets(root: Path) -> dict[str, Path]:
    """The sets at or below a folder: program → folder of images."""
    if not root.is_dir():
        raise NsfrcError(f"there is no folder {root}")
    folders = [root.absolute(), *sorted(one for one in root.absolute().iterdir() if one.is_dir())]
    found = {SETS[one.name.lower()]: one for one in folders if one.name.lower() in SETS}
    if not found:
        raise NsfrcError(f"{root} is not one of {', '.join(SETS)} and has no folder of such a name")
    return found


def available(weights: Path | None) -> list[str]:
    """The perceptions that have weights; what the others lack is said."""
    states = {one.model: one for one in used_weights()}
    found = []
    for name in PERCEPTIONS:
        if states[name].state in ("shipped", "imported") or (name == SLOTS and weights is not None):
            found.append(name)
        else:
            print(f"{name}: left out, {states[name].path} is not there")
    return found


def accuracy(name: str, pipe: Pipeline, listing: Listing) -> ScenesRow:
    """Every image answered, and every miss named."""
    measures = Measures(pipe.program.targets)
    labels = from_folders(listing.classes, pipe.program.questions)
    print(f"\n{pipe.program.name}, {name} ({pipe.perception.identity})")
    for rows in stream(Predictor(pipe, Asked(labels=labels)), listing):
        for row in rows:
            measures.add(row.label, row.scores, row.answer)
            if row.error is not None or row.right is False:
                scores = " ".join(f"{score:.3f}" for score in row.scores)
                print(f"    {row.file}: {row.error or f'{row.answer}, labelled {row.label}; {scores}'}")
    print(measures.as_text())
    if not measures.labelled:
        raise NsfrcError(f"{listing.root}: none of its images has a label")
    confusion = "; ".join(" ".join(map(str, row)) for row in measures.confusion.tolist())
    return ScenesRow(
        pipe.program.name, pipe.perception.identity, measures.count, measures.failed, measures.right,
        100 * measures.right / measures.labelled, measures.tied, confusion,
    )


def times(pipe: Pipeline, paths: Sequence[Path], batch: int, dense: Timing | None) -> TimesRow:
    found = end_to_end.measured(pipe, paths, batch, budget=3)
    if dense is None:
        return TimesRow(**asdict(found), dense_median=None, dense_p20=None, dense_p80=None, dense_over_reasoning=None)
    return TimesRow(
        **asdict(found), dense_median=dense.median, dense_p20=dense.p20, dense_p80=dense.p80,
        dense_over_reasoning=dense.median / found.reasoning,
    )


@torch.no_grad()
def densely(pipe: Pipeline, path: Path) -> Timing:
    """Seconds in which the dense reference reasons about one image."""
    perception = pipe.perception
    V0 = pipe.facts(perception(to_tensor([read(path, perception.size, perception.fit).pixels])))
    reference = pipe.program.reasoner("reference")
    return timed(lambda: reference(V0), budget=1.0)


def show(row: TimesRow) -> None:
    dense = "" if row.dense_median is None else \
        f"; dense reasoning {1e3 * row.dense_median:,.1f} ms, {row.dense_over_reasoning:,.0f}×"
    print(f"{row}; facts and reasoning {row.facts_and_reasoning_share:.1%}{dense}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder of clevr-hans3 and clevr-hans7")
    parser.add_argument("--weights", type=Path, help="slot attention's, instead of those that were imported")
    parser.add_argument("--out", type=Path, default=RESULTS / "clevr.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, timings = [], []
    try:
        for name in available(options.weights):
            for program, images in sets(options.images).items():
                pipe = pipeline(program, name, weights=options.weights if name == SLOTS else None)
                listing = folder(images)
                rows.append(accuracy(name, pipe, listing))
                paths = [item.path for item in listing if item.error is None][:TIMED]
                for batch in BATCHES:
                    timings.append(times(pipe, paths, batch, densely(pipe, paths[0]) if batch == 1 else None))
                    show(timings[-1])
    except NsfrcError as error:
        parser.exit(1, f"error: {error}\n")
    if not rows:
        parser.exit(1, "no perception has weights: nsfrc weights import FILE, or --weights FILE\n")
    together = options.out.with_stem(f"{options.out.stem}_times")
    write_csv(options.out, rows)
    write_csv(together, timings)
    print(f"\nwritten to {options.out} and {together}")


if __name__ == "__main__":
    main()
