"""AutoML: decisions, their rewards, copies and files."""

from __future__ import annotations

import copy
import io
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, InputError, OptionError, Workspace
from onlineauto.interop import from_dicts
from onlineauto.workspace.save_load import save_model
from tests.api.events import ACTIONS, context, logged, reward, saved, serve

pytestmark = pytest.mark.lane("quick")


def test_a_bandit_learns_which_user_likes_which_action() -> None:
    bandit = AutoML(seed=3)
    serve(bandit, 600)
    for step in range(3):
        assert bandit.predict(context(step), ACTIONS).argmax() == step
    assert bandit.events == 600
    assert bandit.average_reward > 0.6
    assert "article*user" in bandit.champion.interactions


def test_a_choice_has_the_drawn_action_and_its_probability() -> None:
    bandit = AutoML(epsilon=0.3, seed=5)
    serve(bandit, 50)
    choice = bandit.rank(context(1), dict(zip("abc", ACTIONS, strict=True)))
    assert choice.action_id == "abc"[choice.action]
    assert choice.pmf.dtype == np.float32
    assert choice.pmf.shape == (3,)
    assert choice.probability == choice.pmf[choice.action]
    assert bandit.rank(context(1), ACTIONS).action_id in (0, 1, 2)
    with pytest.raises(AttributeError):
        choice.action = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        choice.other = 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("actions", [{"a": {}, "b": {}}, [{"topic": "art", "price": 2}] * 3])
def test_actions_with_equal_features_are_reported_once(actions: Any) -> None:
    bandit = AutoML()
    with pytest.warns(UserWarning, match="ids are no features, give {'article': id}") as caught:
        choice = bandit.rank({"user": "tom"}, actions)
    assert caught[0].filename == __file__
    bandit.learn(choice, reward=1)
    bandit.rank({"user": "tom"}, actions)
    event = {"context": {}, "actions": actions, "action": choice.action_id, "probability": 0.5, "reward": 1}
    with pytest.warns(UserWarning, match="cannot be told apart"):
        AutoML().fit([event] * 5)


def test_actions_of_which_some_differ_are_not_reported() -> None:
    bandit = AutoML()
    for actions in ([{"x": 1}], [{"x": 1}, {"x": 1}, {"x": 2}], [{"x": np.ones(2)}, {"x": np.zeros(2)}]):
        bandit.predict({"user": "tom"}, actions)
    for _ in range(100):
        bandit.predict({"user": "tom"}, ACTIONS)
    bandit.predict({"user": "tom"}, [{}, {}])  # only the first events are compared


def test_a_seed_repeats_all_decisions() -> None:
    runs = [serve(AutoML(seed=seed, epsilon=0.5), 200) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


def test_actions_do_not_depend_on_a_simulation_with_the_same_seed() -> None:
    bandit, draw = AutoML(seed=0, epsilon=1.0), Random(0)
    drawn = [(bandit.rank({}, ACTIONS[:2]).action, draw.random() < 0.5) for _ in range(2000)]
    assert abs(np.corrcoef(np.transpose(drawn))[0, 1]) < 0.1


def test_decisions_are_drawn_as_often_as_their_probabilities_say() -> None:
    bandit = AutoML(seed=2, epsilon=0.4)
    serve(bandit, 100)
    choices = [bandit.rank(context(0), ACTIONS) for _ in range(4000)]
    counts = np.bincount([choice.action for choice in choices], minlength=3) / len(choices)
    assert np.abs(counts - choices[0].pmf).max() < 0.03


def test_rewards_come_in_any_order_and_once() -> None:
    bandit = AutoML()
    choices = [bandit.rank(context(step), ACTIONS) for step in range(5)]
    assert bandit.pending == 5
    assert len({choice.event_id for choice in choices}) == 5
    for choice in reversed(choices[1:]):
        bandit.learn(choice.event_id, cost=-1)
    bandit.learn(choices[0], reward=1)
    assert (bandit.pending, bandit.events) == (0, 5)
    with pytest.raises(InputError, match="was learnt already"):
        bandit.learn(choices[2], reward=1)
    with pytest.raises(InputError, match=r"was not ranked by this model.*learn_at=.wait"):
        bandit.learn("nobody", reward=1)
    assert bandit.events == 5


def test_an_event_id_belongs_to_one_waiting_decision() -> None:
    bandit = AutoML()
    assert bandit.rank(context(0), ACTIONS, event_id="mine").event_id == "mine"
    with pytest.raises(InputError, match="'mine' waits for its reward"):
        bandit.rank(context(0), ACTIONS, event_id="mine")
    bandit.learn("mine", reward=0.5)
    bandit.rank(context(1), ACTIONS, event_id="mine")
    bandit.learn("mine", reward=0.5)
    assert bandit.events == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give either reward or cost"),
        ({"reward": 1, "cost": 1}, "not both"),
        ({"reward": float("nan")}, "reward nan is not a finite number"),
        ({"cost": "much"}, "cost 'much' is not a finite number"),
    ],
)
def test_a_wrong_reward_leaves_the_decision_waiting(given: dict[str, Any], message: str) -> None:
    bandit = AutoML()
    choice = bandit.rank(context(0), ACTIONS)
    with pytest.raises(InputError, match=message):
        bandit.learn(choice, **given)
    bandit.learn(choice, reward=1)
    assert bandit.events == 1


