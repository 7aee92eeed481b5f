"""Every example runs and prints what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lane("ci")

ROOT = Path(__file__).parent.parent
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("[0-9]*.*") if path.suffix in {".py", ".sh"})
PRINTED = {
    "01_learn_a_file.py": "average loss -",
    "02_read_events.py": "logged (action, cost, probability): ((0, -1.0, 0.5),)",
    "03_act_and_learn.py": "in the last",
    "04_which_interactions.py": "context x action  reward 0.8",
    "05_bad_input.py": "2 events learnt",
    "06_search.py": "gained Z*b*c",
    "07_frames.py": "probabilities: [0.95 0.05]",
    "08_models.py": "the same weights: True",
    "09_evaluate.py": "all pairs             -0.66",
    "10_own_explorer.py": "probabilities: [0.29 0.57 0.14]",
    "11_serve.py": "the same from the log: True",
    "12_autovw.py": "interactions searched: 0.0",
    "13_tune_a_stream.py": "the winner is the champion after 100 more events",
    "15_cluster.py": "clicks: done, 12,000 of 12,000",
    "16_from_optuna.py": "best model: network",
    "17_from_ray_tune.py": "best depth: 5 after 27 epochs",
    "14_service.py": "clicks with -q ::: 0.",
    "18_route_models.py": "routed                       : 0.",
    "19_command_line.sh": "as a model of Vowpal Wabbit",
    "20_own_scheduler.py": "trials by resource: [1, 1, 1, 1, 1, 1, 3, 3, 9]",
    "21_river.py": "onlineauto         MAE: 0.2",
    "22_scikit_learn.py": "after 120 rows: right labels of the last 58 rows 0.9",
    "23_dehb_study.py": "best depth 5",
    "24_own_oracle.py": "the champion lost o*u",
}


def test_walk_names_existing_files() -> None:
    walk = re.findall(
        r"^\d+\. \[`[^`]+`\]\((onlineauto/[^)]+)\)", CONTRIBUTING.read_text("utf-8"), re.MULTILINE
    )
    assert 10 < len(walk) <= 30
    assert all((ROOT / file).is_file() for file in walk)
    assert {
        "onlineauto/engine/ensemble/combiner_kernels.py",
        "onlineauto/engine/ensemble/members/features.py",
    } <= {*walk}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_prints(example: Path) -> None:
    program = sys.executable if example.suffix == ".py" else "bash"
    done = subprocess.run([program, str(example)], capture_output=True, text=True, check=True)
    assert PRINTED[example.name] in done.stdout
    told = [line for line in done.stderr.splitlines() if not line.startswith("compiling kernels")]
    assert not told


def test_every_example_is_expected() -> None:
    assert {path.name for path in EXAMPLES} == set(PRINTED)
