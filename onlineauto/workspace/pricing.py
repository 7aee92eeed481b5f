"""``PricedScores``: the probabilities of actions whose predicted costs have a price added to them.

The loop computes the scores of a model whose exploration is off. The explorer's kernel then turns the priced
scores into probabilities. Without a price, `Predictor.predict` does both in one call; there, scaled SquareCB
explores more where the members of the ensemble disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.new_action_kernels import _LITTLE_LEARNT, _MOST_LEARNT, _YOUNG
from onlineauto.errors import OptionError
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.policy import pmf_by_scores
from onlineauto.explorers.ranking_kernels import LEARNT, ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.loop.working_memory import Predicting
    from onlineauto.explorers.ranking_kernels import Exploration
    from onlineauto.options import Configuration


def check_priced(configuration: Configuration) -> None:
    """Refuse explorers that read more than one score of each action, to which no price can be added."""
    explorer = choose_explorer(configuration)
    if explorer.policy_kind or explorer.bounds(configuration):
        raise OptionError(
            f"--budget adds a price to the score of each action, but --{explorer.name} reads more than one "
            "score of each: use --squarecb, --softmax, --epsilon, or --automl with its default explorer"
        )


def inactive(exploration: Exploration) -> Exploration:
    """Return an exploration that leaves scores as they are."""
    return exploration._replace(active=False, direct=False)


def without_exploration(model: Predicting) -> Predicting:
    """Return a model that predicts the scores of actions in place of their probabilities."""
    task = model.parts.task
    task = task._replace(exploration=inactive(task.exploration))
    return model._replace(parts=model.parts._replace(task=task))


def priced_pmf(
    configuration: Configuration,
    exploration: Exploration,
    scores: NDArray[np.float32],
    prices: Sequence[float],
    learnt_parts: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the probabilities of actions by their scores and prices, with the exploration of a model.

    New actions are explored as in `onlineauto.engine.event.new_action_kernels`: without a gap to the best
    action, apart from their price, and with a probability of at most 1 / K.
    """
    n, explorer, new = len(scores), choose_explorer(configuration), learnt_parts <= _MOST_LEARNT
    has_new = bool(new.any() and not new.all() and exploration.counts[LEARNT] >= _YOUNG * n)
    if has_new and not explorer.direct:
        scores[learnt_parts <= _LITTLE_LEARNT] = scores[~new].min()
    priced = scores + np.asarray(prices, np.float32)
    pmf = pmf_by_scores(explorer, exploration, priced, np.zeros((ROWS, n), np.float32))
    if has_new:
        excess = np.where(new, np.maximum(pmf - np.float32(1 / n), 0), 0)
        pmf -= excess
        pmf[np.where(new, np.inf, priced).argmin()] += excess.sum()
    return pmf
