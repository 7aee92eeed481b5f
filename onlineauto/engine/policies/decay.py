"""Decay: the state of the models of ``--epsilon_decay``, from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.records.task import Decay
from onlineauto.estimators.robust_kernels import SIZE, Test
from onlineauto.explorers.kinds.epsilon_decay import EpsilonDecayOptions, models_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.quirks import Quirks
    from onlineauto.options import Configuration


def make_decay(configuration: Configuration, *, unlearnt: NDArray[np.float32], quirks: Quirks) -> Decay:
    """Return the models of ``--epsilon_decay`` before the first event.

    Parameters
    ----------
    unlearnt : float32[4]
        A cell of the weight table before the first event.
    quirks : Quirks
        Oddities of Vowpal Wabbit to follow.
    """
    in_part = quirks.begins_anew_in_part
    options, shared = configuration[EpsilonDecayOptions], configuration[AutomlOptions]
    models = models_of(configuration)
    share = np.float32(options.bonferroni_denominator or options.model_count)
    low, high = shared.rewards() if shared.cost_range is not None else (0.0, 1.0)
    return Decay(
        test=Test(
            alpha=np.float64(np.float32(options.epsilon_decay_significance_level) / share),
            tol_x=np.float64(np.float32(shared.tol_x)),
        ),
        initial=np.float32(options.initial_epsilon),
        constant=options.constant_epsilon,
        explores=options.challenger_epsilon,
        cost_is_reward=shared.reward_as_cost,
        low=np.float32(low),
        high=np.float32(high),
        min_scope=options.min_scope,
        min_events=options.min_champ_examples,
        shift=options.shift_model_bounds,
        unlearnt=np.zeros(4, np.float32) if in_part else unlearnt,
        everywhere=in_part and bool(unlearnt.any()),
        place=np.arange(models),
        evidence=np.zeros((models, models, 2, SIZE)),
        epsilon=np.zeros(1, np.float32),
        tally=np.zeros(3, np.int64),
    )
