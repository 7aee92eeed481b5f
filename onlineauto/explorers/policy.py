"""Policy: an explorer without a model, for scores from any source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.explorers import extend
from onlineauto.explorers.cost_range import check_cost_range
from onlineauto.explorers.exploration import kernel_of, make_exploration
from onlineauto.explorers.options import EXPLORER_GROUPS, check_one_explorer, choose_explorer
from onlineauto.explorers.ranking_kernels import BONUS, LEARNT, RND, ROWS
from onlineauto.options import Registry
from onlineauto.state.schema import arrays_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from onlineauto.explorers.explorer import Explorer
    from onlineauto.explorers.ranking_kernels import Exploration

_REGISTRY = Registry(EXPLORER_GROUPS, checks=(check_one_explorer, check_cost_range))
extend(_REGISTRY)


class Policy:
    """Turns scores of actions into probabilities, as a `Workspace` with the same options does.

    Parameters
    ----------
    **options
        Options of explorers, as keywords: ``squarecb=True, gamma_scale=100``. Without any, ε-greedy.

    Attributes
    ----------
    explorer : Explorer
        The chosen explorer.
    floor : float
        Least probability of an action times the number of actions; 0 is none.

    Raises
    ------
    OptionError
        An option is unknown, out of range, or at odds with another.

    Examples
    --------
    >>> Policy(softmax=True).pmf([0.0, 1.0]).round(2)
    array([0.73, 0.27], dtype=float32)
    >>> Policy(squarecb=True).pmf([0.0, 1.0], learnt=100).round(3)
    array([0.99, 0.01], dtype=float32)
    >>> Policy(regcb=True).pmf([0.2, 0.1, 0.9], plausible=[(0, 0.4), (0, 0.3), (0.7, 1)])
    array([0.5, 0.5, 0. ], dtype=float32)
    """

    def __init__(self, **options: Any) -> None:
        configuration = _REGISTRY.from_keywords(cb_explore_adf=True, **options)
        self.explorer = choose_explorer(configuration)
        self._exploration = make_exploration(configuration)
        self.floor = float(self._exploration.epsilon) if "epsilon" in self.explorer.uses else 0.0

    @property
    def needs_plausible(self) -> bool:
        """True if `pmf` needs the plausible costs."""
        return self._exploration.bounds or self._exploration.policy_kind == RND

    def pmf(
        self,
        scores: ArrayLike,
        *,
        learnt: int = 0,
        costs: tuple[float, float] = (0.0, 1.0),
        error: float = 0.5,
        plausible: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """Return the probability of each action.

        Parameters
        ----------
        scores : float32[n_actions]
            Predicted cost of each; the lowest is the best.
        learnt : int
            Events learnt so far.
        costs : tuple of (float, float)
            Lowest and highest cost so far.
        error : float
            Typical error of the scores; 0 as long as all costs are equal.
        plausible : float32[n_actions, 2], optional
            Lowest and highest plausible cost of each action, for the explorers that read it; ``rnd`` uses
            half the distance as its bonus.

        Raises
        ------
        ValueError
            If `plausible` is needed and missing, or the explorer needs several models.
        """
        distils = self._exploration.policy_kind == RND
        if self._exploration.policies and not distils:
            raise ValueError(f"{self.explorer.name} needs the scores of several models: use a Workspace")
        score = np.array(scores, np.float32)
        n = len(score)
        scratch = np.zeros((ROWS, n), np.float32)
        if self.needs_plausible:
            if plausible is None:
                raise ValueError(f"{self.explorer.name} needs the plausible cost of each action")
            scratch[:2] = np.asarray(plausible, np.float32).reshape(n, 2).T
            if distils:
                scratch[BONUS] = (scratch[1] - scratch[0]) / 2
        lasting: Any = {name: array.copy() for name, array in arrays_of(self._exploration).items()}
        exploration = self._exploration._replace(**lasting)  # separate arrays for concurrent calls
        exploration.counts[LEARNT] = learnt
        exploration.costs[:] = costs
        exploration.errors[:] = learnt, 0.0, learnt * error**2, learnt, learnt * error**2
        return pmf_by_scores(self.explorer, exploration, score, scratch)


def pmf_by_scores(
    explorer: Explorer, exploration: Exploration, score: NDArray[np.float32], scratch: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the probability of each action by the explorer's kernel, given the action's score."""
    order = np.lexsort((np.arange(len(score)), score)).astype(np.int32)
    ranked = score[order]
    if len(score) > 0:
        kernel_of(type(explorer))(exploration, order, ranked, scratch)
    pmf = np.empty_like(score)
    pmf[order] = ranked
    return pmf
