"""The files for deployment name what is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx

from onlineauto.cli.serve import REGISTRY
from onlineauto.service.http.metrics import COUNTERS, GAUGES
from onlineauto.service.http.tokens import Tokens
from tests.service.serving import held_port
from tests.waiting import PATIENCE, until

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
    there.add("onlineauto_copy_lag_seconds")
    assert asked
    assert asked <= there
    assert {"onlineauto_reward", "onlineauto_lag_seconds", "onlineauto_champion_changes_total"} <= asked


def test_the_flags_in_unit_and_container_are_flags() -> None:
    flags = {option.flag for option in REGISTRY.options}
    unit, container = ((FOLDER / name).read_text() for name in ("onlineauto.service", "Dockerfile"))
    commands = re.findall(r"^(?:ExecStart|ENTRYPOINT|CMD).*$", unit + container, re.MULTILINE)
    used = set(re.findall(r"--[a-z_]+", " ".join(commands))) - {"--new_token"}
    assert {"--cb_explore_adf", "--automl", "--host", "--port"} <= used <= flags
    assert "USER onlineauto" in container
    assert "DynamicUser=yes" in unit


def test_the_command_of_the_container_serves_and_makes_a_token_once(tmp_path: Path) -> None:
    container = (FOLDER / "Dockerfile").read_text()
    entry, words = (
        json.loads(re.search(rf"^{name} (.*)$", container, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("ENTRYPOINT", "CMD")
    )
    command = tmp_path / "bin/onlineauto"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m onlineauto "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(FOLDER.parents[1])}
    entry = [each.replace("/loop", f"{tmp_path}/loop") for each in entry]
    tokens = []
    for _ in range(2):
        with held_port() as held, (tmp_path / "stderr").open("wb") as errors:
            port = held.getsockname()[1]
            process = subprocess.Popen(
                [*entry, *words, "--port", str(port)], env=environment, stdout=subprocess.PIPE, stderr=errors
            )
            held.close()
            try:
                until(lambda: (tmp_path / "stderr").read_text().count('"serving"') > 0)
                assert httpx.get(f"http://127.0.0.1:{port}/healthz").text == "ok\n"
                assert httpx.get(f"http://127.0.0.1:{port}/v1/status").status_code == 401
            finally:
                process.terminate()
            out, _ = process.communicate(timeout=PATIENCE)
            tokens.append(out.decode())
    assert re.fullmatch(r"token: [\w-]{43}\n", tokens[0])
    assert tokens[1] == ""
    header = {"authorization": f"Bearer {tokens[0].split()[1]}"}
    assert Tokens(tmp_path / "loop/tokens").scopes(header) == {"admin"}
