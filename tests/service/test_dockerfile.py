"""The Dockerfile: checked by docker where that runs, and else by what can be seen in its text."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs import options

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = {"FROM", "ARG", "RUN", "COPY", "WORKDIR", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL",
                "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Each instruction and what it says, with continued lines joined."""
    text = "\n".join(line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#"))
    return [tuple(line.split(None, 1)) for line in text.replace("\\\n", " ").splitlines() if line.strip()]  # type: ignore[misc]


def of(name: str) -> list[str]:
    return [rest for one, rest in instructions() if one == name]


def test_every_instruction_is_one() -> None:
    found = instructions()
    assert found[0][0] == "FROM" and {name for name, _ in found} <= INSTRUCTIONS
    assert all(re.fullmatch(r"[a-z0-9./:_-]+( AS [a-z]+)?", rest) for rest in of("FROM"))
    for name in ("ENTRYPOINT", "CMD"):
        (text,) = of(name)
        assert all(isinstance(word, str) for word in json.loads(text))
    for command in of("RUN"):
        assert shlex.split(command)


def test_only_package_registries_are_reached() -> None:
    text = "\n".join(f"{name} {rest}" for name, rest in instructions())
    hosts = {urlsplit(address).hostname for address in re.findall(r"https?://[^\s'\"]+", text)}
    assert hosts == {"127.0.0.1"}
    assert not re.search(r"\b(curl|wget|git|apt-get|apk|ADD)\b", text)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for rest in of("COPY"):
        *sources, _ = (word for word in rest.split() if not word.startswith("--"))
        if "--from=" not in rest:
            copied |= set(sources)
    assert copied == kept and all((ROOT / name).exists() for name in copied)
    needed = set((ROOT / "setup.py").read_text().split('for name in ("')[1].split('")')[0].split('", "'))
    assert needed | {"nsfrc"} <= copied


def test_it_serves_as_nobody_in_particular_and_with_a_token() -> None:
    names = [name for name, _ in instructions()]
    assert of("USER") == ["nsfrc"] and names.index("USER") < names.index("ENTRYPOINT")
    program, *command = [*json.loads(of("ENTRYPOINT")[0]), *json.loads(of("CMD")[0])]
    assert program == "nsfrc" and command[:2] == ["serve", "twopairs"] and {"--host", "--token-file"} <= set(command)
    options.parse(command)
    assert of("EXPOSE") == ["8000"]


def test_the_health_check_is_python() -> None:
    (text,) = of("HEALTHCHECK")
    python, flag, code = json.loads(text.split("CMD", 1)[1])
    assert (python, flag) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode in (0, 1)


def test_docker_finds_no_fault() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        pytest.skip("docker does not run here")
    done = subprocess.run([docker, "build", "--check", str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
