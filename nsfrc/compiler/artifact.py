"""The artifact `NAME.nsfrc`: one safetensors file with a JSON header that says what it is.

It holds the checked program, its ground rows and the plan, so that a program is loaded without parsing or
grounding. What is read is checked before use: a file that is foreign, damaged, older or newer is refused.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from nsfrc import __version__
from nsfrc.compiler import ir
from nsfrc.compiler.graph import cycle_through_count, with_cycles
from nsfrc.compiler.ground import with_rows_of
from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.herbrand import Herbrand
from nsfrc.compiler.levels import AnyPlan, LevelPlan, LevelSizes
from nsfrc.compiler.plan import Plan, Sizes, small
from nsfrc.compiler.row_layout import Rows
from nsfrc.compiler.stored import Misshapen, from_data, to_data
from nsfrc.compiler.verify import Invalid, verify_ground, verify_levels, verify_plan
from nsfrc.compiler.well_formed import well_formed
from nsfrc.errors import NsfrcError
from nsfrc.files import write_whole
from nsfrc.program import Program

FORMAT = 2

# What grounding made and the program alone does not tell; the rest of the ground program follows from it.
_GROUND = ("pair_clause", "pair_head", "pair_start", "power")


# All that reading a damaged file may meet.
_WRONG = (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, Misshapen, Invalid, NsfrcError)


def save(program: Program, path: Path) -> Path:
    """Write a program, whole or not at all; the same program gives the same bytes."""
    ground = program.ground
    tensors = {f"plan.{name}": table for name, table in program.lowered.tables().items()}
    tensors |= {f"ground.{name}": small(getattr(ground, name)) for name in _GROUND}
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


def _header(program: Program) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "nsfrc": __version__,
        "program": to_data(program.source),
        "S": program.ground.S,
        "sizes": program.lowered.sizes._asdict(),
        "steps": program.steps,
        "depth": program.depth,
    }


def load(path: Path) -> Program:
    """Read a program; raises NsfrcError that says what is wrong with the file."""
    if path.is_dir():
        raise NsfrcError(f"{path} is a folder, not a compiled program")
    if path.suffix == ".pl":
        raise NsfrcError(f"{path} is the text of a program, not a compiled one: compile it with nsfrc.compile "
                         f"or, in a shell, nsfrc compile")
    header, tensors = _read(path)
    try:
        source = from_data(header["program"])
        well_formed(source)
        ground = _ground(source, _count(header["S"], "S"), tensors)
        verify_ground(ground)
        ground = with_cycles(ground) if source.anchored else ground
        if cycle_through_count(ground):  # which nothing could put in order
            raise Misshapen("a negation or count depends on its own result")
        plan = _plan(source, header["sizes"], tensors)
        if isinstance(plan, LevelPlan):
            verify_levels(plan, ground)
        else:
            verify_plan(plan, ground)
        steps, depth = (_count(header[name], name, ir.MAX_STEPS) for name in ("steps", "depth"))
        return Program(source, ground, plan, steps, depth)
    except _WRONG as wrong:
        raise NsfrcError(f"{path} is damaged ({wrong}): compile the program again") from None


def _plan(source: ir.Program, sizes: dict[str, Any], tensors: dict[str, np.ndarray]) -> AnyPlan:
    tables = {name.removeprefix("plan."): table for name, table in tensors.items() if name.startswith("plan.")}
    if source.anchored:
        plan = LevelPlan.from_tables(LevelSizes(**sizes), tables)
        if not plan.declared:
            raise Misshapen("the plan is for other starting values")
        return plan
    return Plan.from_tables(Sizes(**sizes), tables)


def _count(value: object, name: str, most: int = 2**31 - 1) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise Misshapen(f"{name} is not a whole number from 0 to {most}")
    return value


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("nsfrc")
            if text is None:
                raise NsfrcError(f"{path} is a safetensors file, but not a compiled program: it has no nsfrc header")
            header = json.loads(text)
            if not isinstance(header, dict) or not isinstance(header.get("format"), int):
                raise NsfrcError(f"{path} is damaged (its header is not from nsfrc): compile the program again")
            if header["format"] != FORMAT:
                remedy = "update nsfrc" if header["format"] > FORMAT else "compile the program again"
                raise NsfrcError(
                    f"{path} was written by nsfrc {header.get('nsfrc')} in format {header['format']}; "
                    f"this is nsfrc {__version__}, which reads format {FORMAT}: {remedy}"
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


def _ground(source: ir.Program, S: int, tensors: dict[str, np.ndarray]) -> GroundProgram:
    stored = {name: tensors[f"ground.{name}"] for name in _GROUND}
    rows = Rows(
        pair_start=_whole(stored["pair_start"], np.int64),
        **{name: _whole(stored[name], np.int32) for name in ("pair_clause", "pair_head", "power")},
        factors=_whole(tensors["ground.factors"], np.int32) + np.int32(NOTHING),
        multiplicity=np.ones(len(stored["power"]), dtype=np.int64),
    )
    return with_rows_of(source, Herbrand.of(source.types, source.predicates, source.apart), S, rows)


def _whole(table: np.ndarray, dtype: type[np.signedinteger]) -> np.ndarray:
    if table.dtype.kind not in "iu" or int(table.max(initial=0)) > np.iinfo(dtype).max:
        raise ValueError("a table does not hold small whole numbers")
    return table.astype(dtype)
