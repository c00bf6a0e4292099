"""What strangers might send to `nsfrc serve`: fuzzed requests through the application, in this process.

    python -m nsfrc.benchmarks.service_fuzz [--count 10000] [--seed 0] [--out benchmarks/results]

Forms, JSON and pictures that are cut, mixed and bent, with paths, modules and bombs where names and sizes belong. Each
must be answered with a status that is not 500. While they are, Python reports what it opens, starts, connects to,
imports and unpickles (audit events): nothing may be written, no file be opened but of Python itself, nothing be run.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import random
import struct
import sys
import sysconfig
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, features

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.service.app import Service, around
from nsfrc.service.gate import App, Gate
from nsfrc.service.running import prepare_process
from nsfrc.service.settings import Settings

AT_ONCE = 32
OF_CLASSES = """\
:- type(image, [img]).
:- type(object, slots(3)).
:- type(class, [person, car]).
:- neural(in(object, image)).
:- neural(class(object, class)).
:- target(kp(img)).
kp(X) :- in(O, X), class(O, person), in(P, X), class(P, car).
"""
RUNS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "socket.connect",
        "pickle.find_class", "ctypes.dlopen", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink",
        "shutil.rmtree", "tempfile.mkstemp", "tempfile.mkdtemp", "code.__new__", "marshal.loads")
KINDS = {"PNG": {}, "JPEG": {}, "GIF": {}, "BMP": {}, "PPM": {}, "TIFF": {}, "ICO": {"sizes": [(32, 32)]}, "TGA": {},
         "WEBP": {}, "JPEG2000": {}, "PCX": {}, "QOI": {}, "AVIF": {}}


@dataclass
class Request:
    """A request as ASGI has it, and whether it ends before its body does."""

    path: str = "/infer"
    method: str = "POST"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    cut: bool = False


@dataclass(frozen=True)
class FuzzRow:
    """program: what is served. statuses: how many of each; 0 where a client had gone. failures: those of 500, or that
    raised. events: what Python did that it should not.
    """

    program: str
    count: int
    seed: int
    statuses: str
    rows: int
    failures: int
    events: int


def small_bomb(kind: str, chance: random.Random) -> bytes:
    """A picture that says it is far larger than its bytes."""
    side = chance.choice((6_000, 20_000, 65_535, 2_000_000))
    if kind == "PNG":
        def chunk(name: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(bytes(10_000))) + chunk(b"IEND", b""))
    if kind == "GIF":
        return b"GIF89a" + struct.pack("<HHBBB", side % 65536, side % 65536, 0x80, 0, 0) + bytes(40)
    return f"P6 {side} {side} 255\n".encode() + bytes(100)


class Fuzz:
    """Requests that nobody should send. bait: a folder with a picture and a module, which must not be looked at."""

    def __init__(self, seed: int, bait: Path) -> None:
        self.chance, self.bait = random.Random(seed), bait
        pixels = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)
        self.pictures = []
        for kind, options in KINDS.items():
            feature = {"JPEG2000": "jpg_2000", "WEBP": "webp", "AVIF": "avif"}.get(kind)
            if feature is None or features.check(feature):
                data = io.BytesIO()
                Image.fromarray(pixels).save(data, kind, **options)
                self.pictures.append(data.getvalue())
        self.names = ["a.png", "../../etc/passwd", "/etc/passwd", str(bait / "seen.png"), str(bait / "net.py"),
                      "net:Net", "a\0b", "..\\..\\x", "x" * 5000, "\u202egnp.exe", "$(touch x)",
                      "file:///etc/passwd", "", "=1+1", "camera:0", "http://127.0.0.1:1/x", "best.pt", "rules.pl",
                      "half \ud83d"]

    def __iter__(self) -> Iterator[Request]:
        while True:
            yield self.chance.choices((self.form, self.damaged_form, self.facts, self.detections, self.noise, self.odd),
                                      (30, 20, 15, 20, 5, 10))[0]()

    def bent(self, data: bytes) -> bytes:
        """Some bytes changed, cut out, doubled or cut off."""
        found, chance = bytearray(data), self.chance
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            if not found:
                break
            place, size = chance.randrange(len(found)), chance.choice((1, 2, 4, 50, 500))
            change = chance.randrange(5)
            if change == 0:
                found[place : place + size] = chance.randbytes(size)
            elif change == 1:
                del found[place : place + size]
            elif change == 2:
                found[place:place] = found[max(0, place - size) : place]
            elif change == 3:
                found[place] ^= 1 << chance.randrange(8)
            else:
                del found[max(place, 1) :]
        return bytes(found)

    def picture(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.1:
            return small_bomb(chance.choice(("PNG", "GIF", "PPM")), chance)
        data = chance.choice(self.pictures)
        return data if chance.random() < 0.3 else self.bent(data)

    def form(self) -> Request:
        edge = b"edge"
        parts = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 5, 70))):
            name = self.chance.choice(self.names).replace('"', "%22").encode("utf-8", "surrogatepass")
            field = b'; name="image"; filename="' + name + b'"' if self.chance.random() < 0.95 else b'; name="x"'
            header = b"--" + edge + b"\r\nContent-Disposition: form-data" + field + b"\r\n\r\n"
            parts += [header, self.picture(), b"\r\n"]
        body = b"".join([*parts, b"--" + edge + b"--\r\n"])
        return Request(headers=[(b"content-type", b"multipart/form-data; boundary=" + edge)], body=body)

    def damaged_form(self) -> Request:
        made = self.form()
        made.body, made.cut = self.bent(made.body), self.chance.random() < 0.1
        if self.chance.random() < 0.2:
            made.headers = [(b"content-type", self.bent(made.headers[0][1]))]
        return made

    def value(self, depth: int = 0) -> Any:
        """Some JSON."""
        chance = self.chance
        kind = chance.randrange(9 if depth < 4 else 6)
        if kind == 6:
            return [self.value(depth + 1) for _ in range(chance.randrange(4))]
        if kind == 7:
            return {chance.choice(("file", "class", "box", "detections", "width", "height", "confidence", "x1")):
                    self.value(depth + 1) for _ in range(chance.randrange(4))}
        return chance.choice((None, True, 0, -1, 1.5, 0.5, 10**400, 1e308, "", "red", "in(obj1,img)", "X", "a" * 3000,
                              *self.names))

    def json(self, told: Any) -> Request:
        text = json.dumps(told).encode()
        if self.chance.random() < 0.2:
            text = self.bent(text)
        if self.chance.random() < 0.03:
            text = self.chance.choice((b"[" * 100_000, b'{"facts":' * 50_000, b"\xff\xfe", b'{"facts": NaN}', b"",
                                       b'{"facts": [{"in(obj1,img)": ' + b"9" * 6000 + b"}]}"))
        return Request(headers=[(b"content-type", b"application/json")], body=text)

    def facts(self) -> Request:
        chance = self.chance
        atoms = ("in(obj1,img)", "in(obj2,img)", "color(obj1,red)", "shape(obj1,circle)", "kp(img)", "nosuch(obj1)",
                 "color(obj1,X)", "a:-b", "color(obj9,red)", "halt.", "'", "color(obj1,red", "consult('rules.pl')")
        world = {chance.choice(atoms): chance.choice((0, 1, 0.5, 0.9, 2, -1, True, self.value()))
                 for _ in range(chance.randrange(6))}
        return self.json({"facts": chance.choice((world, [world], [world] * 3, [world] * 70, self.value()))})

    def detections(self) -> Request:
        chance = self.chance
        size = chance.choice((1.0, 500.0))
        good = [0.1 * size, 0.1 * size, 0.4 * size, 0.5 * size]
        several = [{"class": chance.choice(("red", "circle", "person", 0, 7, "X", "os:system", self.value())),
                    "confidence": chance.choice((0.9, 1, 0, 2, self.value())),
                    "box": chance.choice((good, good, [1, 1, 0, 0], self.value()))}
                   for _ in range(chance.choice((0, 1, 3, 400)))]
        one: dict[str, Any] = {"file": chance.choice(self.names), "detections": several}
        if chance.random() < 0.5:
            one |= {"width": chance.choice((640, 0, 1e30, "640", None)), "height": 480}
        return self.json({"detections": chance.choice((one, [one], [one, one], self.value()))})

    def noise(self) -> Request:
        kinds = (b"multipart/form-data; boundary=edge", b"application/json", b"image/png", b"", b"text/html",
                 b"application/x-python-pickle", b"multipart/form-data", b"application/json; charset=utf-16")
        return Request(headers=[(b"content-type", self.chance.choice(kinds))],
                       body=self.chance.randbytes(self.chance.randrange(3000)))

    def odd(self) -> Request:
        made, chance = self.form(), self.chance
        made.path = chance.choice(("/infer", "/infer/", "/../etc/passwd", "/docs", "/metrics", "/program", "/readyz",
                                   "/%2e%2e/x", "/static/../../x", "/\0", "/openapi.json", "/" + "a" * 5000))
        made.method = chance.choice(("POST", "GET", "PUT", "DELETE", "OPTIONS", "HEAD", "BREW"))
        made.headers.append(chance.choice((
            (b"host", b"example.com"), (b"host", b"[::1"), (b"origin", b"http://example.com"),
            (b"content-length", b"-1"), (b"content-length", b"9" * 30), (b"authorization", b"Bearer \xff"),
            (b"transfer-encoding", b"chunked"),
            (b"content-encoding", b"gzip"), (b"x-forwarded-for", b"1.2.3.4"), (b"content-length", "²".encode()))))
        return made


class Watch:
    """What Python reports while it is on. An audit hook cannot be taken away again."""

    def __init__(self) -> None:
        self.on, self.seen = False, list[str]()
        own = (*(sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib")), sys.base_prefix)
        self.own = tuple(os.path.realpath(path) for path in own)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) if isinstance(flags, int) else False
            measured = isinstance(path, str) and path.startswith("/proc/self/")  # what /metrics tells of the process
            own = isinstance(path, str) and os.path.realpath(path).startswith(self.own)
            if writes or not (own or measured):
                self.seen.append(f"open {path!r} {mode!r}")
        elif event in RUNS and not _importing():
            self.seen.append(f"{event} {arguments!r}"[:200])
        elif event == "import" and arguments[0].partition(".")[0] in ("net", "rules", "os:system"):
            self.seen.append(f"import {arguments[0]}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False


def _importing() -> bool:
    """Whether a module of Python's own is being loaded, which unmarshals its code."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


