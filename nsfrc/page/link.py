"""What is on the page as part of an address, and back. A link is data: text, names and labels, each looked at."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from nsfrc.errors import NsfrcError

VERSION = 1
MAX_LINK = 30_000  # characters; servers take lines of 64 kB
MAX_STATE = 1_000_000  # bytes that a link may unpack to
MAX_SAMPLES = 40


@dataclass(frozen=True)
class State:
    """name: of the program, without a folder. samples: of which sample figures, in their order. labels: question →
    picture → answer. selected: the picture whose reason is shown. facts: what was imagined of it. perception: one that
    was chosen in the place of the program's own.
    """

    text: str = ""
    name: str = "program"
    samples: tuple[str, ...] = ()
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    selected: str | None = None
    facts: dict[str, float] = field(default_factory=dict)
    perception: str | None = None


def encode(state: State) -> str | None:
    """A state as letters and digits; None where it is too long for an address."""
    entries = {"v": VERSION, "text": state.text, "name": state.name, "samples": list(state.samples),
               "labels": state.labels, "selected": state.selected, "facts": state.facts, "perception": state.perception}
    data = zlib.compress(json.dumps(entries, ensure_ascii=False).encode("utf-8", "surrogatepass"), 9)
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    return text if len(text) <= MAX_LINK else None


def decode(link: str) -> State:
    """What a link says. Raises NsfrcError where it is damaged or not one of ours."""
    if len(link) > MAX_LINK:
        raise NsfrcError("the link is too long: it is not one of this page's")
    try:
        data = base64.b64decode(link + "=" * (-len(link) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(data, MAX_STATE)
        if not unpacking.eof or unpacking.unconsumed_tail:
            raise ValueError("cut off, or too long")
        return _state(json.loads(raw.decode("utf-8", "surrogatepass")))
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise NsfrcError(f"the link is damaged or cut off ({error}): copy it again") from None


def _state(found: Any) -> State:
    if not isinstance(found, dict) or found.get("v") != VERSION:
        raise ValueError("not a link of this version")
    samples = found.get("samples", [])
    if not isinstance(samples, list) or len(samples) > MAX_SAMPLES:
        raise ValueError("samples")
    labels = _dict(found.get("labels", {}))
    facts = {_text(atom): value for atom, value in _dict(found.get("facts", {})).items()}
    if not all(isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
               for value in facts.values()):
        raise ValueError("facts")
    selected, perception = found.get("selected"), found.get("perception")
    return State(
        _text(found.get("text", "")), _text(found.get("name", "program")), tuple(map(_text, samples)),
        {_text(question): {_text(name): _text(label) for name, label in _dict(one).items()}
         for question, one in labels.items()},
        None if selected is None else _text(selected), {atom: float(value) for atom, value in facts.items()},
        None if perception is None else _text(perception),
    )


def _text(value: Any) -> str:
    """A text that can be sent to a browser: halves of characters are none."""
    if not isinstance(value, str):
        raise ValueError("not text")
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _dict(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value
