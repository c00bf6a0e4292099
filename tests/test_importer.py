"""`import_language`: folders of the published plain-text format to Prolog."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsfrc.compiler import ir
from nsfrc.compiler.check import check
from nsfrc.compiler.importer import import_language
from nsfrc.compiler.parse import find_program, parse, read
from nsfrc.errors import CompileError, Diagnostics, NsfrcError, Source
from tests.swi import oracle

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "data" / "language"

SMALL = {
    "consts.txt": "image:img\nobject:obj0,obj1\ncolor:red,Sky Blue,3\n",
    "neural_preds.txt": "in:2:object,image\ncolor:2:object,color\n",
    "preds.txt": "kp:1:image\nwarm:1:color\n",
    "bk.txt": "warm(red).\nwarm(3).\n",
    "clauses.txt": "kp(X):-in(O,X),color(O,C),warm(C).\n",
    "vars.txt": "X,Y\n",
}

SMALL_TEXT = """\
% Imported from the language folder small.

:- use_module(library(nsfr)).

:- semantics(paper).

:- type(image, [img]).
:- type(object, [obj0, obj1]).
:- type(color, [red, 'Sky Blue', 3]).

:- neural(in(object, image)).
:- neural(color(object, color)).

:- pred(kp(image)).
:- pred(warm(color)).

:- target(kp(img)).

warm(red).
warm(3).

