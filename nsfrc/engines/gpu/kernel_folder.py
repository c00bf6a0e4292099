"""The folder that `nsfrc compile --emit ptx|cubin` writes: one file per kernel, their tables, and `kernels.json`,
which says what each one is and how to launch it."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsfrc import __version__
from nsfrc.engines import GAMMA
from nsfrc.engines.base import base_two
from nsfrc.engines.gpu.anchored_tables import pack as pack_anchored
from nsfrc.engines.gpu.anchored_written import fits
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM
from nsfrc.engines.gpu.tables import pack
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.engines.gpu.aot import Compiled
    from nsfrc.program import Program

MANIFEST = "kernels.json"
# Pointers that Triton adds after a kernel's own arguments; these kernels do not use them, so they may be null.
ADDED = (("global_scratch", "*i8"), ("profile_scratch", "*i8"))


def contents(program: Program, compiled: Sequence[Compiled], kind: str) -> dict[str, bytes]:
    """Every file of the folder by name. kind: "ptx" or "cubin"."""
    files = {
        f"{one.kernel.label}.{kind}": one.ptx.encode() if kind == "ptx" else one.cubin for one in compiled
    }
    tables: dict[str, dict[str, str]] = {}
    for kernels, arrays in _tables(program).items():
        tables[kernels] = {name: f"{kernels}.{name}.npy" for name in arrays}
        files |= {tables[kernels][name]: _as_npy(array) for name, array in arrays.items()}
    gamma = program.settings.gamma or GAMMA
    _, k, unit = base_two(gamma).tolist()
    manifest = {
        "nsfrc": __version__, "triton": version("triton"), "program": program.name, "arch": compiled[0].arch,
        "semantics": program.settings.semantics, "inputs": "neural", "outputs": "targets", "weights": "hard",
        "atoms": program.ground.G, "targets": program.targets, "steps": _steps(program), "gamma": gamma, "k": k,
        "unit": unit, "tables": tables,
        "kernels": [_entry(one, f"{one.kernel.label}.{kind}") for one in compiled],
    }
    return files | {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}


def _tables(program: Program) -> dict[str, dict[str, np.ndarray]]:
    """What kernels read, by the file they are in and the argument it is; those that are written out read nothing."""
    if program.anchored:
        plan = program.level_plan(True, True)
        if fits(plan, soft=False):
            return {}
        tables = pack_anchored(plan, targets_only=True, soft=False)
        return {"anchored": {"ints": tables.ints, "floats": tables.floats}}
    packed = {shape.kernels: pack(program.plan, True, shape.rows_of_part) for shape in (PROGRAM, CLAUSE)}
    return {kernels: {"indices": one.indices, "floats": one.floats} for kernels, one in packed.items()}


def _steps(program: Program) -> int:
    """The argument `steps`; under `anchored` -1 is for as many rounds as suffice."""
    if not program.anchored:
        return program.steps
    return -1 if program.settings.steps is None else program.settings.steps


def _as_npy(table: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.save(data, table)
    return data.getvalue()


def _entry(one: Compiled, file: str) -> dict[str, Any]:
    kernel = one.kernel
    return {
        "kernel": kernel.name, "variant": kernel.variant, "file": file, "entry": one.entry, "arch": one.arch,
        "tables": kernel.kernels, "registers": one.registers, "spill_bytes": one.spill_bytes,
        "stack_bytes": one.stack_bytes, "shared_bytes": one.shared, **kernel.options,
        "most_registers": kernel.most_registers,
        "grids": kernel.grids,
        "arguments": [{"name": name, "type": kind} for name, kind in (*kernel.arguments, *ADDED)],
        "constants": {name: _plain(value) for name, value in kernel.constants},
        "layout": kernel.sizes,
    }


def _plain(value: Any) -> Any:
    return value._asdict() if hasattr(value, "_asdict") else value


def refuse_foreign(path: Path) -> None:
    """A folder may be replaced only if it is empty, or holds what was written here and nothing else."""
    if not path.exists():
        return
    if not path.is_dir():
        raise NsfrcError(f"--out {path} is a file: name a folder for the kernels")
    names = set(os.listdir(path))
    foreign = sorted(names - _written(path))
    if foreign:
        raise NsfrcError(f"--out {path} holds files that are not compiled kernels, such as {foreign[0]}: name another "
                         "folder")


def _written(path: Path) -> set[str]:
    """Names of the files of a folder that its manifest knows."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        tables = [file for tables in manifest["tables"].values() for file in tables.values()]
        return {MANIFEST, *tables, *(kernel["file"] for kernel in manifest["kernels"])}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return set()


def write(path: Path, files: dict[str, bytes]) -> None:
    """Replace a folder in one move, so that half of it is never seen."""
    refuse_foreign(path)
    whole = path.absolute()
    temporary = whole.with_name(f".{whole.name}.{secrets.token_hex(4)}")
    old = whole.with_name(f"{temporary.name}.old")
    try:
        temporary.mkdir(parents=True)
        for name, data in files.items():
            (temporary / name).write_bytes(data)
        if whole.exists():
            whole.rename(old)
        temporary.rename(whole)
    except OSError as error:
        raise NsfrcError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if old.exists() and not whole.exists():
            old.rename(whole)
        for rest in (temporary, old):
            shutil.rmtree(rest, ignore_errors=True)
