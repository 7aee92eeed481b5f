"""``--vw_exact --automl`` decides, learns, predicts and reports as the wheel does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.parity import automl_outputs
from tests.parity.automl_cases import CASES, LONG_CASES
from tests.parity.automl_compare import differences_of_search

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.automl_cases import SearchCase
    from tests.parity.wheel import Wheel


def _compare(case: SearchCase, *, wheel: Wheel, directory: Path) -> None:
    theirs = automl_outputs.wheels_once(case, wheel=wheel, directory=directory)
    found = differences_of_search(theirs, automl_outputs.ours(case, directory=directory))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_search_is_the_wheels(case: SearchCase, wheel: Wheel, tmp_path: Path) -> None:
    _compare(case, wheel=wheel, directory=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG_CASES, ids=lambda case: case.id)
def test_long_searches_are_the_wheels(case: SearchCase, wheel: Wheel, tmp_path: Path) -> None:
    _compare(case, wheel=wheel, directory=tmp_path)
