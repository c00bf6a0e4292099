"""The account of a program as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from nsfrc.report import count, percent, size
from nsfrc.words.phrases import listed

WIDTH = 100
FACTS_SHOWN = 6

IDENTITY = (
    "Variables of one type that the head does not bind stand for different things, and no atom holds with the same "
    "argument twice."
)


def as_text(data: dict[str, Any], clause: int | None = None) -> str:
    """The whole account, or one clause of it by its number."""
    if clause is not None:
        return "\n".join(_clause(data["clauses"][clause - 1]))
    parts = [_question(data), _clauses(data["clauses"]), _cost(data), _passes(data["passes"])]
    return "\n\n".join("\n".join(part) for part in parts)


def _question(data: dict[str, Any]) -> list[str]:
    """What is asked, what is given, and how far it is from one to the other."""
    return [
        f"{data['program']} ({data['source']})",
        "",
        *_wrapped("asked       ", _asked(data["targets"])),
        *_perception(data["perception"]),
        *_facts(data["facts"]),
        *_steps(data["steps"]),
    ]


def _asked(targets: Sequence[str]) -> str:
    if not targets:
        return "nothing: the program has no target"
    highest = "; the answer is the one with the highest value" if len(targets) > 1 else ""
    return ", ".join(targets) + highest


def _perception(data: dict[str, Any]) -> Iterator[str]:
    who = data["name"] or "perception"
    yield f"seen        {who} must value {count(data['atoms'], 'atom')} an image"
    width = max((len(p["predicate"]) for p in data["predicates"]), default=0)
    for one in data["predicates"]:
        yield f"              {one['predicate']:<{width}}  {one['atoms']:>6,}"


def _facts(facts: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not facts:
        yield "given       no facts"
    lead = "given       "
    for one in facts:
        shown = ", ".join(one["facts"][:FACTS_SHOWN]) + (", ..." if len(one["facts"]) > FACTS_SHOWN else "")
        yield from _wrapped(lead, f"{len(one['facts']):,} of {count(one['atoms'], 'atom')} of {one['predicate']}, "
                                  f"always true: {shown}")
        lead = " " * len(lead)


def _steps(steps: dict[str, Any]) -> Iterator[str]:
    needed = f"; at least {steps['needed']} for what is asked" if steps["needed"] else ""
    yield f"steps       {count(steps['taken'], 'step')} of reasoning{needed}"
    for one in steps["first"]:
        can = "has, as facts," if one["step"] == 0 else "can first derive"
        yield from _wrapped(f"              step {one['step']} {can} ", listed(one["predicates"]), blanks=16)


def _clauses(clauses: Sequence[dict[str, Any]]) -> list[str]:
    lines = [*_wrapped("", IDENTITY)]
    for one in clauses:
        lines += ["", *_clause(one)]
    return lines


def _clause(one: dict[str, Any]) -> Iterator[str]:
    lead = f"{one['number']:>3}  "
    yield from _wrapped(lead, one["clause"], blanks=5)
    yield from _wrapped("     ", one["words"] or "(its text cannot be read back, so there are no words for it)")
    for note in one["notes"]:
        yield from _wrapped("     ", note)
    yield from _wrapped("     ", _numbers(one))


def _numbers(one: dict[str, Any]) -> str:
    least, most = one["substitutions"]["least"], one["substitutions"]["most"]
    each = count(most, "substitution") if least == most else f"{least:,} to {count(most, 'substitution')}"
    each += " each" if one["heads"] > 1 else ""
    return (f"It derives {count(one['heads'], 'atom')} with {each}: {count(one['live_rows'], 'live row')}, "
            f"{one['plan_rows']:,} in the plan, {percent(one['share'])} of its rows.")


def _cost(data: dict[str, Any]) -> list[str]:
    cost, index = data["cost"], data["index_tensor"]
    shape = " × ".join(f"{n:,}" for n in index["shape"])
    return [
        "A step for one image",
        f"  work      {count(cost['rows'], 'row')}, {count(cost['products'], 'product')}, "
        f"{count(cost['exponentials'], 'exponential')}",
        f"  values    {size(cost['V_bytes'])} for V, of which a step works on {size(cost['slots_bytes'])} "
        f"({count(cost['slots'], 'slot')})",
        f"  plan      {size(cost['plan_bytes'])}, for any number of images",
        f"  dense     {size(index['bytes'])} for the paper's index tensor {shape}, "
        f"{percent(index['live_share'])} of whose rows are live",
    ]


def _passes(passes: Sequence[dict[str, Any]]) -> list[str]:
    """One sentence a pass: what it does, and what it leaves of atoms, rows and products."""
    first = passes[0]
    lines = [f"From the dense form ({first['rows']:,} rows, {first['products']:,} products) to the plan"]
    for before, after in pairwise(passes):
        changes = [f"{before[what]:,} → {after[what]:,} {what}" for what in ("atoms", "rows", "products")
                   if before[what] != after[what]]
        lines.append(f"  {after['pass']:<9} {after['note']}: {', '.join(changes) or 'nothing to do here'}.")
    return lines


def _wrapped(lead: str, text: str, blanks: int | None = None) -> list[str]:
    """Lines of at most WIDTH, the first behind `lead` and the others below its end."""
    below = " " * (len(lead) if blanks is None else blanks)
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=below, break_long_words=False,
                         break_on_hyphens=False) or [lead.rstrip()]
