"""Kernels as functions of this machine: lowered ones (`lowering`) through LLVM, once, and from a file from then on."""

from __future__ import annotations

import ctypes
import inspect
import lzma
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from nsfrc.engines.cpu.cache import HERE, digest, folder, tell
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

Kernel = Callable[[bytes], int]

KERNELS = {
    "forward": ("nsfrc.engines.cpu.forward", "forward"),
    "backward": ("nsfrc.engines.cpu.backward", "backward"),
    "levels_forward": ("nsfrc.engines.cpu.levels_forward", "forward"),
    "levels_backward": ("nsfrc.engines.cpu.levels_backward", "backward"),
}
SOURCES = ("maths", "memory", "tables", "meeting", "one", "reading", "step", "normalising", "forward", "through",
           "through_z", "backward", "levels_tables", "levels_reading", "levels_softor", "levels_single",
           "levels_forward", "levels_single_backward", "levels_backward")
LOWERED = HERE / "lowered"
PREFIX = "nsfrc_"
ON_X86 = platform.machine() in ("x86_64", "AMD64")
LIBRARY = ("malloc", "free", "exp", "expm1", "log1p", "log1pf")  # what kernels call of C's
CHECK = 16  # bytes of a digest before the machine code in a file

# Replaces the processor's float mode: by %extra added to it, or, if negative, by -%extra. Returns the old.
X86_FLOAT_MODE = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal i32 @nsfrc_float_mode(i32 %extra) alwaysinline {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %old = load i32, ptr %place
  %given_back = icmp slt i32 %extra, 0
  %negated = sub i32 0, %extra
  %more = or i32 %old, %extra
  %new = select i1 %given_back, i32 %negated, i32 %more
  store i32 %new, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret i32 %old
}
"""
OTHER_FLOAT_MODE = "define internal i32 @nsfrc_float_mode(i32 %extra) alwaysinline {\n  ret i32 0\n}\n"


# A kernel on some of its records, in one of several threads: those from its number on, with as many between as there
# are threads. %call: addresses of the kernel and of two functions that say the number and count of threads, how many
# records, bytes of each, where to write what the kernel says of each, how many threads there must be at least; then the
# records. Fewer threads do nothing: where kernels wait for each other, none may wait for its turn.
PARTS = """
define void @nsfrc_parts(ptr %call) {
entry:
  %kernel = load ptr, ptr %call
  %number_at = getelementptr i64, ptr %call, i64 1
  %number_of = load ptr, ptr %number_at
  %count_at = getelementptr i64, ptr %call, i64 2
  %count_of = load ptr, ptr %count_at
  %parts_at = getelementptr i64, ptr %call, i64 3
  %parts = load i64, ptr %parts_at
  %size_at = getelementptr i64, ptr %call, i64 4
  %size = load i64, ptr %size_at
  %found_at = getelementptr i64, ptr %call, i64 5
  %found = load ptr, ptr %found_at
  %wanted_at = getelementptr i64, ptr %call, i64 6
  %wanted = load i64, ptr %wanted_at
  %records = getelementptr i64, ptr %call, i64 7
  %number32 = call i32 %number_of()
  %number = sext i32 %number32 to i64
  %threads32 = call i32 %count_of()
  %threads = sext i32 %threads32 to i64
  %enough = icmp sge i64 %threads, %wanted
  br i1 %enough, label %next, label %end
next:
  %part = phi i64 [ %number, %entry ], [ %after, %run ]
  %left = icmp slt i64 %part, %parts
  br i1 %left, label %run, label %end
run:
  %offset = mul i64 %part, %size
  %record = getelementptr i8, ptr %records, i64 %offset
  %said = call i64 %kernel(ptr %record)
  %place = getelementptr i64, ptr %found, i64 %part
  store i64 %said, ptr %place
  %after = add i64 %part, %threads
  br label %next
end:
  ret void
}
"""

# Returns when as many threads are here as the first number of %gate says; the second is the address of `sched_yield`,
# the others, of GATE, are 0 at first. Not OpenMP's barrier: where there is more to do than processors are for, somebody
# who waits must soon make room for those waited for.
MEET = """
define void @nsfrc_meet(ptr %gate) {
entry:
  %arrived_at = getelementptr i64, ptr %gate, i64 8
  %round_at = getelementptr i64, ptr %gate, i64 16
  %count = load i64, ptr %gate
  %give_way_at = getelementptr i64, ptr %gate, i64 1
  %give_way = load ptr, ptr %give_way_at
  %round = load atomic i64, ptr %round_at acquire, align 8
  %before = atomicrmw add ptr %arrived_at, i64 1 acq_rel
  %here = add i64 %before, 1
  %last = icmp eq i64 %here, %count
  br i1 %last, label %open, label %look
open:
  store atomic i64 0, ptr %arrived_at monotonic, align 8
  %next = add i64 %round, 1
  store atomic i64 %next, ptr %round_at release, align 8
  ret void
look:
  %times = phi i64 [ 0, %entry ], [ %more, %again ], [ %more, %yield ]
  %now = load atomic i64, ptr %round_at acquire, align 8
  %over = icmp ne i64 %now, %round
  br i1 %over, label %end, label %wait
wait:
  %more = add i64 %times, 1
  %long = icmp ugt i64 %more, 5000
  br i1 %long, label %yield, label %again
again:
  br label %look
yield:
  %said = call i32 %give_way()
  br label %look
end:
  ret void
}
"""
BESIDE = {"parts": PARTS, "meet": MEET}
GATE = 24  # whole numbers of 64 bits, those that are waited on in lines of the cache of their own


def compiled() -> bool:
    """Whether kernels are machine code here, not the Python that they are written in."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


