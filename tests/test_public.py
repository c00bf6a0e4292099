"""What `import nsfrc` alone gives, and programs that are compiled from text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nsfrc
from nsfrc.errors import CompileError, NsfrcError

TEXT = """\
:- include('kandinsky.pl').
:- type(object, slots(2)).
:- target(kp(img)).
kp(X) :- in(O, X), color(O, red).
"""


def fresh(code: str) -> str:
    """What code prints in a process that has imported nothing yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_names_are_there_at_once_and_imported_at_first_use() -> None:
    said = fresh(
        "import sys, nsfrc; found = dir(nsfrc); print('torch' in sys.modules); "
        "print(nsfrc.explain.explain.__module__); print(' '.join(found))"
    ).splitlines()
    assert said[:2] == ["False", "nsfrc.explain"]
    assert {*nsfrc.__all__, "explain", "valuation", "perception"} <= set(said[2].split())


@pytest.mark.parametrize(("arguments", "message"), [
    ({"source": b"p."}, "source is text, not bytes"),
    ({"path": 3}, "a program is a path or a name, not 3"),
    ({"path": "twopairs", "slots": 3}, "slots is a dict"),
    ({"path": "twopairs", "slots": {"object": "3"}}, "slots is a dict"),
    ({"path": "twopairs", "skip": "share"}, r"a sequence of pass names, like \(\"share\",\), not 'share'"),
    ({"path": "twopairs", "max_rows": "1"}, "max_rows is a whole number"),
    ({"source": "p.", "name": 3}, "name is text"),
])
def test_arguments_of_the_wrong_kind(arguments: dict, message: str) -> None:
    with pytest.raises(NsfrcError, match=message):
        nsfrc.compile(**arguments)


def test_other_arguments_of_the_wrong_kind() -> None:
    program = nsfrc.compile(source=TEXT)
    for call, message in ((lambda: nsfrc.load(None), "load takes the path"),
                          (lambda: program.index(3), "has no ground atom 3"),
                          (lambda: program.predict([1]), "predict takes V_T")):
        with pytest.raises(NsfrcError, match=message):
            call()


def test_public_names() -> None:
    assert set(nsfrc.__all__) == {*nsfrc._PUBLIC, "__version__"}
    assert all(getattr(nsfrc, name) is not None for name in nsfrc.__all__)
    assert nsfrc.FactsConverter is nsfrc.valuation.FactsConverter
    with pytest.raises(AttributeError, match="no attribute 'compiled'"):
        nsfrc.compiled  # noqa: B018


def test_text_compiles_as_its_file_does(tmp_path: Path) -> None:
    (tmp_path / "rules.pl").write_text(TEXT)
    from_text, from_file = nsfrc.compile(source=TEXT, name="rules"), nsfrc.compile(tmp_path / "rules.pl")
    assert from_text.save(tmp_path / "a.nsfrc").read_bytes() == from_file.save(tmp_path / "b.nsfrc").read_bytes()
    assert nsfrc.compile(source=TEXT).name == "program"
    with pytest.raises(CompileError, match=r"(?s)mine:4:20: error.*unknown predicate colour/2.*did you mean color/2"):
        nsfrc.compile(source=TEXT.replace("color(", "colour("), name="mine")


def test_check_gives_what_is_wrong_and_raises_nothing() -> None:
    assert nsfrc.check(TEXT) == ()
    (found,) = nsfrc.check(TEXT.replace("color(", "colour("), "mine.pl")
    assert (found.code, found.severity, str(found.span)) == ("unknown-predicate", "error", "mine.pl:4:20")
    (warning,) = nsfrc.check(TEXT + "spare(O) :- color(O, red).", slots={"object": 3})
    assert (warning.code, warning.severity) == ("unneeded-predicate", "warning")
    assert [d.code for d in nsfrc.check(TEXT, max_rows=1)] == ["too-large"]
    assert [d.code for d in nsfrc.check(":- include('/nothing/there').")] == ["include-not-found"]
    assert [d.code for d in nsfrc.check("\udcff")][:1] == ["not-utf8"]
    big = ":- type(t, slots(100)). :- neural(p(t, t, t, t, t)). :- target(a). a :- p(A, B, C, D, E)."
    assert [d.code for d in nsfrc.check(big)][-1] == "refused"  # more ground atoms than there may be
    with pytest.raises(NsfrcError, match="check takes the text of a program"):
        nsfrc.check(Path("rules.pl"))  # type: ignore[arg-type]


def test_check_is_light() -> None:
    said = fresh("import sys, nsfrc; nsfrc.check('a.'); print({'torch', 'numba'} & set(sys.modules))")
    assert said == "set()\n"


@pytest.mark.parametrize(("arguments", "options", "message"), [
    ((TEXT,), {}, r"takes the path of a program.*nsfrc\.compile\(source="),
    ((), {}, "either a path or the text"),
    (("closeby",), {"source": TEXT}, "compile takes either"),
])
def test_what_compile_does_not_take(arguments: tuple[str, ...], options: dict[str, str], message: str) -> None:
    with pytest.raises(NsfrcError, match=message):
        nsfrc.compile(*arguments, **options)  # type: ignore[arg-type]


def test_text_and_weights_in_the_place_of_compiled_files(tmp_path: Path) -> None:
    with pytest.raises(NsfrcError, match=r"rules\.pl is the text of a program.*: compile it with nsfrc\.compile"):
        nsfrc.load(tmp_path / "rules.pl")
    (tmp_path / "net.pt").write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(NsfrcError, match=r"net\.pt is not a safetensors file.*safetensors\.torch\.save_file"):
        nsfrc.pipeline("closeby", weights=tmp_path / "net.pt")
