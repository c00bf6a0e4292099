"""The compiled program as users hold it: `nsfrc.compile(...)`, `nsfrc.load(...)`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsfrc.compiler import ir, passes
from nsfrc.compiler.check.declare import slot_names
from nsfrc.compiler.goal_text import GoalText
from nsfrc.compiler.ground import MAX_ROWS
from nsfrc.compiler.grounded import NOTHING, GroundProgram
from nsfrc.compiler.herbrand import TRUE
from nsfrc.compiler.levels import AnyPlan, LevelPlan, lower_as
from nsfrc.compiler.plan import Plan
from nsfrc.errors import Diagnostic, NsfrcError, TooFewSteps, did_you_mean
from nsfrc.models.outside import Outside
from nsfrc.questions import Question, questions

if TYPE_CHECKING:
    import torch

    from nsfrc.compiler.stages import Compilation
    from nsfrc.reasoner import Reasoner

# Cells of a dense index tensor that still fit in memory as int64 (16 GB).
MAX_DENSE = 2_000_000_000
MANY = 7  # targets that are named when a program is printed


@dataclass(frozen=True, eq=False)
class Program:
    """A program, grounded and optimised. `lowered` is what engines run; `source` and `ground` what it was made of."""

    source: ir.Program = field(repr=False)
    ground: GroundProgram = field(repr=False)
    lowered: AnyPlan = field(repr=False)
    steps: int
    depth: int
    warnings: tuple[Diagnostic, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        from nsfrc.compiler.report import how_it_reasons, levels

        asked = ", ".join(self.targets[:MANY]) or "no targets"
        more = f" and {len(self.targets) - MANY} more" if len(self.targets) > MANY else ""
        how = how_it_reasons(self.settings.semantics, self.steps, levels(self.lowered))
        return f"Program({self.name}: {asked}{more}; {how})"

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def settings(self) -> ir.Settings:
        return self.source.settings

    @property
    def anchored(self) -> bool:
        """Whether it means what `anchored` says, and not what `paper` does."""
        return self.source.anchored

    @property
    def plan(self) -> Plan:
        """What engines run of a program under `paper`."""
        if not isinstance(self.lowered, Plan):
            raise NsfrcError(f"{self.name} is anchored, so engines run program.lowered, a LevelPlan")
        return self.lowered

    @cached_property
    def atoms(self) -> list[str]:
        """Every ground atom in index order: "false", "true", then the rest."""
        return self.ground.herbrand.names()

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        """The text of every clause; clause weights have a column for each, in this order.

        A goal that is negated or counted has clauses of its own behind the one it stands in, named as in kp#1.
        """
        return tuple(map(GoalText(self.source).clause, self.source.clauses))

    @property
    def target_indices(self) -> list[int]:
        """Where the targets stand in a valuation."""
        return [int(i) for i in self.ground.targets]

    @property
    def targets(self) -> list[str]:
        """The target atoms, in the order the program names them; those of `:- classes` come last."""
        return [self.atoms[i] for i in self.target_indices]

    @property
    def classes(self) -> list[str]:
        """The atoms of `:- classes([...])`, of which one is the answer; they are the last of the targets."""
        return self.targets[len(self.targets) - len(self.source.classes) :]

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is asked: each target whether it holds, and of classes which one it is."""
        return questions(self.targets, self.classes)

    def index(self, atom: str) -> int:
        """Where a ground atom such as "kp(img)" stands in a valuation."""
        wanted = _without_blanks(str(atom))
        try:
            return self._positions[wanted][0]
        except KeyError:
            hint = did_you_mean(wanted, self.atoms)
            raise NsfrcError(f"{self.name} has no ground atom {atom}" + (f"; {hint}" if hint else "")) from None

    def columns(self, pattern: str) -> list[int]:
        """Where the ground atoms that match a pattern such as "digit(a, X)" stand in a valuation, in index order.

        A variable matches every constant, the same one wherever it occurs; `_` matches any.
        """
        from nsfrc.columns import matching

        return matching(self, pattern)

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """Where each atom stands. Comparisons that are written differently may come to the same atom."""
        found: dict[str, list[int]] = {}
        for i, name in enumerate(self.atoms):
            found.setdefault(_without_blanks(name) if " " in name else name, []).append(i)
        return found

    def positions(self, atom: str) -> list[int]:
        """As `index`, all columns of atoms that read the same, as of `area(A) > N` and `area(A) > 1`; [] for none."""
        return self._positions.get(_without_blanks(str(atom)), [])

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
        """Starting values [G]: 1 for true and the facts, probabilities as the program has them, 0 elsewhere.

        Neural atoms and comparisons are for the user to fill.
        """
        values = self.ground.initial.copy()
        for predicate in self.source.predicates:
            if predicate.chance is not None:
                values[self.ground.herbrand.offsets[predicate.key][0]] = predicate.chance.value
        return values

    def valuation(self, *worlds: Mapping[str, float], concepts: str | Path | None = None) -> torch.Tensor:
        """Facts as V0 [B, G], one row per world, for the reasoner.

        A world is a dict such as {"color(obj1,red)": 0.9, "area(obj1)": 0.3} from neural atoms to values in [0, 1], and
        from numbers of the program to whatever they are. Atoms that it does not name are 0, and so are comparisons of
        numbers that it does not name. All other atoms start as the program has them. concepts: a file with learnt
        temperatures and probabilities.
        """
        from nsfrc.valuation.worlds import valuation

        return valuation(self, worlds, None if concepts is None else Path(concepts))

    def unmerged_plan(self) -> Plan:
        """A plan in which every ground atom has a slot of its own; exact for any V0 and its gradient. For `paper`."""
        return self._unmerged

    def level_plan(self, declared_start: bool, targets_only: bool, as_given: bool = False) -> LevelPlan:
        """The plan of an `anchored` program for what is asked of it, made when first needed.

        declared_start: non-neural atoms start as the program says and nobody asks for their gradients; targets_only:
        nobody asks for other atoms' values; as_given: clause weights are hard, and what depends on itself takes its
        default rounds or more (`ground.suffice`); without it a plan is exact for these too, with more to compute.
        """
        key = declared_start, targets_only, as_given or not declared_start  # else there is nothing to be settled
        if key not in self._level_plans:
            plan = self._lower(*key)
            assert isinstance(plan, LevelPlan)
            self._level_plans[key] = plan
        return self._level_plans[key]

    @cached_property
    def _level_plans(self) -> dict[tuple[bool, bool, bool], LevelPlan]:
        if not isinstance(self.lowered, LevelPlan):
            raise NsfrcError(f"{self.name} says semantics(paper), so engines run program.plan")
        return {(True, True, self.ground.suffice(self.settings.steps)): self.lowered}

    def _lower(self, declared_start: bool, targets_only: bool, as_given: bool = True) -> AnyPlan:
        semantics = self.settings.semantics
        stages = passes.run(self.ground, semantics, declared_start=declared_start, targets_only=targets_only,
                            as_given=as_given)
        *_, (_, final) = stages
        return lower_as(semantics, final, declared_start)

    @cached_property
    def _unmerged(self) -> Plan:
        plan = self._lower(declared_start=False, targets_only=True)
        assert isinstance(plan, Plan)
        return plan

    def reasoner(
        self,
        engine: str = "auto",
        normalise: str | None = None,
        steps: int | None = None,
        gamma: float | None = None,
        *,
        outputs: str = "all",
        inputs: str = "all",
        clause_weights: str | torch.Tensor = "hard",
        candidates: str | Sequence[str] | None = None,
        mixtures: int = 1,
        arch: str | None = None,
    ) -> Reasoner:
        """A torch module V0 [B, G] → V_T.

        engine: "auto" (CUDA tensors to the GPU kernels, others to the CPU engine), "cpu", "gpu", "reference", or
        "ptx", which executes the GPU's machine code for `arch` ("sm_80" or "sm_90") on the CPU. normalise, under
        `paper`: "example" (the default: a result never depends on the batch) or "batch". steps, gamma: from the
        program by default; gamma can be changed later (`reasoner.gamma = 0.1`). outputs: "all" or "targets". inputs:
        "all" honours and differentiates every entry of V0; "neural" only those of neural predicates, which is faster
        to train. clause_weights: "hard", "trainable", or a tensor [M, C] of which a soft-max over the clauses is taken.
        candidates: instead of it, heads such as "kp/1" whose clauses are to choose from, for each of `mixtures` rows;
        all other clauses hold as they are.
        """
        from nsfrc.candidates import find_candidates
        from nsfrc.engines import GAMMA, Run
        from nsfrc.reasoner import Reasoner

        if self.anchored and normalise is not None:
            raise NsfrcError(
                f"normalise is for semantics(paper), but {self.name} is anchored: its examples do not depend on "
                "each other. Leave it out, or write :- semantics(paper)."
            )
        run = Run(
            steps=steps if steps is not None else self.settings.steps if self.anchored else self.steps,
            gamma=gamma if gamma is not None else self.settings.gamma or GAMMA,
            normalise=normalise or "example", outputs=outputs, inputs=inputs,
        )
        if candidates is not None and (not isinstance(clause_weights, str) or clause_weights != "hard"):
            raise NsfrcError("candidates have clause weights of their own: leave out clause_weights")
        chosen = None if candidates is None else find_candidates(self, candidates, mixtures)
        reasoner = Reasoner(self, engine, run, clause_weights, chosen, arch)  # which refuses what cannot be
        if (short := self.too_few(steps)) is not None:
            warnings.warn(short, TooFewSteps, stacklevel=2)
        return reasoner

    def too_few(self, steps: int | None) -> str | None:
        """What to tell someone who asks for fewer steps than it takes to derive the targets."""
        if steps is None or steps >= self.depth or self.anchored:
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
        from nsfrc.compiler.artifact import save

        return save(self, Path(path))