@cache
def kernel(name: str) -> Kernel:
    """The kernel of that name: takes the bytes of a record, and says what `tables` has words for."""
    if not compiled():
        return _as_python(*KERNELS[name])
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)(address(name))


@cache
def address(name: str) -> int:
    """Where a kernel's machine code is, or that of BESIDE: "parts" runs one on several records, see PARTS."""
    found: int = _engine(_object(name)).get_function_address(PREFIX + name)
    return found


def _as_python(module: str, name: str) -> Kernel:
    """A kernel as the Python it is written in."""
    function = getattr(import_module(module), name)

    def run(record: bytes) -> int:
        place = ctypes.create_string_buffer(record, len(record))
        return int(function(ctypes.addressof(place)))

    return run


def from_sources() -> str:
    """What tells lowered kernels that belong to the sources here from others."""
    return digest(*((HERE / f"{name}.py").read_bytes().replace(b"\r\n", b"\n") for name in SOURCES))


def _text(name: str) -> str:
    """A lowered kernel: as shipped, or, after a change of its sources, made anew."""
    if name in BESIDE:
        return BESIDE[name]
    shipped = _read(LOWERED / f"{name}.ll.xz")
    if shipped is not None and _belongs(shipped):
        return shipped
    return _lowered_anew(name)


def _belongs(text: str) -> bool:
    try:
        return text.startswith(f"; {from_sources()}\n")
    except OSError:  # installed without sources: then nobody changed any
        return True


def _lowered_anew(name: str) -> str:
    from nsfrc.engines.cpu import lowering

    place = folder(from_sources().encode())
    text = _read(place / f"{name}.ll.xz")
    if text is None:
        tell("making kernels anew, as those shipped are of other sources or another LLVM: up to half a minute for each")
        lowering.write(place, name)
        text = _read(place / f"{name}.ll.xz")
    if text is None:
        raise NsfrcError(f"the kernel {name!r} could not be made from its sources in {HERE}")
    return text


def _read(path: Path) -> str | None:
    try:
        return lzma.decompress(path.read_bytes()).decode()
    except (OSError, lzma.LZMAError, UnicodeDecodeError):
        return None


def _object(name: str) -> bytes:
    """The kernel's machine code, from its file if it was compiled before."""
    import llvmlite
    import llvmlite.binding as llvm

    text = _text(name)
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    made_of = (text, llvmlite.__version__, llvm.get_process_triple(), cpu, features, str(_near()))
    path = folder(*(part.encode() for part in made_of)) / f"{name}.o"
    try:
        stored = path.read_bytes()
        if stored[:CHECK] == digest(stored[CHECK:]).encode():
            return stored[CHECK:]
    except OSError:
        pass
    tell("compiling kernels for this machine, once: some seconds")
    try:
        made = _compile(text)
    except RuntimeError:  # LLVM's language grows: an older LLVM may not read what a newer one wrote
        made = _compile(_lowered_anew(name))
    with suppress(NsfrcError):  # nowhere to keep it: the next process compiles again
        write_whole(path, digest(made).encode() + made)
    return made


@cache
def _near() -> bool:
    """Whether machine code and its constants are sure to lie near each other in memory: llvmlite can then be told to
    take one piece for both. Addresses of constants need no registers then, which makes kernels a tenth faster."""
    import llvmlite.binding as llvm

    return ON_X86 and "use_lmm" in inspect.signature(llvm.create_mcjit_compiler).parameters


def _machine() -> Any:
    """What LLVM is to compile for: this processor, with all it can do."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3,
        reloc="pic" if _near() else "static" if target.name.startswith("x86") else "default",
        codemodel="small" if _near() else "jitdefault", jit=True)


def _compile(text: str) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine()
    mode = X86_FLOAT_MODE if ON_X86 else OTHER_FLOAT_MODE
    lines = [line for line in text.splitlines() if not line.startswith(f"declare i32 @{PREFIX}float_mode(")]
    module = llvm.parse_assembly("\n".join(lines) + mode)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


_engines: list[Any] = []  # what holds the machine code; it must outlive its functions


def _engine(code: bytes) -> Any:
    import llvmlite.binding as llvm

    library = ctypes.CDLL(None) if os.name != "nt" else ctypes.CDLL("ucrtbase")
    for function in LIBRARY:
        llvm.add_symbol(function, ctypes.cast(getattr(library, function), ctypes.c_void_p).value)
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, _machine(), **({"use_lmm": True} if _near() else {}))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return engine
