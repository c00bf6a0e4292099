"""`nsfrc serve` among strangers and accidents: what happens to healthy requests, and what is left behind.

    python -m nsfrc.benchmarks.service_chaos [--seconds 60] [--out benchmarks/results]

`chaos`: 64 clients, one request in ten broken, huge, slow or cut off. `killed`: the service is killed and started again
at the same port while clients ask; `stopped`: the same by SIGTERM, which lets it answer first; `worker killed`: one of
two workers. A client whose connection breaks asks again. Every answer is compared with that of `nsfrc infer`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import struct
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.benchmarks.service import expected, figures, is_right
from nsfrc.benchmarks.service_process import BOUNDARY, Connection, Served, form, head

PROGRAM, CLIENTS = "twopairs", 64
FORM = f"multipart/form-data; boundary={BOUNDARY}"
HITS = 5.0  # seconds of load before the service is hit, and after the last time
PATIENCE = 60.0  # seconds that a stranger waits to be thrown out
Bad = Callable[[int, random.Random], Awaitable[None]]


@dataclass(frozen=True)
class ChaosRow:
    """One kind of accident. asked: healthy requests; answered: with 200; equal: as `infer` answers; again: how often
    one was sent anew after its connection broke. bad: other requests, by what was done. Megabytes, threads and open
    files are those of the service when it had warmed up, and at the end; files: how many more its
    temporary folder holds.
    """

    what: str
    seconds: float
    clients: int
    asked: int
    answered: int
    equal: int
    again: int
    bad: str
    megabytes: float
    megabytes_after: float
    threads: int
    threads_after: int
    descriptors: int
    descriptors_after: int
    files: int
    ended_with: int

    def __str__(self) -> str:
        return (f"{self.what}: {self.answered} of {self.asked} healthy requests answered, {self.equal} equal, "
                f"{self.again} sent again; bad: {self.bad}; "
                f"memory {self.megabytes:.0f} → {self.megabytes_after:.0f} MB, threads "
                f"{self.threads} → {self.threads_after}, open files {self.descriptors} → {self.descriptors_after}, "
                f"{self.files} files left, exit code {self.ended_with}")


def bomb(side: int = 30_000) -> bytes:
    """A PNG of a few kilobytes that is side² pixels."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + side)) for _ in range(side // 100)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


async def _send(port: int, parts: list[bytes], pause: float = 0.0, read: bool = True) -> None:
    """Send parts with pauses in between, and wait for whatever comes, or go away."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
            if read:
                await reader.read()
    finally:
        writer.close()


async def garbage(port: int, chance: random.Random) -> None:
    await _send(port, [chance.randbytes(400)])


async def broken_form(port: int, chance: random.Random) -> None:
    body = chance.randbytes(2000)
    await _send(port, [head(FORM, len(body)).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body])


async def broken_picture(port: int, chance: random.Random) -> None:
    await Connection(port).ask(form("a.png", b"\x89PNG\r\n\x1a\n" + chance.randbytes(5000)))


async def picture_bomb(port: int, chance: random.Random) -> None:
    await Connection(port).ask(form("bomb.png", BOMB))


async def huge_body(port: int, chance: random.Random) -> None:
    await _send(port, [head(FORM, 40_000_000), *([bytes(1_000_000)] * 40)])


async def huge_promise(port: int, chance: random.Random) -> None:
    await _send(port, [head(FORM, 10**12), bytes(1000)])


async def huge_header(port: int, chance: random.Random) -> None:
    await _send(port, [b"GET /" + b"a" * 200_000])


async def slow_header(port: int, chance: random.Random) -> None:
    await _send(port, [bytes([one]) for one in b"POST /infer HT"], 1.0)


async def slow_body(port: int, chance: random.Random) -> None:
    await _send(port, [head(FORM, 100_000), *([b"a"] * 60)], 1.0)


async def silent(port: int, chance: random.Random) -> None:
    await _send(port, [])


async def cut_off(port: int, chance: random.Random) -> None:
    await _send(port, [form("a.png", chance.randbytes(20_000))[:9000]], read=False)


async def gone_before_the_answer(port: int, chance: random.Random) -> None:
    await _send(port, [form("a.png", GOOD)], 0.005, read=False)


async def never_reads(port: int, chance: random.Random) -> None:
    """Asks for many answers and takes none."""
    many = [head("application/json", 15) + b'{"facts": [{}]}'] * 200
    await _send(port, many, 0.0, read=False)


STRANGERS: tuple[Bad, ...] = (
    garbage, broken_form, broken_picture, picture_bomb, huge_body, huge_promise, huge_header, slow_header, slow_body,
    silent, cut_off, gone_before_the_answer, never_reads,
)
BOMB, GOOD = bomb(), b""


class Load:
    """Healthy clients that ask until they are told to stop, and again where a connection breaks."""

    def __init__(self, port: int, requests: list[tuple[str, bytes]], lines: dict[str, str], share: float) -> None:
        self.port, self.requests, self.lines, self.share = port, requests, lines, share
        self.asked = self.answered = self.equal = self.again = 0
        self.statuses: Counter[int] = Counter()
        self.bad: Counter[str] = Counter()
        self.strangers: set[asyncio.Task[None]] = set()
        self.chance, self.until = random.Random(0), 0.0

    async def run(self, clients: int, until: float) -> None:
        self.until = until
        await asyncio.gather(*(self._client() for _ in range(clients)))
        if self.strangers:
            await asyncio.wait(self.strangers)

    async def _client(self) -> None:
        connection = Connection(self.port)
        while time.monotonic() < self.until:
            if self.chance.random() < self.share:
                self._stranger()
            name, request = self.chance.choice(self.requests)
            self.asked += 1
            status, body = await self._ask(connection, request)
            self.statuses[status] += 1
            self.answered += status == 200
            self.equal += is_right(name, status, body, self.lines)
        connection.close()

    async def _ask(self, connection: Connection, request: bytes) -> tuple[int, bytes]:
        while True:
            try:
                return await connection.ask(request)
            except (OSError, EOFError):
                connection.close()
                self.again += 1
                await asyncio.sleep(0.2)

    def _stranger(self) -> None:
        bad = self.chance.choice(STRANGERS)
        self.bad[bad.__name__] += 1

        async def act() -> None:
            with suppress(OSError, EOFError, TimeoutError):
                await bad(self.port, self.chance)

        task = asyncio.ensure_future(act())
        self.strangers.add(task)
        task.add_done_callback(self.strangers.discard)


async def _quiet(served: Served, most: float = 60.0) -> None:
    """Wait until the service holds nothing any more: no item, and no connection but the one that asks."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        connection = Connection(served.port)
        await connection.open()
        reader, writer = await connection.open()
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _, body = await connection.answer(reader)
        connection.close()
        if re.search(rb"^nsfrc_waiting 0.0$", body, re.MULTILINE):
            break
        await asyncio.sleep(0.5)
    await asyncio.sleep(12)  # connections that wait for another request are closed by then


