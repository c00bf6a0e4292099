"""The first look: Kandinsky figures of all six patterns, and CLEVR-Hans scenes, through perception, facts and rules.

    python -m examples.demo [folder for the reports]

The figures in examples/figures were made by `nsfrc data kandinsky PATTERN --count 12 --seed 7`; the detector was never
trained on them. Half of each dozen have the pattern, the others nearly have it. The scenes in examples/scenes were made
by `nsfrc data clevr-hans3 --split test --count 12 --seed 7 --size 240x160 --samples 16`: four of each class.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nsfrc.explain import as_text, explain
from nsfrc.inference.folders import folder
from nsfrc.inference.measures import Measures
from nsfrc.inference.report import Report
from nsfrc.inference.results import Row
from nsfrc.inference.session import Session, Wanted, open_session
from nsfrc.inference.stream import Asked, infer

HERE = Path(__file__).parent
PATTERNS = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles")
WANTED = [Wanted(HERE / "figures" / pattern, program=pattern) for pattern in PATTERNS]
WANTED.append(Wanted(HERE / "scenes", program="clevr_hans3", perception="yolo_clevr"))


def answer(wanted: Wanted, page: Path) -> tuple[Session, Measures, list[Row]]:
    """Every image of a folder, and a report on them."""
    session = open_session(wanted)
    pipe, measures, rows = session.pipe, Measures(session.targets), list[Row]()
    asked = Asked(session.threshold, session.labels, everything=True)
    with Report(page, pipe.program, pipe.perception.dimensions, session.threshold, session.settings) as report:
        for batch in infer(pipe, folder(wanted.images), asked):
            for row in batch:
                measures.add(row.label, row.scores, row.answer)
                report.add(row)
                rows.append(row)
        report.close(measures)
    return session, measures, rows


def main() -> None:
    reports = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    print("A dozen images for every program, from file to answer (the first run compiles kernels: some seconds)\n")
    print(f"{'program':<14}{'images':>8}{'right':>7}{'accuracy':>10}   report")
    shown = None
    for wanted in WANTED:
        page = reports / f"{wanted.program}.html"
        session, measures, rows = answer(wanted, page)
        assert measures.accuracy is not None, "the images have labels"
        print(f"{wanted.program:<14}{measures.count:>8}{measures.right:>7}{measures.accuracy:>10.1%}   {page}")
        if wanted.program == "red_triangle":
            shown = session, next(row for row in rows if row.answer == "true")
    assert shown is not None
    session, row = shown
    assert row.V_T is not None
    print(f"\nWhy red_triangle/{row.file} has the pattern:\n")
    print(as_text(explain(session.pipe.program, row.V_T, session.targets[0], row.V0)))
    print(f"\nOpen {reports / 'twopairs.html'} or {reports / 'clevr_hans3.html'} in a browser: every image with its "
          f"objects, its scores and the reason.")
    print("next: .venv/bin/nsfrc infer --help    .venv/bin/python -m examples.worlds")


if __name__ == "__main__":
    main()
