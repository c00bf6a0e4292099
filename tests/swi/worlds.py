"""Random crisp worlds: which neural atoms of a program are true."""

from __future__ import annotations

import random
from itertools import product

from nsfrc.compiler import ir
from tests.swi import crisp


def random_world(program: ir.Program, rng: random.Random) -> set[str]:
    """True neural atoms: half of the worlds look like images, where an object has one colour."""
    density = rng.choice((0.15, 0.4, 0.7, 0.95))
    tidy = rng.random() < 0.5
    world: set[str] = set()
    for predicate in program.predicates:
        if predicate.role == ir.NEURAL:
            world |= _true_atoms(program, predicate, tidy, density, rng)
    return world


def _true_atoms(
    program: ir.Program, predicate: ir.Predicate, tidy: bool, density: float, rng: random.Random
) -> set[str]:
    domains = [program.type(name).constants for name in predicate.types]
    last = program.type(predicate.types[-1]) if predicate.types else None
    if tidy and last and last.role == ir.ATTRIBUTE:
        atoms = [(*args, rng.choice(last.constants)) for args in product(*domains[:-1])]
    elif tidy and last and last.role == ir.INPUT:
        atoms = list(product(*domains))
    else:
        atoms = [args for args in product(*domains) if rng.random() < density]
    return {
        ir.atom_text(predicate.name, [ir.quoted(arg) for arg in args])
        for args in atoms if crisp.different(predicate.types, args, crisp.kept_apart(program))
    }
