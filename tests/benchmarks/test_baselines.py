"""The baselines: their networks, their training, streams of figures, and runs that go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from nsfrc.benchmarks import baselines, baselines_models, end_to_end, kandinsky, suite
from nsfrc.benchmarks.baselines import MLP, RESNET50, BaselineRow, Task
from nsfrc.benchmarks.baselines_models import Examples, Training
from nsfrc.benchmarks.measure import read_csv
from nsfrc.data.kandinsky import figure
from nsfrc.errors import NsfrcError
from nsfrc.training.detector_data import VALIDATION_SEED

FILE = "baselines.csv"
# A ResNet50 for the thousand classes of ImageNet has 25,557,032 parameters, 2,049,000 of them in its last layer.
RESNET50_PARAMETERS = 25_557_032 - 2_049_000 + 2048 + 1


def row_of(task: Task) -> BaselineRow:
    """What an earlier run would have left."""
    return BaselineRow(task.pattern, task.name, task.input, task.train_figures, task.test_figures, task.training.epochs,
               str(task.training), 7, 99.5, 51.25, 100.0, 50.8, 1.5, baselines.SEED)


def test_mlp_has_five_hidden_layers_of_256() -> None:
    net = baselines_models.mlp(44)
    linear = [(one.in_features, one.out_features) for one in net.modules() if isinstance(one, nn.Linear)]
    assert linear == [(44, 256), *[(256, 256)] * 4, (256, 1)]
    assert sum(isinstance(one, nn.ReLU) for one in net.modules()) == 5


def test_resnet50_is_one() -> None:
    net = baselines_models.resnet50().eval()
    assert baselines_models.parameters(net) == RESNET50_PARAMETERS
    assert sum(isinstance(one, nn.Conv2d) for one in net.modules()) == 53  # 49 and the last layer make 50; 4 shortcuts
    assert not any(isinstance(one, nn.SiLU) for one in net.modules())
    with torch.no_grad():
        assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 1)


def separable(count: int, seed: int) -> Examples:
    """Points in four dimensions; the label is the side of a plane they are on, with a gap between the sides."""
    points = torch.rand(count, 4, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    points[:, 0] += 0.2 * points.sum(1).sign()
    return Examples(points, (points.sum(1) > 0).float())


def test_training_fits_and_generalises_where_it_can() -> None:
    training = Training(epochs=10, batch=32, rate=1e-3, decay=0.1)
    net = baselines_models.train(lambda: baselines_models.mlp(4), separable(400, 0), training, 0, "test")
    assert baselines_models.accuracy(net, separable(400, 0)) >= 99
    assert baselines_models.accuracy(net, separable(400, 1)) >= 97


def test_training_follows_from_the_seed() -> None:
    training = Training(epochs=1, batch=32, rate=1e-3, decay=0.1)
    outputs = []
    for seed in (0, 0, 1):
        net = baselines_models.train(lambda: baselines_models.mlp(4), separable(64, 0), training, seed, "test")
        outputs.append(net(torch.ones(1, 4)).item())
    assert outputs[0] == outputs[1] != outputs[2]


def test_a_loss_that_explodes_is_an_error() -> None:
    bad = Examples(torch.full((4, 4), torch.inf), torch.zeros(4))
    with pytest.raises(NsfrcError, match="not a number"):
        baselines_models.train(lambda: baselines_models.mlp(4), bad, Training(1, 4, 1e-3, 0.1), 0, "test")


def test_streams_share_no_figures() -> None:
    seeds = [0, VALIDATION_SEED, kandinsky.CALIBRATION_SEED, kandinsky.TEST_SEED, end_to_end.SEED,
             kandinsky.BASELINE_SEED]
    assert len(set(seeds)) == len(seeds)
    streams = [{figure("twopairs", seed, i).figure for i in range(20)} for seed in seeds]
    assert len(set.union(*streams)) == 20 * len(seeds)


def test_figures_are_those_of_the_streams() -> None:
    """Both models are tested on the figures of accuracy.py, and trained on others."""
    task = Task("closeby", RESNET50, 4, 6, Training(1, 4, 1e-3, 0.1))
    train, test = baselines.examples(task)
    assert train.inputs.shape == (4, 3, 64, 64) and test.inputs.shape == (6, 3, 64, 64)
    assert train.labels.tolist() == [1, 0, 1, 0] and test.labels.tolist() == [1, 0, 1, 0, 1, 0]
    again = baselines.drawn("closeby", kandinsky.TEST_SEED, 4, baselines.small)
    assert torch.equal(test.inputs[:4], again.inputs)
    assert not torch.equal(train.inputs, again.inputs)


def test_mlp_sees_what_the_pipeline_sees() -> None:
    train, _ = baselines.examples(Task("twopairs", MLP, 2, 2, Training(1, 4, 1e-3, 0.1)))
    assert train.inputs.shape == (2, 44)
    assert (train.inputs.reshape(2, 4, 11)[:, :, -1] > kandinsky.SURE).all()  # four objects are there, and found


def test_all_tasks_name_how_small_they_are() -> None:
    found = baselines.tasks(baselines.PATTERNS, (RESNET50, MLP), quick=False)
    assert [task.model for task in found] == [MLP] * 6 + [RESNET50] * 6
    assert {task.name for task in found} == {"YOLO+MLP", "ResNet50 at 64 px, 1,000 figures"}
    assert {task.pattern: task.train_figures for task in found[:6]} == baselines.FIGURES


def run(folder: Path, wanted: list[Task], work: Callable[[Task], BaselineRow]) -> list[BaselineRow]:
    """As the suite runs the part, with other tasks and other work."""
    part = replace(baselines.PART, measure=lambda quick, out: baselines.complete(out / FILE, wanted, work))
    suite.run(part, folder, False, lambda text: None)
    return read_csv(folder / FILE, BaselineRow)


def test_goes_on_after_an_interruption(tmp_path: Path) -> None:
    wanted = baselines.tasks(("twopairs", "closeby", "online_pair"), (RESNET50,), quick=True)
    trained: list[str] = []

    def work(task: Task) -> BaselineRow:
        if task.pattern == "closeby" and "closeby" not in trained:
            trained.append("closeby")
            raise KeyboardInterrupt
        trained.append(task.pattern)
        return row_of(task)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, wanted, work)
    assert read_csv(tmp_path / FILE, BaselineRow) == [row_of(wanted[0])]
    assert run(tmp_path, wanted, work) == [row_of(task) for task in wanted]
    assert trained == ["twopairs", "closeby", "closeby", "online_pair"]


@pytest.mark.parametrize("change", [
    {"train_figures": 33}, {"test_figures": 51}, {"pattern": "closeby"}, {"training": Training(2, 16, 5e-4, 0.05)},
])
def test_other_settings_are_trained_anew(tmp_path: Path, change: dict[str, object]) -> None:
    [task] = baselines.tasks(("twopairs",), (RESNET50,), quick=True)
    other = replace(task, **change)  # type: ignore[arg-type]
    run(tmp_path, [task], row_of)
    trained: list[Task] = []

    def work(task: Task) -> BaselineRow:
        trained.append(task)
        return row_of(task)

    run(tmp_path, [task, other], work)
    assert trained == [other]


def test_a_row_of_the_mlp_names_its_detector() -> None:
    [task] = baselines.tasks(("twopairs",), (MLP,), quick=True)
    assert task.input.startswith("4 × 11 entries of yolo")


def test_summary_has_every_row() -> None:
    rows = [row_of(task) for task in baselines.tasks(baselines.PATTERNS, (RESNET50,), quick=False)]
    told = baselines.PART.tell({"baselines": rows})
    assert told.count("| ResNet50 at 64 px, 1,000 figures | 1,000 | 99.5 | 51.2 | 100.0 | 50.8 |") == 6
