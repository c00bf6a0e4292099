"""The facts converter: object vectors [B, E, D] → V0 [B, G], a few tensor operations for each predicate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from nsfrc.compiler import ir
from nsfrc.contexts import undisturbed
from nsfrc.errors import NsfrcError, did_you_mean
from nsfrc.valuation import concepts, predicates  # noqa: F401 (the latter registers what comes with nsfrc)
from nsfrc.valuation.arguments import Scene
from nsfrc.valuation.measured import Comparing, Learnt, Measures, language_of
from nsfrc.valuation.numbers import measure
from nsfrc.valuation.registry import Registered, find, names
from nsfrc.valuation.valued import OBJECTNESS, ROUNDING, Valuation

if TYPE_CHECKING:
    from nsfrc.compiler.herbrand import Herbrand
    from nsfrc.program import Program


class FactsConverter(torch.nn.Module):
    """Object vectors [B, E, D] → V0 [B, G], ready for the reasoner.

    predicates, numbers: neural predicates, and the numbers that comparisons ask for; comparisons: of those, each with
    its temperature; chances: probabilities that are learnt.
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
            raise NsfrcError(f"a facts converter takes a compiled program, as from nsfrc.compile, not {program!r}")
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
        self._add_numbers(program)
        self.chances = torch.nn.ModuleDict({_key(p): Learnt(p) for p in herbrand.predicates if _is_learnt(p)})
        self.objects = max((v.objects for v in (*self._valuations(), *self._measuring())), default=0)
        self.register_buffer("constant", torch.from_numpy(program.initial_valuation()), persistent=False)
        self.pieces = _pieces(herbrand)
        if parameters is not None:
            self._load(Path(parameters))
        self._try_out()

    def _add_numbers(self, program: Program) -> None:
        """What measures the numbers that are compared, and what compares them."""
        herbrand, language = program.ground.herbrand, language_of(program.source)
        compared = [p for p in herbrand.predicates if p.role == ir.COMPARED]
        asked = {one.key for p in compared if p.comparison for one in p.comparison.test.measured}
        self.numbers, self.keys = torch.nn.ModuleDict(), dict[str, ir.PredicateKey]()
        for number in (number for number in program.source.numbers if number.key in asked):
            of_object = [herbrand.type_by_name[name].role for name in number.types] == [ir.OBJECT]
            registered = measure(number, of_object, self.columns, self.source)
            predicate = language.predicate_by_key[number.key]
            self.keys[_key(predicate)] = number.key
            self.numbers[_key(predicate)] = Valuation(predicate, registered, language, self.columns)
        self.comparisons = torch.nn.ModuleDict({_key(p): Comparing(p, herbrand, language) for p in compared})

    def _valuations(self) -> list[Valuation]:
        return [v for v in self.predicates.values() if isinstance(v, Valuation)]

    def _measuring(self) -> list[Valuation]:
        return [v for v in self.numbers.values() if isinstance(v, Valuation)]

    def learners(self) -> Iterator[tuple[str, object, str]]:
        """Whatever may have parameters: its name in a file of concepts, itself, and how messages call it."""
        for valuation in (*self._valuations(), *self._measuring()):
            name = valuation.registered.name
            yield name, valuation.function, f"{name} of {valuation.arity} arguments"
        for module in (*self.comparisons.values(), *self.chances.values()):
            assert isinstance(module, Comparing | Learnt)
            yield module.name, module, module.name

    def _load(self, path: Path) -> None:
        entries = concepts.read(path)
        used = [name for name, _, _ in self.learners()]
        for name in entries:
            # Others that nobody has registered may be for a plug-in or a comparison that this program does without.
            is_name = name.isidentifier() and name not in names()
            if is_name and name not in used and (hint := did_you_mean(name, used)) is not None:
                raise NsfrcError(f"{path}: there is no neural predicate {name}: {hint}")
        if not any(name in used for name in entries):
            others = ", ".join(entries) or "nothing"
            raise NsfrcError(f"{path} has parameters of {others}; the neural predicates here are {', '.join(used)}")
        for name, learner, _ in self.learners():
            if name in entries:
                concepts.set_parameters(learner, entries[name], f"{path}: {name}")

    def save_concepts(
        self, path: Path | str, made_by: dict[str, Any] | None = None, only: Collection[str] | None = None
    ) -> None:
        """Write what was learnt to a file that `parameters` reads; entries of other predicates that it has stay.

        These are parameters and persistent buffers of every neural predicate and number that is a module, in full
        precision, the temperature of every comparison and the probabilities that are learnt.
        made_by: notes on their making, kept beside them. only: those of these names.
        """
        entries: concepts.Entries = {}
        for name, learner, spoken in self.learners():
            entry = concepts.parameters_of(learner)
            if entry != entries.setdefault(name, entry):  # the file knows predicates by name alone
                raise NsfrcError(f"{spoken} and another {name} have learnt different parameters, and {path} has room "
                                 f"for only one of them: rename one")
        entries = {name: {**entry, concepts.MADE_BY: made_by or {}} for name, entry in entries.items()
                   if entry and (only is None or name in only)}
        if not entries:
            used = ", ".join(name for name, _, _ in self.learners())
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
        gone = None if nobody_missing else missing
        measures = self._measures(scene, gone, look)
        parts = []
        for first, last, key in self.pieces:
            if key is None:
                parts.append(constant[:, first:last])
            elif key in self.predicates:
                parts.append(self.predicates[key](scene, gone))
            elif key in self.comparisons:
                parts.append(self.comparisons[key](measures, len(objects)).to(objects.dtype))
            else:
                parts.append(self.chances[key](len(objects)).to(objects.dtype))
        V0 = torch.cat(parts, dim=1)
        if look:
            self._refuse_values(V0, objects)
        return V0

    def _measures(self, scene: Scene, missing: torch.Tensor | None, look: bool) -> Measures:
        """The numbers of all images, [B, T] each; those of missing objects are not known."""
        found = Measures({}, {})
        for key, valuation in zip(self.keys.values(), self._measuring(), strict=True):
            values, absent = valuation(scene, missing), None if missing is None else valuation.absent(missing)
            found.values[key], found.known[key] = values, None if absent is None else ~absent
            if look and not bool(values.detach().isfinite().all()):
                image, place = (~values.detach().isfinite()).nonzero()[0].tolist()
                raise NsfrcError(
                    valuation.blamed(scene.vectors.detach()[image], place, image)
                    or f"{valuation.spoken} gave {values[image, place].item():.4g}; numbers are finite"
                )
        return found

    def _refuse_shape(self, objects: torch.Tensor) -> None:
        if not isinstance(objects, torch.Tensor):
            raise NsfrcError(f"object vectors are a tensor [B, E, D], not a {type(objects).__name__}")
        if objects.ndim != 3 or objects.shape[2] != len(self.columns) or objects.shape[1] < self.objects:
            raise NsfrcError(
                f"object vectors have shape {list(objects.shape)}; this program and perception need "
                f"[B, {self.objects} or more, {len(self.columns)}]"
            )
        if not objects.is_floating_point():
            raise NsfrcError(f"object vectors are {objects.dtype}; they must be floating point, such as float32")

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
                image, atom = wrong[0].tolist()
                valuation = dict(self.predicates.items()).get(key)
                spoken = valuation.spoken if isinstance(valuation, Valuation) else f"{key}, as it was learnt,"
                raise NsfrcError(
                    (isinstance(valuation, Valuation) and valuation.blamed(objects.detach()[image], atom, image))
                    or f"{spoken} gave {values[image, atom].item():.4g}; the values of a predicate are from 0 to 1"
                )


