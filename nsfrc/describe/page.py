"""The account of a program as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from nsfrc.compiler.ir import ANCHORED, PAPER
from nsfrc.compiler.report import how_it_reasons, percent, size
from nsfrc.describe.phrases import listed
from nsfrc.errors import count

WIDTH = 100
FACTS_SHOWN = 6

IDENTITY = {
    PAPER: "Variables of one type that the head does not bind stand for different things, and no atom holds with the "
           "same argument twice.",
    ANCHORED: "Different variables stand for different objects; those of other types may have the same value.",
}


def as_text(data: dict[str, Any], clause: int | None = None) -> str:
    """The whole account, or one clause of it by its number."""
    if clause is not None:
        return "\n".join(_clause(data["clauses"][clause - 1]))
    parts = [_question(data), _clauses(data), _cost(data), _passes(data["passes"])]
    return "\n\n".join("\n".join(part) for part in parts)


def _question(data: dict[str, Any]) -> list[str]:
    """What is asked, what is given, and how far it is from one to the other."""
    return [
        f"{data['program']} ({data['source']})",
        "",
        *_wrapped("asked       ", _asked(data["targets"], data["classes"])),
        *_perception(data["perception"]),
        *_facts(data["facts"]),
        *_steps(data),
    ]


def _asked(targets: Sequence[str], classes: Sequence[str]) -> str:
    """The questions; the classes are the last of the targets."""
    if not targets:
        return "nothing: the program has no target"
    own = targets[: len(targets) - len(classes)]
    each = "" if len(targets) == 1 else ", true or false" if len(own) == 1 else ", each true or false"
    parts = [", ".join(own) + each] if own else []
    if classes:
        lead = "which of " if own else ""
        parts.append(f"{lead}{', '.join(classes)}: the answer is the one with the highest value")
    return "; ".join(parts)


def _perception(data: dict[str, Any]) -> Iterator[str]:
    who = data["name"] or "perception"
    yield f"seen        {who} must value {count(data['atoms'], 'atom')} per image"
    width = max((len(p["predicate"]) for p in data["predicates"]), default=0)
    for one in data["predicates"]:
        yield f"              {one['predicate']:<{width}}  {one['atoms']:>6,}"
    compared = data["comparisons"]
    if compared:
        yield f"compared    {count(sum(one['atoms'] for one in compared), 'atom')} of {listed(data['numbers'])}"
        width = max(len(one["predicate"]) for one in compared)
        for one in compared:
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


def _steps(data: dict[str, Any]) -> Iterator[str]:
    steps = data["steps"]
    needed = f"; at least {steps['needed']} for what is asked" if steps["needed"] and data["levels"] is None else ""
    yield f"reasoning   {how_it_reasons(data['semantics'], steps['taken'], data['levels'])}{needed}"
    when = "step" if data["levels"] is None else "level"
    for one in steps["first"]:
        can = "has, as facts," if one["step"] == 0 else "can first derive"
        yield from _wrapped(f"              {when} {one['step']} {can} ", listed(one["predicates"]), blanks=16)


def _clauses(data: dict[str, Any]) -> list[str]:
    lines = [*_wrapped("", IDENTITY[data["semantics"]])]
    for one in data["clauses"]:
        lines += ["", *_clause(one)]
    return lines


def _clause(one: dict[str, Any]) -> Iterator[str]:
    lead = f"{one['number']:>3}  "
    yield from _wrapped(lead, one["clause"], blanks=5)
    yield from _wrapped("     ", one["words"])
    for note in one["notes"]:
        yield from _wrapped("     ", note)
    yield from _wrapped("     ", _numbers(one))
    for counted in one["counts"]:
        yield from _wrapped("     ", f"{counted['goal']}: {_looked_at(counted)}.")


def _looked_at(counted: dict[str, Any]) -> str:
    look = "that looks" if counted["atoms"] == 1 else "that look"
    return (f"{count(counted['atoms'], 'atom')} {look} at {count(counted['solutions'], 'other')}"
            f"{' each' if counted['atoms'] > 1 else ''}, at most {count(counted['choices'], 'choice')}")


def _numbers(one: dict[str, Any]) -> str:
    least, most = one["substitutions"]["least"], one["substitutions"]["most"]
    each = count(most, "substitution") if least == most else f"{least:,} to {count(most, 'substitution')}"
    each += " each" if one["heads"] > 1 else ""
    return (f"It derives {count(one['heads'], 'atom')} with {each}: {count(one['live_rows'], 'live row')}, "
            f"{one['plan_rows']:,} in the plan, {percent(one['share'])} of its rows.")


def _cost(data: dict[str, Any]) -> list[str]:
    cost, index = data["cost"], data["index_tensor"]
    shape = " × ".join(f"{n:,}" for n in index["shape"])
    what, works = ("A step", "a step works") if data["levels"] is None else ("All levels", "they work")
    return [
        f"{what} for one image",
        f"  work      {count(cost['rows'], 'row')}, {count(cost['products'], 'product')}, "
        f"{count(cost['exponentials'], 'exponential')}"
        + (f", {count(cost['choices'], 'choice')} for negations and counts" if cost.get("choices") else ""),
        f"  values    {size(cost['V_bytes'])} for V, of which {works} on {size(cost['slots_bytes'])} "
        f"({count(cost['slots'], 'slot')})",
        f"  plan      {size(cost['plan_bytes'])}, for any number of images",
        f"  dense     {size(index['bytes'])} for the paper's index tensor {shape}, "
        f"{percent(index['live_share'])} of whose rows are live",
    ]


def _passes(passes: Sequence[dict[str, Any]]) -> list[str]:
    """One sentence per pass: what it does, and what it leaves of atoms, rows and products."""
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
