"""The files for deployment name what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from onlineauto.cli.serving.serve import REGISTRY
from onlineauto.service.http.metrics import COUNTERS, GAUGES

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "service"


def test_the_board_of_grafana_asks_for_metrics_that_there_are() -> None:
    board = json.loads((FOLDER / "grafana.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"onlineauto_\w+", target["expr"])
    }
    there = {f"onlineauto_{name}_total" for name in COUNTERS} | {f"onlineauto_{name}" for name in GAUGES}
    there |= {"onlineauto_reward", "onlineauto_requests_total", "onlineauto_request_seconds_bucket"}
    assert asked
    assert asked <= there
    assert {"onlineauto_reward", "onlineauto_lag_seconds", "onlineauto_champion_changes_total"} <= asked


def test_the_flags_in_unit_and_container_are_flags() -> None:
    flags = {option.flag for option in REGISTRY.options}
    unit, container = ((FOLDER / name).read_text() for name in ("onlineauto.service", "Dockerfile"))
    commands = re.findall(r"^(?:ExecStart|ENTRYPOINT|CMD).*$", unit + container, re.MULTILINE)
    used = set(re.findall(r"--[a-z_]+", " ".join(commands)))
    assert {"--cb_explore_adf", "--automl", "--host", "--port"} <= used <= flags
    assert "USER onlineauto" in container
    assert "DynamicUser=yes" in unit
