"""What comes later in a process: no event of it compiles, and a copy calls what is there already."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from onlineauto.jit.code import Code, code_for
from onlineauto.workspace.workspace import Workspace
from tests.jit.test_entry_kernels import kernels

if TYPE_CHECKING:
    from types import FunctionType

    from onlineauto.jit.packing import Packed


def events(seed: int, n: int) -> bytes:
    """Events whose best action is that of the context's number: an interaction finds it."""
    rng, lines = np.random.default_rng(seed), list[str]()
    for context, logged in rng.integers(2, size=(n, 2)).tolist():
        lines.append(f"shared |s c{context}\n")
        for action in range(2):
            label = f"{action}:{-float(logged == context)}:0.5 " * (action == logged)
            lines.append(f"{label}|a a{action}\n")
        lines.append("\n")
    return "".join(lines).encode()


@pytest.mark.parametrize("exact", [False, True])
def test_after_the_first_events_no_machine_code_is_asked_for(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def asked(function: FunctionType, packed: Packed) -> Code:
        found.append(function.__qualname__)
        return code_for(function, packed)

    monkeypatch.setattr(sys.modules["onlineauto.jit.kernel"], "code_for", asked)
    for each in kernels():
        monkeypatch.setattr(each, "_codes", {})
    workspace = Workspace(cb_explore_adf=True, automl=3, lease=50, bit_precision=10, l1=1e-9, vw_exact=exact)
    workspace.fit(events(0, 2))
    assert len(found) > 5
    found.clear()
    workspace.fit(events(1, 6000))
    copies = copy.deepcopy(workspace), pickle.loads(pickle.dumps(workspace))  # noqa: S301
    for each in (workspace, *copies):
        each.fit(events(2, 50))
    assert workspace.searching.changes, "the champion has changed"
    assert found == []
    for each in copies:
        assert np.array_equal(each.weights, workspace.weights)
        assert not np.shares_memory(each.weights, workspace.weights)
