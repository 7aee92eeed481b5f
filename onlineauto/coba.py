"""Learners for coba: `AutoMLLearner`, and `ExactMediator`, a replacement of Vowpal Wabbit.

They need coba, ``pip install '.[coba]'`` in a checkout.

>>> import coba
>>> from onlineauto.coba import AutoMLLearner
>>> environments = coba.Environments.from_linear_synthetic(100, n_actions=3, seed=1)
>>> result = coba.Experiment(environments, [AutoMLLearner()]).run(quiet=True)
>>> len(result.interactions)
100
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coba.learners import VowpalMediator
from coba.learners.utilities import PMFInfoPredictor
from coba.primitives import Dense, Learner, Sparse

import onlineauto
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.interop.dicts import from_dicts
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AutoMLLearner", "ExactMediator"]


class AutoMLLearner(Learner):  # type: ignore[misc]  # coba has no types
    """`onlineauto.AutoML` with coba's interface; `model` is the bandit.

    Parameters
    ----------
    live_configs : int or None
        Number of configs that learn at the same time. None turns the search off.
    epsilon : float
        Share of decisions that explore.
    seed : int
        Seed with which coba draws actions.
    **options
        Options as on the command line.
    """

    def __init__(
        self, *, live_configs: int | None = 4, epsilon: float = 0.05, seed: int = 1, **options: Any
    ) -> None:
        self._given = {"live_configs": live_configs, "epsilon": epsilon, **options}
        self._draw = PMFInfoPredictor(self._pmf, seed)
        self.model = onlineauto.AutoML(**self._given)

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters in coba's table of learners."""
        return {"family": "onlineauto", **self._given, "seed": self._draw.seed}

    def _pmf(self, context: Any, actions: Sequence[Any]) -> tuple[list[float], dict[str, Any]]:
        pmf = self.model.predict(_features("x", context), [_features("a", action) for action in actions])
        return pmf.tolist(), {"actions": actions}

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """Return the probability of an action."""
        return float(self._draw.score(context, actions, action))

    def predict(self, context: Any, actions: Sequence[Any]) -> Any:
        """Return an action, its probability, and the arguments for `learn`."""
        return self._draw.predict(context, actions)

    def learn(
        self, context: Any, action: Any, reward: float, probability: float, actions: Any = None
    ) -> None:
        """Learn the reward of an action."""
        actions = [action] if actions is None else list(actions)
        listed = [_features("a", features) for features in actions]
        logged: dict[str, Any] = {"action": actions.index(action), "probability": probability}
        self.model.learn(_features("x", context), listed, reward=reward, **logged)


def _features(namespace: str, value: Any) -> dict[str, Any]:
    """Return the features of a context or action of coba: None, a value, a sequence, or values by name."""
    if isinstance(value, Sparse):
        return {namespace: {str(name): feature for name, feature in value.items()}}
    if isinstance(value, Dense) and not isinstance(value, str):
        return {namespace: {str(number): feature for number, feature in enumerate(value)}}
    return {} if value is None else {namespace: value}


class ExactMediator(VowpalMediator):  # type: ignore[misc]
    """Makes coba's `VowpalLearner` learn with ``--vw_exact`` instead of Vowpal Wabbit, with the same numbers.

    ``VowpalLearner(args, vw=ExactMediator())``, and likewise for coba's other learners named Vowpal….
    Examples are mappings for `from_dicts`.
    """

    def __init__(self) -> None:
        self._vw: Any = None
        self._args = ""
        self._ns_keys: dict[str, Any] = {}
        self._ns_keys_cnt = 0
        self._version = [9, 11, 9]
        self._names = NameHashes()

    def init_learner(self, args: str, label_type: int) -> ExactMediator:
        """Create a workspace from VW's arguments."""
        assert label_type == 4, "a contextual bandit"
        self._args = args
        self._vw = Workspace(configuration=REGISTRY.parse(f"{args} --vw_exact"))
        return self

    def predict(self, example: Any) -> Any:
        """Return the probability or cost of each action, or the chosen action, like VW."""
        [block] = from_dicts([example], names=self._names)
        outcomes = self._vw.predict_block(block)
        if self._vw.kind == "cb":
            return int(outcomes.prediction[0])
        return outcomes.by_action().tolist()

    def learn(self, example: Any) -> None:
        """Learn an example that has a label."""
        [block] = from_dicts([example], names=self._names)
        self._vw.learn_block(block)

    def make_example(self, namespaces: Any, label: str | None = None) -> dict[str, Any]:
        """Return the example of a context, for ``--cb`` and ``--cb_explore``."""
        example: dict[str, Any] = {"context": dict(self._prep_namespaces(namespaces))}
        if label is not None:
            action, cost, probability = label.split(":")
            example |= {"action": int(action), "cost": float(cost), "probability": float(probability)}
        return example

    def make_examples(self, shared: Any, uniques: Any, labels: Any = None) -> dict[str, Any]:
        """Return the example of a context and of actions, each of which has the features of both."""
        context = dict(self._prep_namespaces(shared))
        example: dict[str, Any] = {
            "actions": [context | dict(self._prep_namespaces(unique)) for unique in uniques]
        }
        for number, label in enumerate(labels or ()):
            if label is not None:
                _, cost, probability = label.split(":")
                example |= {"chosen": number, "cost": float(cost), "probability": float(probability)}
        return example
