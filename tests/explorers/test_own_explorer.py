"""An explorer registered from outside the package works like a built-in one.

A registered explorer remains in its process, so every test has a separate process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REGISTERED = """
from onlineauto.explorers import register
from tests.explorers.halving import Halving

register(Halving())
"""
EVENT = "shared |u a\n0:-1:0.5 |a x\n|a y\n|a z\n\n"


def run(code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", REGISTERED + code, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.ci
def test_it_passes_the_conformance_suite() -> None:
    out = run("""
from onlineauto.explorers.policy import Policy
from onlineauto.testing import check_explorer

check_explorer(Policy(halving=True))
check_explorer(Policy(halving=True, share=0.9, epsilon=0.3))
print(*Policy(halving=True).pmf([0.3, 0.1]).round(2))
""")
    assert out == "0.33 0.67\n"


@pytest.mark.ci
def test_it_explores_alone_and_in_a_search_and_survives_a_copy_and_a_file(tmp_path: Path) -> None:
    out = run(
        f"""
import pickle, sys
import numpy as np
from onlineauto import Workspace

for search in ({{}}, {{"automl": 2, "lease": 5}}):
    bandit = Workspace(cb_explore_adf=True, halving=True, bit_precision=10, **search)
    bandit.fit(50 * {EVENT.encode()!r})
    pmf = bandit.predict({EVENT!r})
    np.testing.assert_allclose(sorted(pmf), [1 / 7, 2 / 7, 4 / 7], rtol=1e-6)
    copied = pickle.loads(pickle.dumps(bandit))
    bandit.save(sys.argv[1])
    for again in (copied, Workspace.load(sys.argv[1])):
        assert again.configuration.get("halving")
        assert (again.predict({EVENT!r}) == pmf).all()
print("done")
""",
        str(tmp_path / "model"),
    )
    assert out == "done\n"


@pytest.mark.ci
def test_the_next_process_loads_model_and_kernel(tmp_path: Path) -> None:
    model, data, predicted = tmp_path / "model", tmp_path / "events", tmp_path / "predicted"
    data.write_text(3 * EVENT)
    main = "import sys\nfrom onlineauto.cli.main import main\nmain(sys.argv[1:])"
    given = ("-d", str(data), "-b", "10", "--quiet")
    run(main, *given, "--cb_explore_adf", "--halving", "--share", "0.25", "-f", str(model))
    run(main, *given, "-t", "-i", str(model), "-p", str(predicted))
    first = predicted.read_text().splitlines()[0]
    assert [each.partition(":")[2] for each in first.split(",")] == ["0.761905", "0.190476", "0.047619"]
    assert "--halving" in run(main, "learn", "--help")


@pytest.mark.parametrize("flag", ["--squarecb", "--share 2", "--first_only"])
def test_its_options_are_checked(flag: str) -> None:
    out = run(f"""
from onlineauto.errors import OptionError
from onlineauto.workspace.options import REGISTRY

try:
    REGISTRY.parse("--cb_explore_adf --halving {flag}")
except OptionError as error:
    print(error)
""")
    assert flag.partition(" ")[0] in out


def test_a_taken_name_is_rejected() -> None:
    out = run("""
from dataclasses import dataclass
import tests.explorers.halving as own
from onlineauto.options import option
from onlineauto.explorers import EXPLORERS, register
from onlineauto.workspace.options import REGISTRY

@dataclass(frozen=True)
class Taken:
    title = "Taken"
    squarecb: bool = option(False, "There is one.")

class Other(own.Halving):
    name = "other"
    options = (Taken,)

for explorer in (own.Halving(), Other()):
    groups = REGISTRY.groups
    try:
        register(explorer)
    except ValueError as error:
        print(error)
    assert REGISTRY.groups == groups
    assert "other" not in EXPLORERS
""")
    assert out == "there is an explorer halving already\n--squarecb is declared twice\n"


def test_automl_accepts_its_name_or_its_settings() -> None:
    out = run("""
from onlineauto import AutoML

for explorer in ("halving", Halving(share=0.25)):
    print(AutoML(explorer=explorer).predict({"u": 1}, [{"x": 1}, {"y": 1}]).round(2))
""")
    assert out == "[0.67 0.33]\n[0.8 0.2]\n"
