"""A model at a glance."""

from __future__ import annotations

import pytest

from onlineauto import AutoML
from tests.api.events import ACTIONS, context, serve

pytestmark = pytest.mark.lane("quick")


def _searched() -> AutoML:
    bandit = AutoML(lease=100, begin_with=["user*price"], seed=2)
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
