"""The files for deployment refer to existing flags, metrics and steps."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import venv
from fnmatch import fnmatch
from pathlib import Path

import httpx
import pytest

from onlineauto.cli.serve import VERB
from onlineauto.service.http.status import COUNTERS, GAUGES
from onlineauto.service.http.tokens import Tokens
from tests.service.serving import held_port
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("ci")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "service"


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


def test_all_flags_of_unit_and_container_exist() -> None:
    flags = {option.flag for option in VERB.registry.options}
    unit, container = ((FOLDER / name).read_text() for name in ("onlineauto.service", "Dockerfile"))
    commands = re.findall(r"^(?:ExecStart|ENTRYPOINT|CMD).*$", unit + container, re.MULTILINE)
    used = set(re.findall(r"--[a-z_]+", " ".join(commands))) - {"--new_token"}
    assert {"--cb_explore_adf", "--automl", "--host", "--port"} <= used <= flags
    assert "USER onlineauto" in container
    assert "DynamicUser=yes" in unit
    settings = set(unit.splitlines())
    assert {"CapabilityBoundingSet=", "SystemCallFilter=@system-service", "UMask=0077"} <= settings
    assert "MemoryDenyWriteExecute=yes" not in settings  # LLVM writes the machine code that it executes


def test_the_context_of_the_image_has_what_the_build_reads() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    ignored = [line for line in lines if line and not line.startswith("#")]
    assert {".git", ".venv*", "build"} <= {*ignored}
    read = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "onlineauto", "datasets")
    assert not [name for name in read if any(fnmatch(name, pattern) for pattern in ignored)]


def steps(container: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, each with its words."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", container, flags=re.MULTILINE))
    found = [line.split(maxsplit=1) for line in text.splitlines() if line]
    return [(name, words) for name, words in found]


STAND_INS = {
    "useradd": 'for name; do :; done; echo "$name" > "$USERS"',
    "install": '[ "$1 $2 $3" = "-d -o $(cat "$USERS")" ] && exec /usr/bin/install -d "$4"',
}
"""Commands of the container that need another user: its name must be the same in all of them."""


def test_the_steps_of_the_dockerfile_give_a_container_that_serves(tmp_path: Path) -> None:
    venv.create(tmp_path / "python", with_pip=True)
    commands = tmp_path / "python/bin"
    for name, script in STAND_INS.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (commands / name).chmod(0o755)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ONLINEAUTO"))
    }
    environment = kept | {"PATH": f"{commands}:/usr/bin:/bin", "USERS": f"{tmp_path}/users"}
    followed: dict[str, list[str]] = {}
    with held_port() as held:
        port = str(held.getsockname()[1])
    for name, words in steps((FOLDER / "Dockerfile").read_text()):
        there = re.sub(r"(?<![\w/.])/(?=src|opt|loop)", f"{tmp_path}/", words).replace("8001", port)
        followed.setdefault(name, []).append(there)
        if name == "ENV":
            environment |= dict(word.split("=") for word in there.split())
        elif name == "COPY":
            listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
            copy = ["cp", "--parents", *listed.stdout.splitlines(), there.split()[1]]
            Path(copy[-1]).mkdir()
            subprocess.run(copy, cwd=ROOT, check=True)
        elif name == "RUN":
            subprocess.run(["sh", "-c", there], env=environment, check=True, capture_output=True, text=True)
    assert not (tmp_path / "src").exists()
    assert followed["FROM"] == ["python:3.12-slim"]
    assert followed["EXPOSE"] == [port]
    assert followed["VOLUME"] == [f"{tmp_path}/loop"]
    assert [(tmp_path / "users").read_text().strip()] == followed["USER"]
    (entry,), (words,) = followed["ENTRYPOINT"], followed["CMD"]
    command = [*json.loads(entry), *json.loads(words), "--port", port]
    health = json.loads(followed["HEALTHCHECK"][0].split("CMD ", 1)[1])
    tokens = []
    for _ in range(2):
        with (tmp_path / "stderr").open("wb") as errors:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors)
        try:
            until(lambda: (tmp_path / "stderr").read_text().count('"serving"') > 0)
            subprocess.run(health, env=environment, check=True)
            assert httpx.get(f"http://127.0.0.1:{port}/v1/status").status_code == 401
        finally:
            process.send_signal(getattr(signal, followed["STOPSIGNAL"][0]))
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, (tmp_path / "stderr").read_text()
        tokens.append(out.decode())
    assert subprocess.run(health, env=environment, check=False, stderr=subprocess.DEVNULL).returncode != 0
    assert re.fullmatch(r"token: [\w-]{43}\n", tokens[0])
    assert tokens[1] == ""
    header = {"authorization": f"Bearer {tokens[0].split()[1]}"}
    assert Tokens(tmp_path / "loop/tokens").scopes(header) == {"admin"}
