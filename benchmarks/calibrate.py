"""Chooses the threshold of every Kandinsky program on validation figures and writes it where `nsfrc infer` finds it.

    python -m nsfrc.benchmarks.calibrate [--figures 1000]

The figures are a stream of their own: neither trained nor tested on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from nsfrc.benchmarks.kandinsky import CALIBRATION_SEED, answers
from nsfrc.data.kandinsky import PATTERNS
from nsfrc.files import write_whole
from nsfrc.inference import calibration
from nsfrc.pipelines import pipeline

OUT = Path(calibration.__file__).parent / calibration.FILE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=int, default=1000, help="of each pattern")
    parser.add_argument("--weights", type=Path, help="another detector than the one that ships; needs --out")
    parser.add_argument("--out", type=Path, help="instead of the file that ships")
    options = parser.parse_args()
    if options.weights is not None and options.out is None:
        parser.error("--weights needs --out: the file that ships is for the detector that ships")
    out = options.out or OUT
    torch.set_num_threads(1)
    chosen = {}
    for pattern in PATTERNS:
        pipe = pipeline(pattern, weights=options.weights)
        found = answers(pipe, pattern, CALIBRATION_SEED, options.figures)
        threshold, accuracy = calibration.choose_threshold(found.scores.tolist(), found.labels.tolist())
        chosen[calibration.fingerprint(pipe.program)] = {
            "program": pattern, "threshold": round(threshold, 4), "accuracy": round(accuracy, 4),
            "figures": options.figures, "seed": CALIBRATION_SEED,
        }
        yes, no = found.scores[found.labels], found.scores[~found.labels]
        print(f"{pattern:<14} threshold {threshold:.4f}  accuracy {accuracy:.2%}  "
              f"true from {yes.min():.4f}, false up to {no.max():.4f}")
    write_whole(out, (json.dumps({pipe.perception.identity: chosen}, indent=1) + "\n").encode())
    print(f"written to {out}")


if __name__ == "__main__":
    main()
