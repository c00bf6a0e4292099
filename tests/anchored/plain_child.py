"""The child process of `test_engines`: the kernels of `anchored` run as the Python they are written in.

    NUMBA_DISABLE_JIT=1 python -m tests.anchored.plain_child

See `tests.engines.plain_child`: an index that is out of range is an IndexError here.
"""

from __future__ import annotations

from numba.core import config

from tests.engines.plain_child import stand_in

# Program, batch, rows of weights (0: hard) and options.
CASES = {
    "one example": ("levels", 1, 0, {}),
    "few examples, recursive": ("products shared with what is recursive", 3, 0, {}),
    "full vectors": ("attributes that may be equal", 9, 0, {}),
    "full vectors, soft": ("two that need each other", 5, 2, {}),
    "recursive, few steps": ("paths", 5, 0, {"steps": 1}),
    "no steps": ("paths", 5, 3, {"steps": 0}),
    "targets only": ("facts of what is derived", 5, 0, {"outputs": "targets"}),
    "neural atoms only": ("what follows from facts", 5, 2, {"outputs": "targets", "inputs": "neural"}),
    "large gamma": ("paths", 5, 0, {"gamma": 5.0}),
    "large gamma, few examples": ("paths", 2, 0, {"gamma": 5.0}),
    "choices": ("counts", 5, 0, {}),
    "choices, one example": ("counts compared", 1, 0, {}),
    "choices, soft": ("negation above and below recursion", 5, 2, {}),
    "nothing to compute": ("nothing but facts", 5, 0, {"inputs": "neural"}),
}


def main() -> None:
    assert config.DISABLE_JIT, "start this with NUMBA_DISABLE_JIT=1"
    stand_in()
    from tests.anchored.support import GRADIENTS, VALUES, compiled, difference, mixtures, valuations

    for name, (rules, batch, rows, options) in CASES.items():
        program = compiled(rules)
        found = difference(program, valuations(program, batch), mixtures(program, rows) if rows else None, "cpu",
                           **{"gamma": 0.1, **options})
        assert found.values <= VALUES and found.gradients <= GRADIENTS, (name, found)
        print(name)


if __name__ == "__main__":
    main()
