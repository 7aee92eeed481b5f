"""Texts of one event with a given number of features, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

LOGGED = {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0}


def words(n: int) -> str:
    return " ".join(f"y{i}:0.5" for i in range(n))


def context(n: int, **more: object) -> dict[str, object]:
    first = {"b": {f"y{i}": 0.5 for i in range(n)}}
    return {"a": {f"x{n}": 1}, "_multi": [first, {"b": {"z": 1}}], **more}


def line(n: int) -> str:
    return f"{n % 2} |a x{n} |b {words(n)}"


def bandit(n: int) -> str:
    return f"shared |a x{n}\n0:-1:0.5 |b {words(n)}\n|b z\n"


def slots(n: int) -> str:
    return f"ccb shared |a x{n}\nccb action |b {words(n)}\nccb action |b z\nccb slot 0:-1:0.5 |\nccb slot |\n"


def json_event(n: int) -> str:
    return json.dumps(LOGGED | context(n))


def logged_event(n: int) -> str:
    return json.dumps(LOGGED | {"a": [1, 2], "p": [0.5, 0.5], "c": context(n)})


def json_slots(n: int) -> str:
    outcomes = [{"_label_cost": -1, "_a": [0], "_p": [0.5]}, {"_label_cost": 0, "_a": [1], "_p": [1.0]}]
    return json.dumps({"c": context(n, _slots=[{}, {}]), "_outcomes": outcomes})


FORMATS: list[tuple[dict[str, Any], Callable[[int], str]]] = [
    ({}, line),
    ({"cb_explore_adf": True, "automl": 3}, bandit),
    ({"ccb_explore_adf": True}, slots),
    ({"cb_explore_adf": True, "json": True}, json_event),
    ({"cb_explore_adf": True, "dsjson": True}, logged_event),
    ({"ccb_explore_adf": True, "dsjson": True}, json_slots),
]
