"""The chart and the manifests of Kubernetes: they agree, and the commands in them serve."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from onlineauto import __version__
from onlineauto.cli.serve import VERB
from onlineauto.service.client import Client
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Loop
from tests.service.serving import held_port
from tests.service.traffic import CONFIGURATION, rank_request
from tests.waiting import PATIENCE, until

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "service"


def objects() -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()) if each]


def pods() -> dict[str, dict[str, Any]]:
    """Return the specs of the pods by the name of their only container."""
    specs = [each["spec"]["template"]["spec"] for each in objects() if "template" in each["spec"]]
    return {spec["containers"][0]["name"]: spec for spec in specs}


def rendered(*values: str) -> str:
    command = ["helm", "template", "onlineauto", str(FOLDER / "helm"), "--kube-version", "1.30.0"]
    command += [word for value in values for word in ("--set", value)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_the_manifests_are_those_of_the_chart() -> None:
    assert rendered() == (FOLDER / "kubernetes.yaml").read_text()


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_a_chart_with_a_standby_and_monitoring() -> None:
    text = rendered("learner.standby=true", "monitoring.enabled=true", "monitoring.labels.release=prometheus")
    kinds = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}
    learner = kinds["StatefulSet", "onlineauto-learner"]["spec"]
    assert learner["replicas"] == 2
    assert "volumeClaimTemplates" not in learner
    args = learner["template"]["spec"]["containers"][0]["args"]
    assert args[args.index("--standby") + 1] == args[1]
    assert kinds["PersistentVolumeClaim", "onlineauto-loop"]["spec"]["accessModes"] == ["ReadWriteMany"]
    assert "publishNotReadyAddresses" not in kinds["Service", "onlineauto-learner"]["spec"]
    rules = kinds["PrometheusRule", "onlineauto"]
    assert rules["spec"] == yaml.safe_load((FOLDER / "helm/alerts.yaml").read_text())
    monitor = kinds["ServiceMonitor", "onlineauto"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "onlineauto-tokens", "key": "read_token"}
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    services = [each for (kind, _), each in kinds.items() if kind == "Service"]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert all(wanted.items() <= each["metadata"]["labels"].items() for each in services)


def test_the_image_is_that_of_this_version() -> None:
    chart = yaml.safe_load((FOLDER / "helm/Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    assert {pod["containers"][0]["image"] for pod in pods().values()} == {f"onlineauto:{__version__}"}


def test_the_manifests_refer_to_what_they_define() -> None:
    kinds = {(each["kind"], each["metadata"]["name"]): each for each in objects()}
    target = kinds["HorizontalPodAutoscaler", "onlineauto-rank"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) in kinds
    labels = [
        each["spec"]["template"]["metadata"]["labels"] for each in objects() if "template" in each["spec"]
    ]
    selectors = [each["spec"]["selector"] for each in objects() if "selector" in each["spec"]]
    for selector in selectors:
        wanted = selector.get("matchLabels", selector)
        assert sum(wanted.items() <= label.items() for label in labels) == 1
    for each in objects():
        claims = {claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", ())}
        if "template" in each["spec"]:
            pod = each["spec"]["template"]["spec"]
            there = claims | {volume["name"] for volume in pod["volumes"]}
            assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == there


def test_the_pod_that_restores_has_the_image_the_rights_and_the_volume_of_the_learner() -> None:
    spec = yaml.safe_load((FOLDER / "restore.yaml").read_text())["spec"]
    learner, (container,) = pods()["learner"], spec["containers"]
    (serving,) = learner["containers"]
    assert spec["securityContext"] == learner["securityContext"]
    assert container["securityContext"] == serving["securityContext"]
    assert container["image"] == serving["image"]
    mounts = {mount["name"]: mount["mountPath"] for mount in serving["volumeMounts"]}
    assert all(mounts[mount["name"]] == mount["mountPath"] for mount in container["volumeMounts"])
    claims = [
        each["persistentVolumeClaim"]["claimName"] for each in spec["volumes"] if each["name"] == "loop"
    ]
    assert claims == ["loop-onlineauto-learner-0"]  # of the StatefulSet `onlineauto-learner`


def test_the_commands_of_the_page_restore_a_backup(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/guides/scale.md").read_text("utf-8"), re.DOTALL)
    scripts = {
        "kubectl": '[ "$1" = exec ] || exit 0\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"',
        "helm": "exit 0",
        "onlineauto": f'exec {sys.executable} -m onlineauto "$@"',
    }
    for folder in ("bin", "loop", "tmp"):
        (tmp_path / folder).mkdir()
    for name, script in scripts.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def run(option: str) -> None:
        (block,) = [each for each in blocks if option in each]
        there = re.sub(r"(?<=[ \"'])/(?=loop|tmp)", f"{tmp_path}/", block)
        command = ["sh", "-ec", there]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env=environment)

    def ranked(*event_ids: str) -> int:
        loop = Loop(tmp_path / "loop/learner", CONFIGURATION)
        for event_id in event_ids:
            loop.rank(rank_request(event_id), ignore_completion)
        loop.close()
        return loop.join.counts.ranked

    assert ranked("e1", "e2") == 2
    run("--backup")
    assert ranked("e3") == 3
    run("--restore")
    assert ranked("e4") == 3


def test_containers_run_without_privileges() -> None:
    user = next(
        line.split("--uid ")[1].split()[0]
        for line in (FOLDER / "Dockerfile").read_text().splitlines()
        if "--uid" in line
    )
    for pod in pods().values():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == int(user)
        assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
        assert not pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"]


def test_all_flags_of_the_manifests_exist() -> None:
    flags = {option.flag for option in VERB.registry.options}
    for pod in pods().values():
        assert {word for word in pod["containers"][0]["args"] if word.startswith("--")} <= flags


@pytest.mark.ci
def test_the_commands_of_the_pods_rank_and_learn(tmp_path: Path) -> None:
    (tmp_path / "tokens").mkdir()
    made = [sys.executable, "-m", "onlineauto", "loop", str(tmp_path / "tokens"), "--new_token", "admin"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    token = subprocess.run(made, check=True, capture_output=True, text=True, env=environment).stdout
    header = {"authorization": f"Bearer {token.rstrip()}"}
    assert Tokens(tmp_path / "tokens/tokens").scopes(header) == {"admin"}
    held, processes = {name: held_port() for name in ("learner", "rank")}, []
    ports = {name: each.getsockname()[1] for name, each in held.items()}
    mounts = {"/loop/": f"{tmp_path}/", "/tokens/": f"{tmp_path}/tokens/", "0.0.0.0": "127.0.0.1"}  # noqa: S104
    mounts["onlineauto-learner:8001"] = f"127.0.0.1:{ports['learner']}"
    try:
        for name in ("learner", "rank"):
            words = list(pods()[name]["containers"][0]["args"])
            for inside, outside in mounts.items():
                words = [word.replace(inside, outside) for word in words]
            at_once = ["--learn_at", "reward"] if name == "learner" else []  # not after the wait of a pod
            command = [sys.executable, "-m", "onlineauto", *words, *at_once, "--port", str(ports[name])]
            environment["ONLINEAUTO_TOKEN"] = token if name == "rank" else ""
            with (tmp_path / f"{name}.stderr").open("wb") as errors:
                processes.append(subprocess.Popen(command, env=environment, stderr=errors))
            container = pods()[name]["containers"][0]
            for probe in ("startupProbe", "readinessProbe"):
                address = f"http://127.0.0.1:{ports[name]}{container[probe]['httpGet']['path']}"
                until(lambda: _answers(address), what=(tmp_path / f"{name}.stderr").read_text)  # noqa: B023
        with Client(f"http://127.0.0.1:{ports['rank']}", token=token) as client:
            for number in range(20):
                decision = client.rank(
                    {"user": {"age": number}}, {"a": {"x": {"a": 1}}, "b": {"x": {"b": 1}}}
                )
                assert not decision.fallback
                client.reward(decision, float(decision.action == "a"))
        status = f"http://127.0.0.1:{ports['learner']}/v1/status"
        until(lambda: httpx.get(status, headers=header).json()["learnt"] == 20)
    finally:
        for process in reversed(processes):
            process.terminate()
        codes = [process.wait(PATIENCE) for process in processes]
        for value in held.values():
            value.close()
    assert codes == [0, 0]


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.TransportError:
        return False