def test_learn_and_fit_of_decisions_made_elsewhere_are_equal() -> None:
    one, other, third = AutoML(), AutoML(), Workspace(cb_explore_adf=True, automl=4)
    for event in logged(300):
        earned = event["reward"]
        one.learn(
            event["context"],
            dict(zip("abc", ACTIONS, strict=True)),
            action="abc"[event["chosen"]],
            probability=event["probability"],
            reward=earned,
        )
        third.fit(from_dicts([{**{k: v for k, v in event.items() if k != "reward"}, "cost": -earned}]))
    other.fit(logged(300))
    assert (one.workspace.weights == other.workspace.weights).all()
    assert (one.workspace.weights == third.weights).all()
    assert one.average_reward == pytest.approx(other.average_reward)
    assert one.champion == other.champion


def test_decisions_made_elsewhere_are_checked() -> None:
    bandit = AutoML()
    with pytest.raises(InputError, match="needs its context, its actions, the action and its"):
        bandit.learn(context(0), ACTIONS, reward=1)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="there are 3, counted from 0"):
        bandit.learn(context(0), ACTIONS, action=3, probability=0.5, reward=1)
    with pytest.raises(InputError, match="no action 'd'; the ids are 'a', 'b'"):
        bandit.learn(context(0), {"a": {}, "b": {"x": 1}}, action="d", probability=0.5, reward=1)
    with pytest.raises(InputError, match=r"probability 1.5 is not above 0 and at most 1"):
        bandit.learn(context(0), ACTIONS, action=0, probability=1.5, reward=1)
    assert bandit.events == 0


def test_malformed_features_are_located() -> None:
    bandit = AutoML()
    with pytest.raises(InputError, match="actions is empty"):
        bandit.rank(context(0), [])
    with pytest.raises(InputError, match="user"):
        bandit.rank({"user": object()}, ACTIONS)
    with pytest.raises(
        InputError, match=r"the context is a mapping such as \{'user': 'tom'\}, not a NoneType$"
    ):
        bandit.rank(None, ACTIONS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="actions are a list or a mapping of features, not str"):
        bandit.rank(context(0), "xyz")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="features are a mapping of namespaces, not int"):
        bandit.rank(context(0), [1, 2])  # type: ignore[list-item]
    assert bandit.pending == 0


def test_a_context_may_change_after_its_decision() -> None:
    one, other = AutoML(), AutoML()
    shared = context(0)
    choice = one.rank(shared, ACTIONS)
    shared["user"] = "changed"
    one.learn(choice, reward=1)
    other.learn(other.rank(context(0), ACTIONS), reward=1)
    assert (one.workspace.weights == other.workspace.weights).all()


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="epsilon"):
        AutoML(epsilon=2)
    with pytest.raises(OptionError, match=r"max_pending cannot be 0; it takes a whole number"):
        AutoML(max_pending=0)
    with pytest.raises(OptionError, match=r"time_to_live cannot be '5'; it takes a number of seconds"):
        AutoML(time_to_live="5")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="default_reward: reward nan is not a finite number"):
        AutoML(default_reward=float("nan"))
    with pytest.raises(OptionError, match="did you mean"):
        AutoML(power=0.5)  # type: ignore[call-arg]


@pytest.mark.parametrize("explorer", ["softmax", "squarecb", "regcb", "synthcover"])
def test_explorers_are_named(explorer: Any) -> None:
    bandit = AutoML(explorer=explorer, live_configs=2)
    serve(bandit, 20)
    assert explorer in bandit.workspace.configuration.supplied


