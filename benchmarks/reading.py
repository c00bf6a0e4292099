"""What reading a text takes: bytes of memory for a byte of text, and megabytes a second of CPU time.

    python -m nsfrc.benchmarks.reading

For texts of facts, of plain clauses, of clauses with operators and of annotated facts.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nsfrc.benchmarks.measure import RESULTS, write_csv
from nsfrc.compiler.parse import parse
from nsfrc.errors import Diagnostics, Source

LENGTH, RUNS = 500_000, 3
KINDS = {
    "facts": "linked(n{a}, n{b}).",
    "clauses": "kp(X) :- in(O1, X), in(O2, X), closeby(O1, O2), color(O1, red), color(O2, c{a}).",
    "short clauses": "p{a}(X) :- q(X), r(X).",
    "operators": "kp(X) :- in(O, X), \\+ color(O, red), size(O, S), S >= {a} * 3 + 1 ; in(P, X), size(P, T), T < {b}.",
    "annotated": "0.{b}::shape(obj{a}, square).",
}


def text(line: str, length: int) -> str:
    """Lines of one kind, with numbers that differ."""
    count = length // len(line)
    return "".join(line.format(a=i % 300, b=i % 7 + 1) + "\n" for i in range(count))


def memory(work: Callable[[], object]) -> tuple[int, int]:
    """Bytes that the result of `work` holds, and the most that there were."""
    tracemalloc.start()
    result = work()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return held, peak


def seconds(work: Callable[[], object]) -> float:
    """CPU time, the least of some runs."""

    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(RUNS))


@dataclass(frozen=True)
class ReadingRow:
    """held, peak: bytes for a byte of text, that its sentences take and that there were at most."""

    kind: str
    length: int
    held: float
    peak: float
    megabytes_per_second: float

    def __str__(self) -> str:
        return f"{self.kind:<14} {self.held:5.1f} bytes a byte held, {self.peak:5.1f} at most, " \
            f"{self.megabytes_per_second:5.2f} MB/s"


def measure(length: int = LENGTH) -> Iterator[ReadingRow]:
    for kind, line in KINDS.items():
        source = Source("text.pl", text(line, length))

        def read(source: Source = source) -> object:
            return parse(source, Diagnostics())

        read()  # patterns are made at the first text
        held, peak = memory(read)
        size = len(source.text)
        yield ReadingRow(kind, size, held / size, peak / size, size / seconds(read) / 1e6)


def main() -> None:
    rows = []
    for row in measure():
        rows.append(row)
        print(row, flush=True)
    write_csv(RESULTS / "reading.csv", rows)


if __name__ == "__main__":
    main()
