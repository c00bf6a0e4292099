"""Two versions of nsfrc in one run: a process with each one's sources, which answer in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# What such a process runs: this file and a script, as texts of this version, since the other may not have them.
CHILD = """
import json, sys, types
for name, file, text in json.loads(sys.stdin.readline()):
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = file
    exec(compile(text, file, "exec"), module.__dict__)
for line in sys.stdin:
    print(json.dumps(module.answer(*json.loads(line))), flush=True)
"""


class Version:
    """A process with one version's sources. file: a script of this version, whose `answer` is called there."""

    def __init__(self, sources: Path, file: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(sources)}, cwd=sources)
        modules = ((__name__, __file__), ("asked", file))
        self._say([[name, place, Path(place).read_text()] for name, place in modules])

    def ask(self, *question: Any) -> Any:
        """The answer to one question, both as JSON has them."""
        self._say(question)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def _say(self, what: Any) -> None:
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