def _without_blanks(atom: str) -> str:
    """The text of an atom without the blanks between its parts; those inside quotes belong to a name."""
    return "".join(re.findall(r"'(?:[^'\\]|\\.)*'|\S", atom))


def compile(
    path: str | Path | ir.Program | None = None,
    *,
    source: str | None = None,
    name: str = "program",
    slots: Mapping[str, int] | None = None,
    skip: Collection[str] = (),
    max_rows: int = MAX_ROWS,
    perception: str | Path | None = None,
) -> Program:
    """Compile a .pl file, a shipped program by name, or an `ir.Program`.

    Raises CompileError with all that is wrong with it.

    source: the text of a program, in the place of a path; `name` is what messages then call it, and what it includes is
    looked for in the current folder. slots: how many constants a type declared with slots(N) has, as {"object": 6}.
    skip: passes to leave out, as ("share",). max_rows: programs that ground to more rows are refused. perception: a
    model file whose class names types `from_perception` take, instead of the program's own.
    """
    from nsfrc.compiler.stages import Options, compile_file, compile_program, compile_text

    _check_arguments(path, source, name, slots, skip, max_rows)
    if (path is None) == (source is None):
        raise NsfrcError("compile takes either a path or the text of a program as source=\"...\"")
    options = Options(slots or {}, skip, max_rows, Outside(None if perception is None else str(perception)))
    if isinstance(path, ir.Program):
        if slots:
            raise NsfrcError("slots is only for programs given as text: an ir.Program already has its constants")
        return from_compilation(compile_program(path, options))
    if path is None:
        return from_compilation(compile_text(source or "", name, options))
    if "\n" in str(path):
        raise NsfrcError("compile takes the path of a program, but this is text of several lines: to compile text, "
                         "write nsfrc.compile(source=...)")
    return from_compilation(compile_file(path, options))


