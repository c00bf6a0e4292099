"""How a kernel comes to run here: compiled for a card as a launch would, its arguments laid out as on that card."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton import knobs
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime.cache import get_cache_manager
from triton.runtime.errors import TritonError

from nsfrc.engines.gpu import aot
from nsfrc.engines.ptx import findings as kinds
from nsfrc.engines.ptx.arithmetic import u4
from nsfrc.engines.ptx.counts import Counts
from nsfrc.engines.ptx.findings import Finding, KernelFault
from nsfrc.engines.ptx.machine import ORDERS, Loaded, Machine
from nsfrc.engines.ptx.memory import POISON, Device
from nsfrc.engines.ptx.parse import parse
from nsfrc.errors import NsfrcError, did_you_mean

_LOADED: dict[tuple[Any, ...], Loaded] = {}
KEPT = "nsfrc.ptx.json"
SCRATCH = 2  # pointers that Triton adds to every kernel's parameters; ours do not use them


@dataclass(frozen=True)
class Launch:
    """What one launch did: instructions of warps by name, branches at which a warp split, barriers with nothing
    between them and the one before, lines of the PTX whose barriers followed each other, requests of memory if they
    were counted, and what was found."""

    kernel: str
    arch: str
    grid: tuple[int, ...]
    warps: int
    instructions: Counter[str] = field(repr=False)
    diverged: int
    doubled: int
    follows: frozenset[tuple[int, int]] = field(repr=False)
    counts: Counts | None = field(repr=False)
    findings: tuple[Finding, ...] = ()


@dataclass
class Runner:
    """Starts kernels and remembers what they did.

    check: "raise" what is found as a KernelFault, "collect" it in `launches`, or "off". order: in which blocks run,
    "together", "forwards" or "backwards". count: also what is asked of memory. change: rewrites PTX before it is
    run, for tests.
    """

    arch: str = "sm_80"
    check: str = "raise"
    order: str = "together"
    count: bool = False
    change: Callable[[str, str], str] | None = None
    launches: list[Launch] = field(default_factory=list)
    _changed: dict[Any, Loaded] = field(default_factory=dict, repr=False)

    def __setattr__(self, name: str, value: Any) -> None:
        allowed = {"arch": tuple(aot.ARCHS), "check": ("raise", "collect", "off"), "order": ORDERS}.get(name)
        if allowed is not None and value not in allowed:
            hint = did_you_mean(str(value), allowed) or f"it is {', '.join(allowed)}"
            raise NsfrcError(f'{name} of engine "ptx" cannot be {value!r}: {hint}')
        super().__setattr__(name, value)
        if name == "change":
            self._changed = {}

    def launch(self, kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        """Run a kernel (`aot.Kernel` or `AnchoredKernel`) on tensors of the CPU."""
        loaded = self._load(kernel)
        machine = Machine(
            loaded, tuple(int(size) for size in grid), checked=self.check != "off", order=self.order,
            counts=Counts() if self.count else None,
        )
        names = [name for name, _ in kernel.arguments]
        given = zip(names, arguments, strict=True)
        tensors = [(name, value) for name, value in given if isinstance(value, torch.Tensor)]
        device = Device(machine, [_view(name, value) for name, value in tensors])
        machine.run(device, _parameters(device, arguments))
        device.finish()
        found = (*machine.findings, *_overlaps(device, loaded, tensors)) if machine.checked else ()
        self.launches.append(Launch(
            loaded.label, loaded.arch, tuple(grid), loaded.warps, machine.instructions(), machine.diverged,
            machine.doubled, machine.barrier_lines(), machine.counts, found,
        ))
        if found and self.check == "raise":
            raise KernelFault(found)

    def _load(self, kernel: Any) -> Loaded:
        key = (kernel.name, kernel.variant, kernel.layout, kernel.constants, kernel.arguments, self.arch,
               getattr(kernel, "text", ""))
        known = _LOADED if self.change is None else self._changed
        if (found := known.get(key)) is None:
            ptx, shared = compiled(kernel, self.arch)
            if self.change is not None:
                ptx = self.change(kernel.label, ptx)
            found = Loaded(parse(ptx), shared, kernel.options["num_warps"], kernel.label, self.arch)
            known[key] = found
        return found


def compiled(kernel: Any, arch: str) -> tuple[str, int]:
    """PTX and bytes of shared memory. Unlike `aot.compile_kernel` with line information, without what ptxas would
    make of it, and kept in Triton's cache."""
    if knobs.runtime.interpret:
        raise NsfrcError("TRITON_INTERPRET is set, so kernels are run in Python and not compiled: unset it")
    source, target = aot.source(kernel), GPUTarget("cuda", aot.ARCHS[arch], 32)
    backend = make_backend(target)
    options = backend.parse_options({**kernel.options, "maxnreg": kernel.most_registers, **source.parse_options()})
    key = f"nsfrc {triton.__version__} {source.hash()} {backend.hash()} {options.hash()}"
    cache = get_cache_manager(sha256(key.encode()).hexdigest())
    if (kept := cache.get_file(KEPT)) is not None:
        found = json.loads(Path(kept).read_text())
        return found["ptx"], found["shared"]
    with knobs.compilation.scope():
        knobs.compilation.disable_line_info = False
        try:
            ptx, shared = _stages(source, target, backend, options)
        except TritonError as error:
            reason = str(error).strip().splitlines()
            raise NsfrcError(f"{kernel.label} does not compile for {arch}: {' '.join(reason[:3])}") from error
    cache.put(json.dumps({"ptx": ptx, "shared": shared}), KEPT, binary=False)
    return ptx, shared


