"""`nsfrc reason`: facts in, values out."""

from __future__ import annotations

import json

import pytest
import torch

from tests.cli.support import Run
from tests.examples import write

REFERENCE = ("--engine", "reference")


def facts(*worlds: object) -> str:
    return "".join(json.dumps(world) + "\n" for world in worlds)


GOOD = {f"in(obj{i},img)": 1.0 for i in range(1, 5)} | {"closeby(obj1,obj2)": 0.9}


def test_probabilities_belong_into_json(run: Run) -> None:
    (run.folder / "facts.pl").write_text("in(obj1, img).\n0.4::closeby(obj1, obj2).\n")
    said = run.refused("reason", "closeby", "--facts", "facts.pl")
    assert "facts.pl:2:1: error: facts in a Prolog file are crisp" in said
    assert 'hint: in JSON lines facts can have values: {"closeby(obj1,obj2)": 0.4}' in said


def test_reason_on_facts(run: Run) -> None:
    (run.folder / "facts.jsonl").write_text(facts(GOOD, {}) + "\n" + facts({**GOOD, "closeby(obj1,obj2)": 0}))
    lines = run.good("reason", "closeby", "--facts", "facts.jsonl", *REFERENCE).splitlines()
    assert lines[0].split() == ["world", "kp(img)"]
    values = [float(line.split()[1]) for line in lines[1:]]
    assert len(values) == 3 and values[0] > 0.8 > 0.2 > max(values[1:])


def test_reason_json_and_standard_input(run: Run) -> None:
    out = run.good("reason", "closeby", "--facts", "-", "--json", *REFERENCE, stdin=facts(GOOD, {}))
    worlds = [json.loads(line) for line in out.splitlines()]
    assert [w["world"] for w in worlds] == [1, 2]
    assert worlds[0]["kp(img)"] > 0.8 > worlds[1]["kp(img)"]


def test_reason_on_an_artifact_gives_the_same(run: Run) -> None:
    run.good("compile", "clevr_hans3")
    arguments = ("--random", "3", "--json", *REFERENCE)
    assert run.good("reason", "clevr_hans3.nsfrc", *arguments) == run.good("reason", "clevr_hans3", *arguments)


def test_reason_on_random_worlds(run: Run) -> None:
    first = run.good("reason", "closeby", "--random", "5", *REFERENCE)
    assert len(first.splitlines()) == 6
    assert first == run.good("reason", "closeby", "--random", "5", "--batch-size", "2", *REFERENCE)
    assert first != run.good("reason", "closeby", "--random", "5", "--seed", "1", *REFERENCE)
    run.good("reason", "closeby", "--random", "2", "--normalise", "batch", "--steps", "0", "--gamma", "0.1", *REFERENCE)


@pytest.mark.parametrize(("line", "message"), [
    ("not json", "facts.jsonl:2: not JSON"),
    ("[1, 2]", "facts.jsonl:2: a line must be one object"),
    ("[" * 100_000, "facts.jsonl:2: not JSON"),
    ('{"in(obj1,img)": 1.5}', "it must be a number from 0 to 1"),
    ('{"in(obj1,img)": NaN}', "it must be a number from 0 to 1"),
    ('{"in(obj1,img)": true}', "it must be a number from 0 to 1"),
    ('{"in(obj1,img)": "1"}', "it must be a number from 0 to 1"),
    ('{"in(obj9,img)": 1}', "has no ground atom in(obj9,img); did you mean in(obj4,img)?"),
    ('{"kp(img)": 1}', "kp(img) is not a neural atom"),
    ('{"false": 1}', "false is not a neural atom"),
    ('{"": 1}', "has no ground atom"),
])
def test_bad_facts(line: str, message: str, run: Run) -> None:
    (run.folder / "facts.jsonl").write_text(facts(GOOD) + line + "\n")
    assert message in run.refused("reason", "closeby", "--facts", "facts.jsonl", *REFERENCE)


