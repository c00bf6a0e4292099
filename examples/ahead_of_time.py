"""Compile once, run anywhere: an artifact that is loaded without parsing, and machine code for a GPU that is not here.

    python -m examples.ahead_of_time [folder for what is written]

The program is closeby, which comes with nsfrc. The last part needs Triton, but no GPU, and takes some seconds.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import nsfrc
from nsfrc.files import write_whole

ARCH = "sm_80"  # the A100

# What another process does, which has the file and nothing else.
LOADING = """
import sys, time
start = time.perf_counter()
import nsfrc
program = nsfrc.load(sys.argv[1])
print(f"  loaded in {1e3 * (time.perf_counter() - start):.0f} ms; the parser was imported: {'lark' in sys.modules}")
worlds = [{"in(obj1,img)": 0.9, "in(obj2,img)": 0.9, "closeby(obj1,obj2)": near} for near in (0.8, 0.1)]
for world, value in zip(worlds, program.predict(program.reasoner()(program.valuation(*worlds)))["kp(img)"]):
    print(f"  kp(img) {value.item():.4f} where closeby(obj1,obj2) is {world['closeby(obj1,obj2)']}")
"""


def compile_and_save(folder: Path) -> nsfrc.Program:
    start = time.perf_counter()
    program = nsfrc.compile("closeby")
    seconds = time.perf_counter() - start
    path = program.save(folder / "closeby.nsfrc")
    print(f"Compiled {program.name} in {1e3 * seconds:.0f} ms and wrote {path} ({path.stat().st_size:,} bytes)")
    return program


def load_elsewhere(folder: Path) -> None:
    print("\nIn another process:")
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", LOADING, str(folder / "closeby.nsfrc")], check=True)


def write_source(program: nsfrc.Program, folder: Path) -> None:
    """As `nsfrc compile closeby --emit triton -o closeby_gpu.py` does."""
    from nsfrc.engines.gpu.source import emit

    text, path = emit(program), folder / "closeby_gpu.py"
    write_whole(path, text.encode())
    print(f"\nKernels, tables and forward(V0) as one Python file of {len(text.splitlines())} lines: {path}")


def write_machine_code(program: nsfrc.Program, folder: Path) -> None:
    """For the one kernel that gives the answer; `nsfrc compile closeby --emit cubin --arch sm_80` does it for all."""
    from nsfrc.engines.gpu import aot, kernel_folder

    answering = next(kernel for kernel in aot.kernels(program) if kernel.label == "program_forward")
    path = folder / f"closeby.{ARCH}"
    kernel_folder.write(path, kernel_folder.contents(program, [aot.compile_kernel(answering, ARCH)], "cubin"))
    manifest = json.loads((path / kernel_folder.MANIFEST).read_text())
    print(f"\nMachine code for {manifest['arch']}, all {manifest['steps']} steps in one launch: {path}")
    for kernel in manifest["kernels"]:
        size = (path / kernel["file"]).stat().st_size
        print(f"  {kernel['file']}: {size:,} bytes, {kernel['registers']} registers per thread, "
              f"{kernel['spill_bytes']} bytes of spills, {kernel['shared_bytes']} bytes of shared memory")
        print(f"  launched with {kernel['num_warps']} warps and {', '.join(a['name'] for a in kernel['arguments'])}")
    print(f"  it reads {', '.join(manifest['tables'][manifest['kernels'][0]['tables']].values())}")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/ahead")
    program = compile_and_save(folder)
    load_elsewhere(folder)
    if importlib.util.find_spec("triton") is None:
        print("\nTriton is not installed, so there are no kernels for a GPU: pip install 'nsfrc[gpu]'")
        return
    write_source(program, folder)
    write_machine_code(program, folder)


if __name__ == "__main__":
    main()