def test_a_bandit_without_a_search_learns() -> None:
    bandit = AutoML(live_configs=None, quadratic="ua", learning_rate=0.3)
    serve(bandit, 300)
    assert bandit.champion.interactions == ("ua",)
    assert bandit.champion.learning_rate == pytest.approx(0.3)
    assert bandit.history == []
    assert "crosses" in bandit.report()


def test_copies_continue_independently() -> None:
    bandit = AutoML(seed=6, epsilon=0.5)
    serve(bandit, 100)
    waiting = bandit.rank(context(0), ACTIONS)
    copies = [copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))]  # noqa: S301 - our own bytes
    bandit.learn(waiting, reward=1)
    actions = serve(bandit, 200, begin=100)
    for each in copies:
        each.learn(waiting.event_id, reward=1)
        assert serve(each, 200, begin=100) == actions
        assert (each.workspace.weights == bandit.workspace.weights).all()
        assert each.history == bandit.history
        assert each.rank(context(0), ACTIONS).event_id[:12] != waiting.event_id[:12]


def test_a_loaded_model_continues_like_the_saved_one() -> None:
    bandit = AutoML(seed=6, epsilon=0.5, time_to_live=5, default_reward=-1, max_pending=7)
    serve(bandit, 100)
    waiting = bandit.rank(context(0), ACTIONS)
    loaded = AutoML.load(saved(bandit))
    assert loaded.pending == 0
    with pytest.raises(InputError, match="since it was made or loaded"):
        loaded.learn(waiting, reward=1)
    assert serve(loaded, 200) == serve(bandit, 200)
    assert loaded.history == bandit.history
    bandit.learn(waiting, reward=1)
    assert (loaded.events, bandit.events) == (300, 301)


def test_a_model_of_another_class_is_refused() -> None:
    with pytest.raises(InputError, match=r"was not saved by AutoML: Workspace.load reads it"):
        AutoML.load(saved(Workspace(cb_explore_adf=True)))


def test_repr_and_html_summarise_the_bandit() -> None:
    bandit = AutoML()
    assert repr(bandit) == "AutoML(nothing learnt yet)"
    serve(bandit, 300)
    assert repr(bandit).startswith("AutoML(events: 300, average reward: 0.")
    assert "article*user" in bandit.report()
    html = bandit._repr_html_()
    assert html.startswith("<table")
    assert "article*user" in html
    assert reward(0, 0) == 1.0


def test_html_has_no_markup_of_names() -> None:
    bandit = AutoML()
    for step in range(50):
        choice = bandit.rank({"<b>user": "tom" if step % 2 else "ann"}, ACTIONS)
        bandit.learn(choice, reward=1)
    assert "<b>" not in bandit._repr_html_()
    assert "&lt;b&gt;user" in bandit._repr_html_()


def test_a_forged_class_in_a_model_is_an_error_of_one_line() -> None:
    file = io.BytesIO()
    save_model(Workspace(cb_explore_adf=True).state(copy=False), file, run={"api": {"class": "A\ntoML"}})
    with pytest.raises(
        InputError, match=r"^the model was not saved by AutoML, and names no class that reads it$"
    ):
        AutoML.load(file.getvalue())


def _searched() -> AutoML:
    bandit = AutoML(default_lease=100, begin_with=["user*price"], seed=2)
    serve(bandit, 1500)
    return bandit


def test_a_report_has_champion_evidence_and_reward() -> None:
    bandit = _searched()
    bandit.rank(context(0), ACTIONS)
    report = bandit.report()
    champion = bandit.champion
    assert champion.changes > 0
    for text in (
        "events               1,500\n",
        f"average reward       {bandit.average_reward:.4g}\n",
        f"champion's reward    {champion.reward[0]:.4g} to {champion.reward[1]:.4g} (95% sure) over its ",
        f"champions before     {champion.changes}\n",
        "predicted by         the ",
        "waiting for rewards  1\n",
        "challenger 1: ",
        "evidence ",
        f"champion changes = {champion.changes}\n",
    ):
        assert text in report
    assert champion.reward[0] <= bandit.average_reward + 0.2


def test_history_has_the_lines_of_a_journal() -> None:
    bandit = _searched()
    decisions = [each["decision"] for each in bandit.history]
    assert decisions[:2] == ["widen", "rotate"]
    assert decisions.count("swap") == bandit.champion.changes
    swap = next(each for each in bandit.history if each["decision"] == "swap")
    assert {"events", "slot", "kind", "elements", "bounds", "by"} <= swap.keys()
    events = [each["events"] for each in bandit.history]
    assert events == sorted(events)
