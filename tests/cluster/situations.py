"""Clusters drawn by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from onlineauto.cluster import Row, Situation

_AMOUNT = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 0.1])


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Draw a job; it may take nothing at all of a resource, and no servers."""
    serves = draw(st.booleans())
    return Row(
        kind=draw(st.sampled_from(["study", "stream", "refit"])),
        age=draw(st.floats(0, 100)),
        done=draw(st.floats(0, 100)),
        remaining=draw(st.floats(0.01, 1000)),
        worker={"CPU": draw(_AMOUNT), "memory": draw(_AMOUNT)},
        server={"CPU": draw(_AMOUNT), "memory": draw(_AMOUNT)} if serves else {},
        most_workers=draw(st.integers(1, 6)),
        most_servers=draw(st.integers(1, 6)),
    )


def situations() -> SearchStrategy[Situation]:
    """Draw a cluster with up to six jobs on five rows."""
    has = st.fixed_dictionaries({"CPU": st.sampled_from([0.0, 1.0, 4.0, 9.7]), "memory": st.floats(0, 20)})
    return st.builds(
        lambda jobs, capacity: Situation.of(jobs, capacity, places=5), st.lists(rows(), max_size=6), has
    )


def linear(remaining: float, **also: object) -> Row:
    """Return a job that takes one CPU for a worker, and no servers."""
    known = {
        "kind": "linear",
        "age": 0,
        "done": 0,
        "worker": {"CPU": 1},
        "server": {},
        "remaining": remaining,
    }
    return Row(**{**known, **also})  # type: ignore[arg-type]
