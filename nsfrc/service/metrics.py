"""Counts and times for Prometheus, of one worker or of all of them."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector

TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where several workers keep theirs; prometheus-client reads it
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PATHS = frozenset(("/infer", "/program", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"))


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.several = FOLDER in os.environ
        self.registry = CollectorRegistry()
        of: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("nsfrc_requests_total", "Requests by path and status.", ("path", "status"), **of)
        self.rows = Counter("nsfrc_rows_total", "Rows by what was sent, and whether there is an answer.",
                            ("kind", "answered"), **of)
        self.seconds = Histogram("nsfrc_request_seconds", "Seconds from header to answer, of /infer.",
                                 buckets=SECONDS, **of)
        self.batch = Histogram("nsfrc_batch_size", "Items of a batch.", buckets=SIZES, **of)
        self.batch_seconds = Histogram("nsfrc_batch_seconds", "Seconds of a batch.", buckets=SECONDS, **of)
        self.waiting = Gauge("nsfrc_waiting", "Items that wait or are worked on.", multiprocess_mode="livesum", **of)
        if not self.several:
            ProcessCollector(registry=self.registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        known = path if path in PATHS else "other"
        self.requests.labels(known, str(status)).inc()
        if path == "/infer":
            self.seconds.observe(seconds)

    def batched(self, count: int, seconds: float) -> None:
        self.batch.observe(count)
        self.batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """All of it as Prometheus reads it; of several workers their sum."""
        if not self.several:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
