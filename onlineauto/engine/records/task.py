"""Records of a task: the constants by which events are predicted and learnt."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.estimators.robust_kernels import SIZE, stored_evidence
from onlineauto.state.schema import counts, field, record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.records.quirks import Quirks
    from onlineauto.estimators.robust_kernels import Test
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.features.records import Numbering
    from onlineauto.jit import F32
    from onlineauto.state.stored import Stored


class Shape(IntEnum):
    """Shapes of events."""

    SIMPLE = 0  # a single line with a label
    CB_ADF = 1  # one line for each action
    CB = 2  # all actions on one line


class DecayTally(IntEnum):
    """Entries of `Decay.tally`."""

    PROMOTED = 0  # changes of champion
    DROPPED = 1  # challengers dropped because they are too old
    OUTSIDE_RANGE = 2  # rewards outside the range


def _places(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return stored indices of the policies of all models, each once."""
    values = stored.array_like(array)
    if sorted(values) != list(range(len(array))):
        raise stored.fail(f"the places of {len(array)} models")
    return values


@record
class Decay(NamedTuple):
    """The models of ``--epsilon_decay``, the youngest first. The last one is the champion."""

    test: Test
    initial: F32  # ε before the first event
    constant: bool  # ε is the explorer's and does not decay
    explores: bool  # rewards of challengers are estimated for ε-greedy choices, not for greedy ones
    cost_is_reward: bool
    low: F32  # lowest reward
    high: F32  # highest reward
    min_scope: int  # a challenger that is not older than this is retained
    min_events: int  # a challenger that is younger than this is not compared
    shift: int
    unlearnt: NDArray[np.float32]  # [4]: a cell of a model after a reset
    everywhere: bool  # untouched cells must be reset too, because their initial value is not `unlearnt`
    # Index of the policy whose lanes a model uses
    place: NDArray[np.int64] = field("models", read=_places, predicts=True)
    # On model i since the reset of model j <= i: lower and upper
    evidence: NDArray[np.float64] = field("models", "models", 2, SIZE, read=stored_evidence, predicts=True)
    # The champion's ε at its last prediction
    epsilon: NDArray[np.float32] = field(1, predicts=True)
    tally: NDArray[np.int64] = field(len(DecayTally), read=counts(), predicts=True)


class Output(NamedTuple):
    """The form of the predictions that are written."""

    link: int
    binary: bool  # -1 or 1


class Thinning(NamedTuple):
    """The choice of the events of cost 0 that are learnt."""

    share: float  # probability with which such an event is learnt
    seed: np.uint64


class Task(NamedTuple):
    """The constants by which events are predicted and learnt, derived from the options."""

    shape: int  # of `Shape`
    slots: bool  # events of shape CB_ADF have slots; the loop processes each slot as an event
    n_actions: int  # under ``--cb N``
    numbering: Numbering  # under ``--cb N``
    exploration: Exploration
    decay: Decay
    parts: int  # lanes of a live config
    predicts_apart: bool  # the explorer predicts an event in a separate pass, before the event is learnt
    clip_p: F32
    uniform: bool  # a label without a probability counts as logged by a uniform policy
    output: Output
    training: bool
    thinning: Thinning
    finds_origin: bool  # see `onlineauto.engine.loop.run_kernels`
    quirks: Quirks
    mask: np.uint64  # selects the low bits of a hash, which number the cell
