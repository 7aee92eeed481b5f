"""The JavaScript client, its OpenFeature provider and Microsoft's clients, run by Node against a service.

Microsoft's clients and the compiler run where ``npm install`` has installed them in ``clients/javascript``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.serving import Service

pytestmark = [
    pytest.mark.lane("ci"),
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
]

PACKAGE = Path(__file__).parents[2] / "clients" / "javascript"
COMPILER = PACKAGE / "node_modules" / ".bin" / "tsc"


def test_node_tests_pass(tmp_path: Path) -> None:
    with Service(tmp_path / "loop", "--publish_every", "0") as service:
        done = subprocess.run(
            ["node", "--test", "test"],
            cwd=PACKAGE,
            env={**os.environ, "ONLINEAUTO_URL": service.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"^\S+ pass (\d+)", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 12


@pytest.mark.skipif(not COMPILER.exists(), reason="npm install was not run in clients/javascript")
def test_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    subprocess.run([COMPILER, "--outDir", tmp_path], cwd=PACKAGE, check=True)
    built = {path.name: path.read_text() for path in (PACKAGE / "dist").iterdir()}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == built
