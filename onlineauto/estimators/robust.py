"""``stored_evidence``: the states of robust confidence sequences, read back from a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.estimators.robust_kernels import T
from onlineauto.state.stored import MOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.state.stored import Stored

_LARGEST_SUM = 2.0**640
"""No sum of a sequence is as large: errors are below 2^257, their squares below 2^514, counts below 2^62."""


def stored_evidence(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return stored states of robust confidence sequences, in the shape of `array`."""
    values = stored.array_between(array, -_LARGEST_SUM, _LARGEST_SUM)
    if (values[..., T] < 0).any() or (values[..., T] > MOST).any():
        raise stored.fail("the states of confidence sequences")
    return values
