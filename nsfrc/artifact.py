"""The artifact `NAME.nsfrc`: one safetensors file with a JSON header that says what it is.

It holds the plan and the ground rows it was made of, so that a program is loaded without parsing or
grounding. What is read is checked before use: a file that is foreign, damaged or newer is refused.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from nsfrc import __version__, ir
from nsfrc.errors import NsfrcError
from nsfrc.grounded import NOTHING, GroundProgram
from nsfrc.herbrand import Herbrand
from nsfrc.plan import Plan, small
from nsfrc.program import Program
from nsfrc.verify import Invalid, verify_ground, verify_plan

FORMAT = 1

_GROUND = ("initial", "neural", "targets", "pair_clause", "pair_head", "pair_start", "power", "components")


def save(program: Program, path: Path) -> Path:
    """Write a program, whole or not at all; the same program gives the same bytes."""
    ground = program.ground
    tensors = {f"plan.{name}": table for name, table in program.plan.tables().items()}
    tensors |= {f"ground.{name}": _compact(getattr(ground, name)) for name in _GROUND}
    tensors["ground.factors"] = small(ground.factors + 1)  # NOTHING, -1, is stored as 0
    write_whole(path, _pack(_header(program), {name: np.ascontiguousarray(t) for name, t in tensors.items()}))
    return path


def _pack(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> bytes:
    # One entry holds everything: safetensors writes several in no fixed order.
    header = {**header, "crc32": _checksum(header, tensors)}
    return to_bytes(tensors, {"nsfrc": json.dumps(header, sort_keys=True)})


def _checksum(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    """Tells accidents such as a flipped bit; what the tables say is verified all the same."""
    code = zlib.crc32(json.dumps({**header, "crc32": None}, sort_keys=True).encode())
    for name, table in sorted(tensors.items()):
        code = zlib.crc32(f"{name} {table.dtype} {table.shape}".encode(), code)
        code = zlib.crc32(table.tobytes(), code)
    return f"{code:08x}"


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file in one move, so that a reader never sees half of it; a device is written to as it is."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise NsfrcError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise NsfrcError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _compact(table: np.ndarray) -> np.ndarray:
    return small(table) if table.dtype.kind in "iu" else table


def _header(program: Program) -> dict[str, Any]:
    ground = program.ground
    return {
        "format": FORMAT,
        "nsfrc": __version__,
        "name": program.name,
        "types": [{"name": t.name, "constants": t.constants, "role": t.role, "slots": t.slots}
                  for t in ground.herbrand.types],
        "predicates": [{"name": p.name, "types": p.types, "role": p.role} for p in ground.herbrand.predicates],
        "clauses": ground.clauses,
        "S": ground.S,
        "L": ground.L,
        "steps": program.steps,
        "depth": program.depth,
        "settings": asdict(program.settings),
    }


def load(path: Path) -> Program:
    """Read a program; raises NsfrcError that says what is wrong with the file."""
    if path.is_dir():
        raise NsfrcError(f"{path} is a folder, not a compiled program")
    if path.suffix == ".pl":
        raise NsfrcError(f"{path} is the text of a program, not a compiled one: nsfrc.compile takes it, in a shell "
                         f"nsfrc compile")
    header, tensors = _read(path)
    try:
        ground = _ground(header, tensors)
        plan = Plan.from_tables({name[5:]: t for name, t in tensors.items() if name.startswith("plan.")})
        verify_ground(ground)
        verify_plan(plan, ground)
        settings = ir.Settings(**header["settings"])
        return Program(header["name"], ground, plan, settings, int(header["steps"]), int(header["depth"]))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, Invalid) as error:
        raise NsfrcError(f"{path} is damaged ({error}): compile the program again") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("nsfrc")
            if text is None:
                raise NsfrcError(f"{path} is a safetensors file, but not a compiled program: it has no nsfrc header")
            header = json.loads(text)
            if not isinstance(header, dict) or not isinstance(header.get("format"), int):
                raise NsfrcError(f"{path} is damaged (its header is not ours): compile the program again")
            if header["format"] > FORMAT:
                raise NsfrcError(
                    f"{path} was written by nsfrc {header.get('nsfrc')} in format {header['format']}; "
                    f"this is nsfrc {__version__}, which reads up to format {FORMAT}: update nsfrc"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if header.get("crc32") != _checksum(header, tensors):
                raise NsfrcError(f"{path} is damaged (its checksum is wrong): compile the program again")
            return header, tensors
    except FileNotFoundError:
        raise NsfrcError(f"there is no file {path}") from None
    except (SafetensorError, json.JSONDecodeError, RecursionError) as error:
        raise NsfrcError(f"{path} is not a compiled program, or it is cut short ({error})") from None
    except OSError as error:
        raise NsfrcError(f"cannot read {path}: {error.strerror or error}") from None


def _ground(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> GroundProgram:
    types = tuple(ir.DataType(t["name"], tuple(t["constants"]), t["role"], t["slots"]) for t in header["types"])
    predicates = tuple(ir.Predicate(p["name"], tuple(p["types"]), p["role"]) for p in header["predicates"])
    herbrand = Herbrand.of(types, predicates)
    stored = {name: tensors[f"ground.{name}"] for name in _GROUND}
    whole = {name: _whole(stored[name], np.int64) for name in ("pair_start", "components")}
    index = {name: _whole(stored[name], np.int32) for name in ("targets", "pair_clause", "pair_head", "power")}
    atoms = np.arange(herbrand.size, dtype=np.int32)
    return GroundProgram(
        herbrand=herbrand, clauses=tuple(header["clauses"]), S=int(header["S"]), L=int(header["L"]),
        initial=stored["initial"], neural=stored["neural"], slot_of=atoms, members=atoms,
        factors=_whole(tensors["ground.factors"], np.int32) + np.int32(NOTHING),
        multiplicity=np.ones(len(stored["power"]), dtype=np.int64),
        nodes=np.zeros((0, 2), dtype=np.int32), active=herbrand.size, **whole, **index,
    )


def _whole(table: np.ndarray, dtype: type[np.signedinteger]) -> np.ndarray:
    if table.dtype.kind not in "iu" or int(table.max(initial=0)) > np.iinfo(dtype).max:
        raise ValueError("a table does not hold small whole numbers")
    return table.astype(dtype)
