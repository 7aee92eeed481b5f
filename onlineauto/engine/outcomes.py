"""What learning a block gave: one row an event, one entry an action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Outcomes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Predictions and progressive losses of consecutive events.

    Attributes
    ----------
    line : int64[n]
        Line of the block that begins the event (its tag is printed with the prediction).
    loss : float32[n]
        Progressive loss, importance weight included; 0 if unlabelled.
    weight : float32[n]
        Weight of the event in the averages.
    labelled, holdout : bool[n]
        Whether it has a label; whether it was held out of training.
    n_features : int64[n]
        Features used, constant and interactions included, as VW sums them up for its last line.
    shown_features : int64[n]
        The same as VW shows it in a row of the progress table; differs under ``--cb_adf``, where the sum
        takes the shared line once and the table once for each action.
    label : float32[n]
        Single-line regression and classification: the label (`UNLABELLED` if none).
    prediction : float32[n]
        Single-line: the prediction after the link. ``--cb N``: the chosen action, 1-based.
    raw : float32[n]
        Single-line: the prediction before clipping and link.
    known_action : int64[n]
        Contextual bandits: 0-based index of the logged action, -1 if none.
    known_cost, known_probability : float32[n]
        Its cost and logged probability.
    action_start : int64[n + 1]
        First entry of each event in `action` and `score`; all 0 for single-line learners.
    action : int32[]
        0-based actions in the order VW prints them: best first.
    score : float32[]
        Probability of each action (``--cb_explore*``) or its predicted cost (``--cb_adf``).
    """

    line: NDArray[np.int64]
    loss: NDArray[np.float32]
    weight: NDArray[np.float32]
    labelled: NDArray[np.bool_]
    holdout: NDArray[np.bool_]
    n_features: NDArray[np.int64]
    shown_features: NDArray[np.int64]
    label: NDArray[np.float32]
    prediction: NDArray[np.float32]
    raw: NDArray[np.float32]
    known_action: NDArray[np.int64]
    known_cost: NDArray[np.float32]
    known_probability: NDArray[np.float32]
    action_start: NDArray[np.int64]
    action: NDArray[np.int32]
    score: NDArray[np.float32]

    def __len__(self) -> int:
        """Count the events."""
        return len(self.loss)
