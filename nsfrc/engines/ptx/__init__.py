"""PTX executed on the CPU: parse → translate (basic blocks as functions over numpy) → machine, with checks and
counts."""
