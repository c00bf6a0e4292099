"""A compiled program as one Python file of Triton that needs neither nsfrc nor its file: `--emit triton`.

The kernels are those of kernels/, with the program's sizes put in and what it does not need left out; the text is
a pure function of the program. Neither torch nor triton is imported to write it.
"""

from __future__ import annotations

from collections.abc import Iterable

from nsfrc import __version__
from nsfrc.engines import GAMMA
from nsfrc.engines.base import base_two
from nsfrc.engines.gpu import source_launch as parts
from nsfrc.engines.gpu.launch import INSTANCES_PER_MULTIPROCESSOR, PROGRAM, REGISTERS, WARPS
from nsfrc.engines.gpu.source_edit import fill, with_docstring
from nsfrc.engines.gpu.source_kernels import BACKWARD, FORWARD, Kernels, specialise
from nsfrc.engines.gpu.source_text import clauses_of, constants_of, harmless, list_of, notes_of, quoted, tables_of
from nsfrc.engines.gpu.tables import Tables, layout, pack
from nsfrc.errors import NsfrcError
from nsfrc.kernels.layout import Layout
from nsfrc.program import Program

WORDS = """\
Words. An atom's value is in a slot; atoms that always have the same value share one. A row is an instance of a
clause, the product of its body. The soft-or of the rows of a clause that have the same head (a pair) is C, that of
all clauses R, and that of V and R the next V. Each is divided by its largest value, Z, where that exceeds 1.
Soft-ors are taken with base 2: bits are values times K = log2(e)/γ, and UNIT is 1/K. Nodes are products that
several rows share; X is all that is multiplied. Lists of unlike length are sorted by it and worked on in bands, those
numbered FIRST to LAST - 1, WIDTH entries at a time; a part is the list of a pair's rows.
"""
GROUPS = (
    ("n", "How many there are of everything."),
    ("row", "Where rows of the workspace begin: work [rows, examples of a tile]."),
    ("", "Tiles and powers."),
)
# What layout.py leaves to its reader.
NOTES = {
    "tall": "rows of a tile", "wide": "examples of a tile; 32 floats are a line of 128 bytes",
    "true": "slot of the atom true", "false": "slot of the atom false", "length": "L, atoms of the longest body",
}
SECTIONS = {
    "maths": "Soft-or and its parts, and how rows of the workspace are read and written.",
    "step": "One step, phase by phase: from V to C. work points to a workspace of rows that are stride values apart.",
    "derive": "The rest of a step: from C to R, and with V to the next V.",
    "gradients": "A recomputed step backwards: to the gradient of C. All are gathered, so two runs agree in every bit.",
    "factors": "And on through the rows to the gradients of V and V0.",
    "program": "The kernels: an instance goes from tile to tile of examples, with a workspace of its own.",
}
DOCSTRINGS = {
    (FORWARD, True): '"""V0 [B, G] → out [B, outputs]; to KEEP for gradients, V of every step into past '
                     '[steps + 1, kept, stride]\n    and its Z into past_z [steps, stride]."""',
    (FORWARD, False): '"""V0 [B, G] → out [B, outputs]."""',
    (BACKWARD, True): '"""g_out [B, outputs] → g_V0 [B, G]; past and past_z are what the forward kernel kept."""',
}
# Arguments of the kernels that the launchers have under another name.
ARGUMENTS = {"k": "K", "unit": "UNIT", "steps": "STEPS", "KEEP": "KEEP=keep"}


def emit(program: Program, outputs: str = "targets", gradients: bool = True) -> str:
    """The file's text. outputs: "targets" or "all" atoms. gradients: whether `forward` can be differentiated."""
    if outputs not in ("targets", "all"):
        raise NsfrcError(f"outputs is 'targets' or 'all', not {outputs!r}")
    if program.anchored:
        from nsfrc.engines.gpu.anchored_source import emit_anchored

        return emit_anchored(program, outputs, gradients)
    tables = pack(program.plan, outputs == "targets", PROGRAM.rows_of_part)
    what = layout(tables, PROGRAM.tall, PROGRAM.wide, 1, hard=True, neural_only=True, gradient=gradients)
    kernels = specialise(what, gradients)
    blocks = [
        _beginning(program, what, outputs, gradients), _program(program), _constants(kernels, what),
        _tables(kernels, tables), *_functions(kernels, gradients),
        *_launchers(program, kernels, what, outputs, gradients),
    ]
    return "\n\n".join(blocks)


