"""Runs the blocks of a page, each in the way that its first line asks for (see blocks.py)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest import mock

from nsfrc import cli
from nsfrc.compiler.parse.sentences import parse
from nsfrc.compiler.stages import compile_file
from nsfrc.errors import CompileError, Diagnostics, Source
from tests.docs import options
from tests.docs.blocks import CHECKED, FREE, Block, Page, commands, matches

# What bash would not hand to the command as it stands.
_SHELL = re.compile(r"[|&;<>$`*?(){}~#\\]|\w+=")
_ERROR = re.compile(r"\berror: ", re.IGNORECASE)


class Runner:
    """Runs one page in a folder of its own, the current one; files and names go from block to block."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.namespace: dict[str, object] = {"__name__": "__main__"}
        self.programs = folder / ".bin"
        self.programs.mkdir()
        for name, arguments in (("nsfrc", "-c 'from nsfrc.cli import main; main()'"), ("python", "")):
            script = self.programs / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
            script.chmod(0o755)

    def run(self) -> None:
        """Every block in order; raises PageError for the first that is not as shown."""
        for block in self.page.blocks:
            self.block(block)

    def block(self, block: Block) -> None:
        if block.language not in CHECKED | FREE:
            raise block.fail(f"the block's language is {block.language or 'missing'}: see tests/docs/blocks.py", -1)
        if block.language in CHECKED:
            getattr(self, block.language)(block)

    def json(self, block: Block) -> None:
        try:
            json.loads(block.text)
        except ValueError as error:
            raise block.fail(f"no JSON: {error}") from None

    def toml(self, block: Block) -> None:
        try:
            tomllib.loads(block.text)
        except ValueError as error:
            raise block.fail(f"no TOML: {error}") from None

    def bash(self, block: Block) -> None:
        for offset, command, _ in commands(block):
            options.check(command, block, offset)

    def console(self, block: Block) -> None:
        if block.flag and len(block.words) < 2:
            raise block.fail("no-run needs a reason", -1)
        for offset, command, shown in commands(block):
            options.check(command, block, offset)
            if not block.flag:
                self._command(block, offset, command, shown)

    def _command(self, block: Block, offset: int, command: str, shown: str) -> None:
        plain = command.startswith("nsfrc ") and not _SHELL.search(command)
        code, printed = in_process(command) if plain else self._bash(command)
        if not matches(shown, printed):
            raise block.fail(f"`{command}` printed\n{printed}\ninstead of\n{shown}", offset)
        if bool(code) != bool(_ERROR.search(shown)):
            raise block.fail(f"`{command}` ended with {code}; what it shows says otherwise", offset)

    def _bash(self, command: str) -> tuple[int, str]:
        path = os.pathsep.join([str(self.programs), os.environ.get("PATH", "")])
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env={**os.environ, "PATH": path}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300,
        )
        return done.returncode, done.stdout

    def python(self, block: Block) -> None:
        if block.name:
            self._write(block)
        # Empty lines before the block, so that a traceback names the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(self.page.path), "exec")
        printed = io.StringIO()
        try:
            path = os.pathsep.join([str(self.programs), os.environ.get("PATH", "")])
            with contextlib.redirect_stdout(printed), mock.patch.dict(os.environ, PATH=path):
                exec(code, self.namespace)
        except Exception as error:
            raise block.fail(f"the Python block failed: {type(error).__name__}: {error}") from error
        if block.printed is not None and not matches(block.printed, printed.getvalue()):
            raise block.fail(f"the Python block printed\n{printed.getvalue()}\ninstead of\n{block.printed}")

    def prolog(self, block: Block) -> None:
        if block.flag == "fragment":
            self._fragment(block)
            return
        path = self._write(block)
        try:
            said = "\n".join(map(str, compile_file(path).warnings))
        except CompileError as error:
            if block.flag != "refused":
                raise block.fail(f"the program is refused:\n{error}") from None
            said = str(error)
        else:
            if block.flag == "refused":
                raise block.fail("the program is not refused")
        if block.flag == "warned" and not said:
            raise block.fail("there are no warnings")
        if block.flag and block.printed is not None and not matches(block.printed, said):
            raise block.fail(f"nsfrc says\n{said}\ninstead of\n{block.printed}")

    def _fragment(self, block: Block) -> None:
        if block.name:
            whole = self.folder / "fragment.pl"
            whole.write_text((self.folder / block.name).read_text(encoding="utf-8") + block.text + "\n")
            compile_file(whole.relative_to(self.folder))
            return
        found = Diagnostics()
        parse(Source("fragment.pl", block.text + "\n"), found)
        if found.failed:
            raise block.fail("the fragment does not parse:\n" + "\n".join(map(str, found.found)))

    def _write(self, block: Block) -> Path:
        """The block as a file in the page's folder; its path as a reader would write it."""
        name = Path(block.name or "program.pl")
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(block.text + "\n", encoding="utf-8")
        return name


def in_process(command: str) -> tuple[int, str]:
    """Run `nsfrc ...` as its entry point does, without waiting for a new interpreter; (code, what it said)."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    nothing = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with (
        mock.patch.object(sys, "argv", shlex.split(command)), mock.patch.object(sys, "stdin", nothing),
        contextlib.redirect_stdout(said), contextlib.redirect_stderr(said),
    ):
        try:
            cli.main()
            code: object = 0
        except SystemExit as stopped:
            code = stopped.code
    said.seek(0)
    return code if isinstance(code, int) else 0, said.read()
