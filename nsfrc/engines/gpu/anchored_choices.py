"""Negations and counts as text, for kernels that are written out; what they mean is in compiler/choices.py.

    x42 = 1.0 - x30  # \\+ same_shape_pair(obj1,obj2)
    # at_least_2(img), counted:
    x43, x44 = x31 * x33, x33 + x31 * (1.0 - x33)
    x45 = x43 + x32 * (x44 - x43)

A value that is given may be above 1, and is `capped` where others are chosen by it; heads and choices never are.
"""

from __future__ import annotations

from collections.abc import Iterator

from nsfrc.compiler.levels import ONE, ZERO, LevelPlan
from nsfrc.engines.gpu.source_text import assignments, comment, one_line, wrapped

Terms = dict[int, list[str]]  # of the gradient of a row of X


def value_of(row: int) -> str:
    """A row of X by its name, or the constant that it is."""
    return {ZERO: "0.0", ONE: "1.0"}.get(int(row), f"x{row}")


def sum_of(terms: list[str] | None) -> str:
    return " + ".join(terms).replace("+ -", "- ") if terms else "0.0"


def forward_lines(plan: LevelPlan, block: int, atoms: list[str]) -> list[str]:
    """The choices of a block, each negation or count with the name of its atom. atoms: names."""
    names = {int(row): atoms[atom] for atom, row in reversed(list(enumerate(plan.place)))}
    lines: list[str] = []
    for some in _runs(plan, block, names):
        name = names.get(some[-1], "")
        if len(some) == 1 and name:
            lines += wrapped(f"    x{some[0]} = {_chosen(plan, some[0])}", f"  # {one_line(name)}")
            continue
        lines += comment(f"{name}, counted:") if name else []
        for group in _groups(plan, some):
            lines += assignments([f"x{row}" for row in group], [_chosen(plan, row) for row in group])
    return lines


def backward_lines(plan: LevelPlan, block: int, terms: Terms) -> list[str]:
    """Gradients of the choices of a block, and what they add to those of others."""
    lines: list[str] = []
    first, last = (plan.first_choice + int(end) for end in plan.block_choices[block: block + 2])
    for group in reversed(list(_groups(plan, range(first, last)))):
        used = [row for row in group if row in terms]
        lines += assignments([f"g{row}" for row in used], [sum_of(terms[row]) for row in used])
        for row in used:
            _use(plan, row, terms)
    return lines


def _parts(plan: LevelPlan, row: int) -> tuple[int, int, int]:
    """By which row of X it is chosen, and between which."""
    number = row - plan.first_choice
    return int(plan.choice_by[number]), int(plan.choice_no[number]), int(plan.choice_yes[number])


def _by(plan: LevelPlan, row: int) -> str:
    return value_of(row) if row >= plan.first_head else f"capped({value_of(row)})"


def _chosen(plan: LevelPlan, row: int) -> str:
    """no + by·(yes − no)."""
    by, no, yes = _parts(plan, row)
    if no == ZERO:
        return f"{_by(plan, by)} * {value_of(yes)}"
    if yes == ZERO:
        return f"{value_of(no)} - {_by(plan, by)}" + ("" if no == ONE else f" * {value_of(no)}")
    return f"{value_of(no)} + {_by(plan, by)} * ({value_of(yes)} - {value_of(no)})"


def _use(plan: LevelPlan, row: int, terms: Terms) -> None:
    """What a choice adds to the gradients of the three that it is made of; constants have none."""
    by, no, yes = _parts(plan, row)
    if no == ZERO:
        given = f"g{row} * {value_of(yes)}"
    elif yes == ZERO:
        given = f"-g{row}" + ("" if no == ONE else f" * {value_of(no)}")
    else:
        given = f"g{row} * ({value_of(yes)} - {value_of(no)})"
    terms.setdefault(by, []).append(given)
    if no > ONE:
        terms.setdefault(no, []).append(f"g{row} * (1.0 - {_by(plan, by)})")
    if yes > ONE:
        terms.setdefault(yes, []).append(f"g{row} * {_by(plan, by)}")


def _runs(plan: LevelPlan, block: int, names: dict[int, str]) -> Iterator[list[int]]:
    """Rows of the choices of a block, in runs that end with what an atom is."""
    first, last = (plan.first_choice + int(end) for end in plan.block_choices[block: block + 2])
    run: list[int] = []
    for row in range(first, last):
        run.append(row)
        if row in names or row == last - 1:
            yield run
            run = []


def _groups(plan: LevelPlan, rows: list[int] | range) -> Iterator[list[int]]:
    """Rows that follow each other and do not use each other."""
    group: list[int] = []
    for row in rows:
        if group and max(_parts(plan, row)) >= group[0]:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
