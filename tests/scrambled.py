"""Programs as nobody would lay them out: random white space and comments between their tokens."""

from __future__ import annotations

import random

from nsfrc.compiler.parse.split import tokens

_GAPS = [" ", " ", "  ", "\t", "\n", "\n\n", "\n\n\n\n", "\n    ", " % one\n", "\n% two, it's\n",
         "\n        % three  \n\n", " /* four */ ", "/* five\n   lines */", "\n/* six */\n", " \r\n"]


def scrambled(text: str, rng: random.Random) -> str:
    """A text that often, not always, reads as the same sentences."""
    result, end, wild = [], 0, rng.choice([0.02, 0.2, 0.6])
    for token in tokens(text, 0, comments=True):
        between = text[end : token.start]
        if rng.random() < wild and (between or token.text not in ("(", ".")) and "%" not in text[max(0, end - 1) : end]:
            behind = result[-1] if result else ""
            gap = rng.choice(_GAPS)
            between = f"\n{gap}" if behind.startswith("%") else gap
        result += [between, token.text]
        end = token.end
    return "".join([*result, text[end:]])
