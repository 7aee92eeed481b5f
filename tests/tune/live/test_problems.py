"""What is wrong in a stream is said when it is read."""

from __future__ import annotations

import logging

import pytest

from onlineauto.errors import InputError
from onlineauto.tune.live import LiveLearner, tune_stream

pytestmark = pytest.mark.lane("ci")


def test_skipped_lines_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="onlineauto"):
        assert len(LiveLearner([b"1 |a b\nx |a\n2 |a c\n"]).events) == 2
    assert "1 problem in the input" in caplog.text


def test_a_stream_of_another_kind_says_why_it_has_no_events() -> None:
    with pytest.raises(InputError, match="has no cost and no probability"):
        _ = LiveLearner([b"1 |a b\n"], "--cb_explore_adf").events


@pytest.mark.parametrize(
    ("flags", "event", "message"),
    [
        ("--cb_explore_adf", "shared |u x\n0:0:0.5 |a b\n|a c\n\n", "every logged cost or reward .* is 0"),
        ("--cb_explore_adf", "shared |u x\n|a b\n|a c\n\n", "no event .* a logged cost or reward"),
        ("--cb 2", "1:0:0.5 |u x\n", "every logged cost or reward .* is 0"),
        ("", "|u x\n", "no event of the stream has a label"),
    ],
)
def test_a_stream_by_which_no_trial_is_better_is_refused(flags: str, event: str, message: str) -> None:
    with pytest.raises(InputError, match=f"{message}, so there is nothing to compare trials by"):
        tune_stream(event.encode() * 300, flags, ["learning_rate"])


def test_one_cost_is_enough_to_compare_trials() -> None:
    events = [b"shared |u x\n0:0:0.5 |a b\n|a c\n\n"] * 50 + [b"shared |u x\n0:-1:0.5 |a b\n|a c\n\n"]
    study = tune_stream(b"".join(events), "--cb_explore_adf", ["learning_rate"], max_trials=2)
    assert study.best is not None
