"""ONNX models as bytes, written without any library: nodes, weights, one input and some outputs.

    graph = Graph("images", ("batch", 3, "height", "width"))
    out = graph.node("Sigmoid", ["images"])
    data = graph.model({out: ("batch", 3, "height", "width")})

An ONNX file is a protocol buffer, see `onnx_file`: a field is its number and kind, then a number, or a length and
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

IR_VERSION, OPSET = 8, 17  # of 2022: every ONNX Runtime that is asked for reads them
KINDS = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}
INT, STRING, INTS = 2, 3, 7  # kinds of attributes

Value = int | str | Sequence[int]


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # negative numbers in two's complement
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


class Graph:
    """Nodes in the order in which they are computed. What a node gives goes by a number."""

    def __init__(self, name: str, shape: Sequence[int | str]) -> None:
        self.name = name
        self._input = _bytes(11, _typed(name, shape))
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []

    def node(
        self, kind: str, inputs: Sequence[str], attributes: Mapping[str, Value] | None = None,
        names: Sequence[str] = (),
    ) -> str:
        """Add a node, and say what its last output is called. names: of its outputs, where one without will not do."""
        names = names or (f"n{len(self._nodes)}",)
        parts = [*(_bytes(1, one) for one in inputs), *(_bytes(2, one) for one in names), _bytes(4, kind)]
        parts += [_bytes(5, _attribute(key, value)) for key, value in (attributes or {}).items()]
        self._nodes.append(_bytes(1, b"".join(parts)))
        return names[-1]

    def tensor(self, values: np.ndarray) -> str:
        """Add weights, float32 or int64, and say what they are called."""
        name = f"w{len(self._tensors)}"
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        parts = [*(_number(1, size) for size in values.shape), _number(2, KINDS[values.dtype]), _bytes(8, name),
                 _bytes(9, little.tobytes())]
        self._tensors.append(_bytes(5, b"".join(parts)))
        return name

    def model(
        self, outputs: Mapping[str, Sequence[int | str]], metadata: Mapping[str, str] | None = None
    ) -> bytes:
        """The whole model. outputs: which nodes' results, and their shapes. metadata: what is said of it."""
        given = [_bytes(12, _typed(name, shape)) for name, shape in outputs.items()]
        graph = b"".join([*self._nodes, _bytes(2, "nsfrc"), *self._tensors, self._input, *given])
        told = [_bytes(14, _bytes(1, key) + _bytes(2, value)) for key, value in (metadata or {}).items()]
        return b"".join([_number(1, IR_VERSION), _bytes(2, "nsfrc"), _bytes(7, graph), _bytes(8, _number(2, OPSET)),
                         *told])


def _attribute(name: str, value: Value) -> bytes:
    if isinstance(value, int):
        return _bytes(1, name) + _number(3, value) + _number(20, INT)
    if isinstance(value, str):
        return _bytes(1, name) + _bytes(4, value) + _number(20, STRING)
    return _bytes(1, name) + b"".join(_number(8, one) for one in value) + _number(20, INTS)


def _typed(name: str, shape: Sequence[int | str]) -> bytes:
    """The name, kind and shape of what goes in or out; sizes that are open have a name."""
    sizes = (_number(1, size) if isinstance(size, int) else _bytes(2, size) for size in shape)
    kind = _number(1, KINDS[np.dtype(np.float32)]) + _bytes(2, b"".join(_bytes(1, size) for size in sizes))
    return _bytes(1, name) + _bytes(2, _bytes(1, kind))
