"""Attributes of a detector learnt through rules: what is kept of images, what is written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nsfrc.inference.given import gather
from nsfrc.inference.session import Session, Wanted, open_session
from nsfrc.perception import weights as files
from nsfrc.perception.yolo import Yolo
from nsfrc.training import through_perception as training
from tests.cli.support import Run

RULES = """:- include('kandinsky.pl').
:- type(object, slots(6)).
:- target(kp(img)).
kp(X) :- in(A, X), in(B, X), color(A, red), shape(A, triangle), color(B, C), C \\== red, shape(B, S), S \\== triangle.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nsfrc.data import figure_folder

    made = tmp_path_factory.mktemp("strange")
    (made / "rules.pl").write_text(RULES)
    list(figure_folder.write("red_triangle", made / "figures", 24, 3, ((128, 0, 160), (60, 180, 75), (0, 200, 220))))
    return made


@pytest.fixture(scope="module")
def session(folder: Path) -> Session:
    return open_session(Wanted((folder / "figures",), str(folder / "rules.pl")), gather([folder / "figures"]))


@pytest.fixture(scope="module")
def seen(session: Session, folder: Path) -> training.Views:
    return training.views(session, gather([folder / "figures"]))


def test_before_training_it_says_what_the_pipeline_says(session: Session, folder: Path, seen: training.Views) -> None:
    model = training.detector_of(session)
    heads = training.Heads(model, session.pipe.program)
    images = session.pipe.read(*(item.path for item in gather([folder / "figures"])))
    with torch.no_grad():
        torch.testing.assert_close(heads.scores(seen)[0], session.pipe(images), atol=1e-4, rtol=0)


def test_what_is_written_is_what_was_learnt(session: Session, tmp_path: Path, seen: training.Views) -> None:
    """Only the last layers change, and a detector with the new weights sees what training saw."""
    model = training.detector_of(session)
    heads, taught = training.teach(model, session.pipe.program, seen, epochs=2)
    with torch.no_grad():
        heads.U += 0.01 * torch.randn(heads.U.shape, generator=torch.Generator().manual_seed(1))
        heads.b += 0.1
    training.write(model, Yolo.shipped, heads, taught, tmp_path / "new.safetensors", "a test")
    old, new = files.load(Yolo.shipped)[1], files.load(tmp_path / "new.safetensors")[1]
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert len(changed) == 2 * len(training.last_layers(model)) and all(".cv3." in name for name in changed)
    again = Yolo.build(6, tmp_path / "new.safetensors")
    assert again.identity != model.identity
    with torch.no_grad():
        mine = [layer(seen.features[..., None, None].flatten(0, 1)).flatten(1).unflatten(0, seen.scale.shape)
                for layer in training.last_layers(again)]
        expected = heads.logits(seen.features, seen.scale, seen.logits)
    found = torch.stack(mine).gather(0, seen.scale[None, ..., None].expand(1, -1, -1, expected.shape[-1]))[0]
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.01)  # weights are kept in half precision


def test_labels_teach(session: Session, seen: training.Views) -> None:
    """More epochs bring the answers of the images that are trained on nearer to their labels."""
    model = training.detector_of(session)
    losses = []
    for epochs in (0, 30):
        heads, _ = training.teach(model, session.pipe.program, seen, epochs=epochs)
        with torch.no_grad():
            losses.append(float(heads.loss(seen)))
    assert losses[1] < 0.9 * losses[0]


def test_the_command(folder: Path, run: Run) -> None:
    given = ("train", "perception", "--through", str(folder / "rules.pl"), "--out", "mine.safetensors")
    images = ("--images", str(folder / "figures"))
    out = run.good(*given, *images, "--epochs", "1")
    assert "24 labelled images, 6 of them held out" in out and "--weights mine.safetensors" in out
    assert "give --images DIR" in run.refused(*given)
    assert "--size is for training from scratch" in run.refused(*given, *images, "--size", "160")
    assert "give --through PROGRAM" in run.refused("train", "perception", "--out", "x.safetensors", *images)
    assert "0 labelled images are too few" in run.refused(*given, "--images", str(folder / "figures" / "true"))
    assert "is not three colours" in run("data", "kandinsky", "free", "--out", "x", "--palette", "red,blue").err
