"""An `anchored` program as one Python file of Triton: `--emit triton`.

A small program is written out, level by level (anchored_written). For a larger one the file has the table-driven
kernels of kernels/anchored*.py, with the program's sizes put in and what it does not need left out, and its tables.
Neither torch nor triton is imported to write it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import numpy as np

from nsfrc import __version__
from nsfrc.compiler.levels import LevelPlan
from nsfrc.engines import GAMMA
from nsfrc.engines.base import base_two, starting_values
from nsfrc.engines.gpu import anchored_source_launch as parts
from nsfrc.engines.gpu import source_edit as edit
from nsfrc.engines.gpu import source_launch as common
from nsfrc.engines.gpu.anchored_shapes import INSTANCES_PER_MULTIPROCESSOR, LARGE, WARM
from nsfrc.engines.gpu.anchored_tables import AnchoredTables, pack
from nsfrc.engines.gpu.anchored_written import LANES, Written, fits
from nsfrc.engines.gpu.source_edit import WIDTH, fill
from nsfrc.engines.gpu.source_kernels import Kernels, specialise
from nsfrc.engines.gpu.source_text import (
    clauses_of,
    constants_of,
    harmless,
    list_of,
    notes_of,
    quoted,
    tables_of,
)
from nsfrc.program import Program

FILES = ("maths", "anchored_maths", "anchored", "anchored_back")
FORWARD, BACKWARD = "anchored_forward", "anchored_backward"
SECTIONS = {
    "maths": "How rows of X are read and written; lanes are the examples of a tile.",
    "anchored_maths": "softor⁰(x) = γ·log(1 + Σ (exp(x/γ) - 1)), reason after reason; `inverse` is 1 over that sum, as "
                      "a multiple of\n# the exponential of the largest reason, `top`.",
    "anchored": "Forwards: phases of a block, and the kernel.",
    "anchored_back": "Backwards: gradients are taken from what a phase computed and gathered by what it used.",
}
WORDS = """\
X is [rows, examples of a tile]: 0, 1, inputs, heads, nodes (products that rows share){choices} and parts, soft-ors of
some rows of a long list. A sum is a soft-or: of a part or of a head. Blocks are run one after the other, recursive ones
in rounds; a block is a range of phases (kind, first, last), each of which needs all results of those before it.
"""
CHOICES = ", choices (no + by·(yes - no): a negation, or a step of a count)"
NAMED = 6  # negations and counts of a level that are told by name
GROUPS = (
    ("n", "How many there are of everything."),
    ("row", "Rows behind those of X, and of the gradients, whose first are those of X as well."),
    ("kind", "Kinds of phases."),
    ("", "Tiles, and where in X heads and nodes begin."),
)
NOTES = {"tall": "rows of a tile", "wide": "examples of a tile; 32 floats are a line of 128 bytes"}
DOCSTRINGS = {
    (FORWARD, True): '"""V0 [B, G] → out [B, outputs]. x: rows of X, of all examples to KEEP them for gradients."""',
    (FORWARD, False): '"""V0 [B, G] → out [B, outputs]. x: rows of X of this instance."""',
    (BACKWARD, True): '"""g_out [B, outputs] → g_V0 [B, G]. x is what the forward kernel kept, and stays as it is."""',
}
# Arguments of the kernels that the launchers have under another name; -1 steps: as many rounds as suffice.
ARGUMENTS = {"k": "K", "unit": "UNIT", "steps": "STEPS", "KEEP": "KEEP=keep"}


def emit_anchored(program: Program, outputs: str, gradients: bool) -> str:
    """The file's text. outputs: "targets" or "all" atoms. gradients: whether `forward` can be differentiated."""
    plan = program.level_plan(True, outputs == "targets")
    columns = plan.targets if outputs == "targets" else plan.place
    small = fits(plan, soft=False)
    blocks = [
        _beginning(program, len(columns), outputs, gradients, small), _program(program, plan, small),
        *(_written(program, plan, outputs, gradients) if small else _table_driven(program, plan, outputs, gradients)),
        _end(program, len(columns), outputs, gradients, small),
    ]
    return "\n\n".join(blocks)


