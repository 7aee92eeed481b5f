"""Copies of a workspace read, predict and learn like the original, and share no memory with it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from numpy.lib.array_utils import byte_bounds

from datasets import generate
from onlineauto import InputError, Workspace
from onlineauto.jit import Sealed
from tests.engine.event_texts import FORMATS, bandit
from tests.property.snapshot import named, saved_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Options = dict[str, Any]
    Clone = Callable[[Workspace], Workspace]

SIZES = (3, 1, 400, 2, 0, 9000, 7)


def pickled(workspace: Workspace) -> Workspace:
    copied = pickle.loads(pickle.dumps(workspace))  # noqa: S301 - its own
    assert isinstance(copied, Workspace)
    return copied


CLONES = [copy.copy, copy.deepcopy, pickled]


@pytest.mark.ci
@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.parametrize("exact", [False, True], ids=["native", "exact"])
@pytest.mark.parametrize(("options", "event"), FORMATS)
def test_copy_reads_texts_of_other_sizes(
    options: Options, event: Callable[[int], str], exact: bool, clone: Clone
) -> None:
    original, twin = (Workspace(**options, vw_exact=exact, bit_precision=12) for _ in range(2))
    for n in (1, 5):
        assert original.learn(event(n)).tobytes() == twin.learn(event(n)).tobytes()
    copied = clone(original)
    expected = [twin.learn(event(n)).tobytes() for n in SIZES]
    assert [copied.learn(event(n)).tobytes() for n in SIZES] == expected
    assert [original.learn(event(n)).tobytes() for n in SIZES] == expected
    assert copied.weights.tobytes() == original.weights.tobytes() == twin.weights.tobytes()


@pytest.mark.parametrize("clone", CLONES)
def test_copy_reports_problems_of_a_text(clone: Clone) -> None:
    original = Workspace()
    original.learn("1 |a x\n")
    for bad in ("one |a x", "1 |a x\n0 |b y", "", "1 |a x:1e99\n" * 3):
        messages = []
        for workspace in (original, clone(original)):
            with pytest.raises(InputError) as caught:
                workspace.learn(bad)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


# -- in the middle of a search -------------------------------------------------------------------------


SEARCHES: list[Options] = [
    {"quadratic": ["::"]},
    {"automl": 3, "default_lease": 50},
    {"automl": 2, "default_lease": 50, "epsilon_decay": True},
    {"automl": 2, "default_lease": 50, "vw_exact": True},
    {"bag": 3},
]
EVENTS = 3000


def parts_of(found: object) -> Iterator[tuple[object, object]]:
    """Yield what an object is made of, with what tells these parts apart."""
    if isinstance(found, Mapping):
        yield from ((f"key {i}", key) for i, key in enumerate(found))
        yield from ((i, part) for i, part in enumerate(found.values()))
    elif isinstance(found, MethodType):
        yield "self", found.__self__
    elif isinstance(found, Sealed):
        yield "value", found.value
    elif isinstance(found, list | tuple):
        yield from enumerate(found)
    elif type(found).__module__.startswith("onlineauto"):
        names = (name for each in type(found).__mro__ for name in getattr(each, "__slots__", ()))
        yield from ((name, getattr(found, name, None)) for name in names)
        yield from getattr(found, "__dict__", {}).items()


def arrays_of(workspace: Workspace) -> dict[str, np.ndarray | np.void]:
    """Every array that a workspace holds, by the way to it."""
    arrays: dict[str, np.ndarray | np.void] = {}
    seen, left = [], [("workspace", cast("object", workspace))]
    known: set[int] = set()
    while left:
        path, found = left.pop()
        if id(found) in known:
            continue
        known.add(id(found))
        seen.append(found)  # for its id to stay its own
        if isinstance(found, np.ndarray | np.void):
            arrays[path] = found
        else:
            left += [(f"{path}.{name}", part) for name, part in parts_of(found)]
    return arrays


def shared_by(arrays: Mapping[str, np.ndarray | np.void]) -> dict[tuple[str, str], int]:
    """Return the offset between the starts of each pair of arrays that share memory."""
    bounds = sorted((*bounds_of(array), path) for path, array in arrays.items())
    found = {}
    for i, (low, high, path) in enumerate(bounds):
        for low_, high_, path_ in bounds[i + 1 :]:
            if low_ >= high:
                break
            if high_ > low_:
                found[path, path_] = low_ - low
    return found


def bounds_of(array: np.ndarray | np.void) -> tuple[int, int]:
    if isinstance(array, np.void):
        begin = array.__array_interface__["data"][0]
        return begin, begin + array.nbytes
    return byte_bounds(array) if array.size else (0, 0)


@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.parametrize("options", SEARCHES, ids=named)
def test_arrays_that_share_memory_also_share_it_in_a_copy(options: Options, clone: Clone) -> None:
    original = Workspace(cb_explore_adf=True, bit_precision=12, **options)
    original.fit(generate.text("planted", events=EVENTS))
    original.predict(bandit(3))
    for workspace in (original, copied := clone(original)):
        for _ in range(2):  # so that both have everything that is made on first use
            workspace.learn(bandit(2))
            workspace.predict(bandit(2))
    arrays, copies = arrays_of(original), arrays_of(copied)
    assert copies.keys() == arrays.keys()
    assert len(arrays) > 80
    together = shared_by(arrays)
    assert shared_by(copies) == together
    assert together, "the table is the weights in another shape"
    between = {f"original {path}": each for path, each in arrays.items() if each.flags.writeable} | {
        f"copied {path}": each for path, each in copies.items()
    }
    assert [pair for pair in shared_by(between) if pair[0].split()[0] != pair[1].split()[0]] == []


@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.parametrize("options", SEARCHES, ids=named)
def test_copy_continues_the_search_like_the_original(options: Options, clone: Clone) -> None:
    text = generate.text("planted", events=2 * EVENTS)
    events = [event + b"\n\n" for event in text.removesuffix(b"\n\n").split(b"\n\n")]
    original = Workspace(cb_explore_adf=True, bit_precision=12, **options)
    original.fit(b"".join(events[:EVENTS]))
    copied = clone(original)
    saved = saved_of(original)
    copied.fit(b"".join(events[EVENTS:]))
    assert saved_of(original) == saved
    original.fit(b"".join(events[EVENTS:]))
    assert saved_of(copied) == saved_of(original) != saved
