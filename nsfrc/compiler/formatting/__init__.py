"""The layout of programs: white space, and nothing else, is decided here.

    formatted("kp(X):-in(O,X).")   ->   "kp(X) :- in(O, X).\\n"

Tokens and comments stay as they were written. `roles` tells what a token is in its sentence, `spacing` what stands
between two of them on a line, `lines` where lines of a sentence begin, `text` what stands between sentences. `same`
proves that a layout says what the text said.
"""

from nsfrc.compiler.formatting.same import formatted

__all__ = ["formatted"]
