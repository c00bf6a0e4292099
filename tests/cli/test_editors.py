"""The recipes in docs/editors.md, held against what `nsfrc check` prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.cli.support import RULES, Run
from tests.docs.blocks import ROOT, Page
from tests.examples import write

PAGE = Page(ROOT / "docs" / "editors.md")
BAD = ":- steps(1). :- target(kp(img)).\nkp(X) :- p(X).\np(X) :- in(O, X), colour(P, red)."
EXPECTED = [("rules.pl", 12, 12, "warning"), ("rules.pl", 12, 19, "error"), ("rules.pl", 12, 26, "warning")]


def recipe(language: str) -> str:
    """The first block of a language on the page."""
    return next(block.text for block in PAGE.blocks if block.language == language)


def findings(run: Run) -> str:
    """What is printed of a program with places, and of a file that is not there."""
    write(run.folder, BAD)
    text = run("check", "rules.pl", "nothing.pl").out
    places = [(d["span"]["file"], d["span"]["line"], d["span"]["column"], d["severity"]) for d in
              json.loads(run("check", "rules.pl", "--json").out)["files"][0]["diagnostics"]]
    assert places == EXPECTED
    return text


def test_vs_code_finds_the_places(run: Run) -> None:
    matcher = json.loads(recipe("json"))["tasks"][0]["problemMatcher"]["pattern"]
    found = re.finditer(matcher["regexp"], findings(run), re.MULTILINE)
    parts = [[m[matcher[part]] for part in ("file", "line", "column", "severity", "message")] for m in found]
    assert [(file, int(line), int(column), severity) for file, line, column, severity, _ in parts] == EXPECTED
    assert parts[1][-1] == "unknown predicate colour/2"


@pytest.mark.skipif(shutil.which("vim") is None, reason="no vim")
def test_vim_fills_the_quickfix_list(run: Run) -> None:
    (run.folder / "printed").write_text(findings(run))
    (run.folder / "recipe.vim").write_text(recipe("vim"))
    entries = "map(getqflist(), 'extend(v:val, {\"f\": bufname(v:val.bufnr)})')"
    script = ["source recipe.vim", "cgetfile printed", f"call writefile([json_encode({entries})], 'list')", "qa!"]
    subprocess.run(["vim", "-Nu", "NONE", "-i", "NONE", "-es", *(part for line in script for part in ("-c", line))],
                   cwd=run.folder, stdin=subprocess.DEVNULL, check=True, timeout=60)
    listed = json.loads((run.folder / "list").read_text())
    kinds = {"E": "error", "W": "warning"}
    places = [(e["f"], e["lnum"], e["col"], kinds[e["type"]]) for e in listed]
    assert places == [*EXPECTED, ("nothing.pl", 0, 0, "error")]
    assert listed[1]["text"] == "unknown predicate colour/2\ndid you mean color/2?"


@pytest.mark.skipif(shutil.which("emacs") is None, reason="no emacs")
def test_emacs_reads_the_recipe(run: Run) -> None:
    """Flymake's findings of text as it would be in a buffer."""
    (run.folder / "recipe.el").write_text(recipe("elisp"))
    write(run.folder, BAD)
    (run.folder / "printed").write_text(findings(run))
    (run.folder / "ask.el").write_text("""
(require 'flymake)
(load-file "recipe.el")
(let* ((source (find-file-noselect "rules.pl"))
       (process (make-process :name "cat" :buffer (generate-new-buffer "x") :command '("cat" "printed")
                              :sentinel #'ignore)))
  (while (accept-process-output process))
  (with-current-buffer source
    (dolist (one (reverse (nsfrc--findings process source "rules.pl")))
      (goto-char (flymake-diagnostic-beg one))
      (princ (format "%s %d %d\\n" (flymake-diagnostic-type one) (line-number-at-pos) (1+ (current-column)))))))
""")
    done = subprocess.run(["emacs", "--batch", "-Q", "-l", "ask.el"], cwd=run.folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == [f":{kind} {line} {column}" for _, line, column, kind in EXPECTED]


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_the_hook_stops_a_bad_commit(run: Run) -> None:
    script = f"#!/bin/sh\nexec \"{sys.executable}\" -c 'from nsfrc.cli import main; main()' \"$@\"\n"
    (run.folder / "bin").mkdir()
    (run.folder / "bin" / "nsfrc").write_text(script)
    (run.folder / "bin" / "nsfrc").chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "PATH": f"{run.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=run.folder, env=environment, capture_output=True, text=True,
                              check=False)

    assert git("init", "-q").returncode == 0
    hook = run.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(next(b.text for b in PAGE.blocks if b.text.startswith("#!/bin/sh")) + "\n")
    hook.chmod(0o755)
    (run.folder / "rules").mkdir()
    write(run.folder / "rules", BAD, "a b.pl")
    git("add", "rules")
    refused = git("commit", "-qm", "bad")
    assert refused.returncode != 0 and "rules/a b.pl:12:19: error: " in refused.stdout + refused.stderr
    write(run.folder / "rules", RULES, "a b.pl")
    git("add", "rules")
    assert git("commit", "-qm", "good").returncode == 0
