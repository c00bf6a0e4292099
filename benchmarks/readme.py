"""The README's tables of figures, written from benchmarks/results, so that they say what was measured.

    python -m nsfrc.benchmarks.readme          after `nsfrc bench --out benchmarks/results`; `make bench` does both

A table stands between two comments, `<!-- accuracy -->` and `<!-- /accuracy -->`; all other text is left alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nsfrc.benchmarks import suite
from nsfrc.benchmarks.measure import RESULTS
from nsfrc.benchmarks.parts import Results, markdown, seconds, times
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

PAGE = RESULTS.parents[1] / "README.md"
BATCHES = (1, 50, 1000)


def rows(part: str, folder: Path) -> Results:
    """What the folder has of a part."""
    found = suite.load(suite.part(part), folder, print)
    if found is None:
        raise NsfrcError(f"{folder} has no results of {part}: measure them with `nsfrc bench --parts {part}`")
    return found


def accuracy(folder: Path) -> str:
    """One row per pattern: nsfrc, the baselines trained here, and the paper's columns."""
    trained = {(row.pattern, row.model): row.test_accuracy for row in rows("baselines", folder)["baselines"]}
    models = list(dict.fromkeys(model for _, model in trained))
    lines = []
    for row in rows("accuracy", folder)["accuracy"]:
        here = [row.accuracy, row.objects_right, *(trained[row.pattern, model] for model in models)]
        paper = [row.paper_nsfr, row.paper_yolo_mlp, row.paper_resnet50]
        lines.append([row.pattern, f"{row.figures:,}", *(f"{share:.1f}" for share in here + paper)])
    return markdown(["pattern", "figures", "nsfrc", "all objects right", *(f"{model}, here" for model in models),
                     "NSFR, paper", "YOLO+MLP, paper", "ResNet50, paper"], lines)


def speed(folder: Path) -> str:
    """One row per program: how many times as fast as the dense reference, and the time of the largest batch."""
    measured = [row for row in rows("reasoning", folder)["reasoning"] if row.engine == "cpu"]
    lines = []
    for program in dict.fromkeys(row.program for row in measured):
        mine = {(row.threads, row.batch): row for row in measured if row.program == program}
        ratios = [times(row.ratio) if row.ratio else row.without for row in (mine[1, batch] for batch in BATCHES)]
        largest = " / ".join(seconds(mine[threads, BATCHES[-1]].median) for threads in (1, 2))
        lines.append([program, *ratios, largest])
    header = ["program", *(f"B = {batch}" for batch in BATCHES), f"time for {BATCHES[-1]}, one thread / two"]
    return markdown(header, lines)


def end_to_end(folder: Path) -> str:
    """One row per batch size: images per second, and milliseconds per image of every stage."""
    measured = rows("end_to_end", folder)["end_to_end_by_batch"]
    stages = ("decode", "perception", "facts", "reasoning")
    lines = [
        [str(row.batch), f"{row.batch / row.mean:.0f}", *(seconds(getattr(row, stage) / row.batch) for stage in stages)]
        for row in measured if row.batch in (1, 16, 50)
    ]
    return markdown(["batch", "images per second", *(f"{stage}, per image" for stage in stages)], lines)


TABLES = {"accuracy": accuracy, "speed": speed, "end-to-end": end_to_end}


def filled(text: str, folder: Path) -> str:
    """The page with every table made again from the folder."""
    for name, table in TABLES.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        if not begin or not end:
            raise NsfrcError(f"{PAGE} has no place for the table {name}: <!-- {name} --> and <!-- /{name} -->")
        text = f"{before}{begin}\n{table(folder)}\n{end}{after}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    try:
        if not PAGE.is_file():
            raise NsfrcError(f"there is no {PAGE}: run this in a checkout")
        write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), RESULTS).encode())
    except NsfrcError as error:
        parser.exit(1, f"error: {error}\n")
    print(f"the tables of {PAGE} are those of {RESULTS}")


if __name__ == "__main__":
    main()
