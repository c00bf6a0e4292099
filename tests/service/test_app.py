"""Routes, limits, tokens, and what a request leaves behind."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from nsfrc.benchmarks.service_fuzz import Request, send
from nsfrc.errors import NsfrcError
from nsfrc.hosts import is_loopback
from nsfrc.service import gate as gates
from nsfrc.service.app import Service, around
from nsfrc.service.settings import Batching, Limits, Settings, checked_token
from tests.service.support import FACTS, JSON, asked, form, get, opened, told

TOKEN = "a-token-of-some-length"
BEARER = (b"authorization", f"Bearer {TOKEN}".encode())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "rules.pl"
    path.write_text(FACTS)
    return path


@pytest.fixture(scope="module")
def service(program: Path) -> Service:
    return opened(program)


def test_routes(service: Service) -> None:
    paths = ("/healthz", "/readyz", "/program", "/openapi.json", "/nothing", "/infer", "/")
    found = dict(zip(paths, asked(service, *map(get, paths)), strict=True))
    assert found["/healthz"] == (200, {"status": "alive"}) and found["/readyz"] == (200, {"status": "ready"})
    assert found["/program"][1]["questions"] == [{"name": "wet(monday)", "atoms": ["wet(monday)"],
                                                  "answers": ["true", "false"]}]
    assert found["/program"][1]["takes"] == ["facts"]
    assert [found[path][0] for path in ("/nothing", "/infer", "/")] == [404, 405, 404]
    assert found["/nothing"][1] == {"error": "Not Found: /docs lists what there is"}
    assert set(found["/openapi.json"][1]["paths"]) == {"/infer", "/program", "/healthz", "/readyz", "/metrics"}


def test_the_page_names_no_other_host(service: Service) -> None:
    (_, page), (_, api) = asked(service, get("/docs"), get("/openapi.json"))
    text = page.decode() + json.dumps(api)
    assert "POST /infer" in text and "multipart/form-data" in text
    assert not re.search(r"(https?:)?//[a-z0-9]", text) and "<script" not in text and "<link" not in text


def test_every_answer_that_openapi_describes_is_given(service: Service) -> None:
    """The examples of the description are taken, and rows have what it says."""
    ((_, api),) = asked(service, get("/openapi.json"))
    told_of = api["paths"]["/infer"]["post"]
    row = told_of["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["rows"]["items"]
    ((status, answer),) = asked(service, told({"facts": {"rain(monday)": 0.5}}))
    assert status == 200 and set(answer["rows"][0]) <= set(row["properties"])
    assert set(told_of["responses"]) == {"200", "400", "401", "408", "413", "415", "422", "503", "504"}


def test_metrics(program: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    service = opened(program)
    asked(service, told({"facts": [{}, {}, {}]}), get("/nowhere/at/all"))
    ((_, text),) = asked(service, get("/metrics"))
    values = {(s.name, *sorted(s.labels.values())): s.value
              for family in text_string_to_metric_families(text.decode()) for s in family.samples}
    assert values[("nsfrc_requests_total", "/infer", "200")] == values[("nsfrc_requests_total", "404", "other")] == 1
    assert values[("nsfrc_rows_total", "facts", "yes")] == 3 and values[("nsfrc_batch_size_sum",)] == 3
    assert values[("nsfrc_waiting",)] == 0 and values[("process_resident_memory_bytes",)] > 0


def test_the_access_log(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = opened(program, log=True, token=TOKEN)
    asked(service, told({"facts": {}}, BEARER), get("/x\n\x1b[31m?secret"), told({"facts": {}}))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(line["status"] for line in lines) == [200, 401, 401]
    good = next(line for line in lines if line["status"] == 200)
    assert good["kind"] == "facts" and good["rows"] == 1 and good["client"] == "127.0.0.1" and good["seconds"] >= 0
    assert TOKEN not in json.dumps(lines) and "\\u001b" not in json.dumps(lines)


def test_a_failure_is_logged_and_told_without_its_words(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = opened(program)

    def fails(units: Any) -> Any:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(service.answerer, "facts", None)
    monkeypatch.setattr(service.answerer, "units", fails)
    ((status, answer),) = asked(service, told({"facts": {}}))
    assert (status, answer) == (500, {"error": "the service failed; its log says how"})
    (line,) = capsys.readouterr().out.splitlines()
    assert "ZeroDivisionError: secret" in json.loads(line)["failure"]


def test_tokens(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[Any, ...]] = []
    real = gates.hmac.compare_digest
    monkeypatch.setattr(gates.hmac, "compare_digest", lambda *pair: compared.append(pair) or real(*pair))
    service = opened(program, host="0.0.0.0", token=TOKEN)
    wrong = [(b"authorization", text) for text in (b"", b"Bearer", b"Bearer wrong", TOKEN.encode(), b"Bearer \xff\x00",
                                                   BEARER[1] + b"x", BEARER[1].lower())]
    statuses = [status for status, _ in asked(service, *(told({"facts": {}}, one) for one in wrong),
                                              told({"facts": {}}), get("/metrics"), get("/program"), get("/none"))]
    assert statuses == [401] * (len(wrong) + 4) and len(compared) == len(statuses)
    far = (b"host", b"example.com")
    assert [status for status, _ in asked(service, told({"facts": {}}, BEARER, far), get("/healthz", far),
                                          get("/docs"), get("/openapi.json"))] == [200] * 4


def test_a_token_is_needed_beyond_this_machine(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.1", "example.com"):
        assert not is_loopback(host)
        with pytest.raises(NsfrcError, match="needs a token"):
            Settings({}, host=host)
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert is_loopback(host)
        Settings({}, host=host)
    for text in ("", "short", "with blanks in it, a few", "ünäccäptäblë-ünäccäptäblë"):
        with pytest.raises(NsfrcError, match="at least 16"):
            checked_token(text, "token")
    assert checked_token(f"{TOKEN}\n", "token") == TOKEN


def test_other_hosts_and_origins(program: Path, service: Service) -> None:
    """A page whose name leads here is no user of this machine; neither is a page of another host."""
    odd = [(b"host", name) for name in (b"example.com", b"example.com:80", b"", b"[::1", b"127.0.0.1.example.com")]
    assert {status for status, _ in asked(service, *(get("/program", one) for one in odd))} == {403}
    fine = [(b"host", name) for name in (b"localhost", b"127.0.0.1:8000", b"[::1]:8000")]
    assert {status for status, _ in asked(service, *(get("/program", one) for one in fine))} == {200}
    page, own = (b"origin", b"https://example.com"), (b"origin", b"http://localhost")
    assert [status for status, _ in asked(service, get("/program", page), get("/program", own))] == [403, 200]
    allowed = opened(program, origins=("https://example.com",))
    ask = (b"access-control-request-method", b"POST")
    assert [status for status, _ in asked(allowed, get("/program", page), get("/infer", page, ask, method="OPTIONS"),
                                          get("/program", (b"origin", b"https://other.com")))] == [200, 200, 403]


def test_limits(program: Path) -> None:
    service = opened(program, limits=Limits(body=4000, json=1000, items=3, queue=5))
    over = Request(headers=[JSON, (b"content-length", b"1001")])
    many, long = told({"facts": [{}] * 4}), told({"facts": {}, "x": "a" * 2000})
    none = Request(headers=[(b"content-type", b"text/plain")], body=b"hello")
    pictures = form(*[("a.png", b"x")] * 4)
    found = asked(service, over, many, long, none, pictures, Request(body=b"x"))
    assert [status for status, _ in found] == [413, 413, 413, 415, 413, 415]
    assert all("error" in answer for _, answer in found)
    with pytest.raises(NsfrcError, match="--queue"):
        Settings({}, limits=Limits(items=10, queue=5))


def test_a_full_queue_is_told(program: Path) -> None:
    service = opened(program, limits=Limits(items=2, queue=4), batching=Batching(100, 0.2))
    found = asked(service, *(told({"facts": [{}, {}]}) for _ in range(4)))
    assert sorted(status for status, _ in found) == [200, 200, 503, 503]
    assert next(answer for status, answer in found if status == 503)["error"].endswith("try again in a second")


def test_all_bodies_together_are_bounded(program: Path) -> None:
    service = opened(program, limits=Limits(body=1000, json=1000, seconds=0.2, header_seconds=0.1))
    assert service.limits.held == 8000
    request = Request(headers=[JSON], body=b" " * 999)

    async def run() -> list[int]:
        async with service.running():
            gate = around(service)
            slow = [asyncio.ensure_future(_never_ends(gate, request.body)) for _ in range(9)]
            await asyncio.sleep(0.05)
            assert 7 * 999 <= service.bodies.held <= 8000
            return [await one for one in slow]

    assert sorted(asyncio.run(run())) == [408] * 8 + [503]
    assert service.bodies.held == 0


async def _never_ends(gate: gates.Gate, body: bytes) -> int:
    """The status of a request whose body stops in the middle."""
    parts = iter([{"type": "http.request", "body": body, "more_body": True}])
    statuses: list[int] = []

    async def receive() -> Any:
        return next(parts, None) or await asyncio.sleep(30)

    async def take(message: Any) -> None:
        statuses.append(message.get("status", 0))

    scope = {"type": "http", "method": "POST", "path": "/infer", "headers": [(b"host", b"localhost"), JSON],
             "query_string": b"", "state": {}}
    await gate(scope, receive, take)
    return statuses[0]


def test_time_is_limited(program: Path) -> None:
    service = opened(program, limits=Limits(seconds=0.1), batching=Batching(10, 5.0))
    ((status, answer),) = asked(service, told({"facts": {}}))
    assert status == 504 and "within 0.1 seconds" in answer["error"]


def test_whoever_goes_away_leaves_nothing(service: Service) -> None:
    """The client is gone before its answer: its work is dropped, and no task, item or byte is held."""
    async def run() -> None:
        async with service.running():
            gate, before = around(service), len(asyncio.all_tasks())
            body = told({"facts": {}})
            body.cut = True
            whole = [{"type": "http.request", "body": body.body}, {"type": "http.disconnect"}]
            left, sent = iter(whole), []

            async def receive() -> Any:
                return next(left)

            async def take(message: Any) -> None:
                sent.append(message)

            scope = {"type": "http", "method": "POST", "path": "/infer", "headers": [(b"host", b"localhost"), JSON],
                     "query_string": b"", "state": {}}
            await gate(scope, receive, take)
            await send(gate, body)
            await asyncio.sleep(0.05)
            assert sent == [] and len(asyncio.all_tasks()) == before
            assert service.batcher.held == service.bodies.held == 0

    asyncio.run(run())
