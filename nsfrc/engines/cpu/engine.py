"""The CPU engine as torch sees it: picks the plan, splits the batch over threads, wires gradients."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nsfrc.compiler.plan import Plan
from nsfrc.engines import Run
from nsfrc.engines.base import base_two, kept_slots, not_finite, starting_values
from nsfrc.engines.cpu.cache import kernel_cache
from nsfrc.engines.cpu.tables import pack
from nsfrc.engines.cpu.threads import in_threads
from nsfrc.errors import NsfrcError

with kernel_cache():
    from nsfrc.engines.cpu.backward import backward
    from nsfrc.engines.cpu.forward import VECTOR, forward, survey

if TYPE_CHECKING:
    from nsfrc.program import Program

# Most lanes a tile works on: enough for full vectors, few enough that the values of a step stay in L2.
TILE = 96
# Waking another thread costs about 20 µs; below this much estimated work (in ns) for each it is not woken.
WORTH_A_THREAD = 60_000
# Nanoseconds for one example and step: an exponential in a row, and a soft-or in a slot.
ROW_NS, SLOT_NS = 0.5, 2.0


class CpuEngine:
    """Runs plans with numba. Arithmetic is float32; other inputs are converted and the result back."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._prepared: dict[bool, Prepared] = {}

    def __call__(self, V0: torch.Tensor, weights: torch.Tensor | None, run: Run) -> torch.Tensor:
        values = _floats(V0)
        recording = torch.is_grad_enabled()
        prepared = self._choose(values, run, recording and V0.requires_grad)
        if recording and (V0.requires_grad or (weights is not None and weights.requires_grad)):
            return _Reason.apply(V0, weights, values, prepared, run)
        return _like(Call(prepared, run, values, weights, keep=False).forward(), V0)

    def _choose(self, values: np.ndarray, run: Run, differentiable: bool) -> Prepared:
        """The plan with merged slots where it is exact, else the one with a slot for every atom.

        Slots are merged for atoms that start as the program says, so V0 must say the same; and a
        merged slot has one gradient, so asking for every atom's needs them apart.
        """
        merged = self._ready(True)
        as_declared, bad = survey(values, merged.constant)
        if bad >= 0:
            atom = int(np.flatnonzero(~np.isfinite(values[bad]))[0])
            raise NsfrcError(not_finite(self.program, bad, atom, values[bad, atom]))
        if run.inputs == "neural" or (as_declared and not differentiable):
            return merged
        return self._ready(False)

    def _ready(self, merged: bool) -> Prepared:
        if merged not in self._prepared:
            self._prepared[merged] = Prepared(self.program.plan if merged else self.program.unmerged_plan())
        return self._prepared[merged]


class Prepared:
    """A plan as kernel tables, with what depends on the plan alone."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.packed = pack(plan)
        self.constant = starting_values(plan.constant)
        self.one_hot = np.eye(plan.C, dtype=np.float32)  # stands in for the weights when they are hard
        self.outputs = {
            "all": np.arange(plan.G, dtype=np.uint32),
            "targets": plan.targets.astype(np.uint32),
        }

    def parts(self, examples: int, run: Run) -> list[tuple[int, int]]:
        """Ranges of examples, one a thread; one range when threads would not pay."""
        if run.normalise == "batch":
            return [(0, examples)]
        return split(examples, (self.plan.rows * ROW_NS + self.plan.slots * SLOT_NS) * run.T)


def split(examples: int, nanoseconds: float) -> list[tuple[int, int]]:
    """Ranges of examples that take so long each, one for every thread; one range when threads would not pay."""
    threads = min(torch.get_num_threads(), examples, max(1, int(nanoseconds * examples // WORTH_A_THREAD)))
    if threads == 1:
        return [(0, examples)]
    return list(pairwise(examples * i // threads for i in range(threads + 1)))


class _Reason(torch.autograd.Function):
    """V_T of V0 [B, G] and weights [M, C]; V of every step is kept for the backward pass, nothing else."""

    @staticmethod
    def forward(
        ctx: Any, V0: torch.Tensor, weights: torch.Tensor | None, values: np.ndarray, prepared: Prepared, run: Run
    ) -> torch.Tensor:
        call = Call(prepared, run, values, weights, keep=True)
        ctx.call = call
        ctx.save_for_backward(V0, weights)
        return _like(call.forward(), V0)

    @staticmethod
    def backward(ctx: Any, g_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        V0, weights = ctx.saved_tensors
        found = ctx.call.backward(_floats(g_out))
        gradients = [None if of is None else _like(g, of) for g, of in zip(found, (V0, weights), strict=True)]
        if torch.is_grad_enabled():  # create_graph=True: somebody may want to differentiate these again
            gradients = [None if g is None else _Once.apply(g, g_out, V0, weights) for g in gradients]
        return *gradients, None, None, None


class _Once(torch.autograd.Function):
    """A gradient as it is, which refuses to be differentiated by what it was made of."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *_of: torch.Tensor | None) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> None:
        raise NsfrcError('the CPU engine has first derivatives only: for second ones use engine="reference"')


