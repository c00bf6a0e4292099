"""How time and memory grow when one thing grows: clauses, objects, the batch, levels, images.

Every point is a process of its own on one thread. Seconds are those of the processor for the work alone, the least of
several runs where these are short; memory is the most that the process held, less what it held before the work. The
slope is that of the last points on logarithmic axes: 1 is in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.measure import in_child
from nsfrc.benchmarks.paper_figures_base import BLUE, RED
from nsfrc.benchmarks.parts import Part, Results, Table, markdown, seconds
from nsfrc.compiler.stages import compile_text
from nsfrc.program import Program, from_compilation

FIGURES = Path(__file__).resolve().parents[1] / "examples" / "figures"
LAST = 3  # points that a slope is drawn through


@dataclass(frozen=True)
class Axis:
    """Something that grows. work: Python that sets up and then does `work()`; n and figures are filled in."""

    name: str
    what: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    code: str


COMPILE_TEXT = """
from nsfrc.benchmarks.generated import program_text
from nsfrc.compiler.stages import compile_text
text = program_text({n})
compile_text(program_text(10), "small.pl")
work = lambda: compile_text(text, "generated.pl")
"""
COMPILE_OBJECTS = """
from nsfrc.compiler.stages import Options, compile_file
compile_file("closeby")
work = lambda: compile_file("{program}", Options({{"object": {n}}}))
"""
REASON = """
import torch, nsfrc
from nsfrc.benchmarks.reasoning import valuations
from nsfrc.benchmarks.scaling import chain_program
torch.set_num_threads(1)
program = {program}
reasoner, small, V0 = program.reasoner(), valuations(program, 1), valuations(program, {batch})
with torch.no_grad():
    reasoner(small)
def work():
    with torch.no_grad():
        reasoner(V0)
"""
INFER = """
import itertools, tempfile, torch, nsfrc
from pathlib import Path
torch.set_num_threads(1)
figures = sorted(Path({figures!r}).glob("*/*/*.png"))
place = tempfile.TemporaryDirectory()
for number, figure in zip(range({n}), itertools.cycle(figures)):
    (Path(place.name) / f"{{number}}.png").hardlink_to(figure)
list(nsfrc.infer(figures[0], "twopairs"))
work = lambda: sum(1 for _ in nsfrc.infer(place.name, "twopairs", explain=False))
"""
MEASURED = """
import time
before, start, runs = memory_mb("VmRSS"), time.process_time(), []
while not runs or time.process_time() < start + 0.3:
    begun = time.process_time()
    work()
    runs.append(time.process_time() - begun)
