"""One training in several processes that torchrun starts; alone, everything here does nothing.

Every process has all examples and the same random numbers, and takes its share of each batch. Losses are written so
that the shares add up to what one process computes, and gradients are added up by torch's DistributedDataParallel.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from nsfrc.errors import NsfrcError

PATIENCE = timedelta(minutes=30)  # for others that judge a model or write it


def world() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def rank() -> int:
    return distributed.get_rank() if world() > 1 else 0


def leads() -> bool:
    """Whether this process is the one that writes files and tells of progress."""
    return rank() == 0


def restarted() -> bool:
    """Whether torchrun has started the processes anew after one of them failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or 0) > 0


@contextmanager
def joined(device: str = "cpu") -> Iterator[str]:
    """Join the others, if torchrun has started some; yields the device of this process.

    What is wrong is told by the first process alone; the others end in silence.
    """
    if int(os.environ.get("WORLD_SIZE", "1") or 1) < 2:
        yield device
        return
    cards = device.startswith("cuda")
    if cards:
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    try:
        store, own, count = next(distributed.rendezvous("env://", timeout=PATIENCE))
        # What an attempt before this one has left in the store would lead to processes that are no more.
        store = distributed.PrefixStore(f"nsfrc/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        distributed.init_process_group("nccl" if cards else "gloo", store=store, rank=own, world_size=count,
                                       timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise NsfrcError(f"the processes of torchrun do not find each other ({reason}): see --rdzv-endpoint, or run "
                         f"without torchrun") from None
    try:
        yield device
    except NsfrcError:
        if leads():
            raise
        raise SystemExit(1) from None
    except RuntimeError as error:  # from gloo or nccl, where another process has ended
        if "closed by peer" not in str(error) and "reset by peer" not in str(error):
            raise
        raise NsfrcError("another process of this training has ended: its own message says why; torchrun "
                         "--max-restarts N starts all of them again, from the last checkpoint") from None
    finally:
        distributed.destroy_process_group()


def wait() -> None:
    """Until all processes are here."""
    if world() > 1:
        distributed.barrier()


def share(count: int) -> slice:
    """Which of `count` examples are this process's own: all of them where there are fewer than processes."""
    return slice(None) if count < world() else slice(rank(), None, world())


def copies(count: int) -> int:
    """How many processes have the same examples: 1, or all where there are fewer than processes."""
    return world() if count < world() else 1


def together(module: torch.nn.Module, some_unused: bool = False) -> Any:
    """A module whose gradients are the mean over all processes; the module itself where there is one alone.

    some_unused: whether there may be parameters that a loss does not depend on.
    """
    if world() == 1:
        return module
    from torch.nn.parallel import DistributedDataParallel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer versions of torch call it otherwise
        return DistributedDataParallel(module, broadcast_buffers=False, find_unused_parameters=some_unused)


def backward(loss: torch.Tensor) -> None:
    """Gradients of a loss of which this process has computed its share: those of the sum of all shares."""
    (loss if world() == 1 else loss * world()).backward()  # type: ignore[no-untyped-call]


def mean_of(values: torch.Tensor, count: int, times: int = 1) -> torch.Tensor:
    """This process's share of the mean of `count` values, of which it has some. times: how many have the same ones."""
    return values.mean() if world() == 1 else values.sum() / (count * times)


@torch.no_grad()
def total(value: torch.Tensor) -> torch.Tensor:
    """The sum over all processes."""
    if world() == 1:
        return value
    value = value.detach().clone()
    distributed.all_reduce(value)
    return value