kp(X) :- in(O, X), color(O, C), warm(C).
"""


def folder(where: Path, **changes: str | None) -> Path:
    """The small folder with files changed (`clauses="..."`) or left out (None)."""
    path = where / "small"
    path.mkdir(parents=True)
    for name, text in {**SMALL, **{f"{stem}.txt": text for stem, text in changes.items()}}.items():
        if text is not None:
            (path / name).write_text(text)
    return path


def compiled(text: str) -> ir.Program:
    found = Diagnostics()
    return check(parse(Source("imported.pl", text), found), "imported", found)


def refused(path: Path) -> str:
    with pytest.raises(CompileError) as error:
        import_language(path)
    return str(error.value).replace(f"{path}/", "")


def targets(path: Path) -> list[str]:
    return [line for line in import_language(path).splitlines() if line.startswith((":- target", ":- classes"))]


def test_small_folder(tmp_path: Path) -> None:
    text = import_language(folder(tmp_path))
    assert text == SMALL_TEXT
    assert str(compiled(text).clauses[0]) == "kp(X) :- in(O,X), color(O,C), warm(C)."


def test_facts_are_optional(tmp_path: Path) -> None:
    path = folder(tmp_path, bk=None, clauses="kp(X):-in(O,X),color(O,red).")
    assert "warm(red)" not in import_language(path)


def test_long_clauses_fill_lines(tmp_path: Path) -> None:
    goals = ",".join(f"in(O{i},X),color(O{i},red)" for i in range(1, 12))
    text = import_language(folder(tmp_path, clauses=f"kp(X):-{goals}."))
    assert max(map(len, text.splitlines())) <= 100
    assert "kp(X) :-\n    in(O1, X), color(O1, red), in(O2, X)," in text


def test_alternatives_and_tests_survive(tmp_path: Path) -> None:
    text = import_language(folder(tmp_path, clauses="kp(X):-in(O,X),(color(O,red);color(O,C),C\\=3)."))
    assert [str(clause) for clause in compiled(text).clauses] == [
        "kp(X) :- in(O,X), color(O,red).", "kp(X) :- in(O,X), color(O,C), C \\== 3.",
    ]


def test_neural_predicates_may_be_listed_twice(tmp_path: Path) -> None:
    path = folder(tmp_path, preds="kp:1:image\nwarm:1:color\nin:2:object,image\n")
    assert import_language(path) == SMALL_TEXT


def test_predicates_that_nothing_uses_are_left_out(tmp_path: Path) -> None:
    path, remarks = folder(
        tmp_path,
        preds="kp:1:image\nwarm:1:color\nold:2:object,material\n",
        neural_preds="in:2:object,image\ncolor:2:object,color\nfar:1:planet\n",
    ), Diagnostics()
    assert import_language(path, remarks) == SMALL_TEXT
    assert [(str(d.span).removeprefix(f"{path}/"), d.code, d.severity) for d in remarks.found] == [
        ("neural_preds.txt:3:1", "unused-predicate", "warning"), ("preds.txt:3:1", "unused-predicate", "warning"),
    ]
    assert remarks.found[0].message == "no clause and no fact uses far/1: it is left out"


def test_head_variables_that_the_body_leaves_free(tmp_path: Path) -> None:
    """The published format has them: a rule that holds for every image, whatever is in it."""
    text = import_language(folder(tmp_path, clauses="kp(X):-color(O,C),warm(C)."))
    assert "kp(X) :- color(O, C), warm(C)." in text
    program = compiled(text)
    assert dict(program.clauses[0].types)["X"] == "image"
    (refused_text,) = [refused(folder(tmp_path / "b", clauses="kp(X):-helper(X,Y). helper(X,Y):-in(O,X).", bk=None))]
    assert "clauses.txt:1:30: error: cannot tell the type of Y: it does not occur in the body" in refused_text


@pytest.mark.parametrize(
    ("preds", "clauses", "expected"),
    [
        ("kp1:1:image\nkp2:1:image", "kp1(X):-in(_,X). kp2(X):-kp1(X),in(_,X).",
         "classes([kp1(img), kp2(img)])"),
        ("a:1:object\nb:2:object,color", "a(X):-color(X,red). b(X,C):-a(X),color(X,C).",
         "classes([b(_, _)])"),
        ("kp:1:object\nok:0:", "kp(X):-color(X,red). ok:-kp(_).", "target(ok)"),
        ("a:1:object\nb:1:object", "a(X):-b(X). b(X):-a(X). a(X):-color(X,red).",
         "classes([a(_), b(_)])"),
        ("a:1:object", "a(X):-color(X,red). a(X):-a(X),color(X,3).", "classes([a(_)])"),
    ],
    ids=["kp of the image", "heads no clause uses", "kp of something else", "all are used", "recursion"],
)
def test_targets(tmp_path: Path, preds: str, clauses: str, expected: str) -> None:
    path = folder(tmp_path, preds=preds, clauses=clauses, bk=None)
    assert targets(path) == [f":- {expected}."]


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError) as error:
        import_language(folder(tmp_path, preds=None, consts=None))
    assert "has no consts.txt and no preds.txt" in str(error.value)
    assert "holds clauses.txt, consts.txt, preds.txt, neural_preds.txt and, where" in str(error.value)


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match="there is no folder"):
        import_language(tmp_path / "nowhere")


def test_not_text(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "clauses.txt").write_bytes(b"kp(X):-\xff.")
    with pytest.raises(NsfrcError, match=r"clauses\.txt: error: the file is not UTF-8 text"):
        import_language(path)


def test_every_error_is_told_with_its_place(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        consts="image:img\nobject:obj0,obj1\nred,blue\ncolor:red,,3\n",
        neural_preds="in:2:object\ncolor:2:object,color\n",
        preds="kp:one:image\n",
    )
    assert refused(path).splitlines() == [
        "consts.txt:3:1: error: this line does not name a type and its constants",
        "  red,blue",
        "  ^^^^^^^^",
        "  hint: color:red,blue",
        "consts.txt:4:11: error: a constant is missing between the commas",
        "  color:red,,3",
        "            ^",
        "neural_preds.txt:1:6: error: in has arity 2, but this line lists 1 type",
        "  in:2:object",
        "       ^^^^^^",
        "preds.txt:1:1: error: this line does not name a predicate, its arity and its types",
        "  kp:one:image",
        "  ^^^^^^^^^^^^",
        "  hint: color:2:object,color",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"clauses": "kp(X):-in(O,X),colour(O,red)."},
         "clauses.txt:1:16: error: unknown predicate colour/2\n"
         "  kp(X):-in(O,X),colour(O,red).\n                 ^^^^^^\n  hint: did you mean color/2?"),
        ({"clauses": "kp(X):-in(O,X),color(O,rod)."}, "clauses.txt:1:24: error: "),
        ({"clauses": "kp(X):-in(O,X"}, "clauses.txt:1:"),
        ({"clauses": ":- kp(img)."}, "clauses.txt:1:1: error: directives and queries are not allowed"),
        ({"bk": "warm(C):-kp(C)."}, "bk.txt:1:1: error: bk.txt may only have facts"),
        ({"bk": "warm(red).\nwarm(rd)."}, "bk.txt:2:6: error: "),
        ({"preds": "kp:1:image\nwarm:1:colour\n"}, "preds.txt:2:8: error: unknown type colour"),
        ({"preds": "kp:1:image\nwarm:1:color\nkp:1:image\n"},
         "preds.txt:3:1: error: predicate kp/1 is already"),
        ({"consts": "image:img\nobject:obj0,obj1\ncolor:red,red,3\n"},
         "consts.txt:3:11: error: type color lists"),
        ({"consts": "image:img\nobject:\ncolor:red,3\n"}, "error: type object has no constants"),
    ],
    ids=["predicate", "constant", "syntax", "directive", "rule in bk", "fact", "type", "twice",
         "repeated constant", "empty type"],
)
def test_error(tmp_path: Path, changes: dict[str, str], expected: str) -> None:
    assert expected in refused(folder(tmp_path, **changes))


@oracle.needs_swipl
def test_loads_in_swi_prolog(tmp_path: Path) -> None:
    text = import_language(folder(tmp_path))
    worlds = [["in(obj0,img)", "color(obj0,3)"], ["in(obj0,img)", "color(obj0,'Sky Blue')"]]
    assert oracle.answers(text, worlds, ["kp(img)"]) == [[True], [False]]


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published language folders are not here")
@pytest.mark.parametrize(("name", "shipped"), [("twopairs", "twopairs"), ("clevr-hans3", "clevr_hans3")])
def test_published_folder(name: str, shipped: str) -> None:
    """The published folder and the shipped program say the same, up to the names of the objects."""
    imported, found = compiled(import_language(PUBLISHED / name)), Diagnostics()
    ours = check(read(find_program(shipped), found), shipped, found)
    assert imported.clauses == ours.clauses
    assert imported.targets == ours.targets
    assert set(imported.facts) == set(ours.facts)
    assert set(imported.predicates) == set(ours.predicates)
