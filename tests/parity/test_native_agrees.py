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
    places = disagreements(exact, native)
    assert not len(places), f"{len(places)} of {len(exact)}: {[(i, exact[i], native[i]) for i in places[:5]]}"


def test_a_sixth_digit_is_let_pass_and_a_fifth_is_not() -> None:
    exact = np.array([1.0, 100.0, 0.0, 1.0])
    native = np.array([1.000001, 100.01, 5e-7, np.nan])
    assert disagreements(exact, native).tolist() == [1, 3]
    assert disagreements(native, exact).tolist() == [1, 3]
