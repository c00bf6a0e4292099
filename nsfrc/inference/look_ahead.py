"""A look at all images before the program is compiled for them: how many objects there are, kept for the answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import torch

from nsfrc.compiler import ir
from nsfrc.errors import ERROR, CompileError, NsfrcError
from nsfrc.inference.folders import Item
from nsfrc.inference.images import quietly, to_tensor
from nsfrc.inference.known import Known, Memory, most_objects
from nsfrc.inference.pieces import Piecewise, side_by_side
from nsfrc.inference.predictor import Decoded, decode, doubts_of
from nsfrc.inference.stream import read_ahead
from nsfrc.perception.base import Perception
from nsfrc.perception.vectors import OBJECTNESS
from nsfrc.pipelines import blame, object_count
from nsfrc.program import Program, with_slots

MOST = 64  # objects that slots(auto) takes at most; a rule over three of them has then a quarter of a million rows
STEP = 0.8  # by how much fewer are tried where the rules have no room for so many
BATCH = 16


@dataclass(frozen=True, eq=False)
class Looker:
    """Decodes images for a perception, as a predictor does."""

    perception: Perception
    device: str

    def decode(self, item: Item) -> Decoded:
        return decode(item, self.perception.size, self.perception.fit)

    @torch.no_grad()
    def __call__(self, images: list[Decoded]) -> dict[str, Known]:
        """What is in each image."""
        known = {one.item.name: Known(error=one.error) for one in images if one.picture is None}
        there = [(one.item.name, one.picture) for one in images if one.picture is not None]
        if not there:
            return known
        piece = self.perception.piece if self.device == "cpu" else None
        pixels = to_tensor([picture.pixels for _, picture in there]).to(self.device)
        if piece is not None and len(pixels) < piece:
            pixels = torch.cat([pixels, pixels.new_zeros(piece - len(pixels), *pixels.shape[1:])])
        frames = [picture.frame for _, picture in there if picture.frame is not None]
        with blame(f"perception {self.perception.identity}", len(pixels)):
            found = self.perception.see(pixels, frames or None).float().cpu()
        place = self.perception.column(OBJECTNESS)
        further = self.perception.further
        for i, (name, picture) in enumerate(there):
            if not bool(found[i].isfinite().all()):
                known[name] = Known(error="perception gave no number (NaN or infinite)")
                continue
            rows = found[i][found[i][:, place] > 0].numpy()
            more = 0 if further is None else int(further[i])
            known[name] = Known.of(rows, further=more, doubts=doubts_of(self.perception, picture),
                                   animated=picture.animated)
        return known


def look(perception: Perception, items: Iterable[Item], device: str, threads: int = 1) -> dict[str, Known]:
    """The objects of all images, by name. What is kept of each are a few numbers an object.

    threads: as many pieces are looked at once, where perception allows it; else one reads ahead.
    """
    looker = Looker(perception, device)
    size = (perception.piece if device == "cpu" else None) or BATCH
    known: dict[str, Known] = {}
    with quietly():
        if threads > 1 and device == "cpu" and perception.piece and perception.side_by_side:
            for found in side_by_side(Piecewise(looker.decode, looker), items, size, threads):
                known |= found
            return known
        decoded = read_ahead(looker, items, 1, 2 * size)
        try:
            while batch := list(islice(decoded, size)):
                known |= looker(batch)
        finally:
            decoded.close()
    return known


@dataclass(frozen=True)
class Sized:
    """A program for as many objects as images have. told: how many these are and why, in words."""

    program: Program
    told: str
    remark: str | None = None


def _needed(program: Program) -> int:
    """How many objects there must be so that every clause can be about some: its variables stand for different ones."""
    types = {t.name: t.constants for t in program.source.types if t.slots and t.role == ir.OBJECT}
    found = [1]
    for clause in program.source.clauses:
        for name, constants in types.items():
            named = {arg.name for atom in (clause.head, *clause.body) for arg in atom.args
                     if isinstance(arg, ir.Const) and arg.name in constants}
            found.append(len(named) + sum(datatype == name for _, datatype in clause.types))
            found += [constants.index(one) + 1 for one in named]
    return max(found)


def _too_few(error: NsfrcError) -> bool:
    """Whether a program lacks objects that a rule counts: three, where the fullest image has two."""
    return isinstance(error, CompileError) and {one.code for one in error.diagnostics if one.severity == ERROR} <= {
        "never-fires", "underivable-target"}


def sized(program: Program, known: Memory) -> Sized:
    """The program for the fullest image, or for as many objects as it has room for."""
    seen, needed, enough = most_objects(known.values()), _needed(program), object_count(program)
    wanted = max(seen, needed)
    count = min(wanted, MOST)
    while True:
        try:
            made = with_slots(program, count)
            break
        except NsfrcError as error:
            if _too_few(error) and count < enough:
                wanted = needed = count = count + 1
            elif count <= needed:
                raise
            else:
                count = max(needed, int(count * STEP))
    images = "1 image" if len(known) == 1 else f"{len(known)} images"
    if seen < needed == count:
        has = "the image has" if len(known) == 1 else f"the fullest of {images} has"
        return Sized(made, f"{count}, as many as a rule speaks of; {has} {seen} (slots(auto))")
    if count == wanted:
        return Sized(made, f"{count}, as many as the fullest of {images} has (slots(auto))")
    crowded = sum(one.shape[0] + one.further > count for one in known.values())
    why = f"slots(auto) takes at most {MOST}" if count == MOST else "the rules have no room for more"
    remark = (f"{crowded} of {images} have more objects than {count}, up to {wanted} ({why}): the least sure were left "
              f"out, and answers about them may be wrong")
    return Sized(made, f"{count} of up to {wanted} ({why})", remark)
