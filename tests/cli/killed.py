"""Runs a command again and again and kills it at random moments: python -m tests.cli.killed TIMES ARGUMENTS...

A fork of this process, which has all that the command imports, runs it, so that most moments are those of its work. The
last run is left to end. Prints what became of every run: killed, or the code it ended with.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import nsfrc.learning.api
import nsfrc.learning.pictures  # noqa: F401  what a run would import
from nsfrc import cli


def started(arguments: list[str]) -> int:
    """The process that runs `nsfrc ARGUMENTS`."""
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv = ["nsfrc", *arguments]
        cli.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        os._exit(code)


def ended(process: int, seconds: float) -> str:
    """How a process ended within so many seconds, after which it is killed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return str(os.waitstatus_to_exitcode(status))
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    return "killed" if os.waitpid(process, 0)[1] == signal.SIGKILL else "0"


def main(times: int, arguments: list[str]) -> None:
    rng, took = random.Random(7), 0.0
    for _ in range(2):  # the first may have kernels to compile, and would be no measure
        start = time.monotonic()
        print("whole", ended(started([*arguments, "--out", "whole.pl"]), 600))
        took = time.monotonic() - start
    for _ in range(times):
        print("resumed", ended(started([*arguments, "--resume"]), rng.uniform(0, took)), flush=True)
    print("last", ended(started([*arguments, "--resume"]), 600))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
