"""Calls of kernels as torch sees them: splits the batch over threads, keeps what the way back needs, wires gradients.

Small programs take less time than it takes to prepare a call, so whatever does not depend on V0 is kept (`Bound`), and
a kernel is told everything in one record of numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch

from nsfrc.engines import Run
from nsfrc.engines.cpu.native import kernel
from nsfrc.engines.cpu.seats import Seats, chunk_of, split_in_chunks
from nsfrc.engines.cpu.tables import FEW_LANES, FINE, NO_MEMORY, OTHER_START, VECTOR
from nsfrc.engines.cpu.threads import run_parts, run_together
from nsfrc.errors import NsfrcError

if TYPE_CHECKING:
    from nsfrc.program import Program

# Lanes a tile works on: the more the better, a row of the plan being read once for all of them, as long as the values
# of a step stay in L2. Tiles of the first number add up the weights' gradient, so that its order never changes.
TILE, LONGEST_TILE = 96, 512
CACHE = 1 << 20
# Below this much estimated work (in ns) for each, another thread is not asked: packing its record, and waiting for it,
# takes about 10 µs.
WORTH_A_THREAD = 20_000


class Bound(ABC):
    """A plan with a way to run it: all that calls have in common.

    record: packs `fixed`, the numbers of the plan and the run, and those of `tables.Own`. cost: nanoseconds for an
    example. held: arrays whose addresses are among `fixed`.
    """

    forward: str  # the kernels, as `native.KERNELS` has them
    backward: str
    record: Any
    fixed: tuple[int, ...]
    outputs: int
    cost: float
    rows: tuple[int, int]  # numbers of a lane that a step works on: without gradients, and with
    held: tuple[np.ndarray, ...]
    whole_batch = False  # whether examples have to do with each other …
    clauses, board_width = 0, 0  # … and then how many clauses there are, and how much a part tells the others
    needs_beside = False  # also where nobody differentiates

    def __reduce__(self) -> NoReturn:
        raise TypeError("a bound plan has addresses of this process and of its own arrays: make another")

    @abstractmethod
    def past(self, examples: int) -> tuple[int, ...]:
        """The shape of what is kept for the way back."""

    @abstractmethod
    def beside(self, parts: list[tuple[int, int]], tiles: list[int]) -> Sequence[torch.Tensor | None]:
        """What else each part of a call needs, if anything: filled on the way there, read on the way back."""


class PlanEngine(ABC):
    """Runs plans with compiled kernels. Arithmetic is float32; other inputs are converted and the result back."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._latest: tuple[Run | None, dict[tuple[bool, bool], Bound]] = None, {}

    def __getstate__(self) -> dict[str, Any]:
        """For a copy, or for another process: without bound plans, which are made again there."""
        return self.__dict__ | {"_latest": (None, {})}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        values = numbers(V0)
        if torch.is_grad_enabled():
            by_V0 = V0.requires_grad
            if by_V0 or (weights is not None and weights.requires_grad):
                return _Reason.apply(V0, weights, self, values, run, by_V0)
        return _like(self.reason(values, weights, run, False, False).out, V0)

    def reason(
        self, values: torch.Tensor, weights: torch.Tensor | None, run: Run, keep: bool, by_V0: bool
    ) -> Call:
        """The call, done, by the plan in which facts are constants where that is exact.

        keep: whether gradients are wanted, by_V0: those of V0 too. That plan is made for atoms that start as the
        program says, so V0 must say the same; and it has no gradient for each of them.
        """
        promised = run.inputs == "neural"
        call = Call(self._bind(promised or not by_V0, weights is None, run), values, weights, keep)
        found = call.forward(not (promised or by_V0))
        if found == OTHER_START:
            call = Call(self._bind(False, weights is None, run), values, weights, keep)
            found = call.forward(False)
        if found != FINE:
            raise NsfrcError(self.refusal(found, values[found].numpy()))
        return call

    def _bind(self, declared: bool, hard: bool, run: Run) -> Bound:
        """declared: for V0 that says of facts what the program does."""
        latest, ways = self._latest
        if latest is not run:
            ways = {}
            self._latest = run, ways
        bound = ways.get((declared, hard))
        if bound is None:
            bound = ways[declared, hard] = self.bind(declared, hard, run)
        return bound

    @abstractmethod
    def bind(self, declared: bool, hard: bool, run: Run) -> Bound:
        """A plan for that run."""

    @abstractmethod
    def refusal(self, example: int, values: np.ndarray) -> str:
        """What to say of an example that the kernel did not take."""


