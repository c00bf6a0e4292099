"""The report in a real browser: pictures load, boxes lie on them, sorting, filtering and highlighting work."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nsfrc.data.kandinsky import DIMENSIONS
from nsfrc.inference.report import Report
from nsfrc.inference.rows import Row
from tests.inference.report_rows import Maker
from tests.inference.test_report_several import asked_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path")

# Runs in a copy of the page and leaves what it saw in an attribute of the body.
PROBE = """
const seen = {errors: [], violations: []};
window.addEventListener("error", (event) => seen.errors.push(event.message));
document.addEventListener("securitypolicyviolation", (event) => seen.violations.push(event.violatedDirective));
window.addEventListener("load", () => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const files = () => all(".card").filter((card) => !card.hidden).map((card) => card.dataset.file);
  const lit = (card, selector) => all(selector + ".lit", card).map((one) => one.dataset.o);
  const card = (file) => all(".card").find((one) => one.dataset.file === file);
  const form = document.getElementById("controls");
  try {
    seen.images = all("img").map((image) => [image.naturalWidth, image.naturalHeight]);
    seen.boxes = {};
    for (const one of all(".card:not(.error)")) {
      const frame = one.querySelector("img").getBoundingClientRect();
      seen.boxes[one.dataset.file] = Object.fromEntries(all(".object", one).map((box) => {
        const place = box.querySelector("rect").getBoundingClientRect();
        return [box.dataset.o, [(place.left - frame.left) / frame.width, (place.top - frame.top) / frame.height,
                                (place.right - frame.left) / frame.width, (place.bottom - frame.top) / frame.height]];
      }));
    }
    seen.reasons = all(".because").map((one) => one.textContent);
    seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    seen.controls = form.checkVisibility();
    seen.orders = {};
    for (const option of all("option", form)) {
      form.elements.order.value = option.value;
      form.elements.order.dispatchEvent(new Event("change", {bubbles: true}));
      seen.orders[option.value] = files();
    }
    seen.shown = {};
    for (const radio of all("[type=radio]", form)) {
      radio.click();
      seen.shown[radio.value] = files();
    }
    form.elements.show.value = "all";
    seen.found = {};
    for (const text of ["TALL", "no such file"]) {
      form.elements.search.value = text;
      form.elements.search.dispatchEvent(new Event("input", {bubbles: true}));
      seen.found[text] = [files(), form.elements.count.value, document.getElementById("nothing").checkVisibility()];
    }
    form.elements.search.value = "";
    form.elements.search.dispatchEvent(new Event("input", {bubbles: true}));
    const first = card("true/0.png");
    first.scrollIntoView();
    const summary = all("summary.atom", first)[1];
    summary.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    seen.pointed = [summary.dataset.o, lit(first, ".object"), lit(first, ".key")];
    document.getElementById("cards").dispatchEvent(new PointerEvent("pointerleave"));
    seen.left = lit(first, ".object");
    const box = all(".object", first)[0];
    box.focus();
    seen.focused = [box.dataset.o, lit(first, ".atom")];
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    press("ArrowDown");
    seen.next = document.activeElement === all(".object", first)[1];
    all(".atom", first)[0].focus();
    for (let i = 0; i < 4; i++) press("ArrowDown"); // past the four in(...), to a summary
    press("ArrowDown"); // to the next summary: what is folded away is passed over
    seen.passed = document.activeElement === all("summary.atom", first)[1];
    const picture = first.querySelector(".picture");
    const wide = () => picture.querySelector("img").getBoundingClientRect().width;
    const [small, ways] = [wide(), () => all(".original").map((one) => decodeURI(one.href))];
    picture.click();
    seen.enlarged = [wide() > 1.2 * small, ways(), all(".large").length];
    picture.querySelector(".original").addEventListener("click", (event) => event.preventDefault());
    picture.querySelector(".original").click();
    seen.followed = all(".large").length;
    picture.click();
    seen.shrunk = [wide() === small, ways(), all(".large").length];
    document.activeElement.blur();
    seen.blurred = all(".lit").length;
  } catch (error) { seen.errors.push(String(error)); }
  document.body.dataset.seen = JSON.stringify(seen);
});
"""


SEVERAL = """
const seen = {errors: [], shown: {}, orders: {}};
window.addEventListener("error", (event) => seen.errors.push(event.message));
window.addEventListener("load", () => {
  const form = document.getElementById("controls");
  const cards = () => [...document.querySelectorAll(".card")];
  const files = () => cards().filter((one) => !one.hidden).map((one) => one.dataset.file);
  const choose = (name, value) => form.querySelector(`[name="${name}"][value="${value}"]`).click();
  try {
    for (const [first, second] of [["all", "all"], ["answer true", "all"], ["all", "wrong"], ["answer false", "wrong"],
                                   ["answer true", "wrong"]]) {
      choose("show-0", first);
      choose("show-1", second);
      seen.shown[`${first}, ${second}`] = files();
    }
    choose("show-0", "all");
    choose("show-1", "all");
    choose("show", "error");
    seen.shown.error = files();
    choose("show", "all");
    for (const order of ["high-0", "high-1", "answer-2", "written"]) {
      form.elements.order.value = order;
      form.elements.order.dispatchEvent(new Event("change", {bubbles: true}));
      seen.orders[order] = files();
    }
  } catch (error) { seen.errors.push(String(error)); }
  document.body.dataset.seen = JSON.stringify(seen);
});
"""


def browsed(page: Path, probe: str, width: int) -> dict[str, Any]:
    """What a script that runs in the page notes in the body's data-seen."""
    digest = base64.b64encode(hashlib.sha256(probe.encode()).digest()).decode()
    text = page.read_text().replace('loading="lazy"', "")  # so that the load event waits for all of them
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ").replace(
        "<title>", f"<script>{probe}</script><title>", 1)
    probed = page.with_name("probe.html")
    probed.write_text(text)
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         f"--user-data-dir={page.parent / 'profile'}", f"--window-size={width},900", "--dump-dom", probed.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, done.stderr[-2000:]
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen


