"""Model files of `AutoML` that were changed behind their checksums."""

from __future__ import annotations

from typing import Any

import pytest

from onlineauto import AutoML, InputError
from onlineauto.workspace.model_file import decode_tree, encode_tree
from tests.api.events import saved, serve

FORGERIES: list[tuple[str, Any]] = [
    ("class", "AutoMLRegressor"),
    ("class", 3),
    ("tally", [1, 2]),
    ("tally", None),
    ("history", [{"decision": "nothing"}]),
    ("history", {"a": 1}),
    ("own", None),
    ("own", {}),
    ("own.random", [3, [1, 2], None]),
    ("own.random", [3, [-1] * 625, None]),
    ("own.random", [3, [0] * 624 + [99999], None]),
    ("own.default_cost", "much"),
    ("own.limit", 0),
    ("own.time_to_live", -1.0),
    ("own.expired", -1),
]


def _saved() -> dict[str, Any]:
    bandit = AutoML(hash_bits=8)
    serve(bandit, 20)
    return decode_tree(saved(bandit), name="the model")


@pytest.mark.parametrize(("place", "value"), FORGERIES)
def test_a_forged_file_is_refused(place: str, value: Any) -> None:
    tree = _saved()
    *path, last = place.split(".")
    part = tree["run"]["api"]
    for name in path:
        part = part[name]
    part[last] = value
    with pytest.raises(InputError):
        AutoML.load(b"".join(map(bytes, encode_tree(tree))))


def test_a_file_that_is_not_forged_is_loaded() -> None:
    assert AutoML.load(b"".join(map(bytes, encode_tree(_saved())))).events == 20
