"""Measured numbers from pixels: rules about boxes, answered by the detector that ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from PIL import Image

import nsfrc
from nsfrc.data.figures import Figure, Shape
from nsfrc.data.render import render
from nsfrc.pipelines import Pipeline, pipeline

RULES = """
:- include('kandinsky.pl').
:- type(object, slots(4)).
:- target([high(img), larger(img), pair(img)]).
high(X) :- in(T, X), shape(T, triangle), y1(T) < 0.2.
larger(X) :- in(A, X), in(B, X), color(A, red), color(B, blue), area(A, V), area(B, W), V > 1.5 * W.
0.8::pair(X) :- in(A, X), in(B, X), abs(x(A) - x(B)) < 0.1, abs(y(A) - y(B)) < 2 * height(A).
"""
FIGURES = {
    "high, red larger": ((Shape("triangle", "red", 0.3, 0.2, 0.2), Shape("circle", "blue", 0.7, 0.8, 0.1)), (1, 1, 0)),
    "low, red smaller": ((Shape("triangle", "red", 0.3, 0.6, 0.1), Shape("circle", "blue", 0.7, 0.2, 0.2)), (0, 0, 0)),
    "a high circle": ((Shape("circle", "red", 0.3, 0.15, 0.15), Shape("square", "blue", 0.7, 0.8, 0.15)), (0, 0, 0)),
    "in a column": ((Shape("square", "red", 0.5, 0.4, 0.15), Shape("square", "blue", 0.52, 0.6, 0.15)), (0, 0, 0.8)),
}


@pytest.fixture(scope="module")
def pipe(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    path = tmp_path_factory.mktemp("numbers") / "rules.pl"
    path.write_text(RULES)
    return pipeline(path)


def image(name: str) -> Image.Image:
    return Image.fromarray(render(Figure(FIGURES[name][0])))


def test_answers(pipe: Pipeline) -> None:
    scores = pipe.predict([image(name) for name in FIGURES]).scores
    torch.testing.assert_close(scores, torch.tensor([wanted for _, wanted in FIGURES.values()]).float(),
                               rtol=0, atol=0.02)


def test_reasons(pipe: Pipeline) -> None:
    why = pipe.predict([image("high, red larger")])[0].why("high(img)")
    assert re.search(r"high\(img\) 1.00 because .*\(y1\(obj\d\) < 0.2\) 1.00", why), why


def test_gradients_reach_images_and_temperatures(pipe: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "figure.png"
    image("high, red larger").save(file)
    pixels = pipe.read(file).requires_grad_()
    pipe(pixels)[0, 0].backward()
    temperatures = [p.grad for name, p in pipe.facts.named_parameters() if name.endswith(".s")]
    assert len(temperatures) == 4 and all(grad is not None for grad in temperatures)
    assert pixels.grad is not None and bool(pixels.grad.isfinite().all()) and bool(pixels.grad.any())


def test_the_example_figures(pipe: Pipeline) -> None:
    """Where the rule says yes there is a triangle that is high in what was seen."""
    folder = Path(nsfrc.__file__).parents[1] / "examples/figures"
    files = sorted(folder.glob("closeby/*/*.png"))
    found = pipe.predict(files)
    names = pipe.perception.dimensions
    y1, triangle, there = (found.objects[:, :, names.index(name)] for name in ("y1", "triangle", "objectness"))
    high = ((y1 < 0.2) & (triangle > 0.5) & (there > 0.5)).any(1)
    clear = ((y1 - 0.2).abs() > 0.03).all(1)
    assert high.any() and not high.all() and int(clear.sum()) > 5
    assert torch.equal((found.scores[:, 0] > 0.5)[clear], high[clear])
