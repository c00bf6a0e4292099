"""Who may speak to the page."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import socket
from pathlib import Path
from typing import Any

import pytest

import nsfrc
from nsfrc.page.guard import MAX_BODY, Guard, refusal
from tests.cli.support import Run


def request(kind: str = "http", method: str = "GET", **headers: str) -> dict[str, Any]:
    found = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": kind, "method": method, "headers": found}


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:1234", "[::1]:8765", "LOCALHOST"])
def test_this_machine_is_welcome(host: str) -> None:
    assert refusal(request(host=host), local=True) is None
    assert refusal(request(host=host, origin=f"http://{host}"), local=True) is None


@pytest.mark.parametrize("headers", [
    {"host": "evil.example:8765"}, {"host": "127.0.0.1.evil.example"}, {}, {"host": "[broken"},
    {"host": "127.0.0.1:8765", "origin": "http://evil.example"}, {"host": "127.0.0.1:8765", "origin": "null"},
    {"host": "127.0.0.1:8765", "origin": "http://127.0.0.1:9999"}, {"host": "127.0.0.1:8765", "origin": "http://["},
    {"host": "127.0.0.1:8765", "sec_fetch_site": "cross-site", "sec_fetch_dest": "iframe"},
    {"host": "127.0.0.1:8765", "sec_fetch_site": "same-site", "sec_fetch_dest": "image"},
])
def test_others_are_not(headers: dict[str, str]) -> None:
    found = refusal(request(**headers), local=True)
    assert found is not None and found[0] == 403


def test_links_may_be_followed_from_elsewhere() -> None:
    for site in ("cross-site", "same-origin", "none"):
        headers = {"host": "127.0.0.1:8765", "sec_fetch_site": site, "sec_fetch_dest": "document"}
        assert refusal(request(**headers), local=True) is None
    assert refusal(request(host="localhost", sec_fetch_site="same-origin", sec_fetch_dest="script"), local=True) is None


def test_beyond_this_machine_other_pages_are_still_refused() -> None:
    assert refusal(request(host="desk.example:8765"), local=False) is None
    assert refusal(request(host="desk.example:8765", origin="http://evil.example"), local=False) is not None


def test_bodies_say_how_long_they_are() -> None:
    for length, status in (("", 411), ("many", 411), ("²", 411), ("9" * 5000, 411), (str(MAX_BODY + 1), 413)):
        found = refusal(request(method="POST", host="localhost", content_length=length), local=True)
        assert found is not None and found[0] == status
    assert refusal(request(method="POST", host="localhost", content_length="10"), local=True) is None


def test_what_is_refused_reaches_nothing() -> None:
    async def inner(*_: Any) -> None:
        raise AssertionError("reached")

    async def spoken(scope: dict[str, Any]) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {}

        await Guard(inner)(scope, receive, send)
        return sent

    assert asyncio.run(spoken(request(host="evil.example")))[0]["status"] == 403
    assert asyncio.run(spoken(request("websocket", host="evil.example")))[0]["type"] == "websocket.close"


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_form_that_is_no_upload_is_told_so(method: str) -> None:
    """What fails otherwise is a mistake of ours, and told as one."""
    async def inner(*_: Any) -> None:
        raise AttributeError("'str' object has no attribute 'close'")

    async def status() -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await Guard(inner)(request(method=method, host="localhost", content_length="9"), inner, send)
        return int(sent[0]["status"])

    if method == "POST":
        assert asyncio.run(status()) == 400
    else:
        with pytest.raises(AttributeError):
            asyncio.run(status())


def test_nicegui_is_for_the_server_and_the_widgets_alone() -> None:
    importers = {path.name for path in Path(nsfrc.__file__).parent.rglob("*.py")
                 if re.search(r"^\s*(from|import) nicegui", path.read_text(), re.MULTILINE)}
    assert importers == {"server.py", "view.py", "view_detail.py", "view_editor.py", "view_pictures.py"}
    imported = {path.name for path in Path(nsfrc.__file__).parent.rglob("*.py")
                if re.search(r"nsfrc\.page\.(server|view)", path.read_text())}
    assert imported == {"play.py", "server.py", "view.py"}


def test_mistakes_on_the_command_line(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "no shipped program of that name" in run.refused("play", "twopears")
    assert "did you mean twopairs" in run.refused("play", "twopears")
    assert "nowhere.onnx" in run.refused("play", "--perception", "nowhere.onnx")
    assert "nowhere" in run.refused("play", "--images", "nowhere")
    (tmp_path / "empty").mkdir()
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "nicegui" else find(name))
    assert "pip install 'nsfrc[play]'" in run.refused("play")


def test_mistakes_that_need_nicegui_to_be_told(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("nicegui")
    (tmp_path / "empty").mkdir()
    assert "there are no images in empty" in run.refused("play", "--images", "empty")
    run.good("compile", "twopairs")
    assert "name its .pl file" in run.refused("play", "twopairs.nsfrc")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} is taken" in run.refused("play", "--port", port)
    assert "cannot listen on 203.0.113.1" in run.refused("play", "--host", "203.0.113.1")