async def send(app: App, request: Request) -> tuple[int, bytes]:
    """Status and body of one request; 0 where there was no answer."""
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method,
             "scheme": "http", "path": request.path, "raw_path": request.path.encode("utf-8", "replace"),
             "query_string": b"", "root_path": "", "headers": [(b"host", b"localhost"), *request.headers],
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}}
    pieces = [request.body[i : i + 65536] for i in range(0, len(request.body), 65536)] or [b""]
    parts: list[dict[str, Any]] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if request.cut:
        parts.append({"type": "http.disconnect"})
    else:
        parts[-1]["more_body"] = False
    left, never = iter(parts), asyncio.Event()
    status, body = 0, b""

    async def receive() -> Any:
        if (part := next(left, None)) is None:
            await never.wait()
        return part

    async def take(message: Any) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")

    await app(scope, receive, take)
    return status, body


async def run(
    gate: Gate, service: Service, requests: Iterator[Request], count: int
) -> tuple[Counter[int], int, list[str]]:
    """So many requests, several at once: statuses, rows and what failed."""
    statuses, rows, failures = Counter[int](), 0, list[str]()

    async def client(numbers: Iterator[int]) -> None:
        nonlocal rows
        for _ in numbers:
            request = next(requests)
            try:
                status, body = await send(gate, request)
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error} {request!r:.300}")
                continue
            statuses[status] += 1
            if status == 500 or b"Traceback" in body or (status == 0 and not request.cut):
                failures.append(f"{status} {body[:300]!r} {request!r:.300}")
            rows += body.count(b'"file": ')

    async with service.running():
        before = len(asyncio.all_tasks())
        numbers = iter(range(count))
        await asyncio.gather(*(client(numbers) for _ in range(AT_ONCE)))
        await asyncio.sleep(0.1)
        if len(asyncio.all_tasks()) > before or service.batcher.held or service.bodies.held:
            failures.append(f"left behind: {len(asyncio.all_tasks()) - before} tasks, {service.batcher.held} items, "
                            f"{service.bodies.held} bytes")
    return statuses, rows, failures


