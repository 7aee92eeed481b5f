"""river's own checks, its pipelines and evaluations, and its bandits."""

import copy
import pickle
from typing import Any

import pytest

pytest.importorskip("river")

from river import compose, datasets, evaluate, metrics, preprocessing

from onlineauto.errors import InputError
from onlineauto.river import AutoMLClassifier, AutoMLPolicy, AutoMLRegressor

pytestmark = pytest.mark.lane("ci")

MODELS = (AutoMLRegressor, AutoMLClassifier)


@pytest.mark.filterwarnings("ignore:the names of features")  # the checks remove some
@pytest.mark.parametrize("make", MODELS)
def test_checks(make: Any) -> None:
    pytest.importorskip("sklearn")  # for the data
    from river.checks import check_estimator

    check_estimator(make())


def test_checks_of_a_policy() -> None:
    """All that can be asked of one: river's policies have no tags, so it does not check them itself."""
    pytest.importorskip("sklearn")
    from river.checks import yield_checks

    for check in yield_checks(AutoMLPolicy()):  # type: ignore[arg-type]
        if check.__name__ != "check_tags":
            check(AutoMLPolicy())


@pytest.mark.parametrize("make", MODELS)
def test_copies_learn_on_their_own(make: Any) -> None:
    """This replaces the two checks that are left out."""
    model = make()
    for number in range(20):
        model.learn_one({"a": number % 3, "b": str(number % 2)}, number % 2)
    clone, copied = model.clone(), copy.deepcopy(model)
    read = pickle.loads(pickle.dumps(model))  # noqa: S301
    asked = {"a": 1, "b": "0"}
    before, fresh = copied.predict_one(asked), clone.predict_one(asked)
    features = {"a": 1, "b": "0"}
    for _ in range(20):
        model.learn_one(features, 1)
    features["b"] = "changed afterwards"
    assert copied.predict_one(asked) == before == read.predict_one(asked)
    assert clone.predict_one(asked) == fresh
    read.learn_one(asked, 1)
    copied.learn_one(asked, 1)
    assert read.predict_one(asked) == copied.predict_one(asked)


def test_progressive_validation() -> None:
    mae = evaluate.progressive_val_score(datasets.TrumpApproval(), AutoMLRegressor(), metrics.MAE())
    assert mae.get() < 0.4
    right = evaluate.progressive_val_score(datasets.Phishing(), AutoMLClassifier(), metrics.Accuracy())
    assert right.get() > 0.9


def test_in_a_pipeline() -> None:
    words = compose.Select("anchor_from_other_domain", "https") | preprocessing.StandardScaler()
    model = words | AutoMLClassifier(live_configs=2)
    right = evaluate.progressive_val_score(datasets.Phishing().take(300), model, metrics.Accuracy())
    assert right.get() > 0.7


def test_options_are_kept_by_clones() -> None:
    clone = AutoMLRegressor(live_configs=None, loss="quantile", quantile_tau=0.9).clone()
    options = clone.model.workspace.configuration
    assert (options.get("quantile_tau"), options.get("automl")) == (0.9, None)


def test_policy_finds_the_arms() -> None:
    policy, rewards = AutoMLPolicy(seed=1, burn_in=2), 0
    arms: list[int | str] = ["politics", "sports"]
    for number in range(400):
        context = {"user": ("tom", "ann")[number % 2]}
        arm = policy.pull(arms, context)
        reward = arm == arms[number % 2]
        policy.update(arm, context, reward)
        rewards += reward
    assert rewards > 340
    assert policy.model.events == 400


def test_a_policy_learns_the_choices_of_others() -> None:
    policy = AutoMLPolicy()
    for number in range(50):
        policy.update(number % 2, None, number % 2)
    assert policy.pull([0, 1]) == 1
    assert policy.ranking == [1, 0]


def test_a_missing_label_is_named_in_the_words_of_river() -> None:
    for model in (AutoMLRegressor(), AutoMLClassifier()):
        with pytest.raises(InputError, match=r"^the label is missing: None; (?!.*fit)"):
            model.learn_one({"a": 1}, None)  # type: ignore[arg-type]
