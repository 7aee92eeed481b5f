"""Ids of decisions."""

from __future__ import annotations

import copy
import multiprocessing
import os

import pytest

from onlineauto.api.decisions.decisions import EventIds

pytestmark = pytest.mark.lane("quick")


def test_copies_give_other_ids() -> None:
    ids = EventIds()
    first = next(ids)
    assert next(copy.deepcopy(ids))[:12] != first[:12]
    assert next(ids)[:13] == first[:13]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_gives_other_ids() -> None:
    ids = EventIds()
    first = next(ids)
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    child = fork.Process(target=lambda: queue.put(next(ids)))
    child.start()
    assert queue.get()[:12] != first[:12]
    child.join()
    assert next(ids)[:13] == first[:13]