def chaos(requests: list[tuple[str, bytes]], lines: dict[str, str], seconds: float) -> ChaosRow:
    with Served(PROGRAM) as served:
        warm = Load(served.port, requests, lines, 0.0)
        asyncio.run(warm.run(CLIENTS, time.monotonic() + 5))
        load = Load(served.port, requests, lines, 0.1)

        async def run() -> tuple[float, int, int]:
            await asyncio.sleep(0)
            task = asyncio.ensure_future(load.run(CLIENTS, time.monotonic() + seconds))
            await asyncio.sleep(seconds / 4)
            early = served.megabytes()
            await task
            await _quiet(served)
            return early, served.threads(), served.descriptors()

        asyncio.run(_quiet(served))
        threads, descriptors, there = served.threads(), served.descriptors(), set(served.left_behind())
        early, threads_after, descriptors_after = asyncio.run(run())
        after, files = served.megabytes(), sorted({*served.left_behind()} - there)
        code = served.stop()
        failures = [line for line in served.log if '"failure"' in line or '"status": 500' in line]
        bad = ", ".join(f"{count} {name}" for name, count in sorted(load.bad.items()))
        for line in [*failures, *(line for line in served.said if "Traceback" in line)]:
            print(line)
        print(f"healthy: {dict(load.statuses)}; failures in the log: {len(failures)}; left: {files}")
        return ChaosRow("chaos", seconds, CLIENTS, load.asked, load.answered, load.equal, load.again, bad, early, after,
                        threads, threads_after, descriptors, descriptors_after, len(files), code)


def accidents(
    what: str, hit: Callable[[Served], None], starts: bool, requests: list[tuple[str, bytes]], lines: dict[str, str],
    times: int, options: tuple[str, ...] = (),
) -> ChaosRow:
    """Hit the service so many times while clients ask. starts: whether it has to be started again."""
    served = Served(PROGRAM, "--no-log", *options)
    load = Load(served.port, requests, lines, 0.0)
    before: tuple[float, int, int] | None = None
    start = time.monotonic()

    async def run() -> None:
        nonlocal served, before
        tasks = asyncio.ensure_future(load.run(16, time.monotonic() + 2 * HITS * times))
        for _ in range(times):
            await asyncio.sleep(HITS)
            before = before or _held(served)
            await asyncio.to_thread(hit, served)
            if starts:
                served.folder.cleanup()
                served = await asyncio.to_thread(Served, PROGRAM, "--no-log", *options, port=load.port)
        load.until = max(load.until, time.monotonic() + HITS)
        await tasks

    try:
        asyncio.run(run())
        after = _held(served)
        code = served.stop()
        files = sum(not name.startswith(".") for name in served.left_behind())
    finally:
        served.__exit__()
    assert before is not None
    return ChaosRow(what, time.monotonic() - start, 16, load.asked, load.answered, load.equal, load.again,
                    f"{times} times", before[0], after[0], before[1], after[1], before[2], after[2], files, code)


def _held(served: Served) -> tuple[float, int, int]:
    return served.megabytes(), served.threads(), served.descriptors()


def _kill_worker(served: Served) -> None:
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    workers = [int(one) for one in children if "spawn_main" in Path(f"/proc/{one}/cmdline").read_text()]
    os.kill(workers[0], 9)


def main() -> None:
    global GOOD
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=("chaos", "killed", "stopped", "worker"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        paths = figures(Path(place), 64)
        lines = expected(PROGRAM, paths[0].parent)
        requests = [(path.name, form(path.name, path.read_bytes())) for path in paths]
        GOOD = paths[0].read_bytes()
        kinds: dict[str, Callable[[], ChaosRow]] = {
            "chaos": lambda: chaos(requests, lines, options.seconds),
            "killed": lambda: accidents("killed", Served.kill, True, requests, lines, options.times),
            "stopped": lambda: accidents("stopped", lambda one: None if one.stop() == 0 else one.kill(), True, requests,
                                         lines, options.times),
            "worker": lambda: accidents("worker killed", _kill_worker, False, requests, lines, options.times,
                                        ("--workers", "2")),
        }
        rows = []
        for name, work in kinds.items():
            if options.only in (None, name):
                rows.append(work())
                print(rows[-1], flush=True)
    if options.only is None:
        write_csv(options.out / "service_chaos.csv", rows, ("what",))
    if any(row.answered < row.asked or row.equal < row.answered or row.files for row in rows):
        raise SystemExit("a healthy request had no answer or a wrong one, or something was left behind")


if __name__ == "__main__":
    main()