def _beginning(program: Program, outputs: int, which: str, gradients: bool, small: bool) -> str:
    neural = [name for name, is_neural in zip(program.atoms, program.ground.neural, strict=True)
              if is_neural and harmless(name) == name]
    text = common.BEGINNING.substitute(
        name=harmless(program.name), version=__version__, atoms=len(program.atoms), outputs=outputs,
        column=_column(which), differentiable="; differentiable in V0" if gradients else "",
        example=f'\n    V0[:, ATOMS.index("{neural[0]}")] = 0.9' if neural else "",
    )
    imports = parts.IMPORTS + (parts.ONCE if gradients else "")
    return text + "\n" + (imports + parts.INTERPRETED if small else
                          "from functools import cache\n\n" + imports + common.STATIC)


def _column(outputs: str) -> str:
    return "target" if outputs == "targets" else "atom"


def _program(program: Program, plan: LevelPlan, small: bool) -> str:
    """Names and numbers of the program, and its levels unless these are written out below."""
    gamma = program.settings.gamma or GAMMA
    _, k, unit = base_two(gamma).tolist()
    lines = ["# Ground atoms, in the order of V0's columns.", list_of("ATOMS", map(quoted, program.atoms)),
             list_of("TARGETS", map(quoted, program.targets)),
             f"GAMMA = {gamma!r}  # soft-or is γ·log(1 + Σ (exp(x/γ) - 1))",
             f"K, UNIT = {k!r}, {unit!r}  # log2(e)/γ and 1/K, in float32",
             "# What atoms start at, and -1 where they are neural.",
             list_of("CONSTANT", map(str, starting_values(plan.constant).tolist())),
             "NEURAL = [atom for atom, value in zip(ATOMS, CONSTANT, strict=True) if value < 0]"]
    if chances := _chances(program):
        lines.append("# Of these, the probabilities that the program has.")
        lines.append(f"CHANCES = {{{', '.join(f'{quoted(name)}: {value!r}' for name, value in chances.items())}}}")
    if not small:
        steps = -1 if program.settings.steps is None else program.settings.steps
        lines = [*_levels(program, plan), *lines]
        lines += [f"STEPS = {steps}  # rounds of what depends on itself; -1: as many as suffice"] * (plan.rounds > 0)
    return "\n".join([*lines, ""])


def _chances(program: Program) -> dict[str, float]:
    return {p.name: p.chance.value for p in program.source.predicates if p.chance is not None}


def _levels(program: Program, plan: LevelPlan) -> Iterator[str]:
    """Blocks as comments: clauses, and what is computed for them."""
    for block in range(plan.blocks):
        first, last = plan.block_heads[block: block + 2].tolist()
        pairs = plan.head_start[[first, last]]
        rows = plan.run_start[plan.pair_start[pairs]].astype(np.int64)
        nodes = np.diff(plan.block_nodes[block: block + 2].astype(np.int64))
        counted = plan.first_choice + plan.block_choices[block: block + 2].astype(np.int64)
        counts = [_count(counted[1] - counted[0], "choice")] if counted[0] < counted[1] else []
        counts += [_count(nodes[0], "product"), _count(rows[1] - rows[0], "row"), _count(last - first, "head")]
        counts += [_count(plan.block_rounds[block], "round")] if plan.block_rounds[block] else []
        yield f"# Level {block + 1}: {', '.join(counts)}."
        told = [*_negations_and_counts(program, plan, *counted),
                *(program.clauses[i] for i in sorted(set(plan.pair_clause[slice(*pairs)].tolist())))]
        if told:
            yield clauses_of(told).rstrip("\n")


