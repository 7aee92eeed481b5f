"""The library of kernels gives what the compiler gives, byte for byte, and leaves nothing to compile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onlineauto.jit.levels import levels, runnable_levels
from onlineauto.jit.library import INDEX

pytestmark = pytest.mark.library

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, **environment: str) -> str:
    process = subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def digests(*words: str, **environment: str) -> dict[str, dict[str, str]]:
    lines = run("tests.library.worker", *words, **environment).splitlines()
    return dict(json.loads(line) for line in lines)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library, built once a session; ``ONLINEAUTO_KERNELS`` may name one that is there."""
    ready = os.environ.get("ONLINEAUTO_KERNELS")
    folder = Path(ready) if ready else tmp_path_factory.mktemp("library")
    if not ready:
        run("onlineauto", "warmup", "--library", str(folder))
    return folder


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return the output of every case with kernels that this process compiles."""
    return digests(ONLINEAUTO_KERNELS=str(tmp_path_factory.mktemp("none")))


@pytest.mark.parametrize("level", levels())
def test_every_case_leaves_the_same_bytes(
    level: str, library: Path, compiled: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    if level not in runnable_levels():
        pytest.skip(f"this processor is not {level}")
    index = json.loads((library / INDEX).read_text())
    file = index["files"][level]
    shutil.copy(library / file, tmp_path)
    (tmp_path / INDEX).write_text(json.dumps(index | {"files": {level: file}}))
    found = digests("--no-compiler", ONLINEAUTO_KERNELS=str(tmp_path))
    assert {name: each for name, each in found.items() if each != compiled[name]} == {}
    assert found.keys() == compiled.keys()
    assert sum(each["code"] == "0" for each in found.values()) > 100


def test_error_without_library_and_numba_names_the_extra(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules.update(numba=None, llvmlite=None)\n"
        "from onlineauto.cli.main import main; sys.exit(main(['-d', 'events.txt', '--quiet']))"
    )
    (tmp_path / "events.txt").write_text("1 |a x\n")
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "ONLINEAUTO_KERNELS": str(tmp_path),
            "ONLINEAUTO_CACHE_DIR": str(tmp_path / "cache"),
        },
    )
    assert process.returncode == 1
    assert process.stderr.startswith("onlineauto: error: the kernel onlineauto.formats.")
    assert process.stderr.endswith(
        " must be compiled, but Numba is not installed: "
        "run pip install '.[compiler]' in a checkout of onlineauto\n"
    )
