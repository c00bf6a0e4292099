"""The compiled program as users hold it: `nsfrc.compile(...)`, `nsfrc.load(...)`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsfrc import passes
from nsfrc.errors import Diagnostic, NsfrcError, did_you_mean
from nsfrc.ground import MAX_ROWS
from nsfrc.grounded import NOTHING, GroundProgram
from nsfrc.herbrand import TRUE
from nsfrc.ir import Settings
from nsfrc.plan import Plan, lower

if TYPE_CHECKING:
    import torch

    from nsfrc.compiler import Compilation
    from nsfrc.reasoner import Reasoner

# Cells of a dense index tensor that still fit in memory as int64 (16 GB).
MAX_DENSE = 2_000_000_000


@dataclass(frozen=True, eq=False)
class Program:
    """A program, grounded and optimised. `plan` is what engines run; `ground` what it was made of."""

    name: str
    ground: GroundProgram = field(repr=False)
    plan: Plan = field(repr=False)
    settings: Settings
    steps: int
    depth: int
    warnings: tuple[Diagnostic, ...] = field(default=(), repr=False)

    @cached_property
    def atoms(self) -> list[str]:
        """Every ground atom in index order: "false", "true", then the rest."""
        return self.ground.herbrand.names()

    @property
    def clauses(self) -> tuple[str, ...]:
        """The text of every clause; clause weights have a column for each, in this order."""
        return self.ground.clauses

    @property
    def target_indices(self) -> list[int]:
        """Where the targets stand in a valuation."""
        return [int(i) for i in self.ground.targets]

    @property
    def targets(self) -> list[str]:
        """The target atoms, in the order the program names them."""
        return [self.atoms[i] for i in self.target_indices]

    def index(self, atom: str) -> int:
        """Where a ground atom such as "kp(img)" stands in a valuation."""
        wanted = _without_blanks(str(atom))
        try:
            return self._positions[wanted]
        except KeyError:
            hint = did_you_mean(wanted, self.atoms)
            raise NsfrcError(f"{self.name} has no ground atom {atom}" + (f"; {hint}" if hint else "")) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.atoms)}

    def index_tensor(self) -> np.ndarray:
        """The paper's dense index tensor I [C, G, S, L]; 0 is false, 1 is true."""
        ground = self.ground
        shape = (ground.C, ground.G, ground.S, ground.L)
        cells = int(np.prod(shape, dtype=np.float64))
        if cells > MAX_DENSE:
            raise NsfrcError(
                f"the dense index tensor of {self.name} has {cells:,} entries ({' × '.join(map(str, shape))}), "
                f"more than {MAX_DENSE:,}: use engine=\"cpu\", which does not need it"
            )
        index = np.zeros(shape, dtype=np.min_scalar_type(ground.G))
        pair = ground.pair_of_row
        place = np.arange(ground.rows) - ground.pair_start[pair]
        index[ground.pair_clause[pair], ground.pair_head[pair], place] = np.where(
            ground.factors == NOTHING, TRUE, ground.factors
        )
        return index

    def initial_valuation(self) -> np.ndarray:
        """Starting values [G]: 1 for true and the facts, 0 elsewhere; neural atoms are for the user to fill."""
        return self.ground.initial.copy()

    def valuation(self, *worlds: Mapping[str, float]) -> torch.Tensor:
        """Facts as V0 [B, G], a row a world, for the reasoner.

        A world is a dict such as {"color(obj1,red)": 0.9} from neural atoms to values in [0, 1]; those it does not
        name are 0. All other atoms start as the program has them.
        """
        from nsfrc.reasoner import valuation

        return valuation(self, worlds)

    def unmerged_plan(self) -> Plan:
        """A plan in which every ground atom has a slot of its own; exact for any V0 and its gradient."""
        return self._unmerged

    @cached_property
    def _unmerged(self) -> Plan:
        *_, (_, program) = passes.run(self.ground, skip=("number",))
        return lower(program)

    def reasoner(
        self,
        engine: str = "auto",
        normalise: str = "example",
        steps: int | None = None,
        gamma: float | None = None,
        *,
        outputs: str = "all",
        inputs: str = "all",
        clause_weights: str | torch.Tensor = "hard",
    ) -> Reasoner:
        """A torch module V0 [B, G] → V_T.

        engine: "auto" (CUDA tensors to the GPU kernels, others to the CPU engine), "cpu", "gpu" or
        "reference". normalise: "example" (a result never depends on the batch) or
        "batch". steps, gamma: from the program by default. outputs: "all" or "targets". inputs:
        "all" honours and differentiates every entry of V0; "neural" only those of neural
        predicates, which is faster to train. clause_weights: "hard", "trainable", or a tensor
        [M, C] of which a soft-max over the clauses is taken.
        """
        from nsfrc.engines import GAMMA, Run
        from nsfrc.reasoner import Reasoner

        run = Run(
            steps=self.steps if steps is None else steps,
            gamma=gamma if gamma is not None else self.settings.gamma or GAMMA,
            normalise=normalise, outputs=outputs, inputs=inputs,
        )
        reasoner = Reasoner(self, engine, run, clause_weights)  # which refuses what cannot be
        if (short := self.too_few(steps)) is not None:
            warnings.warn(short, stacklevel=2)
        return reasoner

    def too_few(self, steps: int | None) -> str | None:
        """What to tell someone who asks for fewer steps than it takes to derive the targets."""
        if steps is None or steps >= self.depth:
            return None
        few = "step is" if steps == 1 else "steps are"
        return f"{steps} {few} too few for {self.name}: deriving {', '.join(self.targets)} takes {self.depth}"

    def predict(self, V_T: torch.Tensor) -> dict[str, torch.Tensor]:
        """The value of every target: {"kp(img)": [B]}, from all atoms or from the targets alone."""
        if not hasattr(V_T, "ndim") or V_T.ndim == 0:
            raise NsfrcError(f"predict takes V_T [B, {self.ground.G}] as the reasoner gives it, not {V_T!r}")
        if V_T.shape[-1] == self.ground.G:
            return {name: V_T[..., i] for name, i in zip(self.targets, self.target_indices, strict=True)}
        if V_T.shape[-1] == len(self.targets):
            return {name: V_T[..., i] for i, name in enumerate(self.targets)}
        raise NsfrcError(
            f"V_T has {V_T.shape[-1]} columns; {self.name} has {self.ground.G} atoms and {len(self.targets)} targets"
        )

    def save(self, path: str | Path) -> Path:
        """Write the program to a .nsfrc file, whole or not at all."""
        from nsfrc.artifact import save

        return save(self, Path(path))


