"""The page in a browser: what a person does there, and that it speaks to nobody else."""

from __future__ import annotations

import base64
import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui")
playwright = pytest.importorskip("playwright.sync_api")

from nsfrc.data.kandinsky import figure  # noqa: E402
from nsfrc.data.png import png  # noqa: E402
from nsfrc.data.render import render  # noqa: E402
from tests.page.browser import CHROMIUM, WAIT, served  # noqa: E402

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
expect = playwright.expect
RULES = """:- include('kandinsky.pl').
:- type(object, slots(4)).
:- neural(closeby(object, object)).
:- target(kp(img)).

kp(X) :- in(A, X), in(B, X), closeby(A, B).
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "rules.pl").write_text(RULES)
    with served(folder, "rules.pl") as found:
        yield found
    assert "Traceback" not in (folder / "errors.txt").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page that asks nothing of other hosts and says nothing of errors."""
    asked: list[str] = []
    wrong: list[str] = []
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    context.set_default_timeout(1000 * WAIT)
    expect.set_options(timeout=1000 * WAIT)
    tab = context.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("websocket", lambda socket: asked.append(socket.url))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.goto(address)
    expect(tab.locator(".status")).to_contain_text("fine")
    yield tab
    context.close()
    host = address.removeprefix("http://").rstrip("/")
    assert asked and [url for url in asked if not re.match(rf"(http|ws)://{re.escape(host)}/|data:|blob:", url)] == []
    assert wrong == []


def text_of(page: Any) -> str:
    return str(page.evaluate("getElement(+document.querySelector('.editor').id.slice(1)).editor.state.doc.toString()"))


def at_end_of(page: Any, words: str) -> None:
    """Put the cursor behind some words of the program."""
    page.evaluate("""(words) => {
        const view = getElement(+document.querySelector('.editor').id.slice(1)).editor;
        const at = view.state.doc.toString().indexOf(words) + words.length;
        view.dispatch({ selection: { anchor: at } });
        view.focus();
    }""", words)


def drop(page: Any, *pictures: tuple[str, bytes]) -> None:
    """Drop files onto the page."""
    page.evaluate("""(pictures) => {
        const files = new DataTransfer();
        for (const [name, data] of pictures) {
            const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
            files.items.add(new File([bytes], name, { type: "image/png" }));
        }
        document.querySelector("main").dispatchEvent(
            new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    }""", [(name, base64.b64encode(data).decode()) for name, data in pictures])


def drawn(number: int) -> bytes:
    return png(render(figure("closeby", 0, number).figure))