def fuzz(count: int, seed: int, watch: Watch, settings: Settings) -> tuple[FuzzRow, list[str]]:
    """The row, and what is wrong in words."""
    with tempfile.TemporaryDirectory() as folder:
        bait = Path(folder)
        Image.new("RGB", (64, 64)).save(bait / "seen.png")
        (bait / "net.py").write_text("raise SystemExit('this was run')\n")
        service, made = Service(settings), Fuzz(seed, bait)
        gate, before = around(service), sorted(os.listdir())
        asyncio.run(run(gate, service, iter(made), min(count, 200)))  # what is imported at first is imported
        with watch.watching():
            statuses, rows, failures = asyncio.run(run(gate, service, iter(made), count))
        wrong = [*failures, *watch.seen]
        watch.seen.clear()
        if sorted(os.listdir()) != before or sorted(os.listdir(bait)) != ["net.py", "seen.png"]:
            wrong.append("files were written")
        told = ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items()))
        name = service.answerer.program.name
        return FuzzRow(name, count, seed, told, rows, len(failures), len(wrong) - len(failures)), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    watch, rows, wrong = Watch(), [], []
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder) / "classes.pl"
        classes.write_text(OF_CLASSES)
        for turn, settings in enumerate((Settings({"program": "twopairs"}, log=False),
                         Settings({"program": classes}, ("detections", "facts"), log=False))):
            prepare_process(settings)
            row, found = fuzz(options.count // 2, options.seed + turn, watch, settings)
            print(row, *found[:20], sep="\n", flush=True)
            rows.append(row)
            wrong += found
    write_csv(options.out / "service_fuzz.csv", rows, ("program", "count"))
    if wrong:
        raise SystemExit(f"{len(wrong)} things are wrong")


if __name__ == "__main__":
    main()
