"""Rules from labelled examples: `nsfrc learn` and `nsfrc.learn`.

    source, evidence, seen     the program's text, what is known of the examples, and which atoms hold in them
    relations, extended        what literals can be made of, from the program's declarations
    tables, kernels            literals as bits over all assignments of objects to variables
    scoring, search            how much shorter labels can be told with a clause; the search for the best
    covering, thresholds       several clauses for one target; where numbers are cut
    soft                       ties looked at again with the values that perception gave
    wording, results           clauses as text, and the program that is written
    learner, pictures, api     all of it, for one program and its examples
"""
