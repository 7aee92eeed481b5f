"""Semantics: what either mode decides once."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.engine.loop.semantics import NATIVE, Semantics
from onlineauto.engine.records.quirks import NO_QUIRKS
from onlineauto.exact.semantics import EXACT
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable


def test_exact_mode_differs_in_everything_that_is_declared() -> None:
    same = [
        each.name for each in fields(Semantics) if getattr(NATIVE, each.name) == getattr(EXACT, each.name)
    ]
    assert not same


def test_native_mode_has_no_quirk_and_exact_mode_all() -> None:
    assert NATIVE.quirks == NO_QUIRKS
    assert not any(NO_QUIRKS)
    assert all(EXACT.quirks)


@pytest.mark.parametrize("semantics", [NATIVE, EXACT], ids=["native", "exact"])
def test_copies_are_the_same_object(semantics: Semantics) -> None:
    assert copy.deepcopy(semantics) is semantics
    assert pickle.loads(pickle.dumps(semantics)) is semantics  # noqa: S301


@pytest.mark.parametrize("semantics", [NATIVE, EXACT], ids=["native", "exact"])
def test_flags_make_a_workspace_of_the_same_semantics(semantics: Semantics) -> None:
    assert Workspace(**semantics.flags).semantics is semantics


@pytest.mark.parametrize("as_event", [str, str.encode, lambda text: [text]])
def test_json_without_its_option_is_reported(as_event: Callable[[str], Any]) -> None:
    exact, event = Workspace(vw_exact=True), as_event('{"_label":1,"a":{"x":2}}')
    for use in (exact.predict, exact.learn):
        with pytest.warns(UserWarning, match="this looks like JSON, and is read as text, .* add json=True"):
            use(event)
    with pytest.warns(UserWarning, match="this looks like JSON"):
        exact.fit(b'{"_label":1,"a":{"x":2}}\n')
    Workspace(vw_exact=True, json=True).predict(event)
