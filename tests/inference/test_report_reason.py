"""Negations and counts in a report's reasons."""

from __future__ import annotations

from nsfrc.data.kandinsky import DIMENSIONS
from nsfrc.inference.report_objects import Objects
from nsfrc.inference.report_reason import reason_html
from tests.inference.html_tree import parse
from tests.test_goal_text import compiled, why


def test_what_breaks_a_negation_folds_out_below_it() -> None:
    reason = why("largest(img)", **{"larger(obj2,obj1)": 0.93, "larger(obj2,obj3)": 0.95})
    page = parse(reason_html(reason, Objects(compiled("largest(img)"), tuple(DIMENSIONS), None), holds=False))
    weak = page.one("summary", "weak")
    assert weak.text.startswith(r"\+ (in(P,img), larger(P,obj1))broken") and "missing" not in weak.text
    below = next(next(page.all("details")).all("ul"))
    assert below.text.startswith("in(obj2,img), larger(obj2,obj1)0.91")


def test_a_count_says_how_many_and_which() -> None:
    program = compiled("two(img)")
    page = parse(reason_html(why("two(img)"), Objects(program, tuple(DIMENSIONS), None), holds=True))
    assert page.one("span", "count").text == "2 of 4: obj1 0.94, obj3 0.87"
    assert "#1" not in page.text and page.one("p", "because").text.endswith("because obj1, obj3")
