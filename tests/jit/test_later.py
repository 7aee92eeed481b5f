"""What comes later in a process: no event of it compiles, and a copy calls what is there already."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto.jit.code import Code, code_for
from onlineauto.workspace.workspace import Workspace
from tests.engine.test_native_search import crossed_stream
from tests.jit.test_entry_kernels import kernels

if TYPE_CHECKING:
    from types import FunctionType

    from onlineauto.jit.packing import Packed


@pytest.mark.parametrize("exact", [False, True])
def test_after_the_first_events_no_machine_code_is_asked_for(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def asked(function: FunctionType, packed: Packed) -> Code:
        found.append(function.__qualname__)
        return code_for(function, packed)

    monkeypatch.setattr(sys.modules["onlineauto.jit.kernel"], "code_for", asked)
    for kernel in kernels():
        monkeypatch.setattr(kernel, "_codes", {})
    easy: dict[str, Any] = {"automl_significance_level": 0.9, "lease": 200} if exact else {}
    workspace = Workspace(cb_explore_adf=True, automl=3, bit_precision=14, l1=1e-9, vw_exact=exact, **easy)
    workspace.fit(crossed_stream(2).encode())
    assert len(found) > 5
    found.clear()
    workspace.fit(crossed_stream(5000).encode())
    copies = copy.deepcopy(workspace), pickle.loads(pickle.dumps(workspace))  # noqa: S301
    for each in (workspace, *copies):
        each.fit(crossed_stream(50, seed=2).encode())
    assert workspace.searching.changes, "the champion has changed"
    assert found == []
    for each in copies:
        assert np.array_equal(each.weights, workspace.weights)
        assert not np.shares_memory(each.learner.model.table, workspace.learner.model.table)