result["seconds"] = min(runs)
result["mb"] = max(memory_mb("VmHWM") - before, 0.0)
"""

AXES = (
    Axis("clauses", "generated: text → plan", (10, 30, 100, 300, 1000, 3000, 10_000), (10, 100), COMPILE_TEXT),
    Axis("objects", "twopairs: text → plan", (4, 6, 8, 10, 12, 14, 16), (4, 6),
         COMPILE_OBJECTS.replace("{program}", "twopairs")),
    Axis("objects", "threepairs: text → plan", (6, 8, 10, 12), (6,),
         COMPILE_OBJECTS.replace("{program}", "threepairs")),
    Axis("batch", "twopairs: V0 → answers", (1, 10, 100, 1000, 10_000, 100_000), (1, 100),
         REASON.replace("{program}", 'nsfrc.compile("twopairs")').replace("{batch}", "{n}")),
    Axis("batch", "clevr_hans3: V0 → answers", (1, 10, 100, 1000, 10_000, 100_000), (1, 100),
         REASON.replace("{program}", 'nsfrc.compile("clevr_hans3")').replace("{batch}", "{n}")),
    Axis("levels", "a chain of predicates, 1,000 images", (1, 2, 3, 4, 5, 6, 7, 8), (1, 4),
         REASON.replace("{program}", "chain_program({n})").replace("{batch}", "1000")),
    Axis("images", "twopairs: files → answers", (10, 100, 1000, 20_000), (10,), INFER),
)


def chain(levels: int) -> str:
    """A program of this many predicates, each of which needs the one before of another object."""
    rules = "\n".join(f"p{n}(X) :- near(X, Y), p{n - 1}(Y)." for n in range(1, levels + 1))
    return f"""
        :- type(image, [img]).
        :- type(object, slots(6)).
        :- neural(in(object, image)).
        :- neural(near(object, object)).
        :- neural(p0(object)).
        :- target(kp(img)).
        kp(I) :- in(O, I), p{levels}(O).
        {rules}
    """


def chain_program(levels: int) -> Program:
    return from_compilation(compile_text(chain(levels), "chain.pl"))


@dataclass(frozen=True)
class ScalingRow:
    """One point: n of what the axis counts, seconds of the processor, and MB that the work added at its peak."""

    axis: str
    what: str
    n: int
    seconds: float
    mb: float

    def __str__(self) -> str:
        return f"{self.axis:8} {self.what:38} {self.n:>7,}  {seconds(self.seconds):>8}  {self.mb:8,.1f} MB"


def measure(quick: bool, folder: Path) -> Iterator[ScalingRow]:
    for axis in AXES:
        for n in axis.quick if quick else axis.sizes:
            found = in_child(axis.code.format(n=n, figures=str(FIGURES)) + MEASURED)
            yield ScalingRow(axis.name, axis.what, n, found["seconds"], found["mb"])


def slope(rows: Sequence[ScalingRow]) -> float | None:
    """Of seconds over n, both as logarithms, through the last points."""
    points = [(log(row.n), log(row.seconds)) for row in rows[-LAST:] if row.seconds > 0]
    if len(points) < 2:
        return None
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def _by_line(rows: Sequence[ScalingRow]) -> list[tuple[tuple[str, str], list[ScalingRow]]]:
    return [(key, list(mine)) for key, mine in groupby(rows, lambda row: (row.axis, row.what))]


def tell(results: Results) -> str:
    lines = []
    for (axis, what), rows in _by_line(results["scaling"]):
        found = slope(rows)
        lines.append([f"{axis}: {what}", f"{rows[0].n:,} … {rows[-1].n:,}", seconds(rows[0].seconds),
                      seconds(rows[-1].seconds), "–" if found is None else f"{found:.2f}", f"{rows[-1].mb:,.0f} MB"])
    return "Processor time of one thread; the slope is that of the last points, 1 is in proportion.\n\n" + markdown(
        ["what grows", "from … to", "first", "last", "slope", "memory at the last"], lines)


def draw(results: Results, folder: Path) -> Sequence[Path]:
    """scaling.png: a panel for each axis, time on the left scale and memory on the right."""
    rows = results.get("scaling", [])
    if not rows:
        return []
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row.axis for row in rows))
    figure, panels = plt.subplots(1, len(names), figsize=(4 * len(names), 4), layout="constrained", squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        _panel(panel, name, [line for line in _by_line(rows) if line[0][0] == name])
    path = folder / "scaling.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return [path]


def _panel(panel: Any, name: str, lines: Sequence[tuple[tuple[str, str], list[ScalingRow]]]) -> None:
    beside = panel.twinx()
    for (_, what), rows in lines:
        style: dict[str, Any] = {"marker": "o", "ms": 4, "lw": 1.4, "ls": "-" if what == lines[0][0][1] else "--"}
        found = slope(rows)
        label = what if found is None else f"{what}, slope {found:.2f}"
        panel.plot([row.n for row in rows], [row.seconds for row in rows], color=BLUE, label=label, **style)
        beside.plot([row.n for row in rows], [max(row.mb, 0.1) for row in rows], color=RED, alpha=0.4, **style)
    sizes = [row.n for _, rows in lines for row in rows]
    scale = "log" if max(sizes) > 30 * min(sizes) else "linear"
    panel.set(xscale=scale, yscale="log", xlabel=name, ylabel="seconds")
    beside.set(yscale="log", ylabel="MB added (pale)")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8, loc="lower left", bbox_to_anchor=(-0.1, 1.0), frameon=False)


PART = Part(
    "scaling", "time and memory by clauses, objects, batch, levels and images, with slopes",
    (Table("scaling", ScalingRow, ("axis", "what", "n"), judged=()),), measure, tell, draw,
)
