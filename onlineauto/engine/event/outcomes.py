"""Outcomes of a block: one row for each event or slot, and one entry for each of its actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.features.slots import Slots


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Predictions and progressive losses of consecutive events.

    Attributes
    ----------
    rows : ROW[n]
        Records of the events. The properties are views of their columns.
    line : int64[n]
        First line of the event in the block; the tag of this line is printed with the prediction.
    loss : float32[n]
        Progressive loss, importance weight included; 0 if unlabelled.
    weight : float32[n]
        Weight of the event in the averages.
    labelled, holdout : bool[n]
        True if the event has a label; true if it was held out of training.
    outlier : uint8[n]
        The reason why a labelled event was not learnt, else 0. Its label or cost (1), its weight (2), its
        probability (3) or the value of a feature (4) is far beyond all before; such an event counts as
        unlabelled. With 5, learning restarted at this event.
    n_features : int64[n]
        Number of features used, including the constant and interactions, as in VW's last line.
    shown_features : int64[n]
        Number of features in a row of VW's progress table. Under ``--cb_adf`` it differs from `n_features`,
        which counts the shared line once and not once for each action.
    label : float32[n]
        Single-line regression and classification: the label (`UNLABELLED` if none).
    prediction : float32[n]
        Single lines: the prediction after the link. ``--cb N``: the chosen action, 1-based.
    raw : float32[n]
        Single lines: the prediction before clipping and link.
    known_action : int64[n]
        Contextual bandits: 0-based index of the logged action, -1 if none.
    known_cost, known_probability : float32[n]
        Cost and logged probability of the logged action.
    action_start : int64[n + 1]
        First entry of each event in `action` and `score`; all 0 for single-line learners.
    action : int32[]
        0-based actions in the order VW prints them: best first.
    score : float32[]
        Probability of each action (``--cb_explore*``) or its predicted cost (``--cb_adf``).
    slots : Slots or None
        The events that slots belong to under ``--ccb_explore_adf``, where each row is a slot and not an
        event. A slot's actions are those not taken by an earlier slot, the chosen one first.
    """

    rows: Records
    line: NDArray[np.int64]
    weight: NDArray[np.float32]
    holdout: NDArray[np.bool_]
    label: NDArray[np.float32]
    action: NDArray[np.int32]
    score: NDArray[np.float32]
    slots: Slots | None = None

    def __len__(self) -> int:
        """Count the events."""
        return len(self.rows)

    def by_action(self) -> NDArray[np.float32]:
        """Return the scores of a single event: float32[n_actions]; with slots float32[n_slots, n_actions].

        Raises
        ------
        InputError
            There is not exactly one event.
        """
        n_events = len(self) if self.slots is None else len(self.slots.start) - 1
        if n_events != 1:
            raise InputError(
                f"by_action() needs a single event, but there are {n_events}: row i has the actions "
                "action[action_start[i]:action_start[i + 1]], and their scores are at the same indices "
                "of score"
            )
        if self.slots is not None:
            return self.slots.by_action(self.action_start, self.action, self.score)
        scores = np.empty(len(self.action), np.float32)
        scores[self.action] = self.score
        return scores

    def one_prediction(self) -> NDArray[np.float32]:
        """Return the prediction of a single event: `by_action`, or float32[1] on a single line.

        Raises
        ------
        InputError
            There is not exactly one event.
        """
        simple = self.slots is None and len(self.action) == 0 and self.rows["known_action"][0] < 0
        return self.prediction if simple else self.by_action()

    @property
    def action_start(self) -> NDArray[np.int64]:
        """First entry of each event in `action` and `score`: int64[n + 1]."""
        return np.append(self.rows["action_start"], len(self.action))

    @property
    def loss(self) -> NDArray[np.float32]:
        """Progressive loss of each event: float32[n]."""
        return self.rows["loss"]  # type: ignore[no-any-return]

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """True for each event that has a label: bool[n]."""
        return self.rows["labelled"]  # type: ignore[no-any-return]

    @property
    def outlier(self) -> NDArray[np.uint8]:
        """The reason why each labelled event was not learnt, 0 if it was learnt: uint8[n]."""
        return self.rows["outlier"]  # type: ignore[no-any-return]

    @property
    def n_features(self) -> NDArray[np.int64]:
        """Number of features used by each event: int64[n]."""
        return self.rows["n_features"]  # type: ignore[no-any-return]

    @property
    def shown_features(self) -> NDArray[np.int64]:
        """Number of features of each event as printed in a row of the progress table: int64[n]."""
        return self.rows["shown_features"]  # type: ignore[no-any-return]

    @property
    def prediction(self) -> NDArray[np.float32]:
        """Prediction, or chosen action: float32[n]."""
        return self.rows["prediction"]  # type: ignore[no-any-return]

    @property
    def raw(self) -> NDArray[np.float32]:
        """Prediction before clipping and link: float32[n]."""
        return self.rows["raw"]  # type: ignore[no-any-return]

    @property
    def known_action(self) -> NDArray[np.int64]:
        """Logged action, -1 if none: int64[n]."""
        return self.rows["known_action"]  # type: ignore[no-any-return]

    @property
    def known_cost(self) -> NDArray[np.float32]:
        """Cost of the logged action: float32[n]."""
        return self.rows["known_cost"]  # type: ignore[no-any-return]

    @property
    def known_probability(self) -> NDArray[np.float32]:
        """Logged probability of the logged action: float32[n]."""
        return self.rows["known_probability"]  # type: ignore[no-any-return]
