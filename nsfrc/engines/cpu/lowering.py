"""Kernels as LLVM's language for any machine: what numba makes of them before anything is known of a processor.

    python -m nsfrc.engines.cpu.lowering    # writes lowered/*.ll.xz, after a change of a kernel: make kernels

Numba takes longer over a kernel than LLVM does, and what it makes of it is the same everywhere, so that is shipped and
`native` does the rest. These files are what the sources in this folder say and nothing else; `native` compares.
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from nsfrc.engines.cpu.cache import HERE
from nsfrc.engines.cpu.native import KERNELS, LOWERED, PREFIX, from_sources
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole

MODULE = "nsfrc.engines.cpu.lowering"
# Nothing that depends on the machine may happen before `native`: no vectors, no guesses what an instruction costs.
NEUTRAL = {"NUMBA_OPT": "0", "NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0", "NUMBA_DISABLE_JIT": "0",
           "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}

# From numba's way of calling, a status and a place for the result, to C's. No kernel raises anything.
ENTRY = """
define i64 @{prefix}{name}(i64 %address) {{
  %result = alloca i64
  %trouble = alloca ptr
  %status = call i32 @{inner}(ptr %result, ptr %trouble, i64 %address)
  %found = load i64, ptr %result
  ret i64 %found
}}
"""


def lower(name: str) -> str:
    """The kernel of that name and all it calls, as text; in a process whose environment says NEUTRAL."""
    import ctypes

    import llvmlite.binding as llvm
    from numba import types
    from numba.core import config

    assert config.OPT == 0 and not config.DISABLE_JIT, "start this as NEUTRAL says"  # type: ignore[attr-defined]
    # Numba links each function, for this machine, whose float mode is `native`'s business.
    llvm.add_symbol(f"{PREFIX}float_mode", ctypes.cast(ctypes.CFUNCTYPE(None)(lambda: None), ctypes.c_void_p).value)
    module, function = KERNELS[name]
    dispatcher = getattr(import_module(module), function)
    dispatcher.compile((types.int64,))
    (compiled,) = dispatcher.overloads.values()
    text = str(compiled.library._final_module)
    inner = next(match for match in re.findall(r'^define .*? @("[^"]+"|[\w.]+)\(', text, re.M)
                 if match.strip('"') == compiled.fndesc.llvm_func_name)
    return _cleaned(llvm, text + ENTRY.format(prefix=PREFIX, name=name, inner=inner))


def _cleaned(llvm, text: str) -> str:  # type: ignore[no-untyped-def]
    """Without variables in memory and what nobody calls, which is most of it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith(PREFIX):
            function.linkage = "linkonce_odr"  # not internal: those with one caller would all become one function
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_aggressive_dce_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, builder)
    lines = [line for line in str(module).splitlines()
             if line.strip() and not line.startswith(("target ", "source_filename", "; "))]
    return _short_names("\n".join(lines)) + "\n"


def _short_names(text: str) -> str:
    """Functions by numbers: numba's names spell out the types of all arguments."""
    names = dict.fromkeys(re.findall(r'@"?(_ZN[\w$.%]+)"?', text))
    short = {name: f"f{number}" for number, name in enumerate(names)}
    text = re.sub(r'@"?(_ZN[\w$.%]+)"?', lambda match: f"@{short[match[1]]}", text)
    comdats = dict.fromkeys(re.findall(r'\$"?(_ZN[\w$.%]+)"?', text))
    return re.sub(r'\$"?(_ZN[\w$.%]+)"?', lambda match: f"${short[match[1]]}", text) if comdats else text


def write(place: Path, *names: str) -> None:
    """Write lowered kernels to a folder, from a process of its own; all of them unless some are named."""
    environment = {**os.environ, **NEUTRAL, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-m", MODULE, str(place), *names], env=environment, text=True,
                          capture_output=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise NsfrcError(f"kernels could not be made from their sources in {HERE}: {last}")


def main() -> None:
    if os.environ.get("NUMBA_OPT") != "0":
        write(LOWERED)
        return
    place, names = Path(sys.argv[1]), sys.argv[2:] or list(KERNELS)
    for name in names:
        text = f"; {from_sources()}\n{lower(name)}"
        write_whole(place / f"{name}.ll.xz", lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    main()
