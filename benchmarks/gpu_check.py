"""`make gpu-check`: on a machine with CUDA, every value test on the card, then its bits and, with `ncu`, its
instructions beside those of engine "ptx", then its times beside the bounds.

    python -m nsfrc.benchmarks.gpu_check [--quick]

Without a card it says so and exits 0. Most of the time goes into compiling kernels, which Triton keeps. Times go
to `benchmarks/results/gpu/roofline.csv`, a row for every program, batch and file of kernels, forward and with
gradients; bits and counts beside them (`gpu_compare`). The exit code is that of the tests. It was written without a
card, and has never run on one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import torch

from nsfrc.benchmarks.measure import RESULTS

TESTS = ("tests/kernels/values", "tests/kernels/test_launch.py", "tests/kernels/test_tables.py")
OUT = RESULTS / "gpu"


def on_card(*command: str) -> int:
    """Run Python in a process in which Triton compiles; its exit code."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run([sys.executable, "-m", *command], env=environment, check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tests of one program, and times of its smaller batches")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("torch finds no CUDA device, so there is nothing to check here; `make test` runs the same tests in "
              "Triton's interpreter and compiles every kernel for sm_80 and sm_90")
        return 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    tests = on_card("pytest", *TESTS, *(["-k", "closeby or operator"] if options.quick else []))
    one = ["--program", "closeby"] if options.quick else []
    bits = on_card("nsfrc.benchmarks.gpu_compare", "--out", str(OUT), *one)
    few = ["--program", "closeby", "--batches", "1", "100", "10000"] if options.quick else []
    times = on_card("nsfrc.benchmarks.roofline", "--out", str(OUT), *few)
    print(f"values: {'as the reference' if tests == 0 else 'DIFFER, see above'}; bits: "
          f"{'near those executed on the CPU' if bits == 0 else 'FAR from those executed on the CPU'} "
          f"({OUT / 'bits.csv'}); times: {OUT / 'roofline.csv'}")
    return tests or bits or times


if __name__ == "__main__":
    sys.exit(main())
