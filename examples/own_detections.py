"""Rules of your own on detections of your own: which street scenes ask for care, and why.

    python -m examples.own_detections

Some detector has found boxes, classes and confidences; how does not matter. A program is written for them, facts are
made of them in two ways, and the program answers with its reason.
"""

from __future__ import annotations

import json

import torch

import nsfrc
from nsfrc.explain import as_text, explain
from nsfrc.valuation import FactsConverter

# What the detector wrote for three photos. Boxes are x1, y1, x2, y2 as fractions of the photo, y downwards.
DETECTIONS = json.loads("""{
    "crossing.jpg": [{"label": "car",     "box": [0.05, 0.40, 0.40, 0.75], "confidence": 0.96},
                     {"label": "person",  "box": [0.44, 0.30, 0.54, 0.66], "confidence": 0.91},
                     {"label": "bicycle", "box": [0.41, 0.50, 0.57, 0.76], "confidence": 0.88}],
    "parked.jpg":   [{"label": "bicycle", "box": [0.10, 0.55, 0.26, 0.80], "confidence": 0.93},
                     {"label": "person",  "box": [0.64, 0.30, 0.72, 0.75], "confidence": 0.95},
                     {"label": "car",     "box": [0.30, 0.45, 0.62, 0.78], "confidence": 0.97}],
    "lane.jpg":     [{"label": "person",  "box": [0.12, 0.28, 0.22, 0.64], "confidence": 0.94},
                     {"label": "bicycle", "box": [0.09, 0.48, 0.25, 0.74], "confidence": 0.90},
                     {"label": "car",     "box": [0.72, 0.46, 0.98, 0.74], "confidence": 0.92},
                     {"label": "person",  "box": [0.62, 0.35, 0.68, 0.62], "confidence": 0.55}]
}""")

# Neural predicates are what the detections decide. Two variables of one type are always different objects.
PROGRAM = """
:- type(image, [img]).      :- type(object, slots(3)).      :- type(class, [person, bicycle, car]).
:- neural(in(object, image)).      :- neural(class(object, class)).
:- neural(on(object, object)).     :- neural(near(object, object)).
:- target(care(img)).

care(X) :- in(C, X), class(C, car), in(P, X), cyclist(P), near(C, P).
cyclist(P) :- class(P, person), class(B, bicycle), on(P, B).
"""


# One way: facts by name, computed in plain Python. Atoms that are not named are 0.
def facts_of(found: list[dict]) -> dict[str, float]:
    facts: dict[str, float] = {}
    for i, one in enumerate(found, 1):
        facts |= {f"in(obj{i},img)": one["confidence"], f"class(obj{i},{one['label']})": 1.0}
        for j, other in enumerate(found, 1):
            a, b = one["box"], other["box"]
            apart = max(a[0] - b[2], b[0] - a[2])  # from left to right; below 0 where one is over the other
            if i != j:
                facts[f"near(obj{i},obj{j})"] = 0.95 if apart < 0.1 else 0.05
                facts[f"on(obj{i},obj{j})"] = 0.95 if apart < 0 and b[1] < a[3] < b[3] else 0.05
    return facts


# Another: a vector for every object, and functions of tensors, which pass gradients on. `in` and `class` come with
# nsfrc: class(obj1,person) is the entry "person" of the first vector.
DIMENSIONS = ("x1", "y1", "x2", "y2", "person", "bicycle", "car", "objectness")


def vector_of(one: dict) -> list[float]:
    return [*one["box"], *(float(name == one["label"]) for name in DIMENSIONS[4:7]), one["confidence"]]


@nsfrc.neural_predicate("near", symmetric=True)
def near(a, b):
    return (60 * (0.1 - torch.maximum(a["x1"] - b["x2"], b["x1"] - a["x2"]))).sigmoid()


@nsfrc.neural_predicate("on")
def on(a, b):
    across = torch.minimum(a["x2"], b["x2"]) - torch.maximum(a["x1"], b["x1"])
    return (60 * torch.stack([across, b["y2"] - a["y2"], a["y2"] - b["y1"]]).amin(dim=0)).sigmoid()


def main() -> None:
    scenes = list(DETECTIONS.values())
    most = max(map(len, scenes))
    program = nsfrc.compile(source=PROGRAM, name="care", slots={"object": most})  # as many as the fullest photo has
    vectors = torch.zeros(len(scenes), most, len(DIMENSIONS))  # a row of zeros is an object that is not there
    for row, found in zip(vectors, scenes, strict=True):
        row[: len(found)] = torch.tensor([vector_of(one) for one in found])
    by_name = program.valuation(*map(facts_of, scenes))  # [B, G]: a row a photo, a column a ground atom
    by_vector = FactsConverter(program, DIMENSIONS)(vectors)
    for way, V0 in (("by name", by_name), ("from vectors", by_vector)):
        print(f"Facts {way}\n")
        for photo, before, after in zip(DETECTIONS, V0, program.reasoner()(V0), strict=True):
            answer = "care" if after[program.index("care(img)")] > 0.5 else "go on"
            reason = as_text(explain(program, after, "care(img)", before))
            print(f"  {photo}: {answer}\n    " + reason.replace("\n", "\n    ") + "\n")


if __name__ == "__main__":
    main()
