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
    "01_learn_a_log.py": "average loss of third 1: -0.696 over 10,000 events",
    "02_read_events.py": "2 of 4 lines learnt",
    "03_which_interactions.py": "context x class reward 0.8",
    "04_search.py": "Z*c, Z*x, Z*c*l, Z*c*x, Z*l*x, Z*o*x, Z*u*x",
    "05_command_line.sh": "replayed: the same predictions",
    "06_act_and_learn.py": "in the last",
    "07_late_rewards.py": "the same from the log: True",
    "08_save_and_continue.py": "the same weights: True",
    "09_evaluate.py": "automl                -0.8",
    "10_service.py": "clicks in each quarter of the visits: 0.",
    "11_another_log.py": "may be the best: always watches",
    "12_route_models.py": "routed                       : 0.",
    "13_many_loops.py": "the loop rome is active, and ranked 400 visits",
    "14_frames.py": "probabilities: [0.95 0.05]",
    "15_river.py": "onlineauto         MAE: 0.1",
    "16_scikit_learn.py": "onlineauto    right labels 0.7",
    "17_autovw.py": "interactions searched: 0.0",
    "18_from_optuna.py": "best model: network",
    "19_from_ray_tune.py": "best depth: 5 after 27 epochs",
    "20_tune_a_stream.py": "has learning_rate 5.651",
    "21_dehb_study.py": "best depth 5",
    "22_cluster.py": "parts: done, 20,000 of 20,000",
    "23_own_explorer.py": "probabilities: [0.29 0.57 0.14]",
    "24_own_oracle.py": "the champion lost o*u",
    "25_own_scheduler.py": "trials by resource: [1, 1, 1, 1, 1, 1, 3, 3, 9]",
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


def test_the_table_has_every_example_in_order() -> None:
    lines = (ROOT / "examples" / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 80
    rows = [re.match(r"\| (\d\d) \| \[(\w+)\]\((\1_\2\.\w+)\)", line) for line in lines]
    assert [row[3] for row in rows if row] == [path.name for path in EXAMPLES]
    assert [path.name[:2] for path in EXAMPLES] == [f"{number:02}" for number in range(1, 26)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_names_a_later_one(example: Path) -> None:
    named = re.findall(r"Next: (\d\d)", example.read_text("utf-8"))
    assert all(int(number) == int(example.name[:2]) + 1 for number in named)
