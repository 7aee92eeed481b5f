"""Without ``--vw_exact`` the same mathematics: predictions agree to 1e-5 where nothing was fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.parity.native import AGREEING, disagreements, predictions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.parity.case import Case


@pytest.mark.parametrize("case", AGREEING, ids=lambda case: case.id)
def test_native_agrees_with_exact(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "stream.txt"
    exact, native = (predictions(case, exact=exact, file=file) for exact in (True, False))
    assert exact.shape == native.shape
    nudged = predictions(case, exact=True, file=file, nudged=True)
    places = disagreements(exact, native, nudged)
    assert not len(places), f"{len(places)} of {len(exact)}: {[(i, exact[i], native[i]) for i in places[:5]]}"


def test_a_sixth_digit_is_let_pass_and_a_fifth_is_not() -> None:
    exact = np.array([1.0, 100.0, 0.0, 1.0])
    native = np.array([1.000001, 100.01, 5e-7, np.nan])
    assert disagreements(exact, native, exact).tolist() == [1, 3]
    assert disagreements(native, exact, native).tolist() == [1, 3]


def test_where_one_last_place_of_the_rate_moves_predictions_more_is_allowed() -> None:
    exact, nudged = np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.01, 1.0])
    assert disagreements(exact, exact + 0.05, nudged).tolist() == [0]