def test_facts_that_cannot_be_read(run: Run) -> None:
    assert "cannot read gone.jsonl" in run.refused("reason", "closeby", "--facts", "gone.jsonl", *REFERENCE)
    (run.folder / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "binary.jsonl is not UTF-8 text" in run.refused("reason", "closeby", "--facts", "binary.jsonl", *REFERENCE)
    (run.folder / "empty.jsonl").write_text("\n")
    result = run("reason", "closeby", "--facts", "empty.jsonl", *REFERENCE)
    assert (result.code, result.out) == (1, "") and "empty.jsonl contains no facts" in result.err
    assert "standard input contains no facts" in run.refused("reason", "closeby", "--facts", "-", *REFERENCE)


def test_facts_with_a_byte_order_mark(run: Run) -> None:
    (run.folder / "facts.jsonl").write_text(facts(GOOD), encoding="utf-8-sig")
    assert len(run.good("reason", "closeby", "--facts", "facts.jsonl", *REFERENCE).splitlines()) == 2


CRISP = "in(obj1, img).  in(obj2, img).  closeby(obj1,obj2).\n"


def test_facts_as_prolog(run: Run) -> None:
    (run.folder / "facts.pl").write_text(f":- discontiguous in/2.\n% one world\n{CRISP}")
    world = {"in(obj1,img)": 1, "in(obj2,img)": 1, "closeby(obj1,obj2)": 1}
    out = run.good("reason", "closeby", "--facts", "facts.pl", *REFERENCE)
    assert out == run.good("reason", "closeby", "--facts", "-", *REFERENCE, stdin=facts(world))
    assert float(out.split()[-1]) > 0.9


@pytest.mark.parametrize(("text", "message"), [
    ("in(obj9, img).", "facts.pl:2:1: error: closeby has no ground atom in(obj9,img); did you mean in(obj"),
    ("in(O, img).", "facts.pl:2:4: error: a fact must be ground"),
    ("kp(img).", "facts.pl:2:1: error: kp(img) is not a neural atom"),
    ("in(obj3, img) :- in(obj1, img).", "facts.pl:2:1: error: a file of facts must contain only facts"),
    (":- target(kp(img)).", "facts.pl:2:1: error: a file of facts must contain only facts"),
    ("?- kp(img).", "facts.pl:2:1: error: a file of facts must contain only facts"),
    ("query(kp(img)).", "facts.pl:2:1: error: a file of facts must contain only facts"),
    ("in(f(obj1), img).", "facts.pl:2:4: error: the compound term f/1 cannot be an argument"),
    ("in(obj3 img).", "facts.pl:2:9: error: expected ',' or ')' before 'img'"),
])
def test_bad_facts_as_prolog(text: str, message: str, run: Run) -> None:
    (run.folder / "facts.pl").write_text(CRISP + text + "\n")
    assert message in run.refused("reason", "closeby", "--facts", "facts.pl", *REFERENCE)


def test_no_facts_as_prolog(run: Run) -> None:
    (run.folder / "facts.pl").write_text("% nothing\n")
    assert "facts.pl contains no facts" in run.refused("reason", "closeby", "--facts", "facts.pl", *REFERENCE)
    assert "cannot read gone.pl" in run.refused("reason", "closeby", "--facts", "gone.pl", *REFERENCE)


def test_reason_tells_that_recursion_is_cut_short(run: Run) -> None:
    rules = ":- target(far(obj1, obj6)). far(X, Y) :- near(X, Y). far(X, Y) :- near(X, Z), far(Z, Y)."
    declared = ":- semantics(paper). :- type(object, slots(6)). :- neural(near(object, object))."
    (run.folder / "rules.pl").write_text(f"{declared} {rules}\n")
    (run.folder / "facts.pl").write_text("".join(f"near(obj{i}, obj{i + 1}).\n" for i in range(1, 6)))
    short = run("reason", "rules.pl", "--facts", "facts.pl", *REFERENCE)
    assert "warning: far/2 depends on itself" in short.err and ":- steps(6)." in short.err
    enough = run("reason", "rules.pl", "--facts", "facts.pl", "--steps", "6", *REFERENCE)
    assert enough.err == "" and float(short.out.split()[-1]) < 0.2 and float(enough.out.split()[-1]) > 0.8


def test_reason_wants_facts_or_random(run: Run) -> None:
    assert "either --facts FILE or --random N" in run.refused("reason", "closeby", *REFERENCE)
    assert "either" in run.refused("reason", "closeby", "--facts", "-", "--random", "1", *REFERENCE)


@pytest.mark.parametrize("option", [("--random", "0"), ("--seed", "-1"), ("--gamma", "0"), ("--gamma", "nan"),
                                    ("--gamma", "inf"), ("--steps", "-1"), ("--batch-size", "0"), ("--engine", "tpu"),
                                    ("--normalise", "none")])
def test_options_out_of_range(option: tuple[str, str], run: Run) -> None:
    run.refused("reason", "closeby", *(() if option[0] == "--random" else ("--random", "1")), *REFERENCE, *option)


def test_reason_without_targets(run: Run) -> None:
    write(run.folder, "kp(X) :- in(O, X).")
    assert "rules has no target" in run.refused("reason", "rules.pl", "--random", "1", *REFERENCE)


@pytest.mark.parametrize("engine", ["auto", "cpu"])
def test_reason_with_every_engine(engine: str, run: Run) -> None:
    lines = run.good("reason", "closeby", "--random", "2", "--engine", engine).splitlines()
    wanted = run.good("reason", "closeby", "--random", "2", *REFERENCE).splitlines()
    for ours, theirs in zip(lines[1:], wanted[1:], strict=True):
        assert float(ours.split()[1]) == pytest.approx(float(theirs.split()[1]), abs=2e-4)


def test_the_engine_for_a_card_says_what_it_lacks(run: Run) -> None:
    if torch.cuda.is_available():
        assert len(run.good("reason", "closeby", "--random", "2", "--engine", "gpu").splitlines()) == 3
    else:
        assert 'engine "gpu" needs' in run.refused("reason", "closeby", "--random", "1", "--engine", "gpu")
    unknown = run.refused("reason", "closeby", "--random", "1", "--engine", "tpu")
    assert "'auto', 'cpu', 'gpu', 'ptx', 'reference'" in unknown


def test_reason_with_the_default_engine(run: Run) -> None:
    pytest.importorskip("numba")
    lines = run.good("reason", "closeby", "--random", "2").splitlines()
    wanted = run.good("reason", "closeby", "--random", "2", *REFERENCE).splitlines()
    for ours, theirs in zip(lines[1:], wanted[1:], strict=True):
        assert float(ours.split()[1]) == pytest.approx(float(theirs.split()[1]), abs=2e-4)


NUMBERS = """
:- type(image, [img]).
:- type(object, slots(2)).
:- neural(in(object, image)).
:- target(kp(img)).
kp(X) :- in(O, X), in(P, X), area(O) > 1.5 * area(P), lucky.
0.75::lucky.
"""


def test_numbers_by_name(run: Run) -> None:
    (run.folder / "larger.pl").write_text(NUMBERS)
    seen = {"in(obj1,img)": 1, "in(obj2,img)": 1}
    worlds = [{**seen, "area(obj1)": 0.4, "area(obj2)": 0.1}, {**seen, "area(obj1)": 0.148, "area(obj2)": 0.1},
              {**seen, "area(obj1)": 0.4}, {**seen, "area(obj1) > 1.5 * area(obj2)": 0.5}]
    out = run.good("reason", "larger.pl", "--facts", "-", "--json", stdin=facts(*worlds))
    values = [json.loads(line)["kp(img)"] for line in out.splitlines()]
    assert values == pytest.approx([0.75, 0.75 * 0.1192, 0, 0.375], abs=1e-4)


def test_numbers_in_a_file_of_prolog_facts(run: Run) -> None:
    (run.folder / "larger.pl").write_text(NUMBERS)
    (run.folder / "facts.pl").write_text("in(obj1, img). in(obj2, img). area(obj1, 0.4). area(obj2, 0.1).\n")
    assert run.good("reason", "larger.pl", "--facts", "facts.pl").split()[-1] == "0.7500"
    (run.folder / "facts.pl").write_text("in(obj1, img). area(obj1, large). area(obj3, 0.4).\n")
    said = run.refused("reason", "larger.pl", "--facts", "facts.pl")
    assert "facts.pl:1:16: error: larger has no ground atom area(obj1,large)" in said
    assert "facts.pl:1:35: error: larger has no ground atom area(obj3)" in said


def test_learnt_temperatures_and_random_worlds(run: Run) -> None:
    (run.folder / "larger.pl").write_text(NUMBERS)
    (run.folder / "learnt.json").write_text('{"area(A) > 1.5 * area(B)": {"temperature": 1.0}}')
    world = facts({"in(obj1,img)": 1, "in(obj2,img)": 1, "area(obj1)": 2.5, "area(obj2)": 1})
    out = run.good("reason", "larger.pl", "--facts", "-", "--concepts", "learnt.json", stdin=world)
    assert float(out.split()[-1]) == pytest.approx(0.75 * 0.7311, abs=1e-4)
    values = [float(line.split()[1]) for line in run.good("reason", "larger.pl", "--random", "50").splitlines()[1:]]
    assert 0.5 < max(values) <= 0.75        # a probability is no coin to be flipped


@pytest.mark.ptx
def test_reason_with_executed_machine_code(run: Run) -> None:
    (run.folder / "rules.pl").write_text(
        ":- type(image, [img]). :- type(object, slots(2)). :- neural(in(object, image)).\n"
        ":- neural(red(object)). :- target(kp(img)).\nkp(X) :- in(O, X), red(O).\n")
    command = ("reason", "rules.pl", "--random", "3", "--json", "--engine")
    mine, theirs = ([json.loads(line)["kp(img)"] for line in run.good(*command, *engine).splitlines()]
                    for engine in (("ptx", "--arch", "sm_90"), ("reference",)))
    assert mine == pytest.approx(theirs, abs=2e-6)
    refused = run(*command, "cpu", "--arch", "sm_90")
    assert refused.code != 0 and "--arch sm_90 is for --engine ptx only" in refused.err
