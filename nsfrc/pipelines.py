"""From images to answers: perception → facts converter → reasoner, as one differentiable torch module."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from nsfrc import ir
from nsfrc.errors import NsfrcError
from nsfrc.perception import adopt, create, usable_device
from nsfrc.perception.base import Perception
from nsfrc.program import Program, open_program
from nsfrc.reasoner import Reasoner
from nsfrc.valuation import FactsConverter

PERCEPTION = "yolo"  # where neither the caller nor the program names another
BRIGHTEST = 2.0  # beyond this a pixel is no rounding or noise, but one of 0 … 255


@dataclass(frozen=True, eq=False)
class Prediction:
    """What came of B images: object vectors, starting values, the value of every target, and of every atom if asked.

    objects: [B, E, D]; V0: [B, G]; scores: [B, targets]; V_T: [B, G] or None. further: how many more sure objects than
    E there are, [B], or None where perception does not say.
    """

    objects: torch.Tensor
    V0: torch.Tensor
    scores: torch.Tensor
    V_T: torch.Tensor | None
    further: torch.Tensor | None = None


class Pipeline(torch.nn.Module):
    """Images [B, 3, H, W] with values 0 … 1 → the value of every target [B, targets]; gradients reach every part.

    perception: images → objects [B, E, D]; facts: objects → V0 [B, G]; reasoner: V0 → [B, targets].
    """

    def __init__(self, program: Program, perception: Perception, facts: FactsConverter, reasoner: Reasoner) -> None:
        super().__init__()
        self.program = program
        self.perception, self.facts, self.reasoner = perception, facts, reasoner
        self._everything: list[Reasoner] = []  # a list hides it from torch: there is nothing in it to learn

    @property
    def device(self) -> torch.device:
        """Where images must be."""
        return self.facts.constant.device

    def read(self, *paths: str | Path) -> torch.Tensor:
        """Image files → images [B, 3, H, W] of the size that perception takes, where they must be.

        Raises NsfrcError with a one-line reason for a file that is no image.
        """
        from nsfrc.inference.images import read, to_tensor

        if not paths:
            raise NsfrcError("read at least one image")
        for path in paths:
            if not isinstance(path, str | Path):
                raise NsfrcError(f"read takes paths, as read(*paths), not a {type(path).__name__}")
        pictures = [read(path, self.perception.size, self.perception.fit).pixels for path in paths]
        return to_tensor(pictures).to(self.device)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        refuse_images(images)
        return self.reasoner(self.facts(self.perception(images)))

    @torch.no_grad()
    def predict(self, images: torch.Tensor, everything: bool = False) -> Prediction:
        """The same without gradients and with what was in between; `everything` asks for the value of all atoms too."""
        refuse_images(images)
        objects = self.perception(images)
        further = self.perception.further
        V0 = self.facts(objects)
        # The scores come from the same run either way, so that they never depend on what else is asked for.
        return Prediction(objects, V0, self.reasoner(V0), self.all_atoms(V0) if everything else None, further)

    @torch.no_grad()
    def all_atoms(self, V0: torch.Tensor) -> torch.Tensor:
        """V0 → the value of every ground atom after the same steps, [B, G]."""
        if not self._everything:
            self._everything.append(_reasoner(self.program, self.reasoner.run.steps, self.reasoner.run.gamma, "all"))
        return self._everything[0].to(V0.device)(V0)


def pipeline(
    program: Program | str | Path,
    perception: str | type | torch.nn.Module | None = None,
    *,
    weights: str | Path | None = None,
    concepts: str | Path | None = None,
    device: str = "cpu",
    steps: int | None = None,
    gamma: float | None = None,
    beside: str | Path | None = None,
) -> Pipeline:
    """Build a pipeline for a program: compiled, or by file (.nsfrc, .pl) or shipped name.

    perception: a registered name, "module:Class", a class, or a module that is built already; the program's own by
    default, else "yolo". weights: its safetensors file. concepts: learnt parameters of neural predicates, instead of
    the shipped ones. steps, gamma: from the program by default. beside: the program's file, if it is opened already;
    "module:Class" is looked for in its folder too. All of it, a module that is built already too, is put into
    evaluation mode: call `pipe.train()` before training.
    """
    if not isinstance(program, Program):
        beside = program if beside is None else beside
        program = open_program(program)
    if not program.targets:
        raise NsfrcError(f"{program.name} has no target: add :- target(...). to it")
    where = usable_device(device)
    objects = object_count(program)
    if perception is None or isinstance(perception, str | type):
        name = perception or program.settings.perception or PERCEPTION
        model = create(name, objects, None if weights is None else Path(weights), where, _folder(beside))
        source = name if isinstance(name, str) else name.__qualname__
    elif weights is not None:
        raise NsfrcError("weights are for a perception given by name; this one is built already")
    else:
        model = adopt(perception, objects, where)
        source = type(perception).__qualname__
    facts = FactsConverter(program, model.dimensions, None if concepts is None else Path(concepts), source)
    # Answers must not depend on the rest of a batch, as they would with a batch norm that is left in training mode.
    return Pipeline(program, model, facts, _reasoner(program, steps, gamma, "targets")).to(where).eval()


def _folder(file: str | Path | None) -> Path | None:
    """The folder of a program's file; a shipped program has none that could hold a user's module."""
    return Path(file).resolve().parent if file is not None and Path(file).is_file() else None


def refuse_images(images: torch.Tensor) -> None:
    """Raise where images are not [B, 3, H, W] in floating point."""
    if not isinstance(images, torch.Tensor):
        raise NsfrcError(f"images are a {type(images).__name__}; a pipeline takes a tensor [B, 3, H, W] with values "
                         f"0 … 1: pipe.read(FILE, ...) makes one of files")
    if images.ndim != 4 or images.shape[1] != 3:
        hint = ""
        if images.ndim == 3 and images.shape[0] == 3:
            hint = ": images[None] makes a batch of one image"
        elif images.ndim == 4 and images.shape[3] == 3:
            hint = ": images.permute(0, 3, 1, 2) puts colours before rows"
        raise NsfrcError(f"images have shape {list(images.shape)}; a pipeline takes [B, 3, H, W]{hint}")
    if not images.is_floating_point():
        hint = ": images / 255 brings bytes there; pipe.read does so for files" if images.dtype == torch.uint8 else ""
        raise NsfrcError(f"images are {images.dtype}; they must be floating point with values 0 … 1{hint}")
    # Elsewhere a look at the values would wait for the card.
    look = images.device.type == "cpu" and images.numel() and not torch.compiler.is_compiling()
    if look and (most := float(images.detach().amax())) > BRIGHTEST:
        raise NsfrcError(f"images have values up to {most:g}; they must be 0 … 1: images / 255 brings bytes there")


def object_count(program: Program) -> int:
    """How many objects perception must find: those of the one object type that predicates speak of."""
    herbrand = program.ground.herbrand
    types = [t for t in herbrand.types if t.role == ir.OBJECT]
    if not types:
        raise NsfrcError(f"{program.name} has no objects, so images say nothing to it: add :- type(object, slots(4)).")
    spoken_of = {name for predicate in herbrand.predicates for name in predicate.types}
    names = [ir.quoted(t.name) for t in types if t.name in spoken_of]
    if len(names) > 1:
        # Constant i of every type would be row i of what perception sees: an object would be beside itself.
        raise NsfrcError(
            f"{program.name} has {len(names)} object types, {', '.join(names[:-1])} and {names[-1]}; perception gives "
            f"one list of objects: use one type, and a neural predicate to tell its kinds apart"
        )
    return max(len(t.constants) for t in types if t.name in spoken_of or not names)


def _reasoner(program: Program, steps: int | None, gamma: float | None, outputs: str) -> Reasoner:
    with warnings.catch_warnings():
        if outputs == "all":
            warnings.simplefilter("ignore")  # said when the pipeline was built
        return program.reasoner(steps=steps, gamma=gamma, outputs=outputs, inputs="neural")
