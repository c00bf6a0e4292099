"""The header of an ONNX file, read without any library: what goes in and out, metadata, and what would be unsafe.

An ONNX file is a protocol buffer. Weights are passed over, so that a file of any size is read in a moment. A model that
names other files, or operators that no standard has, is refused before anything else sees it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from nsfrc.errors import NsfrcError
from nsfrc.records import dataclass

LARGEST = 2**31 - 1  # bytes, as for every protocol buffer
DEEPEST = 40  # graphs inside graphs
DOMAINS = frozenset(("", "ai.onnx", "ai.onnx.ml", "com.microsoft"))
OUTSIDE = frozenset(("EPContext",))  # operators that read files of their own
AGAIN = "export it again"
_LENGTHS = {1: 8, 5: 4}  # wire types of a fixed number of bytes
KINDS = {1: "float", 10: "float16", 2: "uint8"}  # of elements, as far as they matter here

Dim = int | str


class Cut(Exception):
    """The bytes are not what a protocol buffer has there."""


@dataclass(frozen=True)
class Tensor:
    """An input or an output. shape: numbers, or names of sizes that are open; None where it is not said."""

    name: str
    kind: str
    shape: tuple[Dim, ...] | None

    def __str__(self) -> str:
        shape = "?" if self.shape is None else "[" + ", ".join(map(str, self.shape)) + "]"
        return f"{self.name} {shape}"


@dataclass(frozen=True)
class OnnxFile:
    """What the header of a file says. digest: SHA-256 of the whole file; data: its bytes."""

    path: Path
    digest: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: dict[str, str] = field(repr=False)
    data: bytes = field(repr=False)


def read_onnx(path: Path) -> OnnxFile:
    """The header of a file. Raises NsfrcError where it is not a model, or reaches beyond itself."""
    data = _bytes(path)
    scan = _Scan()
    try:
        scan.model(memoryview(data))
    except (Cut, UnicodeDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, Cut) else "it is damaged"
        raise NsfrcError(f"{path} is not an ONNX model, or it is cut short ({reason}): {AGAIN}") from None
    if scan.external:
        raise NsfrcError(f"{path} keeps weights in another file ({_shown(scan.external)}); a model must be one file, "
                         f"so that it reads no other: {AGAIN} without external data")
    if scan.foreign:
        raise NsfrcError(f"{path} has operators that are not standard ({_shown(scan.foreign)}), which would need code "
                         f"of somebody else's: {AGAIN} with standard ones")
    inputs = tuple(one for one in scan.inputs if one.name not in scan.initial)
    if not inputs or not scan.outputs:
        raise NsfrcError(f"{path} is not an ONNX model, or it is cut short (it has no inputs or outputs): {AGAIN}")
    return OnnxFile(path, hashlib.sha256(data).hexdigest(), inputs, tuple(scan.outputs), scan.metadata, data)


def _bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise NsfrcError(f"{path} is a folder, not a model file")
        if not path.is_file():
            raise NsfrcError(f"there is no model file {path}")
        if path.stat().st_size > LARGEST:
            raise NsfrcError(f"{path} is larger than 2 GB, which no ONNX file of one piece is: {AGAIN}")
        return path.read_bytes()
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror or error}") from None


def _shown(names: dict[str, None]) -> str:
    first = list(names)[:3]
    return ", ".join(map(repr, first)) + (" …" if len(names) > len(first) else "")


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview | int]]:
    """Field numbers, wire types and values of one message; what has a length comes as bytes."""
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise Cut("a field has the number 0")
        if wire == 0:
            value, place = _varint(data, place)
            yield number, wire, value
        elif wire == 2:
            size, place = _varint(data, place)
            if size > end - place:
                raise Cut(f"a part of {size} bytes ends after {end - place}")
            yield number, wire, data[place : place + size]
            place += size
        elif wire in _LENGTHS:
            place += _LENGTHS[wire]
            if place > end:
                raise Cut("a number is cut off")
        else:
            raise Cut(f"a field is of the unknown kind {wire}")


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise Cut("a number is cut off")
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _parts(data: memoryview, *numbers: int) -> Iterator[tuple[int, memoryview]]:
    """Those fields of a message that are messages or text."""
    for number, _, value in _fields(data):
        if number in numbers and isinstance(value, memoryview):
            yield number, value


def _text(data: memoryview, number: int) -> str:
    return next((str(value, "utf-8") for _, value in _parts(data, number)), "")


class _Scan:
    """Walks through a model. external: files that weights lie in; foreign: operators that are not standard."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.initial: set[str] = set()
        self.metadata: dict[str, str] = {}
        self.external: dict[str, None] = {}
        self.foreign: dict[str, None] = {}

    def model(self, data: memoryview) -> None:
        functions: set[tuple[str, str]] = set()
        graphs = []
        for number, part in _parts(data, 7, 14, 25):
            if number == 14:
                self.metadata[_text(part, 1)] = _text(part, 2)
            elif number == 25:
                functions.add((_text(part, 10), _text(part, 1)))
                self._nodes(part, 7, 0, functions)
            else:
                graphs.append(part)
        for graph in graphs:
            self._graph(graph, 0, functions)
            for number, part in _parts(graph, 11, 12):
                (self.inputs if number == 11 else self.outputs).append(_value_info(part))
            self.initial |= {_text(part, 8) for _, part in _parts(graph, 5)}
        if not graphs:
            raise Cut("it has no graph")

    def _graph(self, data: memoryview, depth: int, functions: set[tuple[str, str]]) -> None:
        if depth > DEEPEST:
            raise Cut("graphs are nested too deeply")
        for number, part in _parts(data, 5, 15):
            tensors = [part] if number == 5 else [inner for _, inner in _parts(part, 1, 2)]
            for tensor in tensors:
                self._tensor(tensor)
        self._nodes(data, 1, depth, functions)

    def _nodes(self, data: memoryview, where: int, depth: int, functions: set[tuple[str, str]]) -> None:
        for _, node in _parts(data, where):
            domain, name = _text(node, 7), _text(node, 4)
            if (domain not in DOMAINS or name in OUTSIDE) and (domain, name) not in functions:
                self.foreign[f"{domain}:{name}"] = None
            for _, attribute in _parts(node, 5):
                self._attribute(attribute, depth, functions)

    def _attribute(self, data: memoryview, depth: int, functions: set[tuple[str, str]]) -> None:
        for number, part in _parts(data, 5, 10, 6, 11, 22, 23):
            if number in (5, 10):
                self._tensor(part)
            elif number in (6, 11):
                self._graph(part, depth + 1, functions)
            else:
                for _, inner in _parts(part, 1, 2):
                    self._tensor(inner)

    def _tensor(self, data: memoryview) -> None:
        outside, places = False, []
        for number, _, value in _fields(data):
            if number == 14 and value == 1:
                outside = True
            elif number == 13 and isinstance(value, memoryview) and _text(value, 1) == "location":
                places.append(_text(value, 2))
        if outside or places:
            self.external.update(dict.fromkeys(places or ["a file without a name"]))


def _value_info(data: memoryview) -> Tensor:
    kind, shape = "?", None
    for _, of_type in _parts(data, 2):
        for _, tensor in _parts(of_type, 1):
            for number, _, value in _fields(tensor):
                if number == 1 and isinstance(value, int):
                    kind = KINDS.get(value, f"type {value}")
                elif number == 2 and isinstance(value, memoryview):
                    shape = tuple(_dim(part) for _, part in _parts(value, 1))
    return Tensor(_text(data, 1), kind, shape)


def _dim(data: memoryview) -> Dim:
    for number, _, value in _fields(data):
        if number == 1 and isinstance(value, int):
            return value if value < 2**31 else "?"
        if number == 2 and isinstance(value, memoryview):
            return str(value, "utf-8")
    return "?"
