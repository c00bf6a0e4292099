"""TAB: the scripts, and what they are answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nsfrc
from nsfrc.cli import COMMANDS, cli
from nsfrc.compiler.parse import shipped_programs
from nsfrc.compiler.passes import NAMES
from nsfrc.perception import names as perceptions
from tests.cli.support import Run

HEAVY = ("torch", "numba", "scipy", "PIL", "matplotlib", "ultralytics")
BASH = """
eval "$SCRIPT"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_nsfrc_completion nsfrc 2> /dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words: str) -> list[str]:
    """What is offered for the last word, in this process."""
    from click.shell_completion import ShellComplete

    found = ShellComplete(cli, {}, "nsfrc", "_NSFRC_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found if item.type == "plain"]


def test_commands_and_options() -> None:
    assert offered("") == list(COMMANDS)
    assert offered("comp") == ["compile", "completion"]
    assert offered("data", "clevr-") == ["clevr-crowded", "clevr-alike", "clevr-hans3", "clevr-hans7"]
    assert offered("check", "--st") == ["--strict"]
    assert offered("--he") == ["--help"]


def test_programs(run: Run) -> None:
    for name in ("rules.pl", "rules.nsfrc", "notes.txt", "sub/deep.pl", "sub/more/x.pl", "other/rest.txt", ".hid.pl",
                 "with blank.pl"):
        path = run.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    here = ["rules.nsfrc", "rules.pl", "sub/deep.pl"]
    assert offered("compile", "") == [*here, *shipped_programs()]
    assert offered("explain", "ru") == here[:2]
    assert offered("check", "rules.pl", "sub/") == ["sub/deep.pl", "sub/more/x.pl"]
    assert offered("compile", f"{run.folder}/sub/d") == [f"{run.folder}/sub/deep.pl"]
    assert offered("reason", "three") == offered("infer", "--program", "three") == ["threepairs"]
    assert offered("compile", "nothing/here") == offered("compile", "oth") == []


def test_names_of_all_kinds() -> None:
    assert offered("infer", "--perception", "") == perceptions()
    assert offered("data", "kandinsky", "t") == ["threepairs", "twopairs"]
    assert offered("compile", "x.pl", "--skip", "") == list(NAMES)
    assert offered("compile", "x.pl", "--emit", "p") == ["plan", "ptx"]
    assert offered("train", "concept", "l") == ["leftside"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_say_how_to_install_them(shell: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = run.good("completion", shell)
    assert f"nsfrc completion {shell}" in "".join(text.splitlines()[:2]) and f"_NSFRC_COMPLETE={shell}_complete" in text
    assert text.splitlines()[0].startswith("#compdef nsfrc" if shell == "zsh" else "# ")
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert run.good("completion") == text


def test_unknown_shells(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "$SHELL is /bin/tcsh: name one of bash, zsh, fish" in run.refused("completion")
    monkeypatch.delenv("SHELL")
    assert "$SHELL is not set" in run.refused("completion")
    assert "'tcsh' is not one of" in run.refused("completion", "tcsh")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("words, expected", [
    (["compile", "twop"], ["twopairs"]),
    (["infer", "--perception", "yolo_"], ["yolo_clevr"]),
])
def test_bash_completes_without_heavy_libraries(words: list[str], expected: list[str], run: Run) -> None:
    """A real bash asks an nsfrc that fails if it loads torch."""
    program = run.folder / "bin" / "nsfrc"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"for name in {HEAVY!r}: sys.modules[name] = None\n"
        "from nsfrc.cli import main\nmain()\n"
    )
    program.chmod(0o755)
    environment = {
        **os.environ, "SCRIPT": run.good("completion", "bash"), "PYTHONPATH": str(Path(nsfrc.__file__).parents[1]),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(["bash", "-c", BASH, "bash", "nsfrc", *words], cwd=run.folder, env=environment,
                          capture_output=True, text=True, check=False)
    assert done.stdout.split() == expected, done.stderr
