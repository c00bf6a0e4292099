"""A program in words, for `nsfrc explain`: what it asks, what its clauses say, and what each of them costs.

    phrases    clauses as English sentences
    again      clauses read back from the texts that a .nsfrc file keeps
    account    the numbers, as plain data
    page       the data as text for people

Why an answer has its value is another matter: see `nsfrc.explain`.
"""

from nsfrc.words.account import account, of_artifact, of_compilation
from nsfrc.words.page import as_text
from nsfrc.words.phrases import Sentence, sentence

__all__ = ["Sentence", "account", "as_text", "of_artifact", "of_compilation", "sentence"]