def test_strangers_are_refused(address: str) -> None:
    """Other sites, by their names and from the same browser, at the page and behind it."""
    host = address.removeprefix("http://").rstrip("/")
    socket = "/_nicegui_ws/socket.io/?EIO=4&transport="
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}

    def answer(path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(host, timeout=WAIT)
        try:
            connection.request("GET", path, headers=headers)
            return connection.getresponse()
        finally:
            connection.close()

    def status(path: str, **headers: str) -> int:
        return answer(path, **headers).status

    assert status("/") == 200 and status("/", Host="evil.example") == 403
    assert answer("/").headers["content-security-policy"] == "frame-ancestors 'self'"
    assert status("/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}) == 403
    assert status("/", Origin="http://[") == 403
    assert status(f"{socket}polling", Origin=f"http://{host}") == 200
    assert status(f"{socket}polling", Origin="http://evil.example") == 403
    assert status(f"{socket}websocket", Origin="http://evil.example", **upgrade) == 403
    assert status("/etc/passwd") == status("/../../etc/passwd") == 404


def test_a_mistake_is_marked_and_mended(page: Any) -> None:
    at_end_of(page, "in(B, X), close")
    page.keyboard.type("t")
    expect(page.locator(".finding")).to_contain_text("unknown predicate closetby/2")
    expect(page.locator(".cm-content .mark-error")).to_have_text("closetby")
    page.get_by_role("button", name="Write closeby").click()
    expect(page.locator(".status")).to_contain_text("fine")
    expect(page.locator(".finding")).to_have_count(0)
    assert text_of(page) == RULES


def test_no_typed_text_is_lost(page: Any) -> None:
    """Marks come back while one types, with mistakes in the text all the time."""
    at_end_of(page, "closeby(A, B).\n")
    lines = [f"q{n}(X) :- in(A, X), colour(A, red), unknown_{n}(A)." for n in range(4)]
    for line in lines:
        page.keyboard.type(line + "\n", delay=12)
    page.wait_for_function("document.querySelectorAll('.finding').length > 2")
    typed = "".join(f"{line}\n" for line in lines)
    assert "".join(text_of(page).split()) == "".join((RULES + typed).split())  # the editor indents


def test_keyboard_narrow_and_dark(page: Any) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body.body--dark")).to_have_count(1)
    drop(page, ("mine.png", drawn(0)))
    expect(page.locator(".shot .score")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot = page.locator(".shot")
    shot.focus()
    page.keyboard.press("f")
    expect(page.locator(".shot .wrong")).to_have_count(1)
    page.keyboard.press("t")
    expect(page.get_by_role("button", name="mine.png is true")).to_have_attribute("aria-pressed", "true")
    at_end_of(page, "in(B, X), close")
    page.keyboard.type("r")
    expect(page.locator(".finding")).to_have_count(1)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".status")).to_contain_text("fine")
    assert text_of(page) == RULES


def test_from_a_dropped_picture_to_a_learnt_rule(page: Any) -> None:
    drop(page, ("mine.png", drawn(0)))
    expect(page.locator(".answer .reason")).to_contain_text("because")
    expect(page.locator(".shot .object")).not_to_have_count(0)
    score = page.locator(".shot .score b")
    before = float(score.inner_text())
    assert before > 0.9
    name = page.locator(".fact .atom-name", has_text="closeby").first.inner_text()
    slider = page.get_by_role("slider", name=name).locator("[tabindex]")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("PageDown")  # by a tenth
    now = page.locator(".answer header b").first
    expect(now).to_have_text(re.compile(r"0\.[0-4]\d"))
    expect(page.get_by_role("slider", name=name)).to_have_attribute("aria-valuenow", "0")
    page.get_by_role("button", name="As it was seen").click()
    expect(now).to_have_text(f"{before:.2f}")
    expect(page.get_by_role("slider", name=name)).to_have_attribute("aria-valuenow", "1")

    drop(page, ("a.png", drawn(0)), ("a.png", drawn(1)), ("b.png", b"nothing"))
    expect(page.locator(".shot .score")).to_have_count(3)
    expect(page.locator(".shot .failed")).to_contain_text("not an image")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".shot")).to_have_count(0)
    drop(page, ("mine.png", drawn(0)))
    page.get_by_label("Add samples").click()
    page.get_by_role("option", name="Figures: closeby").click()
    expect(page.locator(".shot .score")).to_have_count(13)
    for number in range(8):
        label = "true" if figure("closeby", 0, number).label else "false"
        page.get_by_role("button", name=f"closeby {number} is {label}").click()
    expect(page.locator(".note").first).to_contain_text("8 labelled · 8 of 8 right")
    page.get_by_role("button", name="Learn a rule").click()
    expect(page.locator(".learnt pre")).to_contain_text("closeby(A, B)")
    page.get_by_role("button", name="Put it into the editor").click()
    expect(page.locator(".status")).to_contain_text("fine")
    page.wait_for_function("!document.querySelector('.cm-content').textContent.includes('use_module')")
    assert "% Learnt by nsfrc play from rules.pl" in text_of(page)

    with page.expect_download() as saved:
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Results (.csv)").click()
    assert saved.value.suggested_filename == "rules.csv"
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0].startswith("file,label,score,answer") and len(lines) == 14

    page.get_by_role("button", name="Link").click()
    expect(page.get_by_text("link copied")).to_be_visible()
    address = page.url
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator(".note").first).to_contain_text("12 pictures, 8 labelled")
    assert text_of(other) == text_of(page)
