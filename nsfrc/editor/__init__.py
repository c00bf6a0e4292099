"""What editors ask about a program: `nsfrc lsp` is a thin face of this, and this one of the compiler.

    positions     lines and columns as editors count them
    occurrences   each place of a text where a predicate, constant, type or variable is named
    document      a text that may not be saved yet, with the files that it includes
    answers       hover, definitions, symbols, completion, quick fixes; renaming
    server        the language server (needs pygls)
"""