class Call:
    """One batch: the kernels' arguments, how the batch is split, and V of every step if it is to be kept."""

    def __init__(
        self, prepared: Prepared, run: Run, V0: np.ndarray, weights: torch.Tensor | None, keep: bool
    ) -> None:
        self.prepared, self.run, self.V0 = prepared, run, V0
        self.hard = weights is None
        self.weights = prepared.one_hot if weights is None else _floats(weights)
        self.outputs = prepared.outputs[run.outputs]
        self.parts = prepared.parts(len(V0), run)
        slots = kept_slots(prepared.plan, run.outputs == "targets")
        self.past = np.empty((run.T + 1, slots if keep else 0, len(V0)), np.float32)
        self.past_z = np.empty((run.T if keep else 0, len(V0)), np.float32)

    def _arguments(self, first: int, last: int) -> tuple[Any, ...]:
        run = self.run
        whole_batch = run.normalise == "batch"
        return (
            *self.prepared.packed, base_two(run.gamma), self.V0, first, last, _tile(last - first, whole_batch),
            self.weights, self.hard, run.T, whole_batch, self.outputs, run.outputs == "targets",
            run.inputs == "neural", self.past, self.past_z,
        )

    def forward(self) -> np.ndarray:
        out = np.empty((len(self.V0), len(self.outputs)), np.float32)
        in_threads([partial(forward, *self._arguments(*part), out) for part in self.parts])
        return out

    def backward(self, g_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g_V0 = np.zeros_like(self.V0)
        g_weights = np.zeros((len(self.parts), *self.weights.shape))
        in_threads([
            partial(backward, *self._arguments(*part), g_out, g_V0, g_weights[i]) for i, part in enumerate(self.parts)
        ])
        return g_V0, g_weights.sum(axis=0)


def _tile(examples: int, whole_batch: bool) -> int:
    """Examples in a tile: as equal tiles as whole vectors allow, since a small last one would waste its lanes."""
    if whole_batch:
        return examples
    tiles = -(-examples // TILE)
    return -(-examples // (tiles * VECTOR)) * VECTOR


def _floats(tensor: torch.Tensor) -> np.ndarray:
    try:
        if tensor.dtype is not torch.float32 or not tensor.is_cpu:
            tensor = tensor.detach().to("cpu", torch.float32)
        array = tensor.detach().numpy() if tensor.requires_grad else tensor.numpy()
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    except (RuntimeError, TypeError) as error:
        raise NsfrcError(
            "the CPU engine needs the numbers of a plain tensor, which sparse and meta tensors, torch.func, "
            f"torch.export and vectorised Jacobians do not give it ({str(error).splitlines()[0]}): "
            'use engine="reference" there'
        ) from None


def _like(array: np.ndarray, tensor: torch.Tensor) -> torch.Tensor:
    """An array as a tensor of the same type and on the same device as another."""
    found = torch.from_numpy(array)
    return found if tensor.dtype is found.dtype and tensor.is_cpu else found.to(tensor)