def _stages(source: Any, target: GPUTarget, backend: Any, options: Any) -> tuple[str, int]:
    """What `triton.compile` does, as far as PTX."""
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    made: dict[str, Any] = {"target": target, **options.__dict__}
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    for name, stage in stages.items():
        module = stage(module, made)
        if name == "ptx":
            break
    return module, made["shared"]


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """New memory, of which reading before writing is to be found."""
    tensor.view(torch.int32).fill_(POISON)
    return tensor


def _view(name: str, tensor: torch.Tensor) -> tuple[str, np.ndarray, int]:
    if not tensor.is_contiguous():
        raise NsfrcError(f"argument {name} of a kernel is not contiguous")
    words = tensor.detach().reshape(-1).view(torch.int32).numpy().view(u4)
    return name, words, int(tensor.storage_offset()) * tensor.element_size()


def _parameters(device: Device, arguments: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    number = 0
    for value in arguments:
        if isinstance(value, torch.Tensor):
            found.append(device.address(number))
            number += 1
        elif isinstance(value, float):
            found.append(np.float32(value).view(u4))
        else:
            found.append(u4(int(value) & 0xFFFFFFFF))
    return found + [np.uint64(0)] * SCRATCH


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _overlaps(device: Device, kernel: Loaded, tensors: list[tuple[str, torch.Tensor]]) -> list[Finding]:
    """Arguments that share words of which one is written: here each has words of its own, on a card it has not."""
    found = []
    for i, (name, one) in enumerate(tensors):
        for j, (other_name, other) in enumerate(tensors[:i]):
            if not one.numel() or not other.numel() or _storage(one) != _storage(other):
                continue
            first = max(one.storage_offset(), other.storage_offset())
            last = min(one.storage_offset() + one.numel(), other.storage_offset() + other.numel())
            a, b = (slice(max(first - t.storage_offset(), 0), max(last - t.storage_offset(), 0)) for t in (one, other))
            (written, touched), (written_other, touched_other) = device.touched(i), device.touched(j)
            if (written[a] & touched_other[b]).any() or (touched[a] & written_other[b]).any():
                entry = kernel.module.functions[kernel.module.entry]
                found.append(Finding(kinds.OVERLAP, kernel.label, kernel.arch, entry.name, 1, "entry", "",
                                     f"{other_name} and {name}", 1))
    return found
