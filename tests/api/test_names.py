"""Each concept has one name in the API; the flags that users of earlier commits passed are aliases."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import onlineauto
from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError, OptionError, Workspace
from onlineauto.api import base
from onlineauto.explorers import EXPLORERS, Bag, Cover, First, Greedy, Regcb, Rnd, Softmax, Squarecb
from onlineauto.explorers.explorer import Explorer

ARTICLES = [{"article": "politics"}, {"article": "sports"}]
MODELS = [AutoML, AutoMLRegressor, AutoMLClassifier]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("name", "flag", "value"),
    [("seed", "random_seed", 7), ("live_configs", "automl", 2), ("hash_bits", "bit_precision", 9)],
)
def test_a_flag_is_an_alias_of_the_parameter(model: Any, name: str, flag: str, value: int) -> None:
    by_name, by_flag = (model(**{each: value}).workspace.configuration for each in (name, flag))
    assert by_name == by_flag
    assert by_name.get(flag) == value
    made: list[Any] = [{each: value} for each in (name, flag)]
    assert Workspace(**made[0]).configuration == Workspace(**made[1]).configuration
    with pytest.raises(OptionError, match=f"^{name} and {flag} are the same option: leave {flag} out"):
        model(**{name: value, flag: value + 1})


def test_a_loss_by_its_flag_standardises_labels_like_the_parameter() -> None:
    events = [({"x": i % 7}, 1e4 + i % 7) for i in range(200)]
    by_name, by_flag = AutoMLRegressor(loss="quantile"), AutoMLRegressor(loss_function="quantile")
    assert by_name.fit(events).predict({"x": 3}) == by_flag.fit(events).predict({"x": 3})
    assert by_name.average_loss == by_flag.average_loss
    with pytest.raises(OptionError, match="loss and loss_function are the same option"):
        AutoMLRegressor(loss="quantile", loss_function="hinge")


def test_a_classifier_rejects_another_loss() -> None:
    assert AutoMLClassifier(loss="logistic").events == 0
    for given in ({"loss": "hinge"}, {"loss_function": "squared"}, {"link": "identity"}):
        with pytest.raises(
            OptionError, match=f"^{next(iter(given))} cannot be '.*': a classifier learns the logistic"
        ):
            AutoMLClassifier(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("data", "a.txt", "fit takes the source"),
        ("help", True, "the documentation lists the options"),
        ("version", True, "onlineauto.__version__ has it"),
        ("workers", 2, "leave it out"),
        ("predictions", "a.txt", "stream yields the outcomes"),
        ("final_regressor", "a.oam", "save takes the file"),
    ],
)
def test_options_of_the_command_line_are_rejected_by_name(
    model: Any, name: str, value: Any, where: str
) -> None:
    with pytest.raises(OptionError, match=f"^{name} is for the command line; .*{where}"):
        model(**{name: value})


# -- explorers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("explorer", "options"),
    [
        ("squarecb", {"squarecb": True}),
        (Squarecb(gamma_scale=50.0), {"squarecb": True, "gamma_scale": 50.0}),
        (Bag(5, greedify=True), {"bag": 5, "greedify": True}),
        (Cover(3, psi=0.5), {"cover": 3, "psi": 0.5}),
        (Rnd(2), {"rnd": 2}),
        (First(0), {"first": 0}),
        (Regcb(regcbopt=True), {"regcbopt": True}),
        (Softmax(lambda_=2.0), {"softmax": True, "lambda_": 2.0}),
        (Greedy(epsilon=0.3), {"epsilon": 0.3}),
        ("greedy", {"epsilon": 0.05}),
        ("scaled_squarecb", {"scaled_squarecb": True}),
        (None, {}),
    ],
    ids=str,
)
def test_an_explorer_by_name_or_with_its_settings(explorer: Any, options: dict[str, Any]) -> None:
    assert AutoML(explorer=explorer).workspace.configuration == AutoML(**options).workspace.configuration


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_registered_explorer_can_be_chosen(name: str) -> None:
    takes_number = name in ("bag", "cover", "rnd", "first")
    if takes_number:
        with pytest.raises(
            OptionError, match=rf"^the explorer {name} takes a number: explorer={name.title()}\(5\)"
        ):
            AutoML(explorer=name)
    bandit = AutoML(explorer=type(EXPLORERS[name])(2) if takes_number else name)
    assert {"greedy": "epsilon"}.get(name, name) in bandit.workspace.configuration.supplied


def test_other_explorers_are_rejected() -> None:
    class Mine(Explorer):
        name, flags = "mine", ()

        @staticmethod
        def kernel() -> Any:
            raise NotImplementedError

    with pytest.raises(OptionError, match="'mine' is not registered"):
        AutoML(explorer=Mine())
    for odd in ("mine", Bag, 5, ["squarecb"]):
        with pytest.raises(
            OptionError, match=r"explorer cannot be .*; it takes one of greedy, .*such as Bag\(5\)"
        ):
            AutoML(explorer=odd)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="bag is given as 4 and, by explorer, as 5"):
        AutoML(explorer=Bag(5), bag=4)
    with pytest.raises(OptionError, match="Greedy takes settings by name, and not 3"):
        Greedy(3)
    assert repr(Bag(5, greedify=True)) == "Bag(bag=5, greedify=True)"
    with pytest.raises(OptionError, match="exclude each other"):
        AutoML(explorer="squarecb", bag=4)


# -- one event or many -------------------------------------------------------------------------------------


def test_a_bandit_predicts_many_events_like_each() -> None:
    bandit = AutoML()
    for i in range(60):
        bandit.learn({"user": "ab"[i % 2]}, ARTICLES, action=i % 2, probability=0.5, reward=i % 2)
    contexts: list[dict[str, Any]] = [{"user": "a"}, {"user": "b"}, {}]
    those: list[Any] = [ARTICLES, {"x": ARTICLES[1], "y": ARTICLES[0]}, ARTICLES[:1]]
    many = bandit.predict(contexts, those)
    each = [bandit.predict(*event) for event in zip(contexts, those, strict=True)]
    assert [pmf.tolist() for pmf in many] == [pmf.tolist() for pmf in each]
    assert bandit.predict([], []) == []
    with pytest.raises(InputError, match="there are 2 contexts, and 1 lists of actions: give one for each"):
        bandit.predict(contexts[:2], [ARTICLES])
    with pytest.raises(InputError, match="event 1: the context is a mapping"):
        bandit.predict([{}, 3], [ARTICLES, ARTICLES])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"^event 1: x: value .*object"):
        bandit.predict([{}, {"x": object()}], [ARTICLES, ARTICLES])


@pytest.mark.parametrize("actions", [ARTICLES, tuple(ARTICLES), {"a": ARTICLES[0], "b": ARTICLES[1]}])
def test_one_list_of_actions_is_that_of_all_contexts(actions: Any) -> None:
    bandit = AutoML()
    for i in range(60):
        bandit.learn({"user": "ab"[i % 2]}, ARTICLES, action=i % 2, probability=0.5, reward=i % 2)
    contexts = [{"user": "a"}, {"user": "b"}, {}]
    expected = bandit.predict(contexts, [ARTICLES] * 3)
    assert np.array_equal(bandit.predict(contexts, actions), expected)
    assert bandit.predict([], actions).shape == (0, 2)
    with pytest.raises(InputError, match="event 0: action 0: features are a mapping of namespaces, not str"):
        bandit.predict(contexts, ["politics", "sports"])  # type: ignore[list-item]


@pytest.mark.filterwarnings("ignore:the names of features")
def test_a_regressor_predicts_many_events_like_each() -> None:
    model = AutoMLRegressor().fit([({"x": i % 5, "y": "uv"[i % 2]}, float(i % 5)) for i in range(200)])
    rows: list[dict[str, Any]] = [{"x": 1, "y": "u"}, {"x": 4}, {}]
    assert model.predict(rows) == pytest.approx([model.predict(row) for row in rows])
    assert model.predict(rows).tolist() == model.predict_each(rows).tolist()
    assert isinstance(model.predict({"x": 1}), float)
    assert model.predict([]).shape == model.predict_each([]).shape == (0,)
    assert model.predict(np.ones((2, 3))).shape == (2,)
    with pytest.raises(InputError, match="features are a mapping of name to value, not int"):
        model.predict([1])  # type: ignore[list-item]


def test_a_classifier_predicts_many_events_like_each() -> None:
    rows = [{"c": "r"}, {"c": "g"}, {"c": "b"}, {}]
    model = AutoMLClassifier()
    assert model.predict(rows) == [None] * 4
    assert model.predict_proba(rows).shape == (4, 0)
    model.fit([({"c": "rgb"[i % 3]}, i % 3) for i in range(300)])
    assert model.predict(rows) == [model.predict(row) for row in rows]
    assert model.predict(rows)[:3] == [0, 1, 2]
    for row, each in zip(model.predict_proba(rows), rows, strict=True):
        assert row == pytest.approx(list(model.predict_proba(each).values()))
    assert model.predict_proba_each(rows).tolist() == model.predict_proba(rows).tolist()


# -- results -----------------------------------------------------------------------------------------------


def test_outcomes_are_exported() -> None:
    [(_, outcomes)] = Workspace().stream(b"1 |a x\n")
    assert isinstance(outcomes, onlineauto.Outcomes)
    assert "Outcomes" in onlineauto.__all__


def test_the_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "HISTORY", 5)
    bandit, heard = AutoML(live_configs=2, default_lease=10), []
    bandit.workspace.observe(lambda entry: heard.append(msgspec.to_builtins(entry)["decision"]))
    bandit.fit(["shared |u a\n0:0:0.5 |z x |v w\n|z y\n"] * 400)
    assert len(heard) > 5
    assert [line["decision"] for line in bandit.history] == heard[-5:]


def test_a_state_is_a_copy() -> None:
    workspace = Workspace(cb_explore_adf=True, live_configs=2).fit(["shared |u a\n0:0:0.5 |z x\n|z y\n"] * 9)
    live, before = arrays_of(workspace.state(copy=False)), arrays_of(workspace.state())
    assert len(live) == len(before) > 5
    assert all(not np.shares_memory(one, other) for one, other in zip(live, before, strict=True))
    for array in before:
        array.fill(0)
    prediction = workspace.predict("shared |u a\n|z x\n|z y\n").tolist()
    again = Workspace(cb_explore_adf=True, live_configs=2)
    again.restore(workspace.state())
    assert again.predict("shared |u a\n|z x\n|z y\n").tolist() == prediction


def arrays_of(tree: Any) -> list[Any]:
    """Return the non-empty arrays of a state."""
    if isinstance(tree, np.ndarray):
        return [tree] * bool(tree.size)
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [array for part in parts for array in arrays_of(part)]


pandas = pytest.importorskip("pandas")


@pytest.mark.parametrize("learn_at", ["reward", "wait"])
def test_decisions_that_wait_get_the_names_of_identities(learn_at: Any) -> None:
    frame = {"user": ["x", "y"] * 20, "arm": [1, 2] * 20, "reward": [1.0, 0.0] * 20, "p": [0.5] * 40}

    def bandit(arm: Any) -> AutoML:
        found = AutoML(seed=1, learn_at=learn_at, max_pending=1)
        waiting = found.rank({"user": "x"}, [{"arm": arm(1)}, {"arm": arm(2)}])
        found.fit_table(pandas.DataFrame(frame), actions="arm", reward="reward", probability="p")
        found.learn(waiting, reward=1)
        found.rank({"user": "x"}, [{"arm": arm(1)}, {"arm": arm(2)}])
        found.rank({"user": "x"}, [{"arm": arm(1)}, {"arm": arm(2)}])
        return found

    assert bandit(int).workspace.weights.tobytes() == bandit(str).workspace.weights.tobytes()
    assert bandit(int).events == 41
