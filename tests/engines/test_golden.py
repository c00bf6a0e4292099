"""Equal to the published implementation on recorded inputs and outputs; skips where they are absent.

The recordings are float32, and so are their gradients: two float32 runs with another order of sums
differ by up to 2e-5 of the largest gradient, which is the bound here for the float64 reference.
`test_reference.py` checks that reference against finite differences, far more tightly.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nsfrc.compiler.importer import import_language
from tests.engines.support import SHARED, compile_text, relative

GOLDEN = ("twopairs", "clevr-hans3")
SCOPES = (("single", "example"), ("batch", "batch"))

pytestmark = pytest.mark.skipif(not (SHARED / "golden").is_dir(), reason="the recordings are not here")


@pytest.fixture(scope="module", params=GOLDEN)
def golden(request):
    """(program, recording, columns): columns[i] is the recorded column of our atom i."""
    recording = dict(np.load(SHARED / "golden" / f"{request.param}.npz"))
    program = compile_text(import_language(SHARED / "language" / request.param))
    names = [n.replace(".(__F__)", "false").replace(".(__T__)", "true") for n in recording["atoms"]]
    assert sorted(names) == sorted(program.atoms)
    return program, recording, [names.index(atom) for atom in program.atoms]


def test_index_tensor(golden):
    program, recording, columns = golden
    ours = {theirs: mine for mine, theirs in enumerate(columns)}
    index = program.index_tensor()
    assert index.shape == tuple(int(recording[k]) for k in "CGSL")
    live = np.zeros(index.shape[:2], dtype=bool)
    for (clause, atom), rows in zip(recording["I_cg"], recording["I_rows"], strict=True):
        live[clause, ours[atom]] = True
        theirs = sorted(sorted(ours[i] for i in row) for row in rows)
        assert theirs == sorted(sorted(row) for row in index[clause, ours[atom]].tolist())
    assert not index[~live].any()


@pytest.mark.parametrize(("scope", "normalise"), SCOPES)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("engine", "dtype", "tolerance"),
    [("reference", torch.float64, 2e-5), ("reference", torch.float32, 1e-4), ("cpu", torch.float32, 1e-4)],
)
def test_values_and_gradients(golden, scope, normalise, weights, engine, dtype, tolerance):
    program, recording, columns = golden
    prefix = "W_" if weights else ""
    V0 = torch.tensor(recording["V0"][:, columns], dtype=dtype, requires_grad=True)
    W = torch.nn.Parameter(torch.tensor(recording["W"], dtype=dtype))
    reasoner = program.reasoner(
        engine, normalise, int(recording["T"]), float(recording["gamma"]), clause_weights=W if weights else "hard"
    )
    V_T = reasoner(V0)
    assert np.abs(V_T.detach().numpy() - recording[f"{prefix}VT_{scope}"][:, columns]).max() <= 1e-6
    V_T[:, program.index(str(recording["target"]))].log().sum().backward()
    if weights:
        assert relative(W.grad, torch.from_numpy(recording[f"W_grad_{scope}"])) <= tolerance
    else:
        assert relative(V0.grad, torch.from_numpy(recording[f"grad_V0_{scope}"][:, columns])) <= tolerance


@pytest.mark.parametrize(("scope", "normalise"), SCOPES)
def test_every_step(golden, scope, normalise):
    program, recording, columns = golden
    V0 = torch.tensor(recording["V0"][:, columns])
    for steps, V in enumerate(recording[f"Vt_{scope}_steps"], 1):
        mine = program.reasoner("cpu", normalise, steps)(V0)
        assert np.abs(mine.numpy() - V[:, columns]).max() <= 1e-6
