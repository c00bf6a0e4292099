"""A model of the A100: published figures, and the time that counted work takes at least.

Nothing here is measured. Bounds leave out maxima, selections, addresses and the waiting for memory; the
latency estimate, which is what `launch.choose` goes by, has the waiting and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from nsfrc.benchmarks import phases
from nsfrc.benchmarks.counts import Loops, Work
from nsfrc.compiler.plan import Plan
from nsfrc.engines.gpu import launch
from nsfrc.engines.gpu.launch import CLAUSE, PROGRAM, Shape
from nsfrc.engines.gpu.tables import Tables, layout, pack

SHAPES = (PROGRAM, CLAUSE)
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Card:
    """Bytes, hertz, and units or bytes a clock; by multiprocessor where the name ends in _each."""

    name: str = "A100-SXM4-40GB"
    multiprocessors: int = 108  # NVIDIA A100 whitepaper
    clock: float = 1.41e9  # boost; NVIDIA A100 whitepaper
    fp32_each: int = 64  # cores: 19.5 TFLOP/s where all is fused to multiply and add; NVIDIA A100 whitepaper
    special_each: int = 16  # exponentials or reciprocals; CUDA programming guide, throughput of instructions for 8.0
    memory: float = 40e9  # NVIDIA A100 whitepaper
    memory_rate: float = 1555e9  # bytes per second; NVIDIA A100 whitepaper
    l2: float = 40 * 2**20  # NVIDIA A100 whitepaper
    l2_clock: int = 5120  # read; NVIDIA A100 whitepaper
    l1_each: float = 192 * 2**10  # shared memory included; NVIDIA A100 whitepaper
    l1_clock_each: int = 128  # an assumption: 4 bytes for each lane of a warp
    registers_each: int = 65536  # NVIDIA A100 whitepaper
    warps_each: int = 64  # NVIDIA A100 whitepaper

    @property
    def instances(self) -> int:
        """Instances of a kernel that are resident: as many as registers and warps allow, and as are started."""
        by_registers = self.registers_each // (launch.REGISTERS * launch.WARPS * 32)
        by_warps = self.warps_each // launch.WARPS
        return self.multiprocessors * min(by_registers, by_warps, launch.INSTANCES_PER_MULTIPROCESSOR)

    def rate(self, each: float) -> float:
        return each * self.multiprocessors * self.clock


A100 = Card()

# Instructions that Triton 3.7 makes for sm_80: log2 is a polynomial (`__nv_log2f`), a division is a reciprocal on the
# special function unit, scaled against overflow; exp2 is one instruction of that unit.
FP32_OF_LOG, FP32_OF_DIVISION = 15, 5


@dataclass(frozen=True)
class Task:
    """A plan for one file of kernels, all T steps of it, every clause chosen once.

    direction: "forward"; "keep", the same leaving what gradients need; or "backward".
    """

    plan: Plan
    shape: Shape
    neural_only: bool
    targets_only: bool
    direction: str
    steps: int


@cache
def tables_of(task: Task) -> Tables:
    return pack(task.plan, task.targets_only, task.shape.rows_of_part)


@cache
def loops_of(task: Task) -> Loops:
    tables = tables_of(task)
    what = layout(
        tables, task.shape.tall, task.shape.wide, 1,
        hard=True, neural_only=task.neural_only, gradient=task.direction == "backward",
    )
    return Loops(what, tables)


@cache
def work_of(task: Task) -> Work:
    if task.direction == "backward":
        return phases.backward(loops_of(task), task.steps)
    return phases.forward(loops_of(task), task.steps, keep=task.direction == "keep")


@dataclass(frozen=True)
class Cost:
    """An example's share of a task: operations, bytes, and seconds of every resource.

    useful, done: operations and values as in `counts.Work`, without and with the padding of tiles.
    compulsory: bytes to and from memory if caches held the rest. tables: bytes, once per batch.
    workspace: bytes of a tile of examples. level: what holds the workspaces in use, "L1", "L2" or "memory".
    l1, l2, hbm: bytes moved. seconds: by resource.
    """

    useful: dict[str, int]
    done: dict[str, int]
    compulsory: float
    tables: float
    workspace: float
    level: str
    l1: float
    l2: float
    hbm: float
    seconds: dict[str, float]

    @property
    def limit(self) -> str:
        return max(self.seconds, key=self.seconds.__getitem__)

    @property
    def bound(self) -> float:
        return self.seconds[self.limit]


@cache
def cost(task: Task, batch: int, card: Card = A100) -> Cost:
    """Work of a task, where its memory traffic goes in a batch, and the time of each resource."""
    loops = loops_of(task)
    useful, done = work_of(task).part(0), work_of(task).part(1)
    tables = float(loops.tables.indices.nbytes + loops.tables.floats.nbytes)
    workspace = float(loops.layout.row.end * loops.layout.wide * FLOAT)
    past_l1, past_l2 = _past_caches(task, batch, workspace, tables, card)
    compulsory = float(FLOAT * _compulsory(loops, task))
    near_read = FLOAT * (done["near_read"] + done["table"] / task.shape.wide)
    near_write, far = FLOAT * done["near_write"], FLOAT * (done["far_read"] + done["far_write"])
    l1 = near_read + near_write + far
    l2 = near_read * past_l1 + near_write + far  # the first cache passes every store on
    hbm = compulsory + (near_read + near_write) * past_l2
    level = "L1" if past_l1 == 0 else "L2" if past_l2 == 0 else "memory"
    seconds = {"memory": hbm / card.memory_rate, "L2": l2 / (card.l2_clock * card.clock),
               "L1": l1 / card.rate(card.l1_clock_each), **_arithmetic(done, card)}
    return Cost(useful, done, compulsory, tables, workspace, level, l1, l2, hbm, seconds)


def _past_caches(task: Task, batch: int, workspace: float, tables: float, card: Card) -> tuple[float, float]:
    """Share of the workspace's traffic that goes past the first cache, and past the second.

    An instance of "program" uses its own workspace again and again. Those of "clause" are one array for
    the whole batch, and every launch starts with an empty first cache.
    """
    tiles = -(-batch // task.shape.wide)
    if task.shape.kernels == "clause":
        return 1.0, _missed(tiles * workspace + tables, card.l2)
    instances = min(tiles, card.instances)
    on_one = -(-instances // card.multiprocessors)
    return _missed(on_one * workspace + tables, card.l1_each), _missed(instances * workspace + tables, card.l2)


def _arithmetic(done: dict[str, int], card: Card) -> dict[str, float]:
    """Seconds of the FP32 cores, every product fused with an addition, and of the special function units."""
    fp32 = max(done["mul"], done["add"]) + FP32_OF_LOG * done["log"] + FP32_OF_DIVISION * done["div"]
    return {"FP32": fp32 / card.rate(card.fp32_each),
            "special": (done["exp"] + done["div"]) / card.rate(card.special_each)}


def _missed(footprint: float, capacity: float) -> float:
    """Share of accesses that a cache cannot serve, if they are spread evenly over the footprint."""
    return max(0.0, 1 - capacity / footprint)


def _compulsory(loops: Loops, task: Task) -> int:
    """Values of an example that must come from memory or go there, tables aside."""
    n = loops.layout.n
    past = (task.steps + 1) * n.kept + task.steps
    if task.direction == "backward":
        return n.outputs + past + n.atoms + (n.atoms if n.kept < n.slots else 0)
    return n.atoms + n.outputs + (past if task.direction == "keep" else 0)


def seconds_waiting(task: Task, batch: int, card: Card = A100) -> float:
    """Time by latency alone, as `launch.choose` estimates it."""
    back = task.direction == "backward"
    return launch.waiting(task.shape, tables_of(task), batch, task.steps, card.multiprocessors, back)


def predicted(task: Task, batch: int, card: Card = A100) -> float:
    """Seconds for a batch: what waiting takes, or what the busiest resource takes, whichever is more."""
    of_one, examples = cost(task, batch, card), -(-batch // task.shape.wide) * task.shape.wide
    busy = of_one.bound * examples + of_one.tables / card.memory_rate
    return max(seconds_waiting(task, batch, card), launch.LAUNCH + busy)


def full_from(task: Task, card: Card = A100) -> int:
    """The batch from which the card is full: every resident instance has examples, or some resource is as busy
    as it can be for as long as one example takes, whichever comes first."""
    resident = card.instances * task.shape.wide
    floor = seconds_waiting(task, 1, card) - launch.LAUNCH
    return min(resident, math.ceil(floor / cost(task, resident, card).bound))
