"""What is wrong in a stream is said when it is read."""

from __future__ import annotations

import logging

import pytest

from onlineauto.errors import InputError
from onlineauto.tune.live import LiveLearner


def test_skipped_lines_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="onlineauto"):
        assert len(LiveLearner([b"1 |a b\nx |a\n2 |a c\n"]).events) == 2
    assert "1 problem in the input" in caplog.text


def test_a_stream_of_another_kind_says_why_it_has_no_events() -> None:
    with pytest.raises(InputError, match="has no cost and no probability"):
        _ = LiveLearner([b"1 |a b\n"], "--cb_explore_adf").events
