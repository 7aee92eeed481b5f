"""Deprecated functions warn at the line that calls them."""

from __future__ import annotations

import pytest

from onlineauto.errors import deprecated


class Model:
    @deprecated(since="1.2", removal="2.0", use="Model.rank")
    def choose(self, *actions: str) -> str:
        """Return the first action."""
        return actions[0]


def test_call_of_a_deprecated_method_warns_and_works() -> None:
    with pytest.warns(
        DeprecationWarning,
        match=r"^Model.choose is deprecated since version 1.2 and will be removed in 2.0: use Model.rank$",
    ) as caught:
        assert Model().choose("a", "b") == "a"
    assert caught[0].filename == __file__
    assert (Model.choose.__name__, (Model.choose.__doc__ or "").splitlines()[0]) == (
        "choose",
        "Return the first action.",
    )
