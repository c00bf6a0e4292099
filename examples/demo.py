"""The first look: Kandinsky figures of all six patterns, and CLEVR-Hans scenes, through perception, facts and rules.

    python -m examples.demo [folder for the reports]

The figures in examples/figures were made by `nsfrc data kandinsky PATTERN --count 12 --seed 7`; the detector was never
trained on them. Half of each dozen have the pattern, the others nearly have it. The scenes in examples/scenes were made
by `nsfrc data clevr-hans3 --split test --count 12 --seed 7 --size 240x160 --samples 16`: four of each class.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nsfrc

HERE = Path(__file__).parent
PATTERNS = ("twopairs", "threepairs", "closeby", "red_triangle", "online_pair", "nine_circles")
IMAGES = {pattern: HERE / "figures" / pattern for pattern in PATTERNS} | {"clevr_hans3": HERE / "scenes"}


def main() -> None:
    reports = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    print("A dozen images for every program, from file to answer (the first run compiles kernels: some seconds)\n")
    print(f"{'program':<14}{'images':>8}{'right':>7}{'accuracy':>10}   report")
    reasons = {}
    for program, images in IMAGES.items():
        results = nsfrc.infer(images, program)
        page, measures = results.report(reports / f"{program}.html"), results.measures
        assert measures.accuracy is not None, "the images have labels"
        print(f"{program:<14}{measures.count:>8}{measures.right:>7}{measures.accuracy:>10.1%}   {page}")
        reasons[program] = next((row.file, row.reason) for row in results if row.right and row.answer != "false")
    file, reason = reasons["red_triangle"]
    print(f"\nWhy red_triangle/{file} has the pattern:\n\n{reason}")
    print(f"\nOpen {reports / 'twopairs.html'} or {reports / 'clevr_hans3.html'} in a browser: every image with its "
          f"objects, its scores and the reason.")
    print("next: .venv/bin/nsfrc infer --help    .venv/bin/python -m examples.worlds")


if __name__ == "__main__":
    main()