def _without_blanks(atom: str) -> str:
    """The text of an atom without the blanks between its parts; those inside quotes belong to a name."""
    return "".join(re.findall(r"'(?:[^'\\]|\\.)*'|\S", atom))


def compile(
    path: str | Path | None = None,
    *,
    source: str | None = None,
    name: str = "program",
    slots: Mapping[str, int] | None = None,
    skip: Collection[str] = (),
    max_rows: int = MAX_ROWS,
) -> Program:
    """Compile a .pl file, or a shipped program by name. Raises CompileError with all that is wrong with it.

    source: the text of a program, in the place of a path; `name` is what messages then call it, and what it includes is
    looked for in the current folder. slots: how many constants a type declared with slots(N) has, as {"object": 6}.
    skip: passes to leave out, as ("share",). max_rows: programs that ground to more rows are refused.
    """
    from nsfrc.compiler import compile_file, compile_text

    _check_arguments(path, source, name, slots, skip, max_rows)
    if (path is None) == (source is None):
        raise NsfrcError("compile takes a path, or the text of a program as source=\"...\"; one of the two")
    if path is None:
        return from_compilation(compile_text(source or "", name, slots=slots, skip=skip, max_rows=max_rows))
    if "\n" in str(path):
        raise NsfrcError("compile takes the path of a program, and this is text of several lines: to compile text, "
                         "write nsfrc.compile(source=...)")
    return from_compilation(compile_file(path, slots=slots, skip=skip, max_rows=max_rows))


def _check_arguments(path: object, source: object, name: object, slots: object, skip: object, max_rows: object) -> None:
    """Refuse what no later stage could speak of clearly."""
    whole = isinstance(max_rows, int) and not isinstance(max_rows, bool) and max_rows > 0
    counts = isinstance(slots, Mapping) and all(isinstance(number, Integral) for number in slots.values())
    several = isinstance(skip, Collection) and not isinstance(skip, str)
    for fine, what in (
        (path is None or isinstance(path, str | Path), f"a program is a path or a name, not {path!r}"),
        (source is None or isinstance(source, str), f"source is text, not {type(source).__name__}"),
        (isinstance(name, str), f"name is text, not {name!r}"),
        (slots is None or counts, f'slots is a dict from types to whole numbers, as {{"object": 6}}, not {slots!r}'),
        (several, f'skip takes several names of passes, as ("share",), not {skip!r}'),
        (whole, f"max_rows is a whole number above 0, not {max_rows!r}"),
    ):
        if not fine:
            raise NsfrcError(what)


def from_compilation(done: Compilation) -> Program:
    return Program(
        name=done.program.name, ground=done.ground, plan=done.plan, settings=done.program.settings,
        steps=done.steps, depth=done.depth, warnings=done.warnings,
    )


def load(path: str | Path) -> Program:
    """Read a .nsfrc file; nothing is parsed or grounded again."""
    from nsfrc.artifact import load as load_artifact

    if not isinstance(path, str | Path):
        raise NsfrcError(f"load takes the path of a .nsfrc file, not a {type(path).__name__}")
    return load_artifact(Path(path))


def open_program(name: str | Path) -> Program:
    """A compiled program by file: .nsfrc is loaded, anything else (.pl, a shipped name) compiled."""
    return load(name) if str(name).endswith(".nsfrc") else compile(name)
