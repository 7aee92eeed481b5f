"""coba: an experiment with our learner, and with Vowpal Wabbit's and exact mode's."""

from typing import Any

import pytest

pytestmark = pytest.mark.lane("sampled")

coba: Any = pytest.importorskip("coba")

from coba.learners import VowpalLearner  # noqa: E402

from onlineauto.coba import AutoMLLearner, ExactMediator  # noqa: E402

ADF = "--cb_explore_adf --epsilon 0.05 --interactions ax --ignore_linear x --random_seed 1 --quiet"
COMMANDS = (ADF, "--cb_explore 3 --bag 4 --random_seed 2 --quiet", "--cb_adf --interactions ax --quiet")


def rewards_of(environments: Any, learners: list[Any]) -> list[list[float]]:
    """Return the rewards of each learner."""
    result = coba.Experiment(environments, learners).run(quiet=True)
    columns = list(
        zip(*((each["learner_id"], each["reward"]) for each in result.interactions.to_dicts()), strict=True)
    )
    return [
        [reward for number, reward in zip(*columns, strict=True) if number == learner]
        for learner in range(len(learners))
    ]


def test_learns() -> None:
    environments = coba.Environments.from_linear_synthetic(600, n_actions=4, seed=1)
    [ours, random] = rewards_of(environments, [AutoMLLearner(), coba.RandomLearner()])
    assert sum(ours[300:]) > 1.1 * sum(random[300:])


def test_contexts_of_all_kinds() -> None:
    learner = AutoMLLearner(live_configs=None, seed=3)
    for context in (None, 2, "tom", (1.5, "x"), {"a": 1, "b": "y"}):
        for actions in ([1, 2], ["x", "y"], [(1, 0), (0, 1)], [{"a": 1}, {"b": 2}]):
            action, probability, known = learner.predict(context, actions)
            assert learner.score(context, actions, action) == probability
            learner.learn(context, action, 0.5, probability, **known)
    assert learner.model.events == 20
    assert learner.params["family"] == "onlineauto"


@pytest.mark.parametrize("command", COMMANDS)
def test_exact_mode_has_the_rewards_of_vowpal_wabbit(command: str) -> None:
    pytest.importorskip("vowpalwabbit")
    environments = coba.Environments.from_linear_synthetic(300, n_actions=3, seed=1)
    if "adf" not in command:  # then actions are numbers and have no features
        environments = coba.Environments.from_linear_synthetic(300, n_actions=3, n_action_features=0, seed=1)
    vowpal, exact = rewards_of(
        environments, [VowpalLearner(command), VowpalLearner(command, vw=ExactMediator())]
    )
    assert len(vowpal) == 300
    assert vowpal == exact
