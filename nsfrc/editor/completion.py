"""What can be written at a place."""

from __future__ import annotations

import re

from nsfrc.compiler.ir import quoted
from nsfrc.compiler.parse.files import neighbours
from nsfrc.compiler.stages import Checked
from nsfrc.editor.document import Document
from nsfrc.editor.occurrences import CONSTANT, PREDICATE, TYPE, USED
from nsfrc.records import dataclass

DIRECTIVE, FILE, BUILT_IN = "directive", "file", "built-in"
DIRECTIVES = {
    "type": "type(color, [red, blue]).", "pred": "pred(kp(image)).", "neural": "neural(color(object, color)).",
    "number": "number(area(object)).", "target": "target(kp(img)).", "query": "query(kp(img)).",
    "classes": "classes([kp1(img), kp2(img)]).", "threshold": "threshold(0.5).", "steps": "steps(4).",
    "gamma": "gamma(0.01).", "perception": "perception(yolo).", "semantics": "semantics(paper).",
    "model": "model('best.onnx').", "presence": "presence(confidence).",
    "attributes": "attributes([color-[red, blue]]).",
    "learn": "learn(kp(image)).", "vars": "vars(object, 4).", "body": "body(color(object, color)).",
    "include": "include('kandinsky.pl').", "use_module": "use_module(library(nsfr)).",
}
BUILT_INS = {
    "forall": "forall(Goal, Then)", "aggregate_all": "aggregate_all(count, Goal, N)", "findall": "findall(_, Goal, L)",
    "length": "length(L, N)", "between": "between(Low, High, N)", "succ": "succ(M, N)", "plus": "plus(A, B, N)",
    "dif": "dif(A, B)", "true": "true", "fail": "fail",
}
_DIRECTIVE = re.compile(r"^\s*:-\s*(\w*)$")
_FILE = re.compile(r"\binclude\(\s*('?)[^')\n]*$")
_SIGNED = re.compile(r"^\s*:-\s*(?:(?:pred|neural|number|learn|body)\(\[?(?:.*,\s*)?\w+\([^)]*|vars\(\w*)$")


@dataclass(frozen=True)
class Offer:
    """What can be written: the text, what it is, and more about it."""

    text: str
    kind: str
    detail: str = ""


def completions(document: Document, offset: int, checked: Checked | None) -> list[Offer]:
    """What fits at an offset, the editor leaves out what does not begin as the word there."""
    before = document.text[document.text.rfind("\n", 0, offset) + 1 : offset]
    if _DIRECTIVE.match(before):
        return [Offer(name, DIRECTIVE, f":- {example}") for name, example in DIRECTIVES.items()]
    if (file := _FILE.search(before)) is not None:
        mark = "" if file[1] else "'"
        names = dict.fromkeys(name for name in neighbours(document.path.parent) if name != document.path.name)
        return [Offer(f"{mark}{name}{mark}", FILE) for name in names]
    types = _named(document, TYPE)
    if _SIGNED.match(before):
        return types
    constants = _named(document, CONSTANT) + _constants(checked)
    built_in = [Offer(name, BUILT_IN, example) for name, example in BUILT_INS.items()]
    unique: dict[tuple[str, str], Offer] = {}
    for offer in (*_predicates(document), *constants, *types, *built_in):
        unique.setdefault((offer.text, offer.kind), offer)
    return list(unique.values())


def _predicates(document: Document) -> list[Offer]:
    """What is declared or defined; a predicate that is only used may be a mistake."""
    known = {(name.name, name.arity): None for name in document.names if name.kind == PREDICATE and name.how != USED}
    return [Offer(quoted(name), PREDICATE, f"{name}/{arity}") for name, arity in known]


def _named(document: Document, kind: str) -> list[Offer]:
    said = [name for name in document.names if name.kind == kind and name.how != USED]
    return [Offer(quoted(name), kind) for name in dict.fromkeys(one.name for one in said)]


def _constants(checked: Checked | None) -> list[Offer]:
    """Of all types, those of perception and slots among them."""
    kinds = [] if checked is None else [kind for kind in checked.program.types if len(kind.constants) <= 1000]
    return [Offer(str(constant), CONSTANT, kind.name) for kind in kinds for constant in kind.constants]
