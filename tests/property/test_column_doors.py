"""A column of any type that is learnt at one door is the same features at every other door, or an error."""

from __future__ import annotations

import os
import sys
import time
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from onlineauto import InputError, Workspace
from tests.property.column_doors import ACTIONS, CONTEXTS, DOORS, Model, drawn_table, features_at, learnt_at

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lane("sampled")


def check_pairs(
    random: Random, context: str, action: str, rows: int, folder: Path, counts: dict[str, int]
) -> None:
    """Learn a table at each door, and ask for it at each other door."""
    table, choices = drawn_table(random, context, action, rows)
    asked: dict[Any, Any] = {}
    for door in DOORS:
        model = learnt_at(door, table, choices, folder)
        learnt = None if model is None else features_at(door, table, choices, Model(), folder)
        if model is None or learnt is None:
            counts["refused at the first door"] += rows
            continue
        for other in DOORS:
            key = other, model.configuration, frozenset(model.numbers)
            if key not in asked:
                asked[key] = features_at(other, table, choices, model, folder)
            found = asked[key]
            counts["errors" if found is None else "equal"] += rows
            if found is not None:
                assert np.array_equal(found, learnt), (
                    context,
                    action,
                    door,
                    other,
                    first_difference(table, learnt, found),
                )


def first_difference(table: Any, learnt: Any, found: Any) -> Any:
    """Return the first row whose features differ, with its features at both doors."""
    for number, row in enumerate(table.to_pylist()):
        one, two = (each[each["event"] == number].tolist() for each in (learnt, found))
        if one != two:
            return row, one, two
    return None


def pass_through(values: int, rows: int, folder: Path, *, seed: int) -> dict[str, int]:
    """Pass random values of every type through all pairs of doors; return what became of how many."""
    random, done = Random(seed), 0
    counts = dict.fromkeys(("equal", "errors", "refused at the first door"), 0)
    while done < values:
        for context in CONTEXTS:
            check_pairs(random, context, random.choice(list(ACTIONS)), rows, folder, counts)
            done += 2 * rows  # of the context and of the actions
    return counts


def test_every_pair_of_doors_has_the_same_features(tmp_path: Path) -> None:
    counts = pass_through(1, 12, tmp_path, seed=1)
    assert counts["equal"] > 2 * counts["errors"] > 0, counts


@pytest.mark.fuzz
def test_every_pair_of_doors_has_the_same_features_a_hundred_thousand_times(tmp_path: Path) -> None:
    n, begin = int(os.environ.get("ONLINEAUTO_DOOR_EVENTS", "100000")), time.monotonic()
    counts = pass_through(n, 200, tmp_path, seed=10**6)
    sys.stdout.write(f"{n} values in {time.monotonic() - begin:.0f} s: {counts}\n")


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:[0-9]+ problem:UserWarning")
@pytest.mark.parametrize("action", ["int64", "bool", "string", "categories of integers"])
@pytest.mark.parametrize("context", ["float64", "categories of integers", "words", "vector", "nested struct"])
def test_every_pair_of_doors_has_the_same_probabilities(tmp_path: Path, context: str, action: str) -> None:
    table, choices = drawn_table(Random(3), context, action, 60)
    for door in ("dicts", "pandas", "parquet", "ipc", "json", "log"):
        options: dict[str, Any] = {"cb_explore_adf": True, "quadratic": ["::"], "dsjson": True}
        model = Workspace(**options)
        model.fit(list(DOORS[door](table, choices, Model(), tmp_path)))
        expected = None
        for other in (door, *DOORS):
            found = []
            try:
                blocks = list(DOORS[other](table, choices, Model(model.configuration), tmp_path))
                found += [model.predict_block(block).score for block in blocks]
            except InputError:
                assert other != door
                continue
            scores = np.concatenate(found)
            expected = scores if expected is None else expected
            assert np.allclose(scores, expected, rtol=1e-3, atol=1e-4), (door, other)
        assert expected is not None
        assert expected.std() > 0
