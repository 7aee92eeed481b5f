"""An event has the same features, prediction and learning by every source type, or all reject it."""

from __future__ import annotations

import os
import sys
import time
from random import Random
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.features.block import Block
from tests.naive.lines import unpack
from tests.property.door_events import DoorEvent, canonical, drawn_event, hashes_of
from tests.property.doors import Doors, mapping_of

pytestmark = pytest.mark.lane("sampled")

_TOGETHER = 64
"""Number of events after which models begin again, so that the order of sums does not add up."""
JSON_DOORS = {"json", "dsjson", "http", "personalizer"}
"""Doors where a string value has the name that Vowpal Wabbit gives it in JSON."""


def read(block: Block, *, actions: bool) -> tuple[list[Any], list[Any]]:
    """Return the sorted features and the label of each line, the shared line first."""
    [event] = unpack([block])
    lines = [sorted((name, *pair) for name, pairs in line.spans for pair in pairs) for line in event]
    labels: list[Any] = [(line.label, line.costs and line.costs[0][1:]) for line in event]
    if actions and not event[0].shared:
        lines, labels = [[], *lines], [(labels[0][0], []), *labels]
    return lines, labels


def label_of(event: DoorEvent) -> tuple[int, float, float] | float | None:
    """Return the label by the rule: a label that is missing is none."""
    if event.actions is None:
        return None if event.label is None or event.label.plain is None else float(event.label.plain)
    if event.cost is None or event.cost.plain is None or event.probability is None:
        return None
    assert event.chosen is not None
    return event.chosen, float(np.float32(event.cost.plain)), float(np.float32(event.probability.plain))


def check(seed: int, doors: Doors, models: dict[str, Workspace], counts: dict[str, int]) -> None:
    """Draw an event, and pass it through each door."""
    event = drawn_event(Random(seed), actions=doors.actions)
    lines = [event.context, *(event.actions or [])]
    values = [abs(value) for line in lines for *_, value in canonical(line)] if not event.bad else []
    learns = seed % 3 == 0 and not event.bad and all(1e-3 < value < 1e4 for value in values)
    expected = {
        json: [hashes_of(canonical(each, json=json)) for each in lines]
        for json in (False, True)
        if not event.bad
    }
    predictions: dict[str, Any] = {}
    skipped = []
    for name, door in doors.all.items():
        if name == "frame" and seed % 3:  # it takes as long as all others
            continue
        block = door(event)
        where = f"seed {seed}, {name}"
        if block is ...:
            skipped.append(name)
            continue
        counts[name] = counts.get(name, 0) + 1
        assert (block is None) == event.bad, f"{where}: {'refused' if block is None else 'not refused'}"
        if block is None:
            continue
        features, labels = read(block, actions=doors.actions)
        assert features == expected[name in JSON_DOORS], where
        label = label_of(event)
        if isinstance(label, tuple):
            found = [(i - 1, *costs) for i, (_, costs) in enumerate(labels) if costs]
            assert found == [label], where
        else:
            known = [value for value, costs in labels if value < 1e38 or costs]
            assert known == ([] if label is None else [label]), where
        if learns:
            predictions[name] = models[name].learn_block(block).one_prediction()
    if not learns:  # it takes long, and sums of huge numbers depend on their order
        return
    counts["learnt"] = counts.get("learnt", 0) + 1
    for name in skipped:
        models[name].learn_block(doors.dicts(event))  # so that it learns the same events as the others
    predictions["at once"] = models["at once"].learn(mapping_of(event))
    for name, prediction in predictions.items():
        close = name in JSON_DOORS or np.allclose(prediction, predictions["dicts"], rtol=1e-3, atol=1e-4)
        assert close, f"seed {seed}, {name}: {prediction}, not {predictions['dicts']}"
        if name in JSON_DOORS:
            assert np.allclose(prediction, predictions["dsjson"], rtol=1e-3, atol=1e-4), (
                f"seed {seed}, {name}"
            )


def pass_through(n: int, *, actions: bool, first: int = 0) -> dict[str, int]:
    """Pass `n` events through all source types; return the number of events of each."""
    doors, counts = Doors(actions=actions), dict[str, int]()
    options: dict[str, Any] = {"cb_adf": True} if actions else {}
    models: dict[str, Workspace] = {}
    for number in range(n):
        if number % _TOGETHER == 0:
            fresh = (*doors.all, "at once")
            models = {name: Workspace(**options, quadratic=["::"], bit_precision=10) for name in fresh}
        check(first + number, doors, models, counts)
    return counts


@pytest.mark.parametrize("actions", [False, True])
def test_every_source_type_yields_the_same_event(actions: bool) -> None:
    counts = pass_through(400, actions=actions)
    assert min(counts.values()) > 50, counts


@pytest.mark.fuzz
@pytest.mark.parametrize("actions", [False, True])
def test_every_source_type_yields_the_same_event_a_hundred_thousand_times(actions: bool) -> None:
    n, begin = int(os.environ.get("ONLINEAUTO_DOOR_EVENTS", "50000")), time.monotonic()
    for first in range(0, n, 1000):  # names of namespaces are forgotten now and then
        pass_through(min(1000, n - first), actions=actions, first=10**6 + first)
    sys.stdout.write(f"{n} events in {time.monotonic() - begin:.0f} s\n")
