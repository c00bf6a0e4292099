"""The paper's figures: the numbers behind them, and the command that draws them."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nsfrc.benchmarks import paper_figures, paper_figures_softor
from nsfrc.benchmarks.paper_figures_batch import reasoning_rows
from nsfrc.benchmarks.paper_figures_confusion import NOTHING, counts, rows, shares
from nsfrc.benchmarks.paper_figures_statistics import CELLS, statistics
from nsfrc.benchmarks.reasoning import BatchRow
from nsfrc.data.figures import Figure, Shape
from nsfrc.data.kandinsky import truth
from nsfrc.perception.attributes import KANDINSKY
from nsfrc.training.detector_data import Example
from tests.cli.support import Run, csv_rows

REASONING = """engine,threads,batch,sets,mean,deviation,nsfrc
dense,1,1,6,0.02,0.03,0.1.0
dense,1,50,5,0.9,0.4,0.1.0
cpu,1,1,6,0.0001,0.00002,0.1.0
cpu,1,50,6,0.0002,0.00004,0.1.0
"""
WHOLE = """batch,patterns,mean,deviation,decode,perception,facts,reasoning,nsfrc
1,6,0.024,0.003,0.004,0.019,0.0007,0.0003,0.1.0
50,6,0.66,0.05,0.19,0.47,0.0009,0.0005,0.1.0
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr(paper_figures_softor, "SIDE", 11)
    return Run(tmp_path, monkeypatch, capsys)


@pytest.fixture
def drawing(run: Run) -> Run:
    pytest.importorskip("matplotlib")
    return run


def results(folder: Path) -> Path:
    folder.mkdir()
    (folder / "reasoning_by_batch.csv").write_text(REASONING)
    (folder / "end_to_end_by_batch.csv").write_text(WHOLE)
    return folder


@pytest.mark.parametrize("gamma", [0.001, 0.01, 0.3])
def test_softor_is_at_most_gamma_ln_2_above_the_larger_value(gamma: float) -> None:
    points = paper_figures_softor.rows(gamma, 101)
    over = np.array([p.over_larger for p in points])
    assert len(points) == 101**2
    assert over.min() > -1e-12 and over.max() < gamma * math.log(2) + 1e-12
    assert max(p.softor for p in points) < 1 + 1e-12
    assert over.max() == pytest.approx(gamma * math.log(2))


def test_softor_rows_hold_what_they_say() -> None:
    point = paper_figures_softor.rows(0.1, 11)[3 + 11 * 4]
    assert (point.x, point.y) == pytest.approx((0.3, 0.4))
    assert point.softor == pytest.approx(0.1 * math.log(math.exp(3) + math.exp(4)))
    assert (point.larger, point.probabilistic_sum) == pytest.approx((0.4, 0.58))
    assert point.softer == 1  # γ = 1 gives more than 1, and is divided by Z


