"""``stored_evidence``: the states of robust confidence sequences, read back from a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.estimators.robust_kernels import T
from onlineauto.features.stored import MOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.stored import Stored

_LARGEST_SUM = 2.0**640
"""No sum of a sequence is as large: errors are below 2^257, their squares below 2^514, events below 2^62."""


def stored_evidence(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return the states of robust confidence sequences that are to be in place of an array of them.

    Raises
    ------
    ValueError
        They are none: their counts are not from 0 to what can be counted, or a sum is larger than any.
    """
    found = stored.within(array, -_LARGEST_SUM, _LARGEST_SUM)
    if (found[..., T] < 0).any() or (found[..., T] > MOST).any():
        raise stored.fail("the states of confidence sequences")
    return found
