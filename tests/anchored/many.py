"""Many random programs under `anchored`, an engine beside the float64 reference: values and gradients.

    python -m tests.anchored.many --count 2000 --seed 0
    python -m tests.anchored.many --count 2000 --within      # negations, forall and counts

Passes on and off, all outputs and inputs, several γ, batches and clause weights, one thread and two. Prints what
differs and the worst of all; exit code 1 if anything is further off than it may be.
"""

from __future__ import annotations

import argparse
import sys
import time
from unittest import mock

import torch

from tests.anchored.inner_oracle import LOOPS, loops
from tests.anchored.support import GRADIENTS, VALUES, Case


def main() -> int:
    reader = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    reader.add_argument("--count", type=int, default=2000)
    reader.add_argument("--seed", type=int, default=0, help="of the first program; others follow")
    reader.add_argument("--engine", default="cpu")
    reader.add_argument("--within", action="store_true", help="programs with goals within goals, and the reference "
                                                              "beside plain loops as well")
    asked = reader.parse_args()
    start, worst, wrong = time.monotonic(), [0.0, 0.0], 0
    for seed in range(asked.seed, asked.seed + asked.count):
        case = Case.drawn(seed, asked.within)
        torch.set_num_threads(1 + seed % 2)
        # Batches as small as these are split among threads only if that is thought to pay at once.
        with mock.patch("nsfrc.engines.cpu.calls.WORTH_A_THREAD", 1):
            found = case.difference(asked.engine)
        off = loops(seed) if asked.within else 0.0
        worst = [max(worst[0], found.values), max(worst[1], found.gradients)]
        if not (found.values <= VALUES and found.gradients <= GRADIENTS and off <= LOOPS):
            wrong += 1
            print(f"{case}\n  {found}, the reference from plain loops {off:.2g}", flush=True)
        if (seed - asked.seed) % 100 == 99:
            print(f"{seed - asked.seed + 1} so far, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    print(f"{asked.count} programs, {wrong} differ; worst: values {worst[0]:.2g}, gradients {worst[1]:.2g}; "
          f"{time.monotonic() - start:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