def test_statistics_of_known_figures() -> None:
    found = statistics([
        Figure((Shape("square", "red", 0.01, 0.99, 0.055), Shape("circle", "blue", 0.5, 0.5, 0.205))),
        Figure((Shape("circle", "blue", 0.5, 0.5, 0.2501),) * 3),
    ])
    assert found.figures == 2
    assert found.objects == {2: 1, 3: 1}
    assert dict(zip(KANDINSKY.classes, found.classes.tolist(), strict=True)) == {
        **dict.fromkeys(KANDINSKY.classes, 0), "red square": 1, "blue circle": 4,
    }
    assert found.centres[CELLS - 1, 0] == 1 and found.centres[CELLS // 2, CELLS // 2] == 4
    assert found.centres.sum() == found.sizes.sum() == 5
    assert np.flatnonzero(found.sizes).tolist() == [5, 20, 25]


def test_confusion_of_constructed_detections() -> None:
    shapes = [Shape("square", "red", 0.2, 0.2, 0.1), Shape("circle", "red", 0.5, 0.2, 0.1),
              Shape("triangle", "yellow", 0.8, 0.2, 0.1), Shape("square", "blue", 0.2, 0.8, 0.1)]
    seen = Figure((shapes[0], Shape("square", "red", 0.51, 0.2, 0.1), shapes[3],
                   Shape("circle", "blue", 0.8, 0.8, 0.1), shapes[0]))
    vectors = torch.from_numpy(truth(seen, 8))
    vectors[2, -1] = 0.4  # not sure enough to count
    classes = np.array([KANDINSKY.index(s.color, s.shape) for s in shapes])
    table = counts(vectors, Example(np.zeros(0), classes, np.array([s.box for s in shapes], dtype=np.float32)))
    square, circle = KANDINSKY.index("red", "square"), KANDINSKY.index("red", "circle")
    assert {(i, j): n for (i, j), n in np.ndenumerate(table) if n} == {
        (square, square): 1, (circle, square): 1,  # right, and one taken for another
        (KANDINSKY.index("yellow", "triangle"), NOTHING): 1, (KANDINSKY.index("blue", "square"), NOTHING): 1,
        (NOTHING, KANDINSKY.index("blue", "circle")): 1, (NOTHING, square): 1,  # a ghost, and one seen twice
    }
    assert shares(2 * table)[circle, square] == 1
    lines = rows(table)
    assert len(lines) == 99 and sum(line.count for line in lines) == 6


def test_means_over_fewer_sets_are_left_out() -> None:
    points = [BatchRow("dense", 1, 50, 5, 0.9, 0.4), BatchRow("cpu", 1, 50, 6, 2e-4, 4e-5)]
    assert [(p.of, p.mean, p.deviation) for p in reasoning_rows(points)] == [("cpu", *map(pytest.approx, (0.2, 0.04)))]


def test_draws_what_was_asked(drawing: Run) -> None:
    told = json.loads(drawing.good("figures", "--only", "confusion, softor,statistics", "--count", "3", "--json"))
    names = ("softor", "statistics", "confusion")
    assert told["written"] == [f"figures/{name}.{kind}" for name in names for kind in ("png", "csv")]
    assert sorted(map(str, Path("figures").iterdir())) == sorted(told["written"])
    assert all(Path(f"figures/{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    assert len(csv_rows(Path("figures/softor.csv"))) == 11**2
    drawn = csv_rows(Path("figures/statistics.csv"))
    objects = sum(int(row["count"]) for row in drawn if row["quantity"] == "class")
    assert sum(int(row["value"]) * int(row["count"]) for row in drawn if row["quantity"] == "objects") == objects
    there = [row for row in csv_rows(Path("figures/confusion.csv")) if row["true"] != "nothing there"]
    assert sum(int(row["count"]) for row in there) == objects  # both look at the same figures


def test_batch_is_drawn_from_results(drawing: Run) -> None:
    results(drawing.folder / "results")
    assert "batch.csv" in drawing.good("figures", "--only", "batch", "--results", "results", "--out", "out")
    assert Path("out/batch.png").read_bytes().startswith(b"\x89PNG")
    drawn = {(row["panel"], row["of"], row["batch"]): row for row in csv_rows(Path("out/batch.csv"))}
    assert drawn["reasoning", "cpu", "50"]["mean"] == "0.2"
    assert drawn["end to end", "all", "50"]["deviation"] == "50"
    assert drawn["end to end", "decode", "1"]["mean"] == "4"


def test_missing_results(drawing: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing.folder.joinpath("empty").mkdir()
    message = drawing.refused("figures", "--only", "batch,statistics", "--results", "empty", "--count", "1")
    assert "reasoning_by_batch.csv, which is not in empty" in message and "nsfrc bench --quick --out" in message
    assert Path("figures/statistics.png").exists()
    monkeypatch.setattr(paper_figures, "NAMES", ("batch",))
    left_out = drawing("figures", "--results", "empty", "--out", "none")
    assert left_out.code == 0 and "batch left out" in left_out.err
    assert not Path("none").exists()


def test_damaged_results(drawing: Run) -> None:
    folder = results(drawing.folder / "results")
    (folder / "reasoning_by_batch.csv").write_text(REASONING.replace("0.02,", "fast,"))
    assert "reasoning_by_batch.csv line 2" in drawing.refused("figures", "--only", "batch", "--results", "results")
    (folder / "reasoning_by_batch.csv").write_text(REASONING.splitlines()[0])
    assert "has no rows" in drawing.refused("figures", "--only", "batch", "--results", "results")


def test_refusals(drawing: Run) -> None:
    Path("taken").write_text("")
    assert "taken is a file" in drawing.refused("figures", "--out", "taken")
    assert "did you mean softor?" in drawing.refused("figures", "--only", "sofor")
    assert "--gamma 0" in drawing.refused("figures", "--gamma", "0")
    assert "--gamma nan" in drawing.refused("figures", "--gamma", "nan")


def test_without_matplotlib(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'nsfrc[bench]'" in run.refused("figures", "--only", "softor")
    assert not Path("figures").exists()
