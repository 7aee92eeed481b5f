"""`AutoML.predict` takes the contexts of many events in a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from onlineauto import AutoML, InputError

ROLES: dict[str, Any] = {"actions": "shown", "probability": "p", "reward": "click"}
CHOICES: list[dict[str, Any]] = [{"shown": "a"}, {"shown": "b"}]


def logged(n: int = 400) -> pandas.DataFrame:
    user, shown = np.array(["tom", "ann"])[np.arange(n) // 2 % 2], np.array(["a", "b"])[np.arange(n) % 2]
    columns = {"user": user, "age": np.arange(n) % 7, "shown": shown, "p": np.full(n, 0.5)}
    return pandas.DataFrame(columns | {"click": ((user == "tom") == (shown == "a")).astype(float)})


@pytest.mark.parametrize("convert", [lambda frame: frame, polars.DataFrame, pyarrow.Table.from_pandas])
def test_a_bandit_predicts_a_frame_like_its_rows(convert: Any) -> None:
    log = logged()
    log["when"] = pandas.Timestamp("2026-01-01")  # which cannot be a feature
    bandit = AutoML().fit_table(convert(log), context=["user", "age"], **ROLES)
    rows = log[["user", "age"]].to_dict("records")
    expected = bandit.predict(rows, [CHOICES] * len(rows))
    assert expected[0][0] > 0.9
    assert expected[2][0] < 0.1
    assert np.array_equal(bandit.predict(convert(log), CHOICES), expected)
    assert np.array_equal(bandit.predict(convert(log[["user", "age"]]), [CHOICES] * len(rows)), expected)
    assert bandit.predict(convert(log[:0]), CHOICES).shape == (0, 2)


def test_structs_of_a_frame_are_namespaces_of_their_fields() -> None:
    bandit = AutoML()
    contexts = [{"at": {"place": {"city": city}}} for city in ("Ulm", "Bonn")]
    for i in range(400):
        where, action = i % 2, i // 2 % 2
        bandit.learn(contexts[where], CHOICES, action=action, probability=0.5, reward=float(where == action))
    pmfs = bandit.predict(polars.DataFrame(contexts), CHOICES)
    assert np.array_equal(pmfs, bandit.predict(contexts, CHOICES))
    assert pmfs[0][0] > 0.9
    assert pmfs[1][0] < 0.1


def test_a_bandit_without_a_context_predicts_each_row_of_a_frame() -> None:
    bandit = AutoML().fit_table(logged()[["shown", "p", "click"]], **ROLES)
    assert np.array_equal(bandit.predict(logged(3), CHOICES), [bandit.predict({}, CHOICES)] * 3)
    bandit.learn({}, [{"shown": "a", "price": 1}, {"shown": "b"}], action=0, probability=0.5, reward=1.0)
    assert np.array_equal(bandit.predict(logged(1), CHOICES), [bandit.predict({}, CHOICES)])


def test_a_frame_without_learnt_columns_is_reported() -> None:
    log = logged()
    bandit = AutoML().fit_table(log, **ROLES)
    with pytest.warns(UserWarning, match="the frame lacks columns that were learnt: age$"):
        found = bandit.predict(log[["user", "shown"]], CHOICES)
    with pytest.warns(UserWarning, match="the names of the context: age is missing$"):
        assert np.array_equal(found[0], bandit.predict({"user": "tom"}, CHOICES))
    message = "no column that was learnt as the context: age, user; there are shown, p"
    with pytest.raises(InputError, match=message):
        bandit.predict(log[["shown", "p"]], CHOICES)


def test_one_list_of_actions_gives_a_matrix() -> None:
    bandit, log = AutoML().fit_table(logged(), **ROLES), logged()
    for actions in (CHOICES, {"first": CHOICES[0], "second": CHOICES[1]}):
        pmfs = bandit.predict(log, actions)
        assert pmfs.shape == (400, 2)
        assert pmfs.dtype == np.float32
        assert pmfs.mean(axis=0).sum() == pytest.approx(1)
    each = bandit.predict(log[:2], [CHOICES, CHOICES[:1]])
    assert [pmf.shape for pmf in each] == [(2,), (1,)]
    assert isinstance(bandit.predict(log[:2], [CHOICES, CHOICES]), list)


def test_effects_of_a_frame_are_those_of_its_context() -> None:
    log = logged()
    bandit = AutoML().fit_table(log, context=["user", "age"], **ROLES)
    expected = bandit.effects(log[["user", "age"]], CHOICES)
    found = bandit.effects(log.assign(when=pandas.Timestamp("2026-01-01")), CHOICES)
    assert {*found["features"]} == {"user", "age", "actions.shown"}
    assert str(found) == str(expected)


def test_a_row_is_an_event_of_its_learnt_columns() -> None:
    log = logged().assign(when=pandas.Timestamp("2026-01-01"))
    bandit = AutoML().fit_table(log, context=["user", "age"], **ROLES)
    context = {"user": "ann", "age": 2}
    assert log.iloc[2][["user", "age"]].to_dict() == context
    expected, explained = bandit.predict(context, CHOICES), bandit.explain(context, CHOICES)
    assert np.array_equal(bandit.predict(log.iloc[2], CHOICES), expected)
    assert np.array_equal(bandit.predict(log.iloc[2:3], CHOICES), [expected])
    assert bandit.explain(log.iloc[2], CHOICES) == bandit.explain(log.iloc[2:3], CHOICES) == explained
    for rows in (log, polars.DataFrame(context)):
        with pytest.raises(
            InputError, match=r"such as \{'user': 'tom'\}, not a DataFrame; of a frame: frame"
        ):
            bandit.rank(rows, CHOICES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"not a DataFrame; of a frame: frame\[columns\].iloc\[0\].to_dict"):
        bandit.explain(log, CHOICES)


def test_a_frame_with_misnamed_actions_keeps_the_logged_action_out_of_the_context() -> None:
    bandit, misnamed = AutoML().fit_table(logged(), **ROLES), [{"id": "a"}, {"id": "b"}]
    with pytest.warns(UserWarning, match="the names of actions: shown is missing; id was not learnt"):
        found = bandit.predict(logged()[:8], misnamed)
    assert np.array_equal(found, bandit.predict(logged()[:8][["user", "age"]], misnamed))


def test_a_context_keeps_a_column_that_actions_also_have() -> None:
    bandit, actions = AutoML(seed=1), [{"lang": "de"}, {"lang": "en"}]
    for i in range(400):
        user = {"lang": "de" if i % 2 else "en", "hour": i % 24}
        bandit.learn(user, actions, action=i // 2 % 2, probability=0.5, reward=float(i % 2 != i // 2 % 2))
    rows = [{"lang": "de", "hour": 3}, {"lang": "en", "hour": 3}]
    assert np.array_equal(bandit.predict(pandas.DataFrame(rows), actions), bandit.predict(rows, actions))


def test_actions_by_id_for_each_event_are_not_taken_for_actions_of_all() -> None:
    each = [{"a": {"article": "x"}, "b": {"article": "y"}}] * 2
    with pytest.raises(InputError, match="give a list of lists, or one mapping of ids for all events"):
        AutoML().predict([{"user": "tom"}, {"user": "ann"}], each)
