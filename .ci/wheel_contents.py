"""What is in a wheel and in the sources it was built from: all that the package needs, and nothing else.

    python .ci/wheel_contents.py TREE WHEEL SDIST    TREE: the checkout that both were made of; ends with 1 if not
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

MAPPED = ("benchmarks", "grammars", "kernels", "programs")
KINDS = {".py", ".lark", ".pl", ".json", ".html", ".css", ".js", ".safetensors", ".typed"}
BESIDES = {"README.md", "CHANGELOG.md", "LICENSE", "constraints.txt", "pyproject.toml", "setup.py"}
NEVER = ("__pycache__", "results/", "tests/", "examples/", ".coverage", ".venv")


def needed(tree: Path) -> set[str]:
    """Every file of the package, by its path in the checkout."""
    return {
        path.relative_to(tree).as_posix()
        for top in ("nsfrc", *MAPPED)
        for path in (tree / top).rglob("*")
        if path.is_file() and path.suffix in KINDS and "results" not in path.parts
    }


def installed(path: str) -> str:
    """Where a file of the checkout is in a wheel."""
    return f"nsfrc/{path}" if path.split("/")[0] in MAPPED else path


def complaints(name: str, holds: set[str], wants: set[str]) -> list[str]:
    missing = [f"{name} lacks {path}" for path in sorted(wants - holds)]
    unwanted = [path for path in sorted(holds) if any(word in path.replace("programs/examples/", "") for word in NEVER)]
    return missing + [f"{name} holds {path}" for path in unwanted]


def main() -> int:
    tree, wheel, sdist = map(Path, sys.argv[1:])
    wants = needed(tree)
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if not name.endswith("/")}
    with tarfile.open(sdist) as archive:
        in_sdist = {member.name.partition("/")[2] for member in archive if member.isfile()}
    found = complaints(wheel.name, in_wheel, {installed(path) for path in wants})
    found += complaints(sdist.name, in_sdist, wants | BESIDES)
    print("\n".join(found) or f"{wheel.name}: {len(in_wheel)} files, {sdist.name}: {len(in_sdist)} files, none missing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