def _check_arguments(path: object, source: object, name: object, slots: object, skip: object, max_rows: object) -> None:
    """Refuse what no later stage could speak of clearly."""
    whole = isinstance(max_rows, int) and not isinstance(max_rows, bool) and max_rows > 0
    counts = isinstance(slots, Mapping) and all(isinstance(number, Integral) for number in slots.values())
    several = isinstance(skip, Collection) and not isinstance(skip, str)
    for fine, what in (
        (path is None or isinstance(path, str | Path | ir.Program), f"a program is a path or a name, not {path!r}"),
        (source is None or isinstance(source, str), f"source is text, not {type(source).__name__}"),
        (isinstance(name, str), f"name is text, not {name!r}"),
        (slots is None or counts, f'slots is a dict from types to whole numbers, like {{"object": 6}}, not {slots!r}'),
        (several, f'skip takes a sequence of pass names, like ("share",), not {skip!r}'),
        (whole, f"max_rows is a whole number above 0, not {max_rows!r}"),
    ):
        if not fine:
            raise NsfrcError(what)


def from_compilation(done: Compilation) -> Program:
    return Program(
        source=done.program, ground=done.ground, lowered=done.plan, steps=done.steps, depth=done.depth,
        warnings=done.warnings,
    )


def load(path: str | Path) -> Program:
    """Read a .nsfrc file; nothing is parsed or grounded again."""
    from nsfrc.compiler.artifact import load as load_artifact

    if not isinstance(path, str | Path):
        raise NsfrcError(f"load takes the path of a .nsfrc file, not a {type(path).__name__}")
    return load_artifact(Path(path))


def open_program(name: str | Path, outside: Outside = Outside()) -> Program:  # noqa: B008 (it is frozen)
    """A compiled program by file: .nsfrc is loaded, anything else (.pl, a shipped name) compiled.

    outside: whose class names types `from_perception` take.
    """
    if str(name).endswith(".nsfrc"):
        return load(name)
    from nsfrc.compiler.stages import Options, compile_file

    return from_compilation(compile_file(name, Options(outside=outside)))


def with_slots(program: Program, count: int, max_rows: int = MAX_ROWS) -> Program:
    """The same program for another number of objects, of the types that are declared with slots(N)."""
    from nsfrc.compiler.stages import Options, compile_program

    types = tuple(
        replace(t, constants=slot_names(t.name, count)) if t.slots and t.role == ir.OBJECT else t
        for t in program.source.types
    )
    made = from_compilation(compile_program(replace(program.source, types=types), Options(max_rows=max_rows)))
    return replace(made, warnings=program.warnings)
