"""The kernels of a small `anchored` program, written out: a thread has an example, and all its values in registers.

    same_shape_pair(X,Y) :- shape(X,Z), shape(Y,Z).      for obj1 and obj2, of twopairs
    forwards:   x42, e42 = softor((x18 * x21, x19 * x22, x20 * x23), k, unit)
    backwards:  s54, s55, s56 = shares(g55 * x49, (x18 * x21, x19 * x22, x20 * x23), e42, k)
                and among the terms of the gradient of x18, s54 * x21

Negations and counts are lines of their own (anchored_choices). The text of these kernels is what the engine runs, and
what `--emit triton` puts into its file. x is a row of X of the plan, g its gradient; e is what shares of a soft-or are
computed from; s is the gradient of a row of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import pairwise

import numpy as np

from nsfrc.compiler.levels import FIRST_INPUT, ONE, PASSED, LevelPlan
from nsfrc.engines.gpu import anchored_choices as choices
from nsfrc.engines.gpu import source_edit as edit
from nsfrc.engines.gpu.anchored_choices import Terms, sum_of, value_of
from nsfrc.engines.gpu.anchored_phases import node_phases
from nsfrc.engines.gpu.source_edit import fill
from nsfrc.engines.gpu.source_kernels import reachable, without_unused
from nsfrc.engines.gpu.source_text import assignments, comment, one_line, tuple_of, wrapped

# Values and rows that registers hold backwards: 151 (twopairs) take 197 of 255, 192 take 254, and 371 spill. Those of
# counts take fewer: 154 with 71 choices 155, 133 with 109 182, 206 with 103 207; but Triton takes longer over chains.
MOST = 160
LANES = 32  # examples of an instance: a warp, of which every thread has an example
LOADS = 4  # on a line


def fits(plan: LevelPlan, soft: bool) -> bool:
    """Whether a plan is written out. Measured: a sixth of the instructions of the table-driven kernels, or fewer."""
    small = plan.heads + plan.choices > 0 and plan.values + plan.rows <= MOST
    return small and not soft and not plan.rounds and not _odd(plan)


def _odd(plan: LevelPlan) -> bool:
    """Whether a head has reasons that are constants, or that count differently often; then tables do."""
    constant = bool(((plan.row_left <= ONE) & (plan.row_right <= ONE)).any())
    runs = np.diff(plan.pair_start[plan.head_start].astype(np.int64))
    of_head = plan.run_times[plan.pair_start[plan.head_start[:-1]]].repeat(runs)
    mixed = bool((plan.run_times != of_head).any())
    given = bool(plan.head_start_value.any()) if plan.declared else bool((plan.run_times != 1).any())
    return constant or mixed or given


@dataclass(frozen=True, eq=False)
class Written:
    """The text of a plan's kernels. atoms: names, for comments; clauses: their texts; warm: γ is large."""

    plan: LevelPlan
    targets_only: bool
    warm: bool
    atoms: list[str]
    clauses: tuple[str, ...]
    gradients: bool = True

    @property
    def outputs(self) -> np.ndarray:
        """[outputs]: atoms."""
        return self.plan.targets.astype(np.int64) if self.targets_only else np.arange(self.plan.G)

    @cached_property
    def text(self) -> str:
        """Functions of Triton, `written_forward` and `written_backward` the last of them."""
        kernels = [self._levels(), self._forward(), *([self._backward()] if self.gradients else [])]
        called: set[str] = set().union(*map(edit.names, kernels))
        return "\n\n\n".join([*self._maths(called), *kernels])

    def _maths(self, called: set[str]) -> list[str]:
        """Soft-or and its shares, without what this program does not need. called: names that its kernels use."""
        files = [resources.files("nsfrc.kernels").joinpath(f"{name}.py") for name in ("maths", "anchored_maths")]
        functions, constants = edit.split("\n".join(file.read_text("utf-8") for file in files))
        folded = {name: edit.fold(text, None, None, {"WARM": self.warm}) for name, text in functions.items()}
        kept = without_unused(reachable(folded, tuple(name for name in folded if name in called)))
        used: set[str] = set().union(*(edit.names(text) for text in kept.values()))
        named = [text for name, text in constants.items() if name in used]
        return ["\n".join(named)] * bool(named) + list(kept.values())

    # What a name or an expression is.

    def _product(self, left: int, right: int) -> str:
        factors = [value_of(row) for row in (left, right) if row != ONE]
        return " * ".join(factors)

    def _rows(self, head: int) -> range:
        plan = self.plan
        first, last = (int(plan.run_start[plan.pair_start[plan.head_start[h]]]) for h in (head, head + 1))
        return range(first, last)

    def _reasons(self, head: int) -> list[str]:
        plan = self.plan
        rows = [self._product(plan.row_left[r], plan.row_right[r]) for r in self._rows(head)]
        return rows if plan.declared else [*rows, f"v{plan.first_head + head}"]

    def _alone(self, head: int) -> bool:
        """Whether a head has one reason, counted once, which is then its value."""
        return len(self._rows(head)) == 1 and self.plan.declared and not self._times(head)

    def _times(self, head: int) -> str:
        """An argument that says how often the reasons of a head count; none where that is once."""
        times = self.plan.run_times[self.plan.pair_start[self.plan.head_start[head]]]
        return "" if times == 1 else f", times={times:.1f}"

    def _blocks(self) -> list[tuple[list[range], range]]:
        """Nodes and heads of every block; nodes in ranges that do not use each other."""
        heads = pairwise(self.plan.block_heads.tolist())
        return [([range(first, last) for _, first, last in node_phases(self.plan, block)], range(*mine))
                for block, mine in enumerate(heads)]

    # Forwards.

    @cached_property
    def _names(self) -> list[str]:
        """What `levels` gives."""
        plan = self.plan
        rows = [f"x{row}" for row in range(FIRST_INPUT, plan.values)]
        for head in range(plan.heads):
            number = plan.first_head + head
            rows += [] if self._alone(head) else [f"e{number}"]
            rows += [] if plan.declared else [f"v{number}"]
        return rows

    def _levels(self) -> str:
        plan = self.plan
        counts = ", choices" if plan.choices else ""
        what = f"Values of an example whose V0 begins there: x of inputs, heads{counts} and products; e of soft-ors."
        lines = ["@triton.jit", "def levels(V0, k, unit):", f'    """{what}"""']
        lines += self._loads("x", FIRST_INPUT, plan.input_atom)
        for level, (nodes, heads) in enumerate(self._blocks(), 1):
            clauses = dict.fromkeys(int(plan.pair_clause[p]) for p in
                                    range(plan.head_start[heads.start], plan.head_start[heads.stop]))
            lines += [f"    # Level {level}.", *choices.forward_lines(plan, level - 1, self.atoms)]
            for some in nodes:
                lines += assignments([f"x{plan.first_node + n}" for n in some],
                                      [self._product(plan.node_left[n], plan.node_right[n]) for n in some])
            for clause in sorted(clauses):
                lines += comment(self.clauses[clause])
            if not plan.declared:
                lines += self._loads("v", plan.first_head + heads.start, plan.head_atom[heads.start: heads.stop])
            for head in heads:
                lines += self._head(head)
        return "\n".join([*lines, "    return (", fill(self._names, "        "), "    )"])

    def _loads(self, letter: str, first: int, atoms: np.ndarray) -> list[str]:
        lines = []
        for i in range(0, len(atoms), LOADS):
            some = atoms[i: i + LOADS].tolist()
            lines += comment(", ".join(self.atoms[atom] for atom in some))
            names = ", ".join(f"{letter}{first + i + j}" for j in range(len(some)))
            lines.append(f"    {names} = {', '.join(f'tl.load(V0 + {atom})' for atom in some)}")
        return lines

    def _head(self, head: int) -> list[str]:
        number = self.plan.first_head + head
        name = "  # " + one_line(self.atoms[self.plan.head_atom[head]])
        if self._alone(head):
            return wrapped(f"    x{number} = capped({self._reasons(head)[0]})", name)
        reasons = tuple_of(self._reasons(head))
        return wrapped(f"    x{number}, e{number} = softor({reasons}, k, unit{self._times(head)})", name)

    def _forward(self) -> str:
        plan = self.plan
        lines = _signature("written_forward", "V0, out", f"V0 [B, {plan.G}] → out [B, {len(self.outputs)}].")
        lines += [f"    V0, out = V0 + example * {plan.G}, out + example * {len(self.outputs)}"]
        lines += ["    values = levels(V0, k, unit)"]
        place = plan.place[self.outputs].astype(np.int64)
        for output, row in enumerate(place):
            value = f"values[{row - FIRST_INPUT}]" if row > ONE else value_of(row)
            lines += [] if row == PASSED else [f"    tl.store(out + {output}, {value})"
                                               f"  # {one_line(self.atoms[self.outputs[output]])}"]
        return "\n".join(lines + _copies("V0", "out", np.flatnonzero(place == PASSED)))

    # Backwards.

    def _backward(self) -> str:
        plan = self.plan
        lines = _signature(
            "written_backward", "V0, g_out, g_V0", f"g_out [B, {len(self.outputs)}] → g_V0 [B, {plan.G}].")
        lines += [f"    V0, g, g_out = V0 + example * {plan.G}, g_V0 + example * {plan.G}, "
                  f"g_out + example * {len(self.outputs)}"]
        lines += ["    (", fill(self._names, "        "), "    ) = levels(V0, k, unit)"]
        terms: Terms = {}
        place = plan.place[self.outputs].astype(np.int64)
        for output, row in enumerate(place):
            terms.setdefault(int(row), []).append(f"tl.load(g_out + {output})")
        starts: dict[int, str] = {}
        for level, (nodes, heads) in reversed(list(enumerate(self._blocks(), 1))):
            lines.append(f"    # Level {level}, backwards.")
            for head in heads:
                lines += self._head_back(head, terms, starts)
            for some in reversed(nodes):
                rows = [plan.first_node + node for node in some]
                lines += assignments([f"g{row}" for row in rows], [sum_of(terms.get(row)) for row in rows])
                for node, row in zip(some, rows, strict=True):
                    self._use(f"g{row}", plan.node_left[node], plan.node_right[node], terms)
            lines += choices.backward_lines(plan, level - 1, terms)
        lines.append("    # Gradients of V0.")
        given = {int(atom): terms.get(FIRST_INPUT + i) for i, atom in enumerate(plan.input_atom)}
        given |= {atom: [term] for atom, term in starts.items()}
        for atom, added in sorted(given.items()):
            lines += wrapped(f"    tl.store(g + {atom}, {sum_of(added)})")
        passed = self.outputs[place == PASSED]
        lines += _copies("g_out", "g", passed)  # every atom is an output then, so columns are the same
        return "\n".join(lines + _zeros(sorted(set(range(plan.G)) - set(given) - set(passed.tolist()))))

    def _head_back(self, head: int, terms: Terms, starts: dict[int, str]) -> list[str]:
        plan, number = self.plan, self.plan.first_head + head
        given = sum_of(terms.get(number))
        names = [f"s{row}" for row in self._rows(head)]
        for name, row in zip(names, self._rows(head), strict=True):
            self._use(name, plan.row_left[row], plan.row_right[row], terms)
        if self._alone(head):
            return assignments(names, [given])
        if not plan.declared:
            names.append(f"h{number}")
            starts[int(plan.head_atom[head])] = names[-1]
        target = ", ".join(names) if 1 < len(names) <= LOADS * 2 else tuple_of(names)
        reasons = tuple_of(self._reasons(head))
        return wrapped(f"    {target} = shares({given}, {reasons}, e{number}, k{self._times(head)})")

    def _use(self, given: str, left: int, right: int, terms: Terms) -> None:
        """What a product whose gradient is given adds to those of its factors."""
        for factor, other in ((int(left), int(right)), (int(right), int(left))):
            if factor > ONE:
                terms.setdefault(factor, []).append(given if other == ONE else f"{given} * {value_of(other)}")


def _signature(name: str, pointers: str, what: str) -> list[str]:
    return [
        '@triton.jit(do_not_specialize=["batch"])', f"def {name}({pointers}, k, unit, batch):",
        f'    """{what} A thread has one example."""',
        f"    example = tl.program_id(0) * {LANES} + tl.arange(0, {LANES})",
        "    example = tl.minimum(example, batch - 1).to(tl.int64)  # spare threads repeat the last one",
    ]


def _ranges(columns: np.ndarray | list[int]) -> list[tuple[int, int]]:
    """Columns as ranges first … last."""
    found: list[tuple[int, int]] = []
    for column in map(int, columns):
        if found and found[-1][1] == column:
            found[-1] = (found[-1][0], column + 1)
        else:
            found.append((column, column + 1))
    return found


def _copies(source: str, target: str, columns: np.ndarray) -> list[str]:
    return [line for first, last in _ranges(columns) for line in (
        f"    for column in range({first}, {last}):",
        f"        tl.store({target} + column, tl.load({source} + column))")]


def _zeros(columns: list[int]) -> list[str]:
    return [line for first, last in _ranges(columns) for line in (
        f"    for column in range({first}, {last}):", "        tl.store(g + column, 0.0)")]
