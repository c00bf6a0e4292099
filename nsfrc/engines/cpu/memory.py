"""Arrays that kernels find at addresses, and the room they work in.

Kernels are called with one address, that of a record of numbers (`records`), so that a call from Python costs next to
nothing, and own no memory that numba would count references of.
"""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from nsfrc.engines.cpu.maths import INNER, RETURNS_ARRAY

_LINE = 64  # bytes; every array begins at a line of the cache


def _array_at(dtype, dimensions):  # type: ignore[no-untyped-def]
    """A function: address and shape → the array of that type that is there, row after row."""
    kind = types.Array(dtype, dimensions, "C")

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        array = context.make_array(kind)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(dtype))
        strides = [context.get_constant(types.intp, size)]
        for length in reversed(args[2:]):
            strides.insert(0, builder.mul(length, strides[0]))
        populate_array(array, data=builder.inttoptr(args[0], array.data.type), shape=list(args[1:]), strides=strides,
                       itemsize=context.get_constant(types.intp, size), meminfo=None)
        return array._getvalue()

    numbers = [types.intp] * (dimensions + 1)
    if dimensions == 1:
        @intrinsic
        def at(typingctx, address, length):  # type: ignore[no-untyped-def]
            return kind(*numbers), codegen
    elif dimensions == 2:
        @intrinsic
        def at(typingctx, address, rows, columns):  # type: ignore[no-untyped-def]
            return kind(*numbers), codegen
    else:
        @intrinsic
        def at(typingctx, address, tables, rows, columns):  # type: ignore[no-untyped-def]
            return kind(*numbers), codegen
    return at


ints = _array_at(types.int64, 1)
indices = _array_at(types.uint32, 1)
floats = _array_at(types.float32, 1)
table = _array_at(types.float32, 2)
stack = _array_at(types.float32, 3)
doubles = _array_at(types.float64, 2)
counts = _array_at(types.int64, 2)


@intrinsic
def cell(typingctx):  # type: ignore[no-untyped-def]
    """The address of one whole number that lives as long as the function that asks for it."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        with builder.goto_entry_block():
            place = builder.alloca(ir.IntType(64))
        return builder.ptrtoint(place, ir.IntType(64))

    return types.int64(), codegen


def _of_c(name, result):  # type: ignore[no-untyped-def]
    """A function of C's library that takes one number of 64 bits."""

    @intrinsic
    def call(typingctx, number):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            kind = ir.FunctionType(result, [ir.IntType(64)])
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            found = builder.call(function, args)
            return context.get_dummy_value() if isinstance(result, ir.VoidType) else found

        return (types.void if isinstance(result, ir.VoidType) else types.int64)(types.int64), codegen

    return call


allocate = _of_c("malloc", ir.IntType(64))  # addresses are numbers here; 0 where there is no memory
release = _of_c("free", ir.VoidType())


@intrinsic
def call_at(typingctx, address, number):  # type: ignore[no-untyped-def]
    """Calls the function at an address with a number; it returns nothing."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@njit(**INNER)
def _take(cursor, size):
    """So many bytes of the room: the address where they begin. cursor [1]: where the room that is left begins."""
    address = cursor[0]
    cursor[0] = address + ((size + _LINE - 1) & -_LINE)
    return address


@njit(**INNER)
def begin(room):
    """Where in a room that was allocated arrays may be."""
    return (room + _LINE - 1) & -_LINE


@njit(**RETURNS_ARRAY)
def new_table(cursor, rows, columns):
    return table(_take(cursor, 4 * rows * columns), rows, columns)


@njit(**RETURNS_ARRAY)
def new_row(cursor, length):
    return floats(_take(cursor, 4 * length), length)


@njit(**INNER)
def fill(row, value):
    for i in range(len(row)):
        row[i] = value


@njit(**INNER)
def copy(source, target):
    for i in range(len(target)):
        target[i] = source[i]


@njit(**INNER)
def load_row(values, row):
    """Numbers of examples into the lanes of a row; spare lanes repeat the last example."""
    copy(values, row[: len(values)])
    fill(row[len(values) :], values[len(values) - 1])


@njit(**INNER)
def load_atom(V0, atom, row):
    """An atom of the examples V0 [used, G] into lanes, likewise."""
    used = V0.shape[0]
    for i in range(used):
        row[i] = V0[i, atom]
    fill(row[used:], V0[used - 1, atom])
