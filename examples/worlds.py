"""Reasoning without images: compile every shipped program, then reason about worlds whose answer is known.

    python -m examples.worlds

Worlds are generated: objects with colours, shapes and places, described by probabilities as a
perception model would. Each pattern is shown a world that has it and one that nearly has it.
"""

from __future__ import annotations

import itertools
import random
import time

import nsfrc

COLORS, SHAPES = ("red", "yellow", "blue"), ("square", "circle", "triangle")


def twopairs(holds: bool) -> dict[str, float]:
    """Two objects of one shape and colour, two of one shape and two colours; or all four of one colour."""
    last = "yellow" if holds else "blue"
    return described([("red", "circle"), ("red", "circle"), ("blue", "square"), (last, "square")])


def threepairs(holds: bool) -> dict[str, float]:
    last = "yellow" if holds else "blue"
    return described([("red", "circle"), ("red", "circle"), ("blue", "square"), ("yellow", "square"),
                      ("blue", "triangle"), (last, "triangle")])


def closeby(holds: bool) -> dict[str, float]:
    objects = [("red", "circle"), ("blue", "square"), ("blue", "circle"), ("yellow", "triangle")]
    return described(objects) | {"closeby(obj1,obj3)": 0.96 if holds else 0.08}


def red_triangle(holds: bool) -> dict[str, float]:
    first = ("red", "triangle") if holds else ("red", "square")
    objects = [first, ("blue", "circle"), ("blue", "circle"), ("yellow", "circle"), ("blue", "square"),
               ("yellow", "square")]
    return described(objects) | {"closeby(obj1,obj2)": 0.95}


def online_pair(holds: bool) -> dict[str, float]:
    objects = [("red", "circle"), ("red", "circle"), ("blue", "square"), ("yellow", "triangle"), ("blue", "circle")]
    line = 0.97 if holds else 0.03
    orders = itertools.permutations(f"obj{i}" for i in range(1, 6))
    return described(objects) | {f"online({','.join(order)})": line for order in orders}


def nine_circles(holds: bool) -> dict[str, float]:
    colors = ["red"] * 3 + ["yellow"] * 3 + ["blue"] * 2 + (["blue"] if holds else ["red"])
    return described([(color, "circle") for color in colors])


PATTERNS = (twopairs, threepairs, closeby, red_triangle, online_pair, nine_circles)


def described(objects: list[tuple[str, str]]) -> dict[str, float]:
    """What a fairly sure perception would say of the objects."""
    facts = {}
    for i, (color, shape) in enumerate(objects, 1):
        facts[f"in(obj{i},img)"] = 0.99
        facts |= {f"color(obj{i},{c})": 0.97 if c == color else 0.015 for c in COLORS}
        facts |= {f"shape(obj{i},{s})": 0.97 if s == shape else 0.015 for s in SHAPES}
    return facts


def show_patterns() -> None:
    print(f"{'program':<14}{'rows dense':>14}{'rows':>7}   kp(img) where it holds / nearly holds")
    for pattern in PATTERNS:
        program = nsfrc.compile(pattern.__name__)
        V0 = program.valuation(pattern(True), pattern(False))
        yes, no = program.predict(program.reasoner()(V0))["kp(img)"].tolist()
        ground = program.ground
        verdict = "" if yes > 0.5 > no else "   WRONG"
        print(f"{program.name:<14}{ground.C * ground.G * ground.S:>14,}{program.plan.rows:>7,}   "
              f"{yes:.3f} / {no:.3f}{verdict}")


def show_classes() -> None:
    """clevr_hans7: seven rules over ten objects; a world with a large cube and a large cylinder is class 1."""
    program = nsfrc.compile("clevr_hans7")
    facts = {f"in(obj{i},img)": 0.98 for i in range(1, 5)}
    facts |= {"size(obj1,large)": 0.95, "shape(obj1,cube)": 0.96, "size(obj2,large)": 0.97}
    facts |= {"shape(obj2,cylinder)": 0.94, "size(obj3,small)": 0.95, "shape(obj3,sphere)": 0.9}
    facts |= {"color(obj3,red)": 0.9, "color(obj4,cyan)": 0.8}
    values = program.predict(program.reasoner(outputs="targets")(program.valuation(facts)))
    print("\nclevr_hans7    " + "  ".join(f"{name} {value.item():.3f}" for name, value in values.items()))


def show_speed_and_gradient() -> None:
    program = nsfrc.compile("threepairs")
    random.seed(0)
    V0 = program.valuation(*(threepairs(random.random() < 0.5) for _ in range(1000))).requires_grad_()
    reasoner = program.reasoner(inputs="neural")
    reasoner(V0).sum().backward()  # compiles the kernels, or loads them
    start = time.perf_counter()
    score = program.predict(reasoner(V0))["kp(img)"]
    middle = time.perf_counter()
    V0.grad = None
    score.sum().backward()
    end = time.perf_counter()
    print(f"\nthreepairs, 1,000 worlds: {1e3 * (middle - start):.1f} ms to reason, {1e3 * (end - middle):.1f} ms back")
    assert V0.grad is not None
    strongest = V0.grad[0].argmax()
    print(f"the atom that kp(img) of the first world depends on most: {program.atoms[int(strongest)]}")


def main() -> None:
    print("Compiling the six Kandinsky patterns, and reasoning about a world with the pattern and one without")
    print("(the first run compiles the kernels, which takes some seconds)\n")
    show_patterns()
    show_classes()
    show_speed_and_gradient()
    print("\nnext: .venv/bin/nsfrc compile twopairs    .venv/bin/nsfrc reason twopairs --random 5")


if __name__ == "__main__":
    main()
