"""Trains for some steps, alone or in processes of torchrun, and writes the losses.

    python child.py clauses,concept,detector 50 losses.json
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from nsfrc.distributed import joined, leads

KIND = torch.float32 if os.environ.get("CHILD_FLOAT32") else torch.float64


def detector(steps: int) -> Iterator[float]:
    from nsfrc.perception.weights import load_into
    from nsfrc.perception.yolo import Yolo
    from nsfrc.training.detector import Options, Run
    from nsfrc.training.detector_data import Batch, collect, open_source

    # With the usual rates, of which these are the first steps.
    options = Options(size=96, batch_size=8, seed=3, network="fine")
    source = open_source(options.data)
    torch.set_default_dtype(KIND)  # with less, rounding grows from step to step, as with other threads
    run = Run(options, source, "cpu")
    load_into(run.model, Yolo.shipped)  # from random weights, rounding grows sooner
    run.model.to(KIND).train()
    examples = collect(source, False, options.seed, source.size(options.size), 36)
    while run.step < steps:
        for some in islice(run.batches(examples), steps - run.step):
            batch = Batch(some.images.to(KIND), some.owner, some.classes, some.boxes.to(KIND))
            yield float(run.one_step(batch)) / len(batch.images)
        run.epoch += 1


def clauses(steps: int) -> Iterator[float]:
    import nsfrc
    from nsfrc.learning.soft import Mixture

    program = nsfrc.compile(source=RULES, name="rules")
    rng = np.random.default_rng(0)
    V0 = torch.from_numpy(program.initial_valuation())[None].repeat(33, 1)
    neural = [i for i, name in enumerate(program.ground.herbrand.names()) if name.startswith(("in", "color", "shape"))]
    V0[:, neural] = torch.from_numpy(rng.random((33, len(neural)))).to(V0)
    label = torch.from_numpy((rng.random(33) < 0.5).astype(np.float32))
    mixture = Mixture(program, "kp/1", 0, V0.float(), label)
    seen = torch.arange(33) % 4 > 0
    for _ in range(steps):
        yield mixture.step(seen, ~seen)[0]


def concept(steps: int) -> Iterator[float]:
    from nsfrc.pipelines import pipeline
    from nsfrc.training.through_rules import Fitting, Labelled

    pipe = pipeline("closeby")
    rng = torch.Generator().manual_seed(0)
    objects = torch.rand(33, pipe.spoken_of, len(pipe.perception.dimensions), generator=rng)
    truth = (torch.rand(33, 1, generator=rng) < 0.5).float()
    fitting = Fitting(pipe, Labelled(objects, truth), list(pipe.facts.parameters()))
    for _ in range(steps):
        yield fitting.step()


RULES = """
:- include('kandinsky.pl').
:- type(object, slots(3)).
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red).
kp(X) :- in(O, X), color(O, blue), shape(O, circle).
kp(X) :- in(O1, X), in(O2, X), color(O1, C), color(O2, C).
"""


TRAININGS = {"clauses": clauses, "concept": concept, "detector": detector}


def main() -> None:
    what, steps, out = sys.argv[1:]
    torch.set_num_threads(int(os.environ.get("CHILD_THREADS", "1")))
    with joined():
        losses = {name: list(TRAININGS[name](int(steps))) for name in what.split(",")}
        if leads():
            Path(out).write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
