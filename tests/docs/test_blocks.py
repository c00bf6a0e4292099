"""Every code block of the documentation runs, and prints what the page shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nsfrc.cli import cli
from nsfrc.compiler.check.declare import _Directives
from nsfrc.compiler.check.vocabulary import Vocabulary
from nsfrc.errors import Diagnostics
from nsfrc.valuation import registry
from tests.docs import options
from tests.docs.blocks import ROOT, Page, pages
from tests.docs.running import Runner

PAGES = pages()
NEEDS = {"docs/service.md": "fastapi"}  # extras without which a page cannot run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to run a page in; predicates, modules and paths that the page brings go with it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSFRC_HOME", str(tmp_path / ".home"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_do_what_they_show(page: Page, folder: Path) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    Runner(page, folder).run()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_fenced(page: Page) -> None:
    assert [f"{page.name}:{line}" for line in page.indented()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    lost = []
    for line, target in page.links():
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.path.parent / path).resolve() if path else page.path
        if not there.exists() or not there.is_relative_to(ROOT):
            lost.append(f"{page.name}:{line}: {target}")
        elif anchor and there.suffix == ".md" and anchor not in Page(there).anchors():
            lost.append(f"{page.name}:{line}: {target} (no such heading)")
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_running_text_exist(page: Page) -> None:
    for line, span in page.spans():
        if span.startswith("nsfrc "):
            options.mentioned(span, f"{page.name}:{line}")


def test_every_command_is_in_the_documentation() -> None:
    text = "\n".join("\n".join(page.lines) for page in PAGES)
    assert [name for name in _commands(cli, "nsfrc") if not re.search(rf"{re.escape(name)}\b(?!-)", text)] == []


def _commands(group: click.Group, above: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{above} {name}")
        else:
            yield f"{above} {name}"


def test_every_directive_is_in_the_documentation() -> None:
    text = "\n".join("\n".join(page.lines) for page in PAGES if page.name in ("README.md", "docs/language.md"))
    directives = {name for name, _ in _Directives(Vocabulary(Diagnostics()))._readers} | {"include"}
    assert [name for name in sorted(directives) if not re.search(rf"(:- |`){name}\(", text)] == []