class Site:
    """A report of a few images, and what a browser of a given width sees of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.maker = Maker(folder / "images")
        self.rows = [self.maker.row(0, "true/0.png"), self.maker.row(1, "false/1.png"), self._tall(),
                     self.maker.row(2, "true/2.png", label="false"), self.maker.failed("true/x.png", "empty", "true")]
        thresholds, header = {"kp(img)": 0.5}, {"threshold": "0.5"}
        with Report(folder / "report.html", self.maker.program, DIMENSIONS, thresholds, header) as report:
            for row in self.rows:
                report.add(row)
            report.close(self.maker.measures)
        self.seen = cache(self._seen)

    def _tall(self) -> Row:
        """An image that is not square: what the overlay of a square one hides is seen here."""
        path = self.maker.folder / "false" / "tall.png"
        Image.new("RGB", (120, 360), "white").save(path)
        objects = np.zeros((4, len(DIMENSIONS)), dtype=np.float32)
        objects[0, :4] = 0.4, 0.5, 0.6, 0.8
        objects[0, [4, 8, 10]] = 1
        return self.maker.of(path, objects, "false")

    def _seen(self, width: int) -> dict[str, Any]:
        return browsed(self.folder / "report.html", PROBE, width)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module", params=[1300, 520])
def seen(site: Site, request: pytest.FixtureRequest) -> dict[str, Any]:
    return site.seen(request.param)


def test_the_page_runs_without_a_complaint(seen: dict[str, Any]) -> None:
    assert seen["errors"] == [] and seen["violations"] == []
    assert seen["controls"] and seen["overflow"] <= 0


def test_images_are_there(seen: dict[str, Any]) -> None:
    assert sorted(seen["images"]) == [[80, 240], [240, 240], [240, 240], [240, 240]]


def test_boxes_lie_on_the_objects(site: Site, seen: dict[str, Any]) -> None:
    for row in site.rows[:4]:
        assert row.objects is not None and row.thumbnail is not None
        expected = {str(n): row.thumbnail.box(*map(float, v[:4])) for n, v in enumerate(row.objects, 1) if v.any()}
        assert seen["boxes"][row.file].keys() == expected.keys()
        for number, box in expected.items():  # the stroke adds a pixel on each side
            assert seen["boxes"][row.file][number] == pytest.approx(box, abs=2.5 / 80)


def test_reasons_are_there(seen: dict[str, Any]) -> None:
    assert len(seen["reasons"]) == 4
    assert sum("because obj" in text for text in seen["reasons"]) == 2
    assert sum("missing" in text for text in seen["reasons"]) == 2


def test_sorting(site: Site, seen: dict[str, Any]) -> None:
    wrong, failed, names = "true/2.png", "true/x.png", sorted(row.file for row in site.rows)
    assert seen["orders"]["written"] == [failed, wrong, "true/0.png", "false/1.png", "false/tall.png"]
    assert seen["orders"]["file"] == names
    scores = {row.file: row.scores for row in site.rows if row.scores}
    for order, sign in (("high", -1), ("low", 1)):
        *scored, last = seen["orders"][order]
        assert last == failed
        assert [sign * scores[name][0] for name in scored] == sorted(sign * s[0] for s in scores.values())
    answers = {row.file: row.answer for row in site.rows}
    assert [answers[name] for name in seen["orders"]["answer"]] == ["false", "false", "true", "true", None]
    labels = {row.file: row.label for row in site.rows}
    assert [labels[name] for name in seen["orders"]["label"]] == ["false", "false", "false", "true", "true"]


def test_filtering_and_searching(site: Site, seen: dict[str, Any]) -> None:
    assert {key: sorted(files) for key, files in seen["shown"].items()} == {
        "all": sorted(row.file for row in site.rows), "wrong": ["true/2.png"], "error": ["true/x.png"],
        "answer true": ["true/0.png", "true/2.png"], "answer false": ["false/1.png", "false/tall.png"]}
    assert seen["found"] == {"TALL": [["false/tall.png"], "1 of 5", False], "no such file": [[], "0 of 5", True]}


def test_highlighting(seen: dict[str, Any]) -> None:
    numbers, boxes, keys = seen["pointed"]
    assert sorted(boxes) == sorted(keys) == sorted(numbers.split()) and len(boxes) == 2
    assert seen["left"] == [] and seen["blurred"] == 0
    number, atoms = seen["focused"]
    assert len(atoms) >= 3 and all(number in atom.split() for atom in atoms)


def test_pictures_are_enlarged_and_lead_to_their_files(site: Site, seen: dict[str, Any]) -> None:
    original = (site.maker.folder / "true" / "0.png").as_uri()
    assert seen["enlarged"] == [True, [original], 1]
    assert seen["followed"] == 1  # a way that is taken leaves the picture as it is
    assert seen["shrunk"] == [True, [], 0]


def test_arrow_keys(seen: dict[str, Any]) -> None:
    assert seen["next"] and seen["passed"]


def test_filters_and_orders_of_several_questions(tmp_path: Path) -> None:
    """Image a: red and not blue, of class two; b: not red, blue is wrong, of no class; c failed."""
    seen = browsed(asked_page(tmp_path), SEVERAL, 1300)
    assert seen["errors"] == []
    assert {key: sorted(names) for key, names in seen["shown"].items()} == {
        "all, all": ["a.png", "b.png", "c.png"], "answer true, all": ["a.png"], "all, wrong": ["b.png"],
        "answer false, wrong": ["b.png"], "answer true, wrong": [], "error": ["c.png"]}
    assert seen["orders"] == {
        "high-0": ["a.png", "b.png", "c.png"], "high-1": ["b.png", "a.png", "c.png"],
        "answer-2": ["b.png", "a.png", "c.png"], "written": ["c.png", "b.png", "a.png"]}
