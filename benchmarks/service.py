"""`nsfrc serve` under load: 1, 8 and 64 clients at once, beside the same pictures in one run of `nsfrc infer`.

    python -m nsfrc.benchmarks.service [--rounds 5] [--pictures 256] [--program twopairs] [--out benchmarks/results]

Service and `infer` take turns, each in a process that is warm: the seconds of a start are not counted. Every answer is
compared with the line that `nsfrc infer --json` writes. Clients are on the same machine, in one process, and take their
share of it. Wall time and processor time are both told: what others do on the machine is in the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from nsfrc.benchmarks.measure import RESULTS, Compared, compared, timing, write_csv
from nsfrc.benchmarks.service_process import NSFRC, Connection, Served, form
from nsfrc.data.kandinsky import figure
from nsfrc.data.png import png
from nsfrc.data.render import render
from nsfrc.files import write_whole

CLIENTS = (1, 8, 64)
SHARE = {1: 4, 8: 2, 64: 1}  # with few clients a round has that part of the pictures: they take longer


@dataclass(frozen=True)
class ServiceRow(Compared):
    """So many clients at once: wall seconds of a request when all of them ask (one over requests a second), and of a
    picture in `nsfrc infer`, the baseline; ratio: how much of its pictures a second the service has, by the medians.
    paired: the same, each round beside the runs of `infer` right before and after it, and the median of these.

    p50, p99: seconds that a client waits. requests, equal: how many there were, and how many answers are equal to
    `infer`'s in every letter. processor, baseline_processor: processor seconds of a request and of a picture.
    """

    program: str
    clients: int
    p50: float
    p99: float
    requests: int
    equal: int
    per_second: float
    paired: float
    processor: float
    baseline_processor: float

    def __str__(self) -> str:
        return (f"{self.clients:>3} clients: {self.per_second:6.1f} requests a second, "
                f"{100 * self.paired:.0f} % of infer; p50 {1e3 * self.p50:.0f} ms, "
                f"p99 {1e3 * self.p99:.0f} ms; processor {1e3 * self.processor:.1f} ms, "
                f"of infer {1e3 * self.baseline_processor:.1f} ms; {self.equal} of {self.requests} answers equal")


def figures(folder: Path, count: int) -> list[Path]:
    """Figures without labels, as a service has them."""
    flat = folder / "pictures"
    flat.mkdir()
    for number in range(count):
        write_whole(flat / f"{number:06}.png", png(render(figure("twopairs", 0, number).figure)))
    return sorted(flat.iterdir())


def expected(program: str, folder: Path) -> dict[str, str]:
    """The lines of `nsfrc infer --json`, by file."""
    command = [sys.executable, "-c", NSFRC, "infer", "--images", str(folder), "--program", program, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {json.loads(line)["file"]: line for line in done.stdout.splitlines()[:-1]}


def _infer(program: str, folder: Path, pipe: Pipe) -> None:
    """A process that runs what `nsfrc infer --json` runs, whenever it is told to."""
    from nsfrc.contexts import torch_threads
    from nsfrc.inference.folders import folder as listed
    from nsfrc.inference.images import quietly
    from nsfrc.inference.predictor import Predictor
    from nsfrc.inference.rows import as_json
    from nsfrc.inference.session import Wanted, open_session
    from nsfrc.inference.stream import Reading, computing, stream

    threads = min(2, os.cpu_count() or 1)
    listing = listed(folder)
    with torch_threads(computing(threads)), quietly():
        session = open_session(Wanted((folder,), program, device="auto"), listing)
        predictor = Predictor(session.pipe, session.asked(True, False), session.known)
        while pipe.recv():
            wall, spent = time.perf_counter(), time.process_time()
            lines = [as_json(row, session.questions)
                     for rows in stream(predictor, listing, Reading(16, threads - computing(threads))) for row in rows]
            pipe.send((time.perf_counter() - wall, time.process_time() - spent, len(lines)))


class Infer:
    """That process, told to run."""

    def __init__(self, program: str, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_infer, args=(program, folder, other), daemon=True)
        self.process.start()

    def __call__(self) -> tuple[float, float]:
        """Wall and processor seconds of a picture."""
        self.pipe.send(True)
        wall, spent, count = self.pipe.recv()
        return wall / count, spent / count

    def close(self) -> None:
        self.pipe.send(False)
        self.process.join(30)


async def load(port: int, requests: Sequence[tuple[str, bytes]], clients: int) -> list[tuple[str, float, int, bytes]]:
    """Every request once, by so many clients: its name, seconds, status and answer."""
    left = iter(requests)
    found: list[tuple[str, float, int, bytes]] = []

    async def client() -> None:
        connection = Connection(port)
        await connection.open()
        for name, request in left:
            start = time.perf_counter()
            status, body = await connection.ask(request)
            found.append((name, time.perf_counter() - start, status, body))
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return found


def is_right(name: str, status: int, body: bytes, lines: dict[str, str]) -> bool:
    """Whether an answer is the row that `infer` has, to the letter."""
    return status == 200 and body.decode() == f'{{"rows": [{lines[name]}]}}'


@dataclass
class Seen:
    """What was measured of one number of clients."""

    each: list[float]
    waits: list[float]
    cpu: list[float]
    base: list[tuple[float, float]]
    equal: int = 0
    paired: list[float] = field(default_factory=list)


def measure(program: str, count: int, rounds: int, most: float, options: Sequence[str] = ()) -> list[ServiceRow]:
    """Rounds in turns, for most seconds at most."""
    with tempfile.TemporaryDirectory() as place:
        paths = figures(Path(place), count)
        lines = expected(program, paths[0].parent)
        requests = [(path.name, form(path.name, path.read_bytes())) for path in paths]
        infer, seen = Infer(program, paths[0].parent), {clients: Seen([], [], [], []) for clients in CLIENTS}
        try:
            with Served(program, "--no-log", *options) as served:
                asyncio.run(load(served.port, requests[:64], 8))
                infer()
                before, end = infer(), time.monotonic() + most
                for turn in range(rounds):
                    for clients, one in seen.items():
                        if turn and time.monotonic() > end:
                            break
                        _round(served, requests[: count // SHARE[clients]], clients, lines, one)
                        after = infer()
                        one.base += [before, after]
                        one.paired.append((before[0] + after[0]) / 2 / one.each[-1])
                        before = after
        finally:
            infer.close()
    return [_row(program, clients, one) for clients, one in seen.items()]


def _round(served: Served, requests: list[tuple[str, bytes]], clients: int, lines: dict[str, str], seen: Seen) -> None:
    start, spent = time.perf_counter(), served.cpu()
    found = asyncio.run(load(served.port, requests, clients))
    seen.each.append((time.perf_counter() - start) / len(found))
    seen.cpu.append((served.cpu() - spent) / len(found))
    seen.waits += [seconds for _, seconds, _, _ in found]
    seen.equal += sum(is_right(name, status, body, lines) for name, _, status, body in found)


def _row(program: str, clients: int, seen: Seen) -> ServiceRow:
    waits = sorted(seen.waits)
    fields: dict[str, Any] = compared(timing(seen.each), "nsfrc infer", timing(wall for wall, _ in seen.base))
    return ServiceRow(
        **fields, program=program, clients=clients, p50=statistics.median(waits), p99=waits[int(0.99 * len(waits))],
        requests=len(waits), equal=seen.equal, per_second=1 / statistics.median(seen.each),
        paired=statistics.median(seen.paired),
        processor=statistics.median(seen.cpu), baseline_processor=statistics.median(spent for _, spent in seen.base))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--program", default="twopairs")
    parser.add_argument("--seconds", type=float, default=240.0, help="no round begins later")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = measure(options.program, options.pictures, options.rounds, options.seconds)
    for row in rows:
        print(row, flush=True)
    write_csv(options.out / "service.csv", rows, ("program", "clients"))
    if any(row.equal < row.requests for row in rows):
        raise SystemExit("some answers differ")


if __name__ == "__main__":
    main()