def _beginning(program: Program, L: Layout, outputs: str, gradients: bool) -> str:
    neural = [name for name, is_neural in zip(program.atoms, program.ground.neural, strict=True)
              if is_neural and harmless(name) == name]
    text = parts.BEGINNING.substitute(
        name=harmless(program.name), version=__version__, atoms=L.n.atoms, outputs=L.n.outputs,
        column=_column(outputs), differentiable="; differentiable in V0" if gradients else "",
        example=f'\n    V0[:, ATOMS.index("{neural[0]}")] = 0.9' if neural else "",
    )
    return text + "\n" + parts.IMPORTS + (parts.ONCE if gradients else "") + parts.STATIC


def _column(outputs: str) -> str:
    return "target" if outputs == "targets" else "atom"


def _program(program: Program) -> str:
    """Clauses as comments, and names and numbers of the program."""
    gamma = program.settings.gamma or GAMMA
    _, k, unit = base_two(gamma).tolist()
    return "\n".join([
        "# The program:", clauses_of(program.clauses) + list_of("TARGETS", map(quoted, program.targets)),
        "# Ground atoms, in the order of V0's columns.", list_of("ATOMS", map(quoted, program.atoms)),
        f"STEPS = {program.steps}", f"GAMMA = {gamma!r}  # soft-or is γ·log Σ exp(x/γ)",
        f"K, UNIT = {k!r}, {unit!r}  # log2(e)/γ and 1/K, in float32", "",
    ])


def _constants(kernels: Kernels, L: Layout) -> str:
    """Numbers that the kernels read, with what layout.py says of each."""
    lines = [f"# {line}" for line in WORDS.splitlines()]
    lines += constants_of(kernels.fields, L, GROUPS, notes_of("layout"), NOTES)
    lines += ["", *(text.replace("tl.constexpr(", "static(") for text in kernels.constants), ""]
    return "\n".join(lines)


def _tables(kernels: Kernels, tables: Tables) -> str:
    notes = notes_of("layout")
    return "\n".join([
        tables_of("INDICES", "whole numbers", tables.at, tables.indices, kernels.fields, notes),
        tables_of("FLOATS", "floats", tables.of, tables.floats, kernels.fields, notes),
    ])


def _functions(kernels: Kernels, gradients: bool) -> Iterable[str]:
    for file, title in SECTIONS.items():
        functions = kernels.functions[file]
        if functions:
            first, *others = [
                with_docstring(text, DOCSTRINGS[name, gradients]) if (name, gradients) in DOCSTRINGS else text
                for name, text in functions.items()
            ]
            yield f"# {title}\n\n\n{first}\n"
            yield from (f"{text}\n" for text in others)


def _launchers(program: Program, kernels: Kernels, L: Layout, outputs: str, gradients: bool) -> Iterable[str]:
    yield (
        "# Launching. So many registers are enough for every phase, and so many instances then run at once.\n"
        f"WARPS, REGISTERS, INSTANCES_PER_MULTIPROCESSOR = {WARPS}, {REGISTERS}, {INSTANCES_PER_MULTIPROCESSOR}\n"
        "STARTS = CONSTANT[: len(ATOMS)]  # the rest fills up a sector of memory\n"
        "NEURAL = [atom for atom, value in zip(ATOMS, STARTS, strict=True) if value < 0]\n"
    )
    yield parts.TABLES
    if gradients:
        yield parts.STRIDE
    yield parts.RUN_FORWARD.substitute(
        arguments=_arguments(kernels, FORWARD),
        keep_parameter=", keep" if gradients else "", past=parts.PAST if gradients else "",
        and_past=" and, to keep for gradients, V of every step and its Z" if gradients else "",
        result="out, past, past_z" if gradients else "out",
    )
    if gradients:
        yield parts.RUN_BACKWARD.substitute(arguments=_arguments(kernels, BACKWARD))
    yield parts.FORWARD.substitute(
        atoms=L.n.atoms, outputs=L.n.outputs, column=_column(outputs),
        steps="1 step" if program.steps == 1 else f"{program.steps} steps", start="STARTS",
        gradients_too=", and have a gradient" if gradients else "",
        choice=parts.DIFFERENTIABLE if gradients else parts.VALUES_ONLY,
        names="TARGETS" if outputs == "targets" else "ATOMS",
    )


def _arguments(kernels: Kernels, name: str) -> str:
    given = [ARGUMENTS.get(parameter, parameter) for parameter in kernels.parameters(name)]
    return fill([*given, "num_warps=WARPS", "maxnreg=REGISTERS"], indent=" " * 12)
