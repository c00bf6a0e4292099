"""The facts converter: object vectors [B, E, D] → V0 [B, G], a few tensor operations for each neural predicate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nsfrc import ir
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.trial import undisturbed
from nsfrc.valuation import concepts, predicates  # the latter registers what comes with nsfrc
from nsfrc.valuation.arguments import Argument, Attributes, Input, Objects, Scene, UnknownValue
from nsfrc.valuation.registry import Registered, find, names

if TYPE_CHECKING:
    from nsfrc.herbrand import Herbrand
    from nsfrc.program import Program

OBJECTNESS = "objectness"
# Rounding may carry a value this far beyond 0 or 1.
ROUNDING = 1e-5


class FactsConverter(torch.nn.Module):
    """Object vectors [B, E, D] → V0 [B, G], ready for the reasoner.

    dimensions: names of the D entries of a vector. parameters: a file of learnt concepts that goes before the
    shipped ones. source: the perception that vectors are from, for messages.
    objects: how many rows E the program needs at least; object constant i of its type is row i.
    An object whose objectness is exactly 0 is missing: all atoms that name it are 0.
    """

    constant: torch.Tensor

    def __init__(
        self, program: Program, dimensions: Sequence[str], parameters: Path | str | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__()
        self.source = source
        if not hasattr(program, "ground"):
            raise NsfrcError(f"a facts converter takes a compiled program, as nsfrc.compile gives, not {program!r}")
        herbrand = program.ground.herbrand
        if not isinstance(dimensions, list | tuple) or len(set(dimensions)) < len(dimensions):
            raise NsfrcError(f"dimensions are the names of an object vector's entries, each once, not {dimensions!r}")
        self.columns = {name: i for i, name in enumerate(dimensions)}
        if OBJECTNESS not in self.columns:
            raise NsfrcError(
                f"object vectors have no dimension {OBJECTNESS!r}, which says whether an object is there; "
                f"there are {', '.join(dimensions) or 'none'}"
            )
        neural = [p for p in herbrand.predicates if p.role == ir.NEURAL]
        found = _functions(program.name, neural)
        self.predicates = torch.nn.ModuleDict(
            {_key(p): Valuation(p, found[p.name], herbrand, self.columns) for p in neural}
        )
        self.objects = max((v.objects for v in self._valuations()), default=0)
        self.register_buffer("constant", torch.from_numpy(program.initial_valuation()), persistent=False)
        self.pieces = _pieces(herbrand)
        if parameters is not None:
            self._load(Path(parameters))
        self._try_out()

    def _valuations(self) -> list[Valuation]:
        return [v for v in self.predicates.values() if isinstance(v, Valuation)]

    def _load(self, path: Path) -> None:
        entries = concepts.read(path)
        used = [valuation.registered.name for valuation in self._valuations()]
        for name in entries:
            # Others that nobody has registered may be for a plug-in that this program does without.
            if name not in names() and (hint := did_you_mean(name, used)) is not None:
                raise NsfrcError(f"{path}: there is no neural predicate {name}: {hint}")
        if not any(name in used for name in entries):
            others = ", ".join(entries) or "nothing"
            raise NsfrcError(f"{path} has parameters of {others}; the neural predicates here are {', '.join(used)}")
        for name, valuation in zip(used, self._valuations(), strict=True):
            if name in entries:
                concepts.set_parameters(valuation.function, entries[name], f"{path}: {name}")

    def save_concepts(self, path: Path | str, made_by: dict[str, Any] | None = None) -> None:
        """Write what was learnt to a file that `parameters` reads; entries of other predicates that it has stay.

        These are parameters and persistent buffers of every neural predicate that is a module, in full precision.
        made_by: notes on their making, kept beside them.
        """
        entries: concepts.Entries = {}
        for valuation in self._valuations():
            name, entry = valuation.registered.name, concepts.parameters_of(valuation.function)
            if entry != entries.setdefault(name, entry):  # the file knows predicates by name alone
                raise NsfrcError(f"{name} of {valuation.arity} arguments and another {name} have learnt different "
                                 f"parameters, and {path} has place for one of them: give one another name")
        entries = {name: {**entry, concepts.MADE_BY: made_by or {}} for name, entry in entries.items() if entry}
        if not entries:
            used = ", ".join(valuation.registered.name for valuation in self._valuations())
            raise NsfrcError(f"nothing to write to {path}: none of the neural predicates here has parameters ({used})")
        concepts.add(Path(path), entries)

    def _try_out(self) -> None:
        """Run once on nothing, so that what a function lacks is said when a program is opened, not on its images."""
        with undisturbed(self):
            self(self.constant.new_zeros(2, max(1, self.objects), len(self.columns)))

    def forward(self, objects: torch.Tensor) -> torch.Tensor:
        self._refuse_shape(objects)
        missing = objects[:, :, self.columns[OBJECTNESS]] == 0
        # A look at the values is free on the CPU alone; elsewhere the masks are applied whether needed or not.
        look = objects.device.type == "cpu" and not torch.compiler.is_compiling()
        nobody_missing = look and not bool(missing.any())
        scene = Scene(objects, self.columns, self.source)
        constant = self.constant.to(objects.dtype).expand(len(objects), -1)
        parts = []
        for first, last, key in self.pieces:
            if key is None:
                parts.append(constant[:, first:last])
            else:
                parts.append(self.predicates[key](scene, None if nobody_missing else missing))
        V0 = torch.cat(parts, dim=1)
        if look:
            self._refuse_values(V0, objects)
        return V0

    def _refuse_shape(self, objects: torch.Tensor) -> None:
        if not isinstance(objects, torch.Tensor):
            raise NsfrcError(f"object vectors are a tensor [B, E, D], not a {type(objects).__name__}")
        if objects.ndim != 3 or objects.shape[2] != len(self.columns) or objects.shape[1] < self.objects:
            raise NsfrcError(
                f"object vectors have shape {list(objects.shape)}; this program and perception need "
                f"[B, {self.objects} or more, {len(self.columns)}]"
            )
        if not objects.is_floating_point():
            raise NsfrcError(f"object vectors are {objects.dtype}; they must be floating point, as float32")

    def _refuse_values(self, V0: torch.Tensor, objects: torch.Tensor) -> None:
        if not V0.numel():
            return
        least, most = V0.detach().aminmax()
        if least >= -ROUNDING and most <= 1 + ROUNDING:  # false for NaN
            return
        for first, last, key in self.pieces:
            values = V0.detach()[:, first:last]
            wrong = (~((values >= -ROUNDING) & (values <= 1 + ROUNDING))).nonzero()
            if key is not None and len(wrong):
                valuation = self.predicates[key]
                assert isinstance(valuation, Valuation)
                image, atom = wrong[0].tolist()
                raise NsfrcError(
                    valuation.blamed(objects.detach()[image], atom, image)
                    or f"{valuation.spoken} gave {values[image, atom].item():.4g}; the values of a predicate are from "
                       f"0 to 1"
                )


class Valuation(torch.nn.Module):
    """One neural predicate of a program: its function, and the arguments of its N ground atoms as indices."""

    arguments: torch.Tensor
    inverse: torch.Tensor
    columns: torch.Tensor
    stand_ins: torch.Tensor

    def __init__(
        self, predicate: ir.Predicate, registered: Registered, herbrand: Herbrand, dimensions: dict[str, int]
    ) -> None:
        super().__init__()
        registered.refuse_arity(len(predicate.types))
        self.registered, self.arity = registered, len(predicate.types)
        self.function: Callable[..., Any] = registered.build()
        self.predicate = f"the neural predicate {predicate.name}({', '.join(predicate.types)})"
        self.spoken = f"the function of the neural predicate {predicate} ({registered.place})"
        types = [herbrand.type_by_name[name] for name in predicate.types]
        self.roles = [t.role for t in types]
        self.dimensions = list(dimensions)
        self.objects = max((len(t.constants) for t in types if t.role == ir.OBJECT), default=0)
        arguments = herbrand.arguments(predicate.key)
        self.once = registered.symmetric and len(set(predicate.types)) == 1
        inverse = np.arange(len(arguments))
        if self.once:  # atoms that name the same constants are valued once
            arguments, inverse = np.unique(np.sort(arguments, axis=1), axis=0, return_inverse=True)
        self.names = [tuple(t.constants[i] for i in arguments[:, k]) for k, t in enumerate(types)]
        self.known = [all(name in dimensions for name in column) for column in self.names]
        columns = [[dimensions.get(name, -1) for name in column] for column in self.names]
        for name, table in (("arguments", arguments.T), ("inverse", inverse.reshape(-1)), ("columns", columns)):
            tensor = torch.from_numpy(np.ascontiguousarray(table, dtype=np.int64))
            self.register_buffer(name, tensor, persistent=False)
        self.register_buffer("stand_ins", _stand_ins(len(types), len(dimensions)), persistent=False)

    def forward(self, scene: Scene, missing: torch.Tensor | None) -> torch.Tensor:
        """Values [B, N] of all ground atoms; missing [B, E] or None."""
        absent = None if missing is None else self._absent(missing)
        values = self._call([self._argument(k, scene, absent) for k in range(self.arity)])
        values = self._shaped(values, len(scene.vectors))
        if absent is not None:
            values = torch.where(absent, 0.0, values)
        return values.index_select(1, self.inverse) if self.once else values

    def blamed(self, vectors: torch.Tensor, atom: int, image: int) -> str | None:
        """What to say of the vectors [E, D] if it is they that spoilt an atom of a predicate that comes with nsfrc."""
        if getattr(self.function, "__module__", "") != predicates.__name__:
            return None
        place = int(self.inverse[atom])
        given = [self.names[k][place] for k, role in enumerate(self.roles) if role == ir.ATTRIBUTE]
        for k, role in enumerate(self.roles):
            if role != ir.OBJECT:
                continue
            row = int(self.arguments[k, place])
            for name, value in zip(self.dimensions, vectors[row].tolist(), strict=True):
                in_range = -ROUNDING <= value <= 1 + ROUNDING
                if not math.isfinite(value) or (not in_range and name in (*given, OBJECTNESS)):
                    wanted = "from 0 to 1" if name in (*given, OBJECTNESS) else "finite"
                    return (f"object vectors: entry {name!r} is {value:.4g} in row {row} of image {image}; perception "
                            f"must give numbers there that are {wanted}")
        return None

    def _absent(self, missing: torch.Tensor) -> torch.Tensor | None:
        """Atoms that name a missing object: [B, N]."""
        absent = None
        for k, role in enumerate(self.roles):
            if role == ir.OBJECT:
                here = missing.index_select(1, self.arguments[k])
                absent = here if absent is None else absent | here
        return absent

    def _argument(self, k: int, scene: Scene, absent: torch.Tensor | None) -> Argument:
        if self.roles[k] == ir.OBJECT:
            return Objects(scene, self.arguments[k], absent, self.stand_ins[k].to(scene.vectors.dtype))
        if self.roles[k] == ir.ATTRIBUTE:
            return Attributes(self.names[k], self.columns[k] if self.known[k] else None)
        return Input(self.names[k], scene)

    def _call(self, arguments: list[Argument]) -> torch.Tensor:
        try:
            return self.function(*arguments)
        except UnknownValue as error:  # the program's constant, whatever function asked for it
            raise NsfrcError(f"{self.predicate}: {error}") from None
        except NsfrcError as error:
            raise NsfrcError(f"{self.spoken}: {error}") from error
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
            raise NsfrcError(f"{self.spoken} failed: {type(error).__name__}: {reason}") from error

    def _shaped(self, values: object, batch: int) -> torch.Tensor:
        """The values as [B, N]; a function that does not look at the objects may give [N]."""
        count = self.arguments.shape[1]
        if not isinstance(values, torch.Tensor) or not values.is_floating_point():
            given = f"{values.dtype} values" if isinstance(values, torch.Tensor) else type(values).__name__
            raise NsfrcError(f"{self.spoken} gave {given}; it must give a floating point tensor [B, N]")
        if values.shape == (count,):
            values = values.expand(batch, -1)
        if values.shape != (batch, count):
            raise NsfrcError(
                f"{self.spoken} gave values of shape {list(values.shape)}; it must give [B, N], here [{batch}, {count}]"
            )
        return values


def _key(predicate: ir.Predicate) -> str:
    """A module's name may not have a dot in it."""
    return str(predicate).replace(".", "%2E")


