"""Blanks at the end of lines, and files that do not end with one newline: `python .ci/whitespace.py FILE …`.

Files whose every byte is meant are left alone. Ends with 1 where there is something to mend.
"""

from __future__ import annotations

import sys
from pathlib import Path

MEANT = ("tests/frontend/errors/",)


def complaints(path: Path) -> list[str]:
    text = path.read_bytes()
    found = [f"{path}:{number}: blanks at the end of the line"
             for number, line in enumerate(text.split(b"\n"), 1) if line != line.rstrip(b" \t")]
    if text and (not text.endswith(b"\n") or text.endswith(b"\n\n")):
        found.append(f"{path}: a file ends with one newline")
    return found


def main() -> int:
    paths = [path for path in sys.argv[1:] if not path.startswith(MEANT)]
    found = [line for path in paths for line in complaints(Path(path))]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
