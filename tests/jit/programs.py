"""Run the programs on a few events, and print predictions and the programs that ran, as JSON.

``python -m tests.jit.programs``; with ``NUMBA_DISABLE_JIT=1`` all kernels run as plain Python.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from onlineauto import AutoML, AutoMLClassifier, Workspace
from onlineauto.cli import warmup
from onlineauto.engine.loop import follower
from onlineauto.engine.search.drift import Drift, make_drift
from onlineauto.explorers.policy import Policy
from onlineauto.jit import code, operation

RAN: set[str] = set()
"""Names of the programs that ran as plain Python."""

BANDIT = "".join(
    f"shared |u u{i % 3} age:{i % 5}.5\n"
    + "".join(f"{f'0:{-(i % 3 == k):d}:0.5 ' if k == i % 2 else ''}|z k{k} price:{k}.25\n" for k in range(3))
    + "\n"
    for i in range(14)
)
VECTORS = "".join(
    f"shared |e {' '.join(f':{(i * k + 1) % 7}' for k in range(50))}\n"
    + "".join(f"{f'0:{-(i % 3 == k):d}:0.5 ' if k == i % 2 else ''}|z k{k}\n" for k in range(2))
    + "\n"
    for i in range(6)
)
ASKED = "shared |u u1 age:2.5\n|z k0 price:0.25\n|z k1 price:1.25\n|z k2 price:2.25\n"
SLOTS = "ccb shared |u a\nccb action |z x\nccb action |z y\nccb slot 0:-1:0.5 |s s\nccb slot |s t\n\n"
LINES = "".join(f"{i % 3 / 2} |a i{i % 3} x:{i % 4}.5 |b j{i % 2}\n" for i in range(20))
LOG = (
    '{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"EventId":"e","a":[1,2],'
    '"p":[0.5,0.5],"c":{"u":{"i":"7","w":3.25},"_multi":[{"z":{"k":"x"}},{"z":{"k":"y"}}]}}\n'
)

EXPLORERS: list[dict[str, Any]] = [
    {"first": 5},
    {"softmax": True},
    {"squarecb": True},
    {"scaled_squarecb": True},
    {"synthcover": True},
    {"bag": 2},
    {"cover": 2},
    {"rnd": 2},
    {"epsilon_decay": True},
]
_ON_TWO_THREADS = "searched on two threads"
WORKSPACES: dict[str, tuple[str, dict[str, Any]]] = {
    "regression": (LINES, {"quadratic": "ab"}),
    "logistic": (LINES.replace("0.5 |", "1 |").replace("0.0 |", "-1 |"), {"loss": "logistic"}),
    "regression searched": (LINES, {"live_configs": 2, "lease": 1}),
    "doubly robust": (BANDIT, {"cb_adf": True, "cb_type": "dr", "quadratic": "uz"}),
    "searched": (BANDIT, {"cb_explore_adf": True, "live_configs": 3, "lease": 2}),
    "vectors": (VECTORS, {"cb_explore_adf": True, "live_configs": 2, "members": "vectors"}),
    _ON_TWO_THREADS: (BANDIT, {"cb_explore_adf": True, "live_configs": 2}),
    "exact": (BANDIT, {"cb_explore_adf": True, "quadratic": "uz", "vw_exact": True}),
    "exact search": (BANDIT, {"cb_explore_adf": True, "live_configs": 2, "lease": 1, "vw_exact": True}),
    "slots": (SLOTS * 3, {"ccb_explore_adf": True}),
    "logs": (LOG * 3, {"cb_explore_adf": True, "dsjson": True}),
    **{" ".join(options): (BANDIT, {"cb_explore_adf": True, **options}) for options in EXPLORERS},
}


def predictions() -> dict[str, Any]:
    """Return the predictions of each run, by its name."""
    found: dict[str, Any] = {}
    follower._FEWEST, follower._SHORTEST = 14, 0
    for name, (text, options) in WORKSPACES.items():
        workspace = Workspace(hash_bits=10, **options)
        if name == _ON_TWO_THREADS:
            workspace.use_threads(2)
        outcomes = [each for _, each in workspace.stream(text.encode())]
        found[name] = [each.prediction.tolist() + each.score.tolist() for each in outcomes]
        found[name].append([workspace.estimates.lower(0), workspace.estimates.upper(0)])
    bandit = AutoML(seed=1, hash_bits=10)
    actions: list[dict[str, Any]] = [{"article": "politics"}, {"article": "sports", "length": 2.5}]
    for i in range(8):
        context = {"user": ("tom", "ann")[i % 2], "age": i}
        bandit.learn(context, actions, action=i % 2, probability=0.5, reward=float(i % 3 == 0))
    bandit.learn(bandit.rank({"user": "ann", "age": 8}, actions).event_id, reward=1.0)
    found["dicts"] = bandit.predict({"user": "tom", "age": 3}, actions).tolist()
    classes = AutoMLClassifier(seed=1, hash_bits=10)
    for i in range(12):
        classes.learn({"user": "tom", "age": i % 5}, "abc"[i % 3])
    found["classes"] = list(classes.predict_proba({"user": "tom", "age": 3}).values())
    scores, plausible = [0.3, 0.1, 0.4], [(0, 0.4), (0, 0.3), (0.1, 0.9)]
    for options in ({}, {"regcb": True}, {"squarecb": True, "elim": True}):
        found[f"policy {options}"] = Policy(**options).pmf(scores, learnt=99, plausible=plausible).tolist()
    return found


def use_the_rest() -> None:
    """Run the programs that predict nothing."""
    drift = Drift(make_drift())
    drift.alarms(np.ones(100))
    drift.restart()
    for use in (warmup._use_blocks, warmup._use_columns, warmup._test_and_evaluate):
        use()
    Workspace(cb_adf=True, quadratic="aa", hash_seed=1).fit(warmup._MANY_FEATURES + warmup._MANY_NAMES)


def note_programs() -> None:
    """Note each kernel that runs as plain Python."""
    run, call_at = operation.run, operation._OPERATIONS["call_at"]

    def noted_run(function: Callable[..., Any], arguments: Any) -> Any:
        RAN.add(function.__qualname__)
        return run(function, arguments)

    def noted_call(address: int, arguments: Any) -> None:
        RAN.add(operation._functions[int(address) - 1].__qualname__)
        call_at(address, arguments)

    code.run = noted_run  # type: ignore[attr-defined]
    operation._OPERATIONS["call_at"] = noted_call


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy warns of integers that wrap around, as hashes do
    if operation.PURE:
        note_programs()
    made = predictions()
    if operation.PURE:
        use_the_rest()
    json.dump({"predictions": made, "ran": sorted(RAN)}, sys.stdout)
