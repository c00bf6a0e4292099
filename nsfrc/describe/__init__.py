"""A program in words, for `nsfrc explain`: what it asks, what its clauses say, and what each of them costs.

    phrases    clauses as English sentences
    account    the numbers, as plain data
    page       the data as text for people

Why an answer has its value is another matter: see `nsfrc.explain`.
"""

from nsfrc.describe.account import account, of_artifact, of_compilation
from nsfrc.describe.page import as_text
from nsfrc.describe.phrases import Sentence, sentence

__all__ = ["Sentence", "account", "as_text", "of_artifact", "of_compilation", "sentence"]