def _functions(program: str, neural: list[ir.Predicate]) -> dict[str, Registered]:
    """The function of every neural predicate; raises with all predicates that have none, or no arguments."""
    for predicate in neural:
        if not predicate.types:
            raise NsfrcError(
                f"the neural predicate {predicate.name} of {program} has no arguments, so nothing can value it: "
                f"give it the image, as in :- neural({predicate.name}(image))."
            )
    found = {p.name: find(p.name) for p in neural}
    lacking = [p for p in neural if found[p.name] is None]
    if lacking:
        first = lacking[0]
        arguments = ", ".join("abcdefghijklmnop"[: len(first.types)])
        function = first.name if first.name.isidentifier() else "value"
        raise NsfrcError(
            f"{program} has neural predicates without a function: {', '.join(map(str, lacking))}; there are "
            f"{', '.join(names())}. Write @nsfrc.neural_predicate(\"{first.name}\") above a Python function "
            f"{function}({arguments}) that returns values [B, N], and load its file with --plugin FILE.py"
        )
    return {name: registered for name, registered in found.items() if registered is not None}


def _pieces(herbrand: Herbrand) -> list[tuple[int, int, str | None]]:
    """V0 from left to right: (first atom, last atom + 1, neural predicate or None where the program decides)."""
    pieces: list[tuple[int, int, str | None]] = [(0, 2, None)]
    for predicate in herbrand.predicates:
        first, last = herbrand.offsets[predicate.key]
        if predicate.role == ir.NEURAL:
            pieces.append((first, last, _key(predicate)))
        elif pieces[-1][2] is None:
            pieces[-1] = (pieces[-1][0], last, None)
        else:
            pieces.append((first, last, None))
    return [piece for piece in pieces if piece[0] < piece[1]]


def _stand_ins(arguments: int, dimensions: int) -> torch.Tensor:
    """What atoms of missing objects see: vectors [arguments, D] in general position, with values from 0 to 1.

    Rows of zeros would coincide, where many a function has no finite gradient. Later dimensions are greater, so
    that boxes are not inside out.
    """
    number = torch.arange(1, arguments + 1)[:, None]
    column = torch.arange(dimensions)[None, :]
    spread = torch.where(column % 2 == 0, number * 0.6180340, number * 0.7548777) % 1
    return 0.1 + 0.4 * spread + 0.4 * column / max(dimensions, 1)
