"""Bodies of requests: read within limits, and taken apart into pictures, detections or facts. No file is written."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from nsfrc.inference.folders import printable
from nsfrc.service.refusals import Gone, Refused, busy, no_constant
from nsfrc.service.settings import MEGA, Limits

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
FORM, JSON = "multipart/form-data", "application/json"
NAME = 255  # characters of a file's name
HOW = ("send pictures as multipart/form-data (curl -F image=@a.png), or detections or facts as application/json "
       "(see /docs)")


@dataclass(frozen=True)
class Uploaded:
    """A picture. name: what its sender calls it; no file is looked for by it."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Sent:
    """What a request is about: one of the three."""

    pictures: tuple[Uploaded, ...] = ()
    detections: tuple[Any, ...] = ()
    facts: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.pictures) + len(self.detections) + len(self.facts)

    @property
    def kind(self) -> str:
        return "pictures" if self.pictures else "detections" if self.detections else "facts"


class Bodies:
    """Reads bodies; all that are being read or worked on hold at most `limits.held` bytes."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.held = limits, 0

    @contextmanager
    def holding(self) -> Iterator[Held]:
        """What one request holds, until the block has ended."""
        one = Held(self)
        try:
            yield one
        finally:
            self.held -= one.count


class Held:
    """The bytes of one body."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies, self.count = bodies, 0

    def add(self, count: int) -> None:
        if self.bodies.held + count > self.bodies.limits.held:
            raise busy("other requests are being read")
        self.bodies.held += count
        self.count += count

    async def read(self, receive: Receive, headers: Mapping[str, str]) -> bytes:
        """The whole body. Raises Refused where it is too large, and Gone."""
        limits = self.bodies.limits
        most = limits.json if headers.get("content-type", "").lower().startswith(JSON) else limits.body
        if (length(headers) or 0) > most:
            raise _too_large(most)
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            part, more = await _next(receive)
            size += len(part)
            if size > most:
                raise _too_large(most)
            self.add(len(part))
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is larger than {most / MEGA:g} MB: send fewer or smaller pictures")


async def _next(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)


def length(headers: Mapping[str, str]) -> int | None:
    """How many bytes a body says it has."""
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def taken_apart(body: bytes, content_type: str, limits: Limits) -> Sent:
    """What a body holds. Raises Refused."""
    kind, options = parse_options_header(content_type)
    if kind == FORM.encode():
        found = Sent(pictures=_pictures(body, options.get(b"boundary", b""), limits))
    elif kind == JSON.encode():
        found = _of_json(body)
    else:
        named = repr(printable(content_type[:80])) if content_type else "missing"
        raise Refused(415, f"the content type is {named}: {HOW}")
    if not len(found):
        raise Refused(422, f"there is nothing to answer for: {HOW}")
    if len(found) > limits.items:
        raise _too_many(limits)
    return found


def _too_many(limits: Limits) -> Refused:
    return Refused(413, f"a request has at most {limits.items} pictures, files or worlds: send several requests")


def _pictures(body: bytes, boundary: bytes, limits: Limits) -> tuple[Uploaded, ...]:
    """The files of a form."""
    form = _Form(limits)
    try:
        parser = MultipartParser(boundary, form.callbacks())  # type: ignore[arg-type]
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise Refused(400, f"the form is damaged ({error})") from None
    if not form.ended:
        raise Refused(400, "the form is cut off: it has no end")
    return tuple(form.found)


class _Form:
    """What the parser tells of a form, part by part."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.found, self.ended = limits, list[Uploaded](), False
        self.headers: dict[bytes, bytes] = {}
        self.field, self.value = b"", b""
        self.data: list[bytes] = []

    def callbacks(self) -> dict[str, Any]:
        return {
            "on_part_begin": self.begin, "on_header_field": self.on_field, "on_header_value": self.on_value,
            "on_header_end": self.header, "on_part_data": self.on_data, "on_part_end": self.part, "on_end": self.end,
        }

    def begin(self) -> None:
        if len(self.found) >= self.limits.items:
            raise _too_many(self.limits)
        self.headers, self.data = {}, []

    def on_field(self, data: bytes, start: int, end: int) -> None:
        self.field += data[start:end]

    def on_value(self, data: bytes, start: int, end: int) -> None:
        self.value += data[start:end]

    def header(self) -> None:
        self.headers[self.field.lower()] = self.value
        self.field = self.value = b""

    def on_data(self, data: bytes, start: int, end: int) -> None:
        self.data.append(data[start:end])

    def part(self) -> None:
        _, options = parse_options_header(self.headers.get(b"content-disposition", b""))
        if b"filename" not in options:
            field = printable(options.get(b"name", b"").decode("utf-8", "replace")[:80])
            raise Refused(422, f"the part {field!r} of the form is not a file: {HOW}")
        name = options[b"filename"].decode("utf-8", "replace")
        self.found.append(Uploaded(printable(name[:NAME]) or f"picture {len(self.found) + 1}", b"".join(self.data)))

    def end(self) -> None:
        self.ended = True


def _of_json(body: bytes) -> Sent:
    try:
        told = json.loads(body.decode("utf-8-sig"), parse_constant=no_constant)
    except UnicodeDecodeError:
        raise Refused(400, "the body is not text in UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON ({error})") from None
    keys = {"detections", "facts"}
    if not isinstance(told, dict) or len(told) != 1 or not told.keys() <= keys:
        raise Refused(422, 'the body must be {"detections": [...]} or {"facts": [...]}, see /docs')
    (key, value), = told.items()
    several = value if isinstance(value, list) else [value]
    return Sent(detections=tuple(several)) if key == "detections" else Sent(facts=tuple(several))