def _key(predicate: ir.Predicate) -> str:
    """A module's name may not have a dot in it."""
    return str(predicate).replace(".", "%2E")


def _functions(program: str, neural: list[ir.Predicate]) -> dict[str, Registered]:
    """The function of every neural predicate; raises with all predicates that have none, or no arguments."""
    for predicate in neural:
        if not predicate.types:
            raise NsfrcError(
                f"the neural predicate {predicate.name} of {program} has no arguments, so nothing can give it a value: "
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


def _is_learnt(predicate: ir.Predicate) -> bool:
    return predicate.chance is not None and predicate.chance.learnt


def _pieces(herbrand: Herbrand) -> list[tuple[int, int, str | None]]:
    """V0 from left to right: (first atom, last atom + 1, predicate that is computed or None: the program decides)."""
    pieces: list[tuple[int, int, str | None]] = [(0, 2, None)]
    for predicate in herbrand.predicates:
        first, last = herbrand.offsets[predicate.key]
        if predicate.role in (ir.NEURAL, ir.COMPARED) or _is_learnt(predicate):
            pieces.append((first, last, _key(predicate)))
        elif pieces[-1][2] is None:
            pieces[-1] = (pieces[-1][0], last, None)
        else:
            pieces.append((first, last, None))
    return [piece for piece in pieces if piece[0] < piece[1]]
