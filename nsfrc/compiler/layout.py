"""Sentences as people lay them out, for programs that are written by the compiler."""

from __future__ import annotations

from nsfrc.compiler.syntax import DIRECTIVE, Compound, ListTerm, Sentence, Term, calls, is_infix, quoted_functor, spine

WIDTH = 100


def laid_out(sentence: Sentence) -> str:
    """The text of a sentence; goals fill lines of WIDTH columns."""
    term = sentence.term
    assert term is not None
    if not calls(term, ":-", 2):
        return f"{':- ' if sentence.kind == DIRECTIVE else ''}{_goal(term)}."
    head, goals = _goal(term.args[0]), [_goal(goal) for goal in spine(term.args[1], ",")]
    line = f"{head} :- {', '.join(goals)}."
    if len(line) <= WIDTH:
        return line
    lines = [f"    {goals[0]}"]
    for goal in goals[1:]:
        if len(lines[-1]) + len(goal) + 3 <= WIDTH:
            lines[-1] += f", {goal}"
        else:
            lines[-1] += ","
            lines.append(f"    {goal}")
    return "\n".join([f"{head} :-", *lines]) + "."


def _goal(term: Term) -> str:
    """A term with a blank behind each comma."""
    if isinstance(term, ListTerm) and term.tail is None:
        return f"[{', '.join(map(_goal, term.items))}]"
    if isinstance(term, Compound) and term.name in (";", ",", ":-") and is_infix(term):
        return f"({term})"
    if isinstance(term, Compound) and not is_infix(term) and term.name != "{}":
        return f"{quoted_functor(term.name)}({', '.join(map(_goal, term.args))})"
    return str(term)