class _Reason(torch.autograd.Function):
    """V_T of V0 [B, G] and weights [M, C]; values on the way are kept for the backward pass, nothing else."""

    @staticmethod
    def forward(
        ctx: Any, V0: torch.Tensor, weights: torch.Tensor | None, engine: PlanEngine, values: torch.Tensor, run: Run,
        by_V0: bool,
    ) -> torch.Tensor:
        call = engine.reason(values, weights, run, True, by_V0)
        ctx.call = call
        ctx.save_for_backward(V0, weights)
        out = call.out
        del call.out  # a result that keeps itself would never be freed
        return _like(out, V0)

    @staticmethod
    def backward(ctx: Any, g_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        V0, weights = ctx.saved_tensors
        g_V0, g_weights = ctx.call.backward(numbers(g_out))
        gradients = [_like(g_V0, V0), None if weights is None else _like(g_weights, weights)]
        if torch.is_grad_enabled():  # create_graph=True: somebody may want to differentiate these again
            gradients = [None if g is None else _Once.apply(g, g_out, V0, weights) for g in gradients]
        return *gradients, None, None, None, None


class _Once(torch.autograd.Function):
    """A gradient as it is, which refuses to be differentiated by what it was made of."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *_of: torch.Tensor | None) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> None:
        raise NsfrcError('the CPU engine has first derivatives only: for second ones use engine="reference"')


class Call:
    """One batch: how it is split, what is kept for the way back, and its results [B, outputs]."""

    def __init__(self, bound: Bound, V0: torch.Tensor, weights: torch.Tensor | None, keep: bool) -> None:
        self.bound, self.V0 = bound, V0
        self.weights = None if weights is None else numbers(weights)
        self.examples = examples = V0.shape[0]
        self.parts = _split_whole(examples, bound.cost) if bound.whole_batch else split(examples, bound.cost)
        self.past = torch.from_numpy(np.empty(bound.past(examples), np.float32)) if keep else None
        lanes = TILE if keep and weights is not None else _lanes(bound.rows[keep])
        self.tiles = [last - first if bound.whole_batch else _tile(last - first, lanes) for first, last in self.parts]
        self.beside = bound.beside(self.parts, self.tiles) if keep or bound.needs_beside else None
        self.out = torch.from_numpy(np.empty((examples, bound.outputs), np.float32))
        self.seats: Seats | None = None

    def _record(self, part: int, must_start_so: bool, out: int, g_V0: int, g_weights: int) -> bytes:
        """The numbers of `tables.Own`, in their order."""
        weights, past, beside = self.weights, self.past, self.beside[part] if self.beside else None
        packed: bytes = self.bound.record.pack(
            *self.bound.fixed, self.V0.data_ptr(), self.examples, *self.parts[part], self.tiles[part],
            0 if weights is None else weights.data_ptr(), 0 if weights is None else weights.shape[0], must_start_so,
            0 if past is None else past.data_ptr(), 0 if past is None else past.shape[-2],
            0 if beside is None else beside.data_ptr(), 0 if beside is None else beside.shape[0], out, g_V0, g_weights,
            0 if self.seats is None else self.seats.address(part),
        )
        return packed

    def forward(self, must_start_so: bool) -> int:
        """Fills `out`; says what the kernel does, of several parts the first that is not FINE."""
        out = self.out.data_ptr()
        if len(self.parts) == 1:
            return _done(kernel(self.bound.forward)(self._record(0, must_start_so, out, 0, 0)))
        self._meet(0)
        found = self._in_parts(self.bound.forward, [(must_start_so, out, 0, 0)] * len(self.parts))
        return OTHER_START if OTHER_START in found else next((one for one in found if one != FINE), FINE)

    def backward(self, g_out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradients of V0 and of the weights."""
        g_V0 = torch.from_numpy(np.zeros(tuple(self.V0.shape), np.float32))
        shape = (0, 0) if self.weights is None else tuple(self.weights.shape)
        chunk = chunk_of(self.examples)
        sums = [first // chunk for first, _ in self.parts] if self.bound.whole_batch else range(len(self.parts))
        count = -(-self.examples // chunk) if self.bound.whole_batch else len(self.parts)
        g_weights = np.zeros((count, *shape))
        self._meet(self.bound.clauses + 2)
        self._in_parts(self.bound.backward, [
            (False, g_out.data_ptr(), g_V0.data_ptr(), g_weights[first].ctypes.data) for first in sums])
        return g_V0, torch.from_numpy(g_weights.sum(axis=0) if count > 1 else g_weights[0])

    def _meet(self, rows: int) -> None:
        """Let parts that have to do with each other meet, with so many rows of gradients."""
        if self.bound.whole_batch:
            self.seats = Seats(len(self.parts), self.examples, self.bound.board_width, rows)

    def _in_parts(self, name: str, own: list[tuple[bool, int, int, int]]) -> list[int]:
        """Every part by a thread of its own; what the kernel says of each."""
        records = [self._record(part, *mine) for part, mine in enumerate(own)]
        seats, self.seats = self.seats, None
        if seats is not None and len(records) > 1:
            return [_done(found) for found in run_together(name, records, seats.barrier)]
        return [_done(found) for found in run_parts(name, records)]


def _done(found: int) -> int:
    if found == NO_MEMORY:
        raise MemoryError("no memory for the values of a batch")
    return found


def split(examples: int, nanoseconds: float) -> list[tuple[int, int]]:
    """Ranges of examples that take so long each, one for every thread; one range when threads would not pay.

    A part of a vector takes as long as all of it, and a few examples that are part of a batch would be added up in
    another order than the whole batch is.
    """
    vectors = examples if examples <= FEW_LANES else -(-examples // VECTOR)
    threads = min(torch.get_num_threads(), vectors, int(nanoseconds * examples // WORTH_A_THREAD))
    if threads <= 1:
        return [(0, examples)]
    return list(pairwise(examples * i // threads for i in range(threads + 1)))


def _split_whole(examples: int, nanoseconds: float) -> list[tuple[int, int]]:
    """The same for examples that share Z."""
    return split_in_chunks(examples, min(torch.get_num_threads(), int(nanoseconds * examples // WORTH_A_THREAD)))


def _lanes(rows: int) -> int:
    """Most lanes of a tile that works on so many numbers in each."""
    return max(TILE, min(LONGEST_TILE, CACHE // (4 * rows)))


def _tile(examples: int, lanes: int) -> int:
    """Examples in a tile: as equal tiles as whole vectors allow, since a small last one would waste its lanes."""
    tiles = -(-examples // lanes)
    return -(-examples // (tiles * VECTOR)) * VECTOR


def numbers(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers of a tensor as kernels read them: float32 in this machine's memory, row after row."""
    try:
        if tensor.dtype is not torch.float32 or not tensor.is_cpu:
            tensor = tensor.detach().to("cpu", torch.float32)
        elif tensor.requires_grad:
            tensor = tensor.detach()
        tensor.numpy()  # which tensors without memory of their own refuse
        return tensor if tensor.is_contiguous() else tensor.contiguous()
    except (RuntimeError, TypeError) as error:
        raise NsfrcError(
            "the CPU engine needs the numbers of a plain tensor, which sparse and meta tensors, torch.func, "
            f"torch.export and vectorised Jacobians do not give it ({str(error).splitlines()[0]}): "
            'use engine="reference" there'
        ) from None


def _like(found: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in the type and on the device of another."""
    return found if tensor.dtype is found.dtype and tensor.is_cpu else found.to(tensor)
