"""Events with a number far beyond all others, and labels of actions that a model does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from onlineauto import AutoML, AutoMLRegressor, Workspace
from onlineauto.formats.lines.diagnostics import Code, Diagnostics
from onlineauto.interop import from_dicts
from tests.api.events import ACTIONS, context, serve

if TYPE_CHECKING:
    from pathlib import Path


def labels(odd: str, *, at: int = 50, n: int = 100) -> list[str]:
    return [f"{odd if i == at else i % 3} |a x" for i in range(n)]


@pytest.mark.parametrize("odd", ["1e30", "-3e6"])
def test_a_label_that_is_far_out_is_located(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "far.txt"
    path.write_text("\n".join(labels(odd)))
    with pytest.warns(
        UserWarning, match=rf"1 problem .*\n.*{path}:51:1: label or cost '{float(odd):g}'".replace("+", r"\+")
    ):
        Workspace().fit(path)
    with pytest.warns(UserWarning, match="<events>:51:1"):
        Workspace().fit(labels(odd))


@pytest.mark.parametrize(
    "texts", [labels("1000"), labels("1e30", at=99, n=99), ["0 |a", "1 |a"], ["1e9 |a", "1 |a"]]
)
def test_other_labels_are_not(texts: list[str]) -> None:
    found = Diagnostics()
    list(Workspace().stream(texts, diagnostics=found))
    assert found.total == 0


def test_parts_of_records_are_looked_at_once() -> None:
    [whole] = from_dicts({"context": {"a": 1}, "label": 1e30 if i == 50 else i % 3} for i in range(100))
    parts = [whole.head(40), whole.tail(40).head(20), whole.tail(60)]
    found = Diagnostics()
    list(Workspace().stream(parts, diagnostics=found))
    assert [str(each) for each in found.kept] == [
        "<blocks>:51:1: label or cost '1e+30' is thousands of times beyond those before; event not learnt"
    ]
    found = Diagnostics()
    list(Workspace(examples=50).stream(labels("1e30"), diagnostics=found))
    assert found.total == 0


def test_exact_mode_says_what_vw_says() -> None:
    found = Diagnostics()
    list(Workspace(vw_exact=True).stream(labels("1e30"), diagnostics=found))
    assert found.total == 0


def test_costs_in_every_form() -> None:
    costs = [-1e30 if i == 50 else -1.0 for i in range(100)]
    texts = [f"shared |u a\n|a x\n0:{cost}:0.5 |a y\n" for cost in costs]
    with pytest.warns(UserWarning, match=r"<events>:\d+:1: label or cost '-1e\+30' is thousands of times"):
        AutoML().fit(texts)
    logged = {"context": {"u": 1}, "actions": [{"a": "x"}, {"a": "y"}], "chosen": 1, "probability": 0.5}
    with pytest.warns(UserWarning, match=r"<events>:\d+:1: label or cost '-1e\+30' is thousands of times"):
        AutoML().fit(logged | {"reward": -cost} for cost in costs)


def test_a_reward_that_is_far_out_is_warned_of() -> None:
    bandit = AutoML(seed=1)
    serve(bandit, 50)
    with pytest.warns(UserWarning, match=r"event 'late': a reward of -1e\+30 is thousands of times"):
        bandit.learn(bandit.rank(context(0), ACTIONS, event_id="late"), reward=-1e30)


def test_a_number_that_is_far_out_is_warned_of() -> None:
    model = AutoMLRegressor().fit([({"a": i % 3}, float(i % 3)) for i in range(50)])
    with pytest.warns(UserWarning, match=r"<events>:2:1: label or cost '1e\+30'"):
        model.fit([({"a": 1}, 1.0), ({"a": 1}, 1e30)])
    with pytest.warns(UserWarning, match=r"the label -1e\+38 is thousands of times"):
        model.learn({"a": 1}, -1e38)


def test_actions_that_there_are_not_are_located(tmp_path: Path) -> None:
    path = tmp_path / "cb.txt"
    path.write_text("1:1:0.5 |a x\n7:1:0.5 |a x\n0:2:0.5 |a y\n4:1:0.5 |a z\n|a x\n")
    found = Diagnostics()
    for _, outcomes in Workspace(cb_explore=4).stream(path, diagnostics=found):
        assert outcomes.labelled.tolist() == [True, False, False, True, False]
    assert found.counts == {Code.ACTION_OUT_OF_RANGE: 2}
    assert [str(each) for each in found.kept] == [
        f"{path}:2:1: action '7' is out of range, which begins at 1; label not used",
        f"{path}:3:1: action '0' is out of range, which begins at 1; label not used",
    ]
