"""``RayWorkers``: what a trial needs of a cluster is checked before there is one."""

from __future__ import annotations

from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import RayWorkers


@pytest.mark.parametrize(
    "needs", ["GPU", 5, None, [("CPU", 1)], {1: 2}, {"GPU": -1}, {"GPU": float("nan")}, [{"CPU": 1}, "GPU"]]
)
def test_needs_that_are_none(needs: Any) -> None:
    with pytest.raises(OptionError, match="a trial needs"):
        RayWorkers(2, needs=needs)
    with pytest.raises(OptionError, match="a trial needs"):
        RayWorkers(2, needs=lambda _: needs).bundles({})


@pytest.mark.parametrize("needs", [(), [], {}, [{}]])
def test_a_trial_that_names_nothing_needs_a_processor(needs: Any) -> None:
    assert RayWorkers(2, needs=needs).bundles({}) == ((("CPU", 1),),)
