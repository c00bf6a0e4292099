"""Prolog text to surface sentences.

    parse(Source("a.pl", "kp(X) :- in(O, X)."), found)   ->  (Sentence(CLAUSE, ...),)
    read("a.pl", found)                                  ->  the same for a file and what it includes
    find_program("twopairs")                             ->  Path of a file or of a shipped program

Nothing here raises on any text: syntax errors go to `found`, and reading goes on behind the '.' that
ends the bad sentence. The grammar is `grammars/prolog.lark`; `plain` reads most sentences without it, and it is built
for the first one that is not plain.
"""

from nsfrc.compiler.parse.files import find_program, read, shipped_programs
from nsfrc.compiler.parse.sentences import parse

__all__ = ["find_program", "parse", "read", "shipped_programs"]
