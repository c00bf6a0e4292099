"""Rules learnt from labelled examples: are they the true ones, how accurate, how fast.

    nsfrc bench --parts learning

Every task with five seeds, all of them in the table. A rule is the true one if it says the same in 10,000 random
worlds; accuracy is on fresh examples. Seconds are processor time of one core, from object vectors to the program's
text, the search without the labels held out included; kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from nsfrc.benchmarks import learning_tasks as tasks
from nsfrc.benchmarks.learning_tasks import SEEDS, Examples
from nsfrc.benchmarks.learning_verdicts import Verdict, confounded, verdict
from nsfrc.benchmarks.parts import KANDINSKY, Judged, Part, Results, Table, markdown
from nsfrc.contexts import torch_threads
from nsfrc.data import patterns
from nsfrc.data.render import render
from nsfrc.learning.api import label_rows
from nsfrc.learning.evidence import FromObjects
from nsfrc.learning.learner import Found, Learner, Options, compile_base
from nsfrc.learning.results import Learnt, NothingLearnt, finish
from nsfrc.learning.source import SourceText

# Seconds of αILP's search and of its weights, on true objects, as they were measured on a machine like this one; that
# of twopairs is extrapolated from the part of its search that was run.
ALPHAILP = {"closeby": 30.1, "twopairs": 1800.0}
PICTURES, FRESH_PICTURES = 200, 400


@dataclass(frozen=True)
class LearningRow:
    """One run. true_rule: it says what the true rule does in all random worlds; agreement: in which share of them.

    seconds: of one core. tried: clauses. others: alternatives that explain the labels as well; narrower: such that ask
    for more. confounded: classes that list a clause which only training scenes all have. The others as in `Verdict`.
    """

    task: str
    target: str
    seed: int
    labels: int
    noise: float
    true_rule: bool
    agreement: float | None
    accuracy: float
    seconds: float
    tried: int
    rate: float
    others: int
    narrower: int | None
    wrong: int | None
    true_wrong: int | None
    saved: float | None
    true_saved: float | None
    why: str | None
    listed: bool | None
    confounded: int | None
    rule: str

    def __str__(self) -> str:
        true = "true rule" if self.true_rule else "another rule"
        return (f"{self.task:<16} {self.target:<19} seed {self.seed}  {true:<12} accuracy {self.accuracy:.4f}  "
                f"{self.seconds:6.1f} s  {self.tried:>9,} clauses")


def learnt_from(text: str, examples: Examples, seed: int) -> tuple[Learnt | None, Learner, list[Found], float]:
    """What is learnt, None for nothing; how; and the processor seconds that it took."""
    start = time.process_time()
    source = SourceText.of(None, text)
    rows = label_rows(compile_base(source), [int(one) for one in examples.labels], len(examples.labels))
    learner = Learner(source, examples.evidence, rows, Options(seed=seed))
    found = learner.run()
    try:
        learnt: Learnt | None = finish(learner, found)
    except NothingLearnt:
        learnt = None
    return learnt, learner, found, time.process_time() - start


def _row(task: str, target: str, seed: int, text: str, examples: Examples, fresh: Examples, noise: float = 0.0,
         truth: str | None = None, slots: int = 0) -> LearningRow:
    learnt, learner, found, seconds = learnt_from(text, examples, seed)
    agreed = None
    if learnt is not None and truth is not None:
        agreed = tasks.agreement(learnt, truth, slots) if slots else tasks.graph_agreement(learnt)
    accuracy = tasks.accuracy(learnt, fresh) if learnt is not None else 0.0
    true = accuracy >= 0.999 if agreed is None else agreed == 1.0
    if target == "a threshold" and agreed is not None:
        true = agreed >= 0.99  # where exactly between two numbers, no label says
    true = learnt is not None and true
    said = verdict(target, slots, learner, found[0], true) if slots and target in KANDINSKY else Verdict()
    clauses = () if learnt is None else learnt.clauses
    return LearningRow(
        task, target, seed, len(examples.labels), noise, true, agreed, accuracy, seconds,
        learner.scored, learner.scored / max(learner.seconds, 1e-9), sum(len(c.alternatives) for c in clauses),
        sum(len(c.narrower) for c in clauses), **asdict(said),
        confounded=confounded(learner, found, fresh) if learner.learning.classes else None,
        rule="nothing" if learnt is None else " ".join(" ".join(c.text.split()) for c in learnt.clauses),
    )


def measure(quick: bool, folder: Path) -> Iterator[LearningRow]:
    seeds = SEEDS[:1] if quick else SEEDS
    with torch_threads(1):
        learnt_from(tasks.KANDINSKY, tasks.mixed("red_triangle", 1, 100), 0)  # compiles all kernels: it has ties
        yield from _patterns(seeds)
        yield from _others(seeds)
        yield from _speed()
        yield from _scenes(seeds)
        if not quick:
            yield from _noise(seeds)
            yield from _at_random(seeds)
            yield from _pictures(seeds)


def _patterns(seeds: Sequence[int]) -> Iterator[LearningRow]:
    for name in KANDINSKY:
        for seed in seeds:
            yield _row("patterns", name, seed, tasks.KANDINSKY, tasks.pattern(name, 1000 + seed, 100),
                       tasks.tested("pattern", name), truth=name, slots=patterns.PATTERNS[name].objects)


def _others(seeds: Sequence[int]) -> Iterator[LearningRow]:
    for name, (truth, _) in tasks.RULES.items():
        text = tasks.VOCABULARY.format(slots=6) + ":- target(kp(img)).\n" + truth
        for seed in seeds:
            yield _row("other rules", name, seed, tasks.KANDINSKY, tasks.ruled(name, 2100 + seed, 200),
                       tasks.tested("ruled", name), truth=text, slots=6)
    for seed in seeds:
        yield _row("other rules", "recursion", seed, tasks.GRAPH + ":- learn(kp(image)).\n", tasks.graphs(seed, 200),
                   tasks.tested("graphs", "arrows"), truth="graphs")


def _speed() -> Iterator[LearningRow]:
    """A thousand examples; and beside αILP, with the same objects and variables."""
    for name, variables in (("closeby", 2), ("twopairs", 4)):
        text = f":- include('kandinsky.pl').\n:- type(object, slots(4)).\n:- neural(closeby(object, object)).\n" \
               f":- learn(kp(image)).\n:- vars(object, {variables}).\n"
        yield _row("beside αILP", name, 0, text, tasks.pattern(name, 11, 1000), tasks.tested("pattern", name))
    for name in ("twopairs", "red_triangle", "threepairs"):
        yield _row("1,000 examples", name, 0, tasks.KANDINSKY, tasks.pattern(name, 11, 1000),
                   tasks.tested("pattern", name), truth=name, slots=patterns.PATTERNS[name].objects)


def _scenes(seeds: Sequence[int]) -> Iterator[LearningRow]:
    for name, classes, count in (("clevr-hans3", 3, 480), ("clevr-hans7", 7, 1120)):
        text = tasks.CLEVR.format(targets=", ".join(f"kp{i + 1}(image)" for i in range(classes)))
        for seed in seeds:
            yield _row("confounded", name, seed, text, tasks.scenes(name, "train", 3000 + seed, count),
                       tasks.tested("scenes", name))


def _noise(seeds: Sequence[int]) -> Iterator[LearningRow]:
    for share in (0.1, 0.2):
        for name in KANDINSKY:
            for seed in seeds:
                examples = tasks.flipped(tasks.pattern(name, 4000 + seed, 200), share, seed)
                yield _row(f"{share:.0%} flipped", name, seed, tasks.KANDINSKY, examples, tasks.tested("pattern", name),
                           share, name, patterns.PATTERNS[name].objects)


def _at_random(seeds: Sequence[int]) -> Iterator[LearningRow]:
    for name in KANDINSKY:
        for seed in seeds:
            yield _row("random negatives", name, seed, tasks.KANDINSKY, tasks.mixed(name, 5000 + seed, 100),
                       tasks.tested("pattern", name), truth=name, slots=patterns.PATTERNS[name].objects)


def _pictures(seeds: Sequence[int]) -> Iterator[LearningRow]:
    """Rendered, and looked at by the detector that ships; seconds are those after perception."""
    for name in KANDINSKY:
        fresh = _looked_at(name, tasks.TEST_SEED, FRESH_PICTURES)
        for seed in seeds:
            yield _row("from pictures", name, seed, tasks.KANDINSKY, _looked_at(name, 6000 + seed, PICTURES), fresh,
                       truth=name, slots=patterns.PATTERNS[name].objects)


def _looked_at(name: str, seed: int, count: int) -> Examples:
    from PIL import Image

    from nsfrc.inference.images import prepare, to_tensor
    from nsfrc.perception import create

    model = create("yolo", tasks.SLOTS)
    figures, labels = tasks.figures(name, seed, count)
    parts = []
    with torch.no_grad():
        for first in range(0, count, 32):
            images = [prepare(Image.fromarray(render(one)), model.size, model.fit)
                      for one in figures[first : first + 32]]
            parts.append(model(to_tensor(images)))
    evidence = FromObjects(torch.cat(parts).float(), tuple(model.dimensions), [str(i) for i in range(count)])
    return Examples(evidence, np.array(labels, dtype=float))


def tell(results: Results) -> str:
    rows: list[LearningRow] = results["learning"]
    lines = []
    for key in dict.fromkeys((row.task, row.target) for row in rows):
        some = [row for row in rows if (row.task, row.target) == key]
        lines.append([
            f"{key[0]}: {key[1]}", str(some[0].labels), f"{sum(row.true_rule for row in some)} of {len(some)}",
            f"{100 * min(row.accuracy for row in some):.1f}", f"{100 * float(np.mean([r.accuracy for r in some])):.1f}",
            f"{float(np.median([row.seconds for row in some])):.1f}", f"{max(row.seconds for row in some):.1f}",
        ])
    table = markdown(["task", "labels", "true rule", "least accuracy", "mean accuracy", "median s", "most s"], lines)
    beside = [f"{ALPHAILP[row.target] / row.seconds:,.0f} times less than αILP for {row.target}"
              for row in rows if row.task == "beside αILP"]
    fast = [row.rate for row in rows if row.task == "1,000 examples"]
    said = f" At 1,000 examples {min(fast):,.0f} to {max(fast):,.0f} clauses are tried per second." if fast else ""
    return f"{table}\n\nSeconds of one core, {'; '.join(beside) or 'without αILP'}.{said}"


def draw(results: Results, folder: Path) -> Sequence[Path]:
    """How many seeds find the true rule, and how long they take, by task and target."""
    import matplotlib.pyplot as plt

    rows: list[LearningRow] = results["learning"]
    keys = list(dict.fromkeys((row.task, row.target) for row in rows))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.24 * len(keys) + 1.2), sharey=True)
    for place, key in enumerate(keys):
        some = [row for row in rows if (row.task, row.target) == key]
        left.scatter([100 * row.accuracy for row in some], [place] * len(some), s=18,
                     c=["tab:blue" if row.true_rule else "tab:orange" for row in some])
        right.scatter([row.seconds for row in some], [place] * len(some), s=18, c="tab:gray")
    left.set_yticks(range(len(keys)), [f"{task}: {target}" for task, target in keys], fontsize=8)
    left.invert_yaxis()
    left.set_xlabel("accuracy on fresh examples, %; blue: the true rule")
    right.set_xlabel("seconds of one core")
    right.set_xscale("log")
    figure.tight_layout()
    path = folder / "learning.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return [path]


PART = Part(
    "learning", "rules learnt from labelled examples",
    (Table("learning", LearningRow, ("task", "target", "seed"),
           judged=(Judged("accuracy", slack=0.01, absolute=True), Judged("seconds", False, slack=0.5))),),
    measure, tell, draw,
)
