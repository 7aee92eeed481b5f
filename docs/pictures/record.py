"""Record what the pictures show: runs over ``datasets``, by onlineauto and by Vowpal Wabbit's wheel.

``python docs/pictures/record.py`` writes ``docs/pictures/data``. ``draw.py`` draws it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np

from onlineauto import Evaluation, Workspace

HERE = Path(__file__).parent
DATA = HERE / "data"
SETS = HERE.parents[1] / "datasets"
FLIGHTS = SETS / "cb-flights-u.txt.gz"
RUNS = {
    "flights-automl": (
        "onlineauto",
        "--automl",
        "--journal",
        str(DATA / "flights-journal.jsonl"),
    ),
    "flights-all-pairs": ("onlineauto", "-q", "::"),
    "flights-vw": ("vowpalwabbit", "--automl", "4"),
}
"""By name of a file: a program, and its options beside those of all."""
POINTS = 60
"""Number of points of each curve of intervals."""


def main() -> None:
    """Record all."""
    DATA.mkdir(exist_ok=True)
    for name, (program, *options) in RUNS.items():
        words = [
            sys.executable,
            "-m",
            program,
            "-d",
            str(FLIGHTS),
            "--cb_explore_adf",
            *options,
        ]
        words += ["-P", "1.1"]
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=True)  # noqa: S603
        table = done.stderr[done.stderr.index("average  since") :]
        (DATA / f"{name}.txt").write_text(
            table[: table.index("total feature")], encoding="utf-8"
        )
    (DATA / "values.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(values())) + b"\n"
    )


def values() -> dict[str, object]:
    """Return the values of three policies over a log, and how their intervals narrowed."""
    evaluation = Evaluation(
        {
            "no interactions": Workspace(cb_explore_adf=True),
            "-q ::": Workspace(cb_explore_adf=True, quadratic="::"),
            "--automl": Workspace(cb_explore_adf=True, automl=4),
        },
        cost_range=(-1, 0),
        min_prob=0.02,
    )
    growth: dict[str, list[tuple[int, float, float]]] = {}
    events = 0
    for found, intervals in evaluation.stream(SETS / "cb-surveys-e.txt.gz", trace=True):
        for name, bounds in intervals.items():
            steps = np.linspace(0, len(bounds) - 1, 8).astype(int)
            growth.setdefault(name, []).extend(
                (events + int(at) + 1, float(bounds[at, 2, 0]), float(bounds[at, 2, 1]))
                for at in steps
            )
        events = found[0].events
    thin = {
        name: points[:: max(1, len(points) // POINTS)] for name, points in growth.items()
    }
    return {
        "values": {each.policy: each.dr for each in evaluation.values()},
        "growth": thin,
    }


if __name__ == "__main__":
    main()