def _negations_and_counts(program: Program, plan: LevelPlan, first: int, last: int) -> Iterator[str]:
    """The atoms whose values are choices in some rows of X, the first of them by name."""
    names = [program.atoms[atom] for atom in np.flatnonzero((plan.place >= first) & (plan.place < last))]
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield "negations and counts: " + ", ".join(names[:NAMED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _written(program: Program, plan: LevelPlan, outputs: str, gradients: bool) -> Iterator[str]:
    warm = (program.settings.gamma or GAMMA) > WARM
    written = Written(plan, outputs == "targets", warm, program.atoms, program.clauses, gradients)
    yield written.text + "\n"
    yield parts.WRITTEN_FORWARD.substitute(lanes=LANES, outputs=len(written.outputs))
    if gradients:
        yield parts.WRITTEN_BACKWARD


def _table_driven(program: Program, plan: LevelPlan, outputs: str, gradients: bool) -> Iterator[str]:
    tables = pack(plan, outputs == "targets", soft=False)
    layout = tables.layout(LARGE, (program.settings.gamma or GAMMA) > WARM)
    kernels = specialise(layout, gradients, FILES, (FORWARD, BACKWARD), {"WARM": layout.warm})
    notes = notes_of("anchored_layout")
    words = WORDS.format(choices=CHOICES if plan.choices else "")
    lines = [textwrap.fill(words, WIDTH, initial_indent="# ", subsequent_indent="# ")]
    lines += constants_of(kernels.fields, layout, GROUPS, notes, NOTES)
    constants = [text.replace("tl.constexpr(", "static(") for text in kernels.constants]
    yield "\n".join([*lines, *([""] if constants else []), *constants, ""])
    yield tables_of("INTS", "whole numbers", tables.at, tables.ints, kernels.fields, notes)
    yield tables_of("FLOATS", "floats", tables.of, tables.floats, kernels.fields, notes)
    for file, title in SECTIONS.items():
        if kernels.functions[file]:
            first, *others = [_tidy(name, text, gradients) for name, text in kernels.functions[file].items()]
            yield f"# {title}\n\n\n{first}\n"
            yield from (f"{text}\n" for text in others)
    yield from _table_launchers(program, kernels, tables, gradients)


def _tidy(name: str, text: str, gradients: bool) -> str:
    """A function that speaks of the parameters it has."""
    if (name, gradients) not in DOCSTRINGS:
        return text
    decorator, rest = text.split("\n", 1)
    for parameter in set(re.findall(r'"(\w+)"', decorator)) - set(edit.parameters(text)):
        decorator = decorator.replace(f', "{parameter}"', "")
    return edit.with_docstring(f"{decorator}\n{rest}", DOCSTRINGS[name, gradients])


def _table_launchers(program: Program, kernels: Kernels, tables: AnchoredTables, gradients: bool) -> Iterator[str]:
    yield parts.TABLES.substitute(
        warps=LARGE.warps, registers=LARGE.registers, instances=INSTANCES_PER_MULTIPROCESSOR,
        kept=f"ROWS = {tables.kept(program.settings.steps)}  # of X, with what gradients need\n" if gradients else "",
    )
    yield parts.TABLES_FORWARD.substitute(
        arguments=_arguments(kernels, FORWARD), keep_parameter=", keep" if gradients else "",
        room=parts.ROOM_TO_KEEP if gradients else parts.ROOM,
        and_past=" and X, for gradients if it is to be kept" if gradients else "",
        result="out, x" if gradients else "out",
    )
    if gradients:
        yield parts.TABLES_BACKWARD.substitute(arguments=_arguments(kernels, BACKWARD))


def _arguments(kernels: Kernels, name: str) -> str:
    given = [ARGUMENTS.get(parameter, parameter) for parameter in kernels.parameters(name)]
    return fill([*given, "**OPTIONS"], indent=" " * 12)


def _end(program: Program, outputs: int, which: str, gradients: bool, small: bool) -> str:
    differentiable = parts.WRITTEN_DIFFERENTIABLE if small else common.DIFFERENTIABLE
    return common.FORWARD.substitute(
        atoms=program.ground.G, outputs=outputs, column=_column(which), steps="level by level",
        start="[CHANCES.get(atom, start) for atom, start in zip(ATOMS, CONSTANT, strict=True)]"
        if _chances(program) else "CONSTANT",
        gradients_too=", and have a gradient" if gradients else "",
        choice=differentiable if gradients else common.VALUES_ONLY,
        names="TARGETS" if which == "targets" else "ATOMS",
    )
