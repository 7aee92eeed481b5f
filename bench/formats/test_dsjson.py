"""The bench of decision-service logs: logs are the events of the text, the table has what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlineauto
from bench.formats.dsjson import log_of, table
from datasets.generate import text

pytestmark = pytest.mark.ci


def test_a_log_has_the_labels_and_the_numbers_of_the_text() -> None:
    events = text("narrow", events=20)
    log = "".join(f"{line}\n" for line in log_of(events)).encode()
    [one] = onlineauto.read(events, cb_adf=True)
    [other] = onlineauto.read(log, dsjson=True, cb_adf=True)
    for name in ("event_start", "shared", "cost", "probability", "cost_start"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.n_features == other.n_features
    assert sorted(one.value.tolist()) == sorted(other.value.tolist())
    assert all(json.loads(line)["EventId"] for line in log.splitlines())


def test_the_table_has_a_line_for_each_row() -> None:
    row = {"stream": "narrow", "task": "read", "megabytes": 10.0, "wheel": 0.2, "ours": 0.05, "ratio": 4.0}
    assert table([row]).splitlines()[-1] == "| narrow | read | 10.0 | 0.200 | 0.050 | 200 | 4.00 |"
