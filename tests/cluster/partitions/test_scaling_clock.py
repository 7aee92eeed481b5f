"""The scaling clock is DL2's, and safe because nodes confirm it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onlineauto.cluster.partitions.scaling_clock import NodeTiming, ScalingClock, start_version

_TIMING = st.builds(NodeTiming, st.integers(1, 10**6), st.floats(0, 1e4), st.floats(0, 10))


@given(st.lists(_TIMING, min_size=1, max_size=5))
def test_clock_is_after_every_version_by_at_least_three_round_trips(timings: list[NodeTiming]) -> None:
    start, slowest = start_version(timings), max(timing.round_trip for timing in timings)
    for timing in timings:
        assert start >= timing.version + 3 * timing.speed * slowest + 3
    assert start_version([timing._replace(round_trip=0.0) for timing in timings]) == 3 + max(
        timing.version for timing in timings
    )


def test_change_waits_for_every_node() -> None:
    clock = ScalingClock({"server 0": NodeTiming(5, 2.0, 0.1), "worker 0": NodeTiming(6, 1.0, 0.2)})
    assert clock.start == 6 + 2 + 3
    assert clock.confirm("server 0", clock.start, 7)
    assert not clock.is_confirmed
    assert clock.confirm("worker 0", clock.start, clock.start - 1)
    assert clock.is_confirmed


def test_node_that_has_passed_the_clock_moves_it() -> None:
    clock = ScalingClock({"server 0": NodeTiming(5, 0.0, 0.0), "worker 0": NodeTiming(5, 0.0, 0.0)})
    first = clock.start
    assert clock.confirm("server 0", first, 5)
    assert not clock.confirm("worker 0", first, first + 4)
    assert clock.start == first + 4 + 3
    assert clock.confirm("worker 0", first, 6), "an answer to the first clock has no effect"
    assert not clock.is_confirmed
    assert clock.confirm("worker 0", clock.start, first + 4)
    assert not clock.is_confirmed, "the server has confirmed the first clock only"
    assert clock.confirm("server 0", clock.start, first)
    assert clock.is_confirmed


def test_dead_node_is_not_waited_for() -> None:
    clock = ScalingClock({"server 0": NodeTiming(5, 0.0, 0.0), "worker 0": NodeTiming(5, 0.0, 0.0)})
    clock.confirm("server 0", clock.start, 5)
    clock.remove("worker 0")
    assert clock.is_confirmed
    assert clock.confirm("worker 0", clock.start, clock.start + 9)
    assert clock.is_confirmed


@given(st.data())
def test_no_node_passes_a_confirmed_clock_in_any_order_of_messages(data: st.DataObject) -> None:
    versions = {name: data.draw(st.integers(0, 5)) for name in ("a", "b", "c")}
    clock = ScalingClock({name: NodeTiming(version, 0.0, 0.0) for name, version in versions.items()})
    holds = dict.fromkeys(versions, 10**9)  # a node that has heard of a clock before it stops there
    for _ in range(200):
        name = data.draw(st.sampled_from(sorted(versions)))
        if data.draw(st.booleans()):
            versions[name] = min(versions[name] + 1, holds[name])
        else:
            start = clock.start
            clock.confirm(name, start, versions[name])
            holds[name] = start if versions[name] < start else holds[name]
        if clock.is_confirmed:
            break
    if clock.is_confirmed:
        assert all(version <= clock.start for version in versions.values())
        assert set(holds.values()) == {clock.start}
