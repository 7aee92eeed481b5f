"""Models for river: `AutoMLRegressor`, `AutoMLClassifier`, and `AutoMLPolicy` for its bandits.

They need river, ``pip install '.[river]'``, and can be used like river's models.

>>> from onlineauto.river import AutoMLRegressor
>>> from river import datasets, evaluate, metrics
>>> evaluate.progressive_val_score(datasets.TrumpApproval(), AutoMLRegressor(), metrics.MAE())
MAE: 0.2...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from river import bandit, base

import onlineauto

if TYPE_CHECKING:
    from river.stats.base import Statistic

__all__ = ["AutoMLClassifier", "AutoMLPolicy", "AutoMLRegressor"]

_PICKLE_CHECKS = {"check_no_state_aliasing_with_input", "check_clone_is_independent"}
"""Checks that compare the pickles of a model byte by byte. NumPy copies the fields of records, but not the
unused bytes between them, so the bytes differ. Tests of onlineauto check the same behaviour."""


class AutoMLRegressor(base.Regressor):
    """`onlineauto.AutoMLRegressor` with river's interface; `model` is the regressor. It needs no scaler.

    Parameters
    ----------
    live_configs, loss, link, seed
        See `onlineauto.AutoMLRegressor`.
    options
        Options as on the command line.
    """

    def __init__(
        self,
        live_configs: int | None = 4,
        loss: str = "squared",
        link: str | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.live_configs, self.loss, self.link, self.seed = live_configs, loss, link, seed
        self.options = options
        arguments: dict[str, Any] = {"live_configs": live_configs, "loss": loss, "link": link, "seed": seed}
        self.model = onlineauto.AutoMLRegressor(**arguments, **options)

    def _unit_test_skips(self) -> set[str]:
        return _PICKLE_CHECKS

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn an event."""
        self.model.learn(x, y)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the expected label."""
        return self.model.predict(x)


class AutoMLClassifier(base.Classifier):
    """`onlineauto.AutoMLClassifier` with river's interface; `model` is the classifier. It needs no scaler.

    Parameters
    ----------
    live_configs, seed
        See `onlineauto.AutoMLClassifier`.
    options
        Options as on the command line.
    """

    def __init__(self, live_configs: int | None = 4, seed: int = 0, **options: Any) -> None:
        self.live_configs, self.seed, self.options = live_configs, seed, options
        self.model = onlineauto.AutoMLClassifier(live_configs=live_configs, seed=seed, **options)

    def _unit_test_skips(self) -> set[str]:
        return _PICKLE_CHECKS

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn an event."""
        self.model.learn(x, y)

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each label that the model has seen."""
        return self.model.predict_proba(x)


class AutoMLPolicy(bandit.base.ContextualPolicy):
    """`onlineauto.AutoML` with river's interface for policies; `model` is the bandit.

    An arm that this policy did not pull, as in a burn-in or a log, is learnt with a uniform probability over
    the arms so far.

    Parameters
    ----------
    live_configs, epsilon, seed
        See `onlineauto.AutoML`.
    reward_obj, reward_scaler, burn_in
        As for river's policies. The model learns the unscaled reward.
    """

    def __init__(
        self,
        live_configs: int | None = 4,
        epsilon: float = 0.05,
        reward_obj: Statistic | None = None,
        reward_scaler: Any = None,
        burn_in: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(reward_obj, reward_scaler, burn_in)
        self.live_configs, self.epsilon, self.seed = live_configs, epsilon, seed
        self.model = onlineauto.AutoML(live_configs=live_configs, epsilon=epsilon, seed=seed)
        self._choice: Any = None

    def _pull(self, arm_ids: list[Any], context: dict[Any, Any] | None = None) -> Any:
        self._choice = self.model.rank(context or {}, {arm: {"arm": str(arm)} for arm in arm_ids})
        return self._choice.action_id

    def update(self, arm_id: Any, context: dict[Any, Any] | None, *reward: Any, **named: Any) -> None:
        """Learn the reward of an arm."""
        super().update(arm_id, context, *reward, **named)  # type: ignore[no-untyped-call]
        choice, self._choice = self._choice, None
        if choice is not None and choice.action_id == arm_id:
            self.model.learn(choice, reward=float(reward[0]))
            return
        arms = {arm: {"arm": str(arm)} for arm in dict.fromkeys([*self._counts, arm_id])}
        self.model.learn(context or {}, arms, action=arm_id, probability=1 / len(arms), reward=reward[0])

    def __repr__(self) -> str:
        """Return river's table of the arms, or the name of the class while there is no arm."""
        return str(bandit.base.Policy.__repr__(self)) if self._n else "AutoMLPolicy()"  # type: ignore[no-untyped-call]
